/*
 * store_tools.c -- `holdfast store`: a store moves to another one and loses nobody; so does who
 * comes from rpc.statd.
 *
 * Shown: (1) the records of a killed server go from LMDB to PostgreSQL and back as lines of JSON,
 * byte for byte; the server that starts on the copy knows every registrant and every lock, and its
 * state and epoch go on; (2) a damaged line and a store that is not empty are refused, and nothing
 * happens; (3) clients of rpc.statd's directory are told at the first start, which is incomplete
 * (D16): a reclaim that nobody stored is granted; a list that cannot be read to its end is refused;
 * (4) migrate prints, goes down and up, and not down while there are records, nor to the end when a
 * server has used it; (5) clear leaves the
 * server record alone, marked incomplete: state numbers go on, unknown reclaims are granted; it
 * refuses a store in use, asks first, and ends a server that it finds cut off; killed between two
 * batches it leaves a smaller store that says so; (6) import leaves a store in use alone, and ends
 * a server that it finds cut off before its first batch; (7) with --group each is about that group.
 */
#include "lock_call.h"
#include "peer/emu_client.h"
#include "peer/emu_portmap.h"
#include "peer/emu_table.h"
#include "peer/peer_nsm.h"
#include "postgres/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16
#define HOST_ADDRESS  UINT32_C(0x7f050001) /* 127.5.0.1 */
#define CALLER        UINT32_C(0x7f000009) /* 127.0.0.9 */
#define LOCKS         40
#define MANY          10100
#define PATIENCE_NS   UINT64_C(60000000000)

static pid_t spawn_words(const char *out, va_list words)
{
    const char *arguments[ARGUMENTS_MAX] = {getenv("HOLDFAST"), "store"};
    int count = 2;
    while ((arguments[count] = va_arg(words, const char *)) != NULL)
        if (++count == ARGUMENTS_MAX)
            abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int none = open("/dev/null", O_RDONLY); /* nobody is asked */
        dup2(none, 0);
        int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 1);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    return pid;
}

/* `holdfast store ...` with these words, NULL at the end; standard output goes to `out`. */
static pid_t spawn_tool(const char *out, ...)
{
    va_list words;
    va_start(words, out);
    pid_t pid = spawn_words(out, words);
    va_end(words);
    return pid;
}

/* The same, and its exit code. */
static int run_tool(const char *out, ...)
{
    va_list words;
    int status = 0;
    va_start(words, out);
    pid_t pid = spawn_words(out, words);
    va_end(words);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Waits until a question to a database has this answer. */
static void wait_for_answer(const char *database, const char *sql, const char *expected)
{
    const char *answer = NULL;
    uint64_t end_ns = dial_now_ns() + PATIENCE_NS;
    while (dial_now_ns() < end_ns) {
        answer = cluster_ask(harness_cluster(), database, sql);
        if (answer && strcmp(answer, expected) == 0)
            return;
        pause_briefly();
    }
    HARNESS_EXPECT(false, "%s: %s, never %s", sql, answer ? answer : "nothing", expected);
}

/* A session of somebody else, which holds on to something. */
static PGconn *hold_on_to(const char *database, const char *sql)
{
    char conninfo[256];
    snprintf(conninfo, sizeof(conninfo), "host=%s user=holdfast dbname=%s application_name=blocker",
             harness_cluster()->directory, database);
    PGconn *session = PQconnectdb(conninfo);
    PQclear(PQexec(session, "BEGIN"));
    PGresult *result = PQexec(session, sql);
    HARNESS_EXPECT(PQresultStatus(result) == PGRES_TUPLES_OK, "%s: %s", sql,
                   PQerrorMessage(session));
    PQclear(result);
    return session;
}

/* PostgreSQL ends the session of a server or a tool. */
static void end_session(const char *database)
{
    cluster_run(harness_cluster(), database,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'holdfast %'");
    wait_for_answer(database,
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                    "application_name LIKE 'holdfast %'",
                    "0");
}

static char *contents(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 20);
    if (!file || !text)
        abort();
    size_t len = fread(text, 1, (1 << 20) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "we");
    HARNESS_EXPECT(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0, "%s", path);
}

/* The same lines but for the first, which has the number of the last batch in it. */
static bool is_same_but_server(const char *one_path, const char *other_path)
{
    char *one = contents(one_path), *other = contents(other_path);
    char *rest = strchr(one, '\n'), *other_rest = strchr(other, '\n');
    bool is_same = rest && other_rest && strcmp(rest, other_rest) == 0;
    free(one);
    free(other);
    return is_same;
}

static void fill(const struct harness_server *server)
{
    for (uint32_t i = 0; i < LOCKS; i++) {
        struct lock_call lock = {.procedure = PEER_NLM_LOCK,
                                 .name = i % 2 ? "odd" : "even\xc3\xbc",
                                 .svid = i,
                                 .file = i / 3,
                                 .offset = 100 * (uint64_t)i,
                                 .len = i == 7 ? 0 : 10,
                                 .exclusive = i % 5 != 0,
                                 .state = 3};
        if (i == 7)
            lock.file = 1000; /* to the end of the file */
        int status = lock_call_once(server, CALLER, i % 4 == 0, &lock, NULL);
        HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "lock %u: %s", i, lock_call_text(status));
    }
    static struct packet call, answer;
    struct packet_reply reply;
    struct dial_route route = harness_route(server, false);
    struct peer_nsm_id id = {"watched", "watcher", 100021, 4, 16};
    uint8_t priv[PEER_NSM_PRIV_LEN] = {1, 2, 3};
    peer_nsm_put_mon(&call, 9, &id, priv);
    HARNESS_EXPECT(dial_call(&route, &call, 5000, &answer, &reply) == 0, "SM_MON");
}

/* Nothing is left but a server record: incomplete, and its state number as it was. */
static void expect_cleared(const char *url, uint32_t state)
{
    const char *json = harness_path("cleared.json");
    static const char one[] = "{\"kind\": \"end\", \"records\": 1, ";
    char number[32];
    snprintf(number, sizeof(number), "\"state\": %u,", state);
    HARNESS_EXPECT(run_tool(json, "export", "--store", url, NULL) == 0, "export");
    char *line = contents(json), *end = strchr(line, '\n');
    HARNESS_EXPECT(end && strncmp(end + 1, one, sizeof(one) - 1) == 0 &&
                       strstr(line, "\"kind\": \"server\"") && strstr(line, number) &&
                       strstr(line, "\"incomplete\": 1"),
                   "%s: %.400s", number, line);
    free(line);
}

static void move_store(void)
{
    struct harness_server server = {.listen = "127.0.0.1", .store = harness_path("first")};
    const char *json = harness_path("first.json"), *copy = harness_path("copy.json");
    const char *null = harness_path("null"), *shared = harness_postgres("moved");
    char first[256], third[256];
    snprintf(first, sizeof(first), "lmdb:%s", server.store);
    snprintf(third, sizeof(third), "lmdb:%s", harness_path("third"));
    if (!harness_start(&server))
        return;
    fill(&server);
    uint32_t state = server.state;
    HARNESS_EXPECT(run_tool(copy, "export", "--store", first, NULL) == 0, "export from the server");
    harness_stop(&server, SIGKILL);
    HARNESS_EXPECT(run_tool(json, "export", "--store", first, NULL) == 0, "export");
    HARNESS_EXPECT(is_same_but_server(json, copy), "the server's copy differs");
    HARNESS_EXPECT(run_tool(null, "import", "--store", shared, json, NULL) == 0, "import");
    HARNESS_EXPECT(run_tool(null, "import", "--store", shared, json, NULL) == 1,
                   "imported into a store that is not empty");
    HARNESS_EXPECT(run_tool(copy, "export", "--store", shared, NULL) == 0, "export of the copy");
    HARNESS_EXPECT(is_same_but_server(json, copy), "the copy differs");
    HARNESS_EXPECT(run_tool(null, "import", "--store", third, copy, NULL) == 0, "and back");
    HARNESS_EXPECT(run_tool(copy, "export", "--store", third, NULL) == 0, "export of the third");
    HARNESS_EXPECT(is_same_but_server(json, copy), "the third differs");

    server.store = shared;
    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.locks == LOCKS && server.clients == 3 && server.state == state + 2,
                   "%u locks, %u clients, state %u after %u", server.locks, server.clients,
                   server.state, state);
    HARNESS_EXPECT(run_tool(copy, "export", "--store", shared, NULL) == 0,
                   "a shared store can be read while it is used");
    HARNESS_EXPECT(
        run_tool(null, "import", "--store-timeout", "1", "--store", shared, json, NULL) == 74,
        "imported into a store in use");
    harness_stop(&server, SIGTERM);
    HARNESS_EXPECT(run_tool(null, "migrate", "--down", "--store", shared, NULL) == 0,
                   "a step down that drops no table");
    HARNESS_EXPECT(run_tool(null, "migrate", "--down", "--store", shared, NULL) == 74,
                   "a step down dropped locks");
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", shared, NULL) == 0, "clear");
    for (int step = 0; step < 2; step++) /* clear has brought the tables up again */
        HARNESS_EXPECT(run_tool(null, "migrate", "--down", "--store", shared, NULL) == 0,
                       "a step down of an empty store");
    HARNESS_EXPECT(run_tool(null, "migrate", "--down", "--store", shared, NULL) == 74,
                   "the last step down dropped the server's own record");
    HARNESS_EXPECT(run_tool(null, "migrate", "--store", shared, NULL) == 0, "up");
    expect_cleared(shared, server.state);
}

static void refuse_damage(void)
{
    const char *json = harness_path("damaged.json"), *null = harness_path("null2");
    char *lines = contents(harness_path("first.json")), url[256];
    snprintf(url, sizeof(url), "lmdb:%s", harness_path("untouched"));
    char *record = strstr(strchr(lines, '\n'), "\"record\": \"");
    record[strlen("\"record\": \"") + 40] ^= 1; /* one digit becomes another */
    write_file(json, lines, strlen(lines));
    HARNESS_EXPECT(run_tool(null, "import", "--store", url, json, NULL) == 1, "damage is taken");
    HARNESS_EXPECT(access(url + 5, F_OK) != 0, "and something was written");
    free(lines);
}

static void migrate(void)
{
    const char *store = harness_postgres("migrated"), *out = harness_path("sql");
    HARNESS_EXPECT(run_tool(out, "migrate", "--print", "--store", store, NULL) == 0, "--print");
    char *sql = contents(out);
    HARNESS_EXPECT(strstr(sql, "CREATE TABLE nsm_client_registrations") != NULL, "%s", sql);
    free(sql);
    const char *count = cluster_ask(harness_cluster(), "migrated",
                                    "SELECT to_regclass('nsm_client_registrations') IS NULL");
    HARNESS_EXPECT(count && *count == 't', "--print changed something");
    HARNESS_EXPECT(run_tool(out, "migrate", "--store", store, NULL) == 0, "up");
    for (int step = 0; step < 2; step++)
        HARNESS_EXPECT(run_tool(out, "migrate", "--down", "--store", store, NULL) == 0, "down");
    count = cluster_ask(harness_cluster(), "migrated", "SELECT version FROM holdfast_schema");
    HARNESS_EXPECT(count && *count == '1', "version %s", count ? count : "?");
    HARNESS_EXPECT(run_tool(out, "migrate", "--down", "--store", store, NULL) == 0,
                   "the last step of a database that no server has used");
    HARNESS_EXPECT(run_tool(out, "migrate", "--store", store, NULL) == 0, "up again");
    cluster_run(harness_cluster(), "migrated", "UPDATE holdfast_schema SET version = 99");
    HARNESS_EXPECT(run_tool(out, "migrate", "--store", store, NULL) == 78, "a newer schema");
}

static uint32_t count_lines(const char *path)
{
    char *text = contents(path);
    uint32_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    free(text);
    return count;
}

/* Each command is about the group that it names, and no other. */
static void name_groups(void)
{
    const char *store = harness_postgres("grouped"), *json = harness_path("first.json");
    const char *out = harness_path("group.json"), *null = harness_path("null3");
    uint32_t records = count_lines(json);
    for (int i = 0; i < 2; i++)
        HARNESS_EXPECT(run_tool(null, "import", "--group", i == 0 ? "a" : "b", "--store", store,
                                json, NULL) == 0,
                       "import into a group");
    HARNESS_EXPECT(run_tool(out, "export", "--group", "a", "--store", store, NULL) == 0 &&
                       count_lines(out) == records,
                   "export of a group: not %u records", records);
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--group", "a", "--store", store, NULL) == 0,
                   "clear of a group");
    HARNESS_EXPECT(run_tool(out, "export", "--group", "a", "--store", store, NULL) == 0 &&
                       count_lines(out) < records,
                   "nothing was cleared");
    HARNESS_EXPECT(run_tool(out, "export", "--group", "b", "--store", store, NULL) == 0 &&
                       count_lines(out) == records,
                   "another group was cleared");
    HARNESS_EXPECT(run_tool(null, "export", "--group", "c", "--store", store, NULL) == 74,
                   "a group that there is not");
    HARNESS_EXPECT(run_tool(null, "export", "--standby", "--group", "a", "--group", "b", "--store",
                            store, NULL) == 2,
                   "two groups at once");
}

static void come_from_statd(void)
{
    const char *directory = harness_path("statd"), *null = harness_path("null3");
    struct harness_server server = {.store = harness_path("imported"),
                                    .extra = {"--notify-timeout", "2"}};
    char url[256];
    const uint32_t state = 41;
    snprintf(url, sizeof(url), "lmdb:%s", server.store);
    mkdir(directory, 0700);
    mkdir(harness_path("statd/sm"), 0700);
    mkdir(harness_path("statd/sm.bak"), 0700);
    write_file(harness_path("statd/state"), &state, sizeof(state));
    write_file(harness_path("statd/sm/127.5.0.1"), "x\n", 2);
    write_file(harness_path("statd/sm.bak/127.5.0.1"), "x\n", 2);
    write_file(harness_path("statd/sm/no.such.name.invalid"), "x\n", 2);
    HARNESS_EXPECT(
        run_tool(null, "import", "--from", "rpc.statd", directory, "--store", url, NULL) == 1,
        "a name without an address was taken");
    unlink(harness_path("statd/sm.bak/127.5.0.1"));
    rmdir(harness_path("statd/sm.bak"));
    write_file(harness_path("statd/sm.bak"), "x\n", 2);
    HARNESS_EXPECT(run_tool(null, "import", "--from", "rpc.statd", directory, "--skip-unresolved",
                            "--store", url, NULL) == 2,
                   "some hosts could not be read, and were left out");
    unlink(harness_path("statd/sm.bak"));
    mkdir(harness_path("statd/sm.bak"), 0700);
    write_file(harness_path("statd/sm.bak/127.5.0.1"), "x\n", 2);
    HARNESS_EXPECT(run_tool(null, "import", "--from", "rpc.statd", directory, "--skip-unresolved",
                            "--store", url, NULL) == 0,
                   "import");
    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.clients == 1 && server.state > state && server.grace_s > 0,
                   "%u clients, state %u, grace %u", server.clients, server.state, server.grace_s);
    struct emu_host_config config = {.address = HOST_ADDRESS,
                                     .name = "linux",
                                     .server = dial_endpoint_v4(0x7f000001, server.port),
                                     .portmap_port = EMU_PORTMAP_PORT};
    struct emu_host *host = emu_host_new(&emu_table_get("linux")->kind, &config);
    if (!HARNESS_EXPECT(host, "no sockets: %s", strerror(errno)))
        return;
    uint32_t told = 0;
    for (uint64_t end_ns = dial_now_ns() + PATIENCE_NS; told == 0 && dial_now_ns() < end_ns;) {
        pause_briefly();
        EMU_NET_LOCKED(told = emu_host_count(host, PEER_NSM_PROGRAM, PEER_NSM_NOTIFY));
    }
    HARNESS_EXPECT(told > 0, "nobody told it");
    struct lock_call reclaim = {.procedure = PEER_NLM_LOCK,
                                .name = "linux",
                                .svid = 1,
                                .file = 1,
                                .len = 10,
                                .exclusive = true,
                                .reclaim = true,
                                .state = 5};
    int status = lock_call_once(&server, HOST_ADDRESS, false, &reclaim, NULL);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "its reclaim: %s", lock_call_text(status));
    emu_host_free(host);
    harness_stop(&server, SIGTERM);
}

/* ---- clear ---- */

/* `holdfast store clear` on a terminal of its own, where somebody types `answer`. */
static int clear_on_terminal(const char *answer, const char *store)
{
    int terminal = -1, status = 0;
    char said[512];
    fflush(stdout);
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        execl(getenv("HOLDFAST"), "holdfast", "store", "clear", "--store", store, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || write(terminal, answer, strlen(answer)) < 0)
        return -1;
    while (read(terminal, said, sizeof(said)) > 0)
        continue; /* until it has ended */
    close(terminal);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int reclaim(const struct harness_server *server, const char *name, bool is_reclaim)
{
    struct lock_call call = {.procedure = PEER_NLM_LOCK,
                             .name = name,
                             .svid = 1,
                             .file = 1,
                             .len = 10,
                             .exclusive = true,
                             .reclaim = is_reclaim,
                             .state = 5};
    return lock_call_once(server, CALLER, false, &call, NULL);
}

/* A store with locks, in use and then not; `store` as the harness has it, `url` as the tool. */
static void clear_store(const char *store, const char *url)
{
    struct harness_server server = {.listen = "127.0.0.1", .store = store};
    const char *null = harness_path("null4"), *json = harness_path("before.json");
    const char *after = harness_path("after.json");
    if (!harness_start(&server))
        return;
    fill(&server);
    uint32_t state = server.state;
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store-timeout", "1", "--store", url, NULL) ==
                       74,
                   "a store in use was cleared");
    harness_stop(&server, SIGKILL);

    HARNESS_EXPECT(run_tool(json, "export", "--store", url, NULL) == 0, "export");
    HARNESS_EXPECT(run_tool(null, "clear", "--store", url, NULL) == 2, "nobody confirmed it");
    HARNESS_EXPECT(clear_on_terminal("n\n", url) == 1, "it was not meant");
    HARNESS_EXPECT(run_tool(after, "export", "--store", url, NULL) == 0, "export");
    HARNESS_EXPECT(is_same_but_server(json, after), "something was removed all the same");
    HARNESS_EXPECT(clear_on_terminal("y\n", url) == 0, "it was meant");
    expect_cleared(url, state);
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", url, NULL) == 0, "once more");
    expect_cleared(url, state);

    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.locks == 0 && server.clients == 0 && server.state > state &&
                       server.grace_s > 0,
                   "%u locks, %u clients, state %u after %u, grace %u", server.locks,
                   server.clients, server.state, state, server.grace_s);
    int status = reclaim(&server, "odd", false);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRACE, "a new lock: %s", lock_call_text(status));
    status = reclaim(&server, "odd", true);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "a reclaim: %s", lock_call_text(status));
    status = reclaim(&server, "other", true);
    HARNESS_EXPECT(status != PEER_NLM_IS_GRANTED, "one that conflicts was granted");
    harness_stop(&server, SIGTERM);
}

/* A server that is cut off from its database while that is cleared must not answer afterwards. */
static void clear_behind_a_server(void)
{
    const char *url = harness_postgres("behind"), *null = harness_path("null5");
    struct harness_server server = {.listen = "127.0.0.1", .store = url};
    if (!harness_start(&server))
        return;
    fill(&server);
    kill(server.pid, SIGSTOP);
    end_session("behind");
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", url, NULL) == 0, "clear");
    kill(server.pid, SIGCONT);
    struct lock_call lock = {
        .procedure = PEER_NLM_LOCK, .name = "late", .svid = 1, .file = 9000, .len = 1, .state = 3};
    int status = lock_call_once(&server, CALLER, false, &lock, NULL);
    HARNESS_EXPECT(status < 0, "it answers: %s", lock_call_text(status));
    HARNESS_EXPECT(harness_stop(&server, SIGCONT) == 76, "it was not replaced");
    expect_cleared(url, server.state);
}

/* More records than one batch removes. */
static void clear_many(const char *url)
{
    const char *null = harness_path("null6"), *hosts = harness_path("statd2/sm");
    const uint32_t state = 7;
    char path[512];
    mkdir(harness_path("statd2"), 0700);
    mkdir(hosts, 0700);
    write_file(harness_path("statd2/state"), &state, sizeof(state));
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "%s/127.6.%u.%u", hosts, i / 250, i % 250 + 1);
        write_file(path, "x\n", 2);
    }
    HARNESS_EXPECT(run_tool(null, "import", "--from", "rpc.statd", harness_path("statd2"),
                            "--store", url, NULL) == 0,
                   "import");
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", url, NULL) == 0, "clear");
    expect_cleared(url, state);
}

/* Killed when the first of two batches has landed and the second has not; after clear_many. */
static void clear_and_die(void)
{
    const char *database = "killed", *url = harness_postgres(database);
    const char *null = harness_path("null8"), *json = harness_path("half.json");
    struct harness_server server = {.listen = "127.0.0.1", .store = url};
    int status = 0;
    HARNESS_EXPECT(run_tool(null, "import", "--from", "rpc.statd", harness_path("statd2"),
                            "--store", url, NULL) == 0,
                   "import");
    HARNESS_EXPECT(cluster_run(harness_cluster(), database,
                               "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
                               "'BEGIN PERFORM pg_advisory_xact_lock(42); RETURN OLD; END'") &&
                       cluster_run(harness_cluster(), database,
                                   "CREATE TRIGGER hold BEFORE DELETE ON clients FOR EACH ROW "
                                   "WHEN (OLD.slot = 0) EXECUTE FUNCTION hold()"),
                   "a trigger");
    PGconn *blocker = hold_on_to(database, "SELECT pg_advisory_xact_lock(42)");
    pid_t pid = spawn_tool(null, "clear", "--yes", "--store", url, NULL);
    wait_for_answer(database,
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND "
                    "application_name LIKE 'holdfast %'",
                    "1");
    HARNESS_EXPECT(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid &&
                       WIFSIGNALED(status),
                   "it has ended already");
    end_session(database);
    PQfinish(blocker);

    HARNESS_EXPECT(run_tool(json, "export", "--store", url, NULL) == 0, "export");
    char *lines = contents(json);
    HARNESS_EXPECT(strstr(lines, "\"incomplete\": 1"), "%.200s", lines);
    free(lines);
    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.clients == MANY - 10000 && server.state > 7 && server.grace_s > 0,
                   "%u clients, state %u, grace %u", server.clients, server.state, server.grace_s);
    int answer = reclaim(&server, "odd", true);
    HARNESS_EXPECT(answer == PEER_NLM_IS_GRANTED, "a reclaim: %s", lock_call_text(answer));
    harness_stop(&server, SIGKILL);
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", url, NULL) == 0, "clear again");
    expect_cleared(url, server.state);
}

static void clear_nothing(void)
{
    const char *null = harness_path("null7");
    char url[256];
    snprintf(url, sizeof(url), "lmdb:%s", harness_path("empty"));
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", NULL) == 2, "which store?");
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", "memory:", NULL) == 2, "memory:");
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", url, url, NULL) == 2, "a file?");
    HARNESS_EXPECT(access(url + 5, F_OK) != 0, "and something was written");
    HARNESS_EXPECT(run_tool(null, "clear", "--yes", "--store", url, NULL) == 0, "an empty store");
}

static void clear(void)
{
    char url[256];
    const char *store = harness_path("cleared"), *shared = harness_postgres("cleared");
    snprintf(url, sizeof(url), "lmdb:%s", store);
    clear_store(store, url);
    clear_store(shared, shared);
    clear_behind_a_server();
    snprintf(url, sizeof(url), "lmdb:%s", harness_path("many"));
    clear_many(url);
    clear_and_die();
    clear_nothing();
}

/* ---- import and servers ---- */

/*
 * A server that has opened an empty database and is cut off in its first commit. What is imported
 * meanwhile is a first batch, too, and not its own.
 */
static void import_behind_a_server(void)
{
    const char *database = "first", *url = harness_postgres(database);
    const char *null = harness_path("null9"), *json = harness_path("first_batch.json");
    const char *begun = harness_path("hook_begun"), *go = harness_path("hook_go");
    char hook[600];
    snprintf(hook, sizeof(hook), "touch %s; until [ -e %s ]; do sleep 0.05; done", begun, go);
    struct harness_server server = {
        .listen = "127.0.0.1", .store = url, .extra = {"--takeover-hook", hook}};
    harness_spawn(&server);
    for (uint64_t end_ns = dial_now_ns() + PATIENCE_NS;
         access(begun, F_OK) != 0 && dial_now_ns() < end_ns;)
        pause_briefly();
    PGconn *blocker = hold_on_to(database, "SELECT FROM server FOR UPDATE");
    write_file(go, "x", 1);
    wait_for_answer(database,
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                    "application_name LIKE 'holdfast %'",
                    "1");
    kill(server.pid, SIGSTOP);
    end_session(database);
    PQfinish(blocker);
    HARNESS_EXPECT(run_tool(null, "import", "--from", "rpc.statd", harness_path("statd"),
                            "--skip-unresolved", "--store", url, NULL) == 0,
                   "import");
    kill(server.pid, SIGCONT);
    for (uint64_t end_ns = dial_now_ns() + PATIENCE_NS;
         harness_is_alive(&server) && dial_now_ns() < end_ns;)
        pause_briefly();
    int code = harness_stop(&server, SIGTERM);
    HARNESS_EXPECT(code == 76, "the server took it for its own batch: exit %d", code);
    HARNESS_EXPECT(run_tool(json, "export", "--store", url, NULL) == 0, "export");
    char *lines = contents(json);
    HARNESS_EXPECT(strstr(lines, "127.5.0.1"), "%.400s", lines);
    free(lines);
}

int main(void)
{
    if (!emu_net_enter()) {
        printf("store_tools: skipped: no network namespace of its own (%s); it takes root\n",
               strerror(errno));
        return HARNESS_SKIPPED;
    }
    harness_init("store_tools");
    if (!emu_net_start())
        return 1;
    move_store();
    refuse_damage();
    migrate();
    name_groups();
    come_from_statd();
    clear();
    import_behind_a_server();
    emu_net_stop();
    return harness_finish();
}
