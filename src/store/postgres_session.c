/*
 * postgres_session.c -- a connection with deadlines; see postgres_session.h.
 *
 * libpq is used without blocking: what it has to send and to receive is waited for with poll().
 *
 * Of several hosts each has CONNECT_NS, or its share of the time that is left; the one that served
 * last comes first.
 *
 * What we rely on is set when a connection begins, whatever the database or the role say:
 *
 *   synchronous_commit       a commit that was confirmed survives a crash of PostgreSQL, and of a
 *                            replica that it waits for; remote_apply, which is stronger, stays
 *   idle_session_timeout     the session holds the lock that says who is active: it may be idle
 *   lock_timeout, ...        our own deadline is the one that counts
 *   default_transaction_*    read committed, and not read only
 *   search_path              of a group: its own schema, and nothing else (postgres_group.h)
 *   client_min_messages      warnings are sent: one is all that tells that a commit is not on its
 *                            replica
 *   tcp_keepalives_*,        a session whose machine is gone ends after 11 s, also while PostgreSQL
 *   tcp_user_timeout         has an answer in flight, which suspends keepalive; on a unix socket
 *                            they mean nothing
 *
 * statement_timeout stays as the operator set it: a statement that it ends is tried again.
 */
#include "store/postgres_session.h"

#include "base/check.h"
#include "base/units.h"
#include "store/postgres_group.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_NS (5000 * MS_NS) /* for one host; the next attempt is heard at once */

static const char settings[] =
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', "
    "'idle_in_transaction_session_timeout', 'transaction_timeout', 'lock_timeout') "
    "AND setting <> '0';"
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');"
    "SET client_min_messages = warning;"
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
    "SET tcp_user_timeout = 11000;"
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE";

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;
    CHECK(clock_gettime(id, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t postgres_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t postgres_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

bool postgres_pause(uint64_t pause_ns, uint64_t deadline_ns)
{
    uint64_t now_ns = postgres_now_ns();
    if (now_ns >= deadline_ns)
        return false;
    if (pause_ns > deadline_ns - now_ns)
        pause_ns = deadline_ns - now_ns;
    struct timespec pause = {.tv_sec = (time_t)(pause_ns / SECOND_NS),
                             .tv_nsec = (long)(pause_ns % SECOND_NS)};
    (void)nanosleep(&pause, NULL);
    return true;
}

/* Our name, for people reading pg_stat_activity and for our next connection. */
static void make_name(char name[static POSTGRES_NAME_MAX])
{
    char host[24] = "";
    uint64_t token = 0;
    (void)gethostname(host, sizeof host - 1);
    CHECK(getrandom(&token, sizeof token, 0) == sizeof token);
    (void)snprintf(name, POSTGRES_NAME_MAX, "holdfast %s %d %016llx", host, (int)getpid(),
                   (unsigned long long)token);
}

/* libpq's messages end with a new line and may have several. */
static void keep_text(char *kept, size_t size, const char *text)
{
    size_t len = 0;
    for (; *text != '\0' && len + 1 < size; text++) {
        bool is_break = *text == '\n' || *text == '\t';
        if (is_break && (len == 0 || kept[len - 1] == ' '))
            continue;
        kept[len++] = is_break ? ' ' : *text;
    }
    while (len > 0 && kept[len - 1] == ' ')
        len--;
    kept[len] = '\0';
}

/* What libpq would take for the name of a database it need not understand. Its words may quote any
 * part of the string, so they are not repeated when there may be a password in it: behind that
 * word, or in a URL before an @. */
static int check_conninfo(struct postgres_session *session)
{
    const char *conninfo = session->conninfo;
    char *words = NULL;
    if (strchr(conninfo, '=') == NULL && strstr(conninfo, "://") == NULL)
        return 0;
    bool may_be_secret = strstr(conninfo, "password") != NULL || strchr(conninfo, '@') != NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &words);
    if (options == NULL)
        keep_text(session->error.text, sizeof session->error.text,
                  words == NULL || may_be_secret ? "cannot parse the connection string" : words);
    PQfreemem(words);
    PQconninfoFree(options);
    return options == NULL ? -EINVAL : 0;
}

int postgres_session_init(struct postgres_session *session, const char *rest)
{
    *session = (struct postgres_session){0};
    make_name(session->name);
    /* postgres://host/name is a URL of its own: its scheme is ours. */
    bool is_url = strncmp(rest, "//", 2) == 0;
    size_t size = strlen(rest) + sizeof "postgres:";
    session->conninfo = malloc(size);
    if (session->conninfo == NULL)
        return -ENOMEM;
    (void)snprintf(session->conninfo, size, "%s%s", is_url ? "postgres:" : "", rest);
    int code = check_conninfo(session);
    return code != 0 ? code : postgres_hosts_init(&session->hosts, session->conninfo);
}

void postgres_session_done(struct postgres_session *session)
{
    postgres_session_cut(session);
    postgres_hosts_done(&session->hosts);
    free(session->conninfo);
    session->conninfo = NULL;
}

void postgres_session_cut(struct postgres_session *session)
{
    PQfinish(session->connection);
    session->connection = NULL;
}

void postgres_session_note(struct postgres_session *session, const PGresult *result)
{
    struct postgres_error *error = &session->error;
    const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    *error = (struct postgres_error){0};
    if (state != NULL)
        (void)snprintf(error->state, sizeof error->state, "%s", state);
    if (text == NULL)
        text = result != NULL ? PQresultErrorMessage(result) : PQerrorMessage(session->connection);
    keep_text(error->text, sizeof error->text, text);
}

bool postgres_error_may_pass(const struct postgres_error *error)
{
    /* By class: connection, transaction rolled back, resources, in use, lock not available,
     * operator intervention, system error; and the one of a server that only reads, which may be
     * about to be promoted. */
    static const char *const passing[] = {"08", "40", "53", "55006", "55P03", "57", "58", "25006"};
    if (error->state[0] == '\0')
        return true;
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (strncmp(error->state, passing[i], strlen(passing[i])) == 0)
            return true;
    return false;
}

/* Waits for the socket. False: the deadline has come. */
static bool wait_for(struct postgres_session *session, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now_ns = postgres_now_ns();
        if (now_ns >= deadline_ns)
            return false;
        uint64_t wait_ms = (deadline_ns - now_ns) / MS_NS + 1;
        struct pollfd ready = {.fd = PQsocket(session->connection), .events = events};
        int count = poll(&ready, 1, wait_ms > 1000 ? 1000 : (int)wait_ms);
        if (count > 0 || (count < 0 && errno != EINTR))
            return true; /* libpq finds out what is wrong with it */
    }
}

static enum postgres_outcome fail_connection(struct postgres_session *session, const char *instead)
{
    postgres_session_note(session, NULL);
    if (instead != NULL)
        keep_text(session->error.text, sizeof session->error.text, instead);
    postgres_session_cut(session);
    return POSTGRES_LOST;
}

static enum postgres_outcome await_connection(struct postgres_session *session,
                                              uint64_t deadline_ns)
{
    short events = POLLOUT;
    for (;;) {
        if (!wait_for(session, events, deadline_ns))
            return fail_connection(session, "no reply to the connection attempt");
        switch (PQconnectPoll(session->connection)) {
        case PGRES_POLLING_READING:
            events = POLLIN;
            continue;
        case PGRES_POLLING_WRITING:
            events = POLLOUT;
            continue;
        case PGRES_POLLING_OK:
            return POSTGRES_DONE;
        case PGRES_POLLING_FAILED:
        case PGRES_POLLING_ACTIVE: /* not in use any more */
            return fail_connection(session, NULL);
        }
    }
}

static enum postgres_outcome connect_to(struct postgres_session *session, uint32_t index,
                                        uint64_t deadline_ns)
{
    struct postgres_host at;
    postgres_hosts_at(&session->hosts, index, &at);
    /* What stands before dbname can be overruled by it, what stands behind it cannot. A network
     * that drops everything is noticed within about ten seconds; of several hosts
     * those that are replicas are passed over. */
    const char *keys[12] = {"keepalives_idle",  "keepalives_interval",  "keepalives_count",
                            "tcp_user_timeout", "target_session_attrs", "dbname",
                            "application_name", "client_encoding"};
    const char *values[12] = {"5",
                              "2",
                              "3",
                              "10000",
                              session->hosts.count > 1 ? "read-write" : "any",
                              session->conninfo,
                              session->name,
                              "SQL_ASCII"};
    uint32_t count = 8;
    const char *const names[] = {"host", "hostaddr", "port"};
    const char *const words[] = {at.host_value, at.hostaddr_value, at.port_value};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (words[i] != NULL) {
            keys[count] = names[i];
            values[count++] = words[i];
        }
    session->connection = PQconnectStartParams(keys, values, 1);
    enum postgres_outcome outcome =
        session->connection == NULL || PQstatus(session->connection) == CONNECTION_BAD
            ? fail_connection(session, NULL)
            : await_connection(session, deadline_ns);
    const char *name = at.host_value != NULL ? at.host_value : at.hostaddr_value;
    if (outcome != POSTGRES_DONE && name != NULL) {
        char text[sizeof session->error.text];
        (void)snprintf(text, sizeof text, "host %.80s: %.160s", name, session->error.text);
        memcpy(session->error.text, text, sizeof text);
    }
    return outcome;
}

/* Notices are for psql's users. A warning is not: a commit whose wait for a replica was cancelled
 * succeeds with one. */
static void on_notice(void *context, const PGresult *result)
{
    struct postgres_session *session = context;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity == NULL || strcmp(severity, "WARNING") != 0)
        return;
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    session->is_warned = true;
    keep_text(session->warning, sizeof session->warning, text == NULL ? "a warning" : text);
}

void postgres_session_begin(struct postgres_session *session)
{
    session->sent_ns = postgres_boot_ns();
    session->is_warned = false;
}

/* Connected: sets what we rely on. */
static enum postgres_outcome settle(struct postgres_session *session, uint64_t deadline_ns)
{
    (void)PQsetNoticeReceiver(session->connection, on_notice, session);
    if (PQserverVersion(session->connection) < 120000) {
        (void)fail_connection(session, "this PostgreSQL is older than version 12");
        (void)snprintf(session->error.state, sizeof session->error.state, "0A000");
        return POSTGRES_REFUSED;
    }
    if (PQsetnonblocking(session->connection, 1) != 0)
        return fail_connection(session, NULL);
    enum postgres_outcome outcome = postgres_session_run(session, settings, deadline_ns, NULL);
    if (outcome == POSTGRES_DONE && session->schema[0] != '\0')
        outcome = postgres_group_enter(session, deadline_ns);
    if (outcome == POSTGRES_REFUSED)
        postgres_session_cut(session);
    return outcome;
}

enum postgres_outcome postgres_session_connect(struct postgres_session *session,
                                               uint64_t deadline_ns)
{
    enum postgres_outcome outcome = POSTGRES_LOST;
    uint32_t count = session->hosts.count, first = session->host_index;
    postgres_session_cut(session);
    for (uint32_t i = 0; i < count && outcome == POSTGRES_LOST; i++) {
        uint32_t index = (first + i) % count;
        uint64_t now_ns = postgres_now_ns();
        uint64_t share_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / (count - i) : 0;
        uint64_t until_ns = now_ns + (share_ns < CONNECT_NS ? share_ns : CONNECT_NS);
        outcome = connect_to(session, index, until_ns);
        if (outcome == POSTGRES_DONE)
            outcome = settle(session, until_ns);
        if (outcome == POSTGRES_DONE)
            session->host_index = index;
    }
    return outcome;
}

static enum postgres_outcome send_all(struct postgres_session *session, uint64_t deadline_ns)
{
    for (;;) {
        int left = PQflush(session->connection);
        if (left < 0)
            return fail_connection(session, NULL);
        if (left == 0)
            return POSTGRES_DONE;
        if (!wait_for(session, POLLIN | POLLOUT, deadline_ns))
            return fail_connection(session, "no reply in time");
        if (PQconsumeInput(session->connection) == 0)
            return fail_connection(session, NULL);
    }
}

enum postgres_outcome postgres_session_next(struct postgres_session *session, uint64_t deadline_ns,
                                            PGresult **ret)
{
    enum postgres_outcome outcome = send_all(session, deadline_ns);
    if (outcome != POSTGRES_DONE)
        return outcome;
    while (PQisBusy(session->connection)) {
        if (!wait_for(session, POLLIN, deadline_ns))
            return fail_connection(session, "no reply in time");
        if (PQconsumeInput(session->connection) == 0)
            return fail_connection(session, NULL);
    }
    *ret = PQgetResult(session->connection);
    return POSTGRES_DONE;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

enum postgres_outcome postgres_session_run(struct postgres_session *session, const char *sql,
                                           uint64_t deadline_ns, PGresult **ret)
{
    PGresult *result = NULL, *last = NULL;
    bool is_refused = false;
    postgres_session_begin(session);
    if (PQsendQuery(session->connection, sql) == 0)
        return fail_connection(session, NULL);
    for (;;) {
        enum postgres_outcome outcome = postgres_session_next(session, deadline_ns, &result);
        if (outcome != POSTGRES_DONE) {
            PQclear(last);
            return outcome;
        }
        if (result == NULL)
            break;
        if (!is_good(result)) {
            postgres_session_note(session, result);
            is_refused = true;
        }
        PQclear(last);
        last = result;
    }
    if (!is_refused && ret != NULL)
        *ret = last;
    else
        PQclear(last);
    if (!is_refused)
        return POSTGRES_DONE;
    if (PQstatus(session->connection) == CONNECTION_BAD) {
        postgres_session_cut(session); /* what it said last is kept */
        return POSTGRES_LOST;
    }
    return POSTGRES_REFUSED;
}
