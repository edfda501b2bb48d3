/*
 * postgres_open.c -- how a store begins, and who it waits for; see postgres.h.
 *
 *   connect --> lock --> tables --> next epoch --> slots
 *      ^         ^  \                  |
 *      |         |   another has it:   |
 *      |         +-- wait              |
 *      +------ lost, or refused for now: say so, pause
 *
 * A standby waits forever, any other server for --store-timeout. What cannot improve (no
 * permission, a newer schema) ends it at once.
 *
 * A standby of several groups asks for the lock of each in turn, on one session, and is of the
 * first group that it gets; it asks for no other from then on. Two of them that wait for the same
 * groups get one each when both fall free. A group whose schema was dropped is not to be had, and
 * the others are; a schema is made at the start and never again, since it would be made empty.
 *
 * When PostgreSQL was away, a standby that finds it again holds back: a healthy active server comes
 * back first, and nobody has to reclaim anything.
 *
 * Always true: a server that is stopping does not raise the epoch, which would end the active
 * server.
 */
#include "base/text.h"
#include "base/units.h"
#include "store/postgres.h"

#include "store/postgres_group.h"
#include "store/postgres_load.h"
#include "store/postgres_schema.h"

#include <errno.h>
#include <stdio.h>

#define LOCK_NS             (10 * SECOND_NS)
#define STANDBY_PAUSE_NS    (SECOND_NS / 5)
#define STANDBY_COURTESY_NS (3 * SECOND_NS)
/* More than each of the hosts may take. */
#define STANDBY_CONNECT_NS (10 * SECOND_NS * POSTGRES_HOSTS_MAX)

static bool is_cancelled(const struct postgres *postgres)
{
    return postgres->options.is_cancelled != NULL &&
           postgres->options.is_cancelled(postgres->options.context);
}

static int fail_cancelled(const struct postgres *postgres, struct store_failure *ret_failure)
{
    store_fail(ret_failure, STORE_EXIT_STORE, "store %s: stopped by a signal; nothing was changed",
               postgres->shown);
    return -EIO;
}

/* Of a step that failed: -EAGAIN if it may succeed later, and -EIO. */
static int fail_for_now(const struct postgres *postgres, const char *what, const char *next,
                        struct store_failure *ret_failure)
{
    int code = postgres_fail(postgres, STORE_EXIT_STORE, what, next, ret_failure);
    return postgres_error_may_pass(&postgres->session.error) ? -EAGAIN : code;
}

/* Stop waiting: a signal arrived, or the time is up, which it never is for a standby. */
static bool is_over(const struct postgres *postgres, uint64_t deadline_ns)
{
    return is_cancelled(postgres) ||
           (postgres_now_ns() >= deadline_ns && !postgres->options.is_standby);
}

/* Sleeps; a stop signal wakes it. */
static void rest(const struct postgres *postgres, uint64_t rest_ns)
{
    uint64_t until_ns = postgres_now_ns() + rest_ns;
    while (!is_cancelled(postgres) && postgres_pause(STANDBY_PAUSE_NS, until_ns))
        continue;
}

/* What is waited for, and until when. */
static void say_waiting(struct postgres *postgres, const char *what)
{
    char sentence[128];
    (void)snprintf(sentence, sizeof sentence, "%s for at most %llu s (--store-timeout)", what,
                   (unsigned long long)(postgres->options.timeout_ns / SECOND_NS));
    postgres_say(postgres, postgres->options.is_standby ? what : sentence);
}

/* Reports what it waits for, and waits. False: stop waiting. */
static bool wait_on(struct postgres *postgres, uint64_t pause_ns, uint64_t deadline_ns)
{
    if (is_over(postgres, deadline_ns))
        return false;
    say_waiting(postgres, "waiting for PostgreSQL");
    rest(postgres, pause_ns);
    return !is_over(postgres, deadline_ns);
}

/* Connects, as long as it takes. 0, or as a step that failed. *ret_waited becomes true if not even
 * that went well at once. */
static int connect_patiently(struct postgres *postgres, uint64_t deadline_ns, bool *ret_waited,
                             struct store_failure *ret_failure)
{
    for (uint64_t pause_ns = POSTGRES_PAUSE_MIN_NS;; pause_ns = postgres_grow_pause(pause_ns)) {
        uint64_t try_until_ns =
            postgres->options.is_standby ? postgres_now_ns() + STANDBY_CONNECT_NS : deadline_ns;
        if (postgres_session_connect(&postgres->session, try_until_ns) == POSTGRES_DONE)
            return 0;
        int code = fail_for_now(postgres, "cannot connect", POSTGRES_ADVICE, ret_failure);
        *ret_waited = true;
        if (code != -EAGAIN || !wait_on(postgres, pause_ns, deadline_ns))
            return code;
    }
}

/* ---- the lock ---- */

/* How many places there are to be active in. */
static uint32_t place_count(const struct postgres *postgres)
{
    return postgres->options.group_count == 0 ? 1 : postgres->options.group_count;
}

static void choose_place(struct postgres *postgres, uint32_t index)
{
    const struct store_options *options = &postgres->options;
    postgres_group_choose(&postgres->session,
                          options->group_count == 0 ? NULL : options->groups[index]);
    postgres->group = index;
}

static int fail_to_make(const struct postgres *postgres, struct store_failure *ret_failure)
{
    static const char what[] = "cannot create the schema of its group";
    const struct postgres_session *session = &postgres->session;
    const char *user = PQuser(session->connection);
    char next[256],
        *role = user == NULL ? NULL : PQescapeIdentifier(session->connection, user, strlen(user));
    if (role == NULL) /* the connection was lost */
        return fail_for_now(postgres, what, POSTGRES_ADVICE, ret_failure);
    (void)snprintf(next, sizeof next,
                   "have the database owner run: CREATE SCHEMA \"%s\" AUTHORIZATION %s",
                   session->schema, role);
    PQfreemem(role);
    return fail_for_now(postgres, what, next, ret_failure);
}

/* The schemas of all groups, once: one that is gone later was dropped. As a step. */
static int make_places(struct postgres *postgres, struct store_failure *ret_failure)
{
    for (uint32_t i = 0; i < postgres->options.group_count && !postgres->has_places; i++) {
        choose_place(postgres, i);
        if (postgres_group_make(&postgres->session, postgres_now_ns() + LOCK_NS) != POSTGRES_DONE)
            return fail_to_make(postgres, ret_failure);
    }
    postgres->has_places = true;
    return 0;
}

/* The error of a session that got none of several: which schemas are gone, if any are, and which
 * groups have servers. */
static void say_none(struct postgres *postgres, const bool is_absent[static STORE_GROUPS_MAX])
{
    const struct store_options *options = &postgres->options;
    uint32_t absent = 0, served = 0;
    struct text text;
    text_init(&text, postgres->session.error.text, sizeof postgres->session.error.text);
    for (uint32_t i = 0; i < options->group_count; i++) {
        if (!is_absent[i])
            continue;
        choose_place(postgres, i);
        text_add(&text, absent++ == 0 ? "not for the group of schema " : ", ");
        text_add(&text, postgres->session.schema);
    }
    if (absent > 0)
        text_add(&text, ", which is gone: restore it, or remove the group from the configuration");
    for (uint32_t i = 0; i < options->group_count; i++) {
        if (is_absent[i])
            continue;
        text_add(&text, served++ > 0 ? ", " : absent > 0 ? "; groups " : "groups ");
        text_add(&text, options->groups[i]);
    }
    text_add(&text, served > 0 ? " have active servers" : "");
}

/* Tries each once. The one that was taken is chosen then, and PostgreSQL knows it. */
static enum postgres_lock try_places(struct postgres *postgres)
{
    struct postgres_session *session = &postgres->session;
    uint32_t count = place_count(postgres);
    bool is_absent[STORE_GROUPS_MAX] = {false};
    enum postgres_lock result = POSTGRES_LOCK_OTHERS;
    for (uint32_t i = 0; i < count && result == POSTGRES_LOCK_OTHERS; i++) {
        choose_place(postgres, i);
        result = postgres_fence_lock(session, postgres_now_ns() + LOCK_NS);
        is_absent[i] = result == POSTGRES_LOCK_ABSENT;
        if (is_absent[i] && count > 1)
            result = POSTGRES_LOCK_OTHERS;
    }
    if (result == POSTGRES_LOCK_OTHERS && count > 1)
        say_none(postgres, is_absent);
    bool is_new_to_session = result == POSTGRES_LOCK_TAKEN && session->schema[0] != '\0';
    if (is_new_to_session &&
        postgres_group_enter(session, postgres_now_ns() + LOCK_NS) != POSTGRES_DONE)
        return POSTGRES_LOCK_FAILED;
    return result;
}

/* Shows, or no longer, that this session stands by for each. The chosen one stays chosen. */
static enum postgres_outcome show_waiting(struct postgres *postgres, bool is_waiting)
{
    uint32_t chosen = postgres->group;
    enum postgres_outcome outcome = POSTGRES_DONE;
    for (uint32_t i = 0; i < place_count(postgres) && outcome == POSTGRES_DONE; i++) {
        uint64_t deadline_ns = postgres_now_ns() + LOCK_NS;
        choose_place(postgres, i);
        outcome = is_waiting ? postgres_fence_wait(&postgres->session, deadline_ns)
                             : postgres_fence_wait_no_more(&postgres->session, deadline_ns);
    }
    choose_place(postgres, chosen);
    return outcome;
}

/* Connected: asks for the lock until the caller must decide. 0, -EAGAIN, -EIO. */
static int ask_for_lock(struct postgres *postgres, uint64_t deadline_ns,
                        struct store_failure *ret_failure)
{
    bool is_standby = postgres->options.is_standby, is_shown = false;
    for (;;) {
        if (is_cancelled(postgres))
            return fail_cancelled(postgres, ret_failure);
        enum postgres_lock lock = try_places(postgres);
        if (lock == POSTGRES_LOCK_TAKEN &&
            (!is_shown || show_waiting(postgres, false) == POSTGRES_DONE))
            return 0;
        if (lock == POSTGRES_LOCK_ABSENT)
            return postgres_fail(postgres, STORE_EXIT_STORE, "its group is gone",
                                 "restore that schema from a backup, or remove the group from the "
                                 "configuration: the next start with it would begin an empty one",
                                 ret_failure);
        if (lock != POSTGRES_LOCK_OTHERS)
            return fail_for_now(postgres, "cannot take its lock", POSTGRES_ADVICE, ret_failure);
        say_waiting(postgres, is_standby ? "standing by" : "waiting for it");
        if (is_over(postgres, deadline_ns))
            return postgres_fail(postgres, STORE_EXIT_STORE, "in use by another server",
                                 "stop that one, or start this one with --standby", ret_failure);
        if (is_standby && !is_shown && show_waiting(postgres, true) != POSTGRES_DONE)
            return fail_for_now(postgres, "cannot take its lock", POSTGRES_ADVICE, ret_failure);
        is_shown = is_standby;
        rest(postgres, STANDBY_PAUSE_NS);
    }
}

/* The lock, or the wait for it. The connection may come and go meanwhile. As a step. */
static int lock_patiently(struct postgres *postgres, uint64_t deadline_ns,
                          struct store_failure *ret_failure)
{
    for (uint64_t pause_ns = POSTGRES_PAUSE_MIN_NS;; pause_ns = postgres_grow_pause(pause_ns)) {
        bool was_away = pause_ns > POSTGRES_PAUSE_MIN_NS;
        int code = connect_patiently(postgres, deadline_ns, &was_away, ret_failure);
        if (code != 0)
            return code;
        if (was_away && postgres->options.is_standby)
            rest(postgres, STANDBY_COURTESY_NS);
        code = make_places(postgres, ret_failure);
        if (code == 0)
            code = ask_for_lock(postgres, deadline_ns, ret_failure);
        if (code != -EAGAIN || !wait_on(postgres, pause_ns, deadline_ns))
            return code;
    }
}

static int prepare_schema(struct postgres *postgres, uint64_t deadline_ns,
                          struct store_failure *ret_failure)
{
    uint32_t version = 0;
    bool is_stray = false;
    struct postgres_session *session = &postgres->session;
    if (session->schema[0] == '\0' &&
        postgres_group_find_stray(session, deadline_ns, &is_stray) != POSTGRES_DONE)
        return fail_for_now(postgres, "cannot find its tables", POSTGRES_ADVICE, ret_failure);
    if (is_stray)
        return postgres_fail(postgres, STORE_EXIT_STORE, POSTGRES_GROUP_STRAY,
                             POSTGRES_GROUP_STRAY_ADVICE, ret_failure);
    if (postgres_schema_version(session, deadline_ns, &version) != POSTGRES_DONE)
        return fail_for_now(postgres, "cannot read the version of its tables", POSTGRES_ADVICE,
                            ret_failure);
    if (version > postgres_migration_count) {
        (void)snprintf(session->error.text, sizeof session->error.text,
                       "version %u, this holdfast supports %u", version, postgres_migration_count);
        return postgres_fail(
            postgres, STORE_EXIT_NEWER, "its tables were created by a newer holdfast",
            "run that version, or \"holdfast store migrate --down\" with it; nothing was "
            "changed",
            ret_failure);
    }
    if (version == postgres_migration_count)
        return 0;
    if (postgres->options.is_reader && version == 0 && session->schema[0] != '\0') {
        (void)snprintf(session->error.text, sizeof session->error.text,
                       "no server has served \"%s\"", postgres->options.groups[postgres->group]);
        return postgres_fail(postgres, STORE_EXIT_STORE, "no such group",
                             "\"holdfast groups\" lists those that there are", ret_failure);
    }
    if (postgres->options.is_reader) {
        (void)snprintf(session->error.text, sizeof session->error.text, "version %u of %u", version,
                       postgres_migration_count);
        return postgres_fail(postgres, STORE_EXIT_STORE, "its tables are not up to date",
                             "run \"holdfast store migrate\" first", ret_failure);
    }
    if (postgres_schema_move(session, version, postgres_migration_count, deadline_ns) !=
        POSTGRES_DONE)
        return fail_for_now(
            postgres, "cannot create its tables",
            "give holdfast its own database, and have its owner run \"holdfast store migrate\"",
            ret_failure);
    return 0;
}

static int begin_fence(struct postgres *postgres, uint64_t deadline_ns,
                       struct store_failure *ret_failure)
{
    struct postgres_session *session = &postgres->session;
    enum postgres_outcome outcome = POSTGRES_DONE;
    if (is_cancelled(postgres))
        return fail_cancelled(postgres, ret_failure);
    if (postgres->options.is_server) {
        outcome = postgres_fence_raise(session, postgres->options.addresses[postgres->group],
                                       deadline_ns, &postgres->fence);
        postgres->checked_ns = session->sent_ns;
    }
    if (!postgres->options.is_server && !postgres->options.is_reader)
        outcome = postgres_fence_read(session, deadline_ns, &postgres->fence);
    if (outcome == POSTGRES_DONE && !postgres->options.is_reader)
        outcome = postgres_batch_prepare(session, deadline_ns);
    if (outcome == POSTGRES_DONE)
        return 0;
    return fail_for_now(postgres, "cannot begin", POSTGRES_ADVICE, ret_failure);
}

/*
 * Who names several hosts means to go on with another one when the first is gone. That keeps what
 * was acknowledged only if PostgreSQL waits for a replica with every commit. Not knowing is no
 * reason not to serve.
 */
static void note_replicas(struct postgres *postgres, uint64_t deadline_ns,
                          struct store_summary *summary)
{
    PGresult *result = NULL;
    if (postgres->session.hosts.count < 2 || !postgres->options.is_server ||
        postgres_session_run(&postgres->session,
                             "SELECT current_setting('synchronous_standby_names') = ''",
                             deadline_ns, &result) != POSTGRES_DONE)
        return;
    if (PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't')
        (void)snprintf(summary->note, sizeof summary->note,
                       "store %.120s: it names several hosts, but PostgreSQL waits for no replica "
                       "(synchronous_standby_names is empty): if a replica is promoted, "
                       "acknowledged locks may be lost; set synchronous_standby_names, or use "
                       "--assume-lost after a failover",
                       postgres->shown);
    PQclear(result);
}

/* 0, -EAGAIN, -EIO. */
static int open_once(struct postgres *postgres, uint64_t deadline_ns, struct store_summary *summary,
                     struct store_failure *ret_failure)
{
    const struct store_options *options = &postgres->options;
    bool has_waited = false; /* meaningless for a reader, which takes no lock */
    int code = options->is_reader
                   ? connect_patiently(postgres, deadline_ns, &has_waited, ret_failure)
                   : lock_patiently(postgres, deadline_ns, ret_failure);
    deadline_ns =
        postgres_now_ns() + options->timeout_ns; /* the lock may have been held for long */
    if (code == 0)
        code = prepare_schema(postgres, deadline_ns, ret_failure);
    if (code == 0)
        code = begin_fence(postgres, deadline_ns, ret_failure);
    if (code == 0 &&
        postgres_load_slots(&postgres->session, deadline_ns, summary->slots_used) != POSTGRES_DONE)
        code = fail_for_now(postgres, "cannot read it", POSTGRES_ADVICE, ret_failure);
    if (code == 0)
        note_replicas(postgres, deadline_ns, summary);
    summary->group = postgres->group;
    return code;
}

/* What is refused for now, or lost on the way, is tried again, as a database that is away. */
int postgres_open_begin(struct postgres *postgres, struct store_summary *ret_summary,
                        struct store_failure *ret_failure)
{
    uint64_t deadline_ns = postgres_now_ns() + postgres->options.timeout_ns;
    choose_place(postgres, 0);
    for (uint64_t pause_ns = POSTGRES_PAUSE_MIN_NS;; pause_ns = postgres_grow_pause(pause_ns)) {
        int code = open_once(postgres, deadline_ns, ret_summary, ret_failure);
        if (code != -EAGAIN || !wait_on(postgres, pause_ns, deadline_ns))
            return code;
    }
}
