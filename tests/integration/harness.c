/*
 * harness.c -- real server processes for the integration tests; see harness.h.
 *
 * What the server prints goes to a file, which is polled for the readiness line and read again
 * by tests that count log lines. PR_SET_PDEATHSIG makes the kernel end the server when the test
 * ends, also when meson kills it for being late.
 */
#include "harness.h"

#if HOLDFAST_POSTGRES
#include "postgres/cluster.h"
#endif

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(60000000000)
#define PATHS_MAX   96

static struct {
    const char *name, *command, *dump;
    char directory[128];
    char paths[PATHS_MAX][192];
    uint32_t paths_count;
    uint32_t checks, failures, starts;
} harness;

static void pause_briefly(void)
{
    struct timespec pause = {.tv_nsec = 2000000};
    nanosleep(&pause, NULL);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    if (!value) {
        fprintf(stderr, "%s is not set: run this through `meson test`, or set it\n", name);
        exit(1);
    }
    return value;
}

void harness_init(const char *name)
{
    harness.name = name;
    harness.command = variable("HOLDFAST");
    harness.dump = variable("STORE_DUMP");
    const char *parent = getenv("TMPDIR");
    snprintf(harness.directory, sizeof(harness.directory), "%s/holdfast-%s-XXXXXX",
             parent ? parent : "/tmp", name);
    if (!mkdtemp(harness.directory)) {
        perror(harness.directory);
        exit(1);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
}

const char *harness_path(const char *name)
{
    if (harness.paths_count == PATHS_MAX) {
        fprintf(stderr, "harness_path: more than %d paths\n", PATHS_MAX);
        abort();
    }
    char *path = harness.paths[harness.paths_count++];
    snprintf(path, sizeof(harness.paths[0]), "%s/%s", harness.directory, name);
    return path;
}

#if HOLDFAST_POSTGRES
static struct cluster cluster;

struct cluster *harness_cluster(void)
{
    const char *why = "the private PostgreSQL does not start";
    if (cluster.directory[0] != '\0')
        return &cluster;
    if (!cluster_init(&cluster, &why) || !cluster_start(&cluster)) {
        printf("skipped: %s\n", why);
        cluster_done(&cluster);
        rmdir(harness.directory);
        exit(HARNESS_SKIPPED);
    }
    return &cluster;
}

const char *harness_postgres(const char *database)
{
    if (!cluster_fresh(harness_cluster(), database)) {
        fprintf(stderr, "no database %s\n", database);
        exit(1);
    }
    if (harness.paths_count == PATHS_MAX)
        abort();
    char *url = harness.paths[harness.paths_count++];
    snprintf(url, sizeof(harness.paths[0]), "%s", cluster_url(&cluster, database));
    return url;
}

/* PostgreSQL may still be at the last commit of a server that was killed. */
static void wait_for_sessions(void)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    const char *count;
    do {
        count = cluster_ask(&cluster, "postgres",
                            "SELECT count(*) FROM pg_stat_activity "
                            "WHERE application_name LIKE 'holdfast %'");
        if (count && strcmp(count, "0") == 0)
            return;
        pause_briefly();
    } while (dial_now_ns() < deadline_ns);
    HARNESS_EXPECT(false, "%s sessions of the server do not end", count ? count : "the");
}

/* The URL of a database that is made when it is first asked for. */
static const char *database_instead(const char *name)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM pg_database WHERE datname = '%s'", name);
    const char *count = cluster_ask(harness_cluster(), "postgres", sql);
    if (!count || (strcmp(count, "0") == 0 && !cluster_fresh(&cluster, name))) {
        fprintf(stderr, "no database %s\n", name);
        exit(1);
    }
    return cluster_url(&cluster, name);
}

static void stop_cluster(void)
{
    if (cluster.directory[0] != '\0')
        cluster_done(&cluster);
}
#else
struct cluster *harness_cluster(void)
{
    printf("skipped: this build has no libpq (Debian: libpq-dev)\n");
    rmdir(harness.directory);
    exit(HARNESS_SKIPPED);
}

const char *harness_postgres(const char *database)
{
    (void)database;
    (void)harness_cluster();
    return NULL;
}

static void wait_for_sessions(void)
{
}

static const char *database_instead(const char *name)
{
    return harness_postgres(name);
}

static void stop_cluster(void)
{
}
#endif

/* The store as the server is told of it: a URL, or a directory. With HOLDFAST_STORE=postgres a
 * database of the directory's name takes its place. */
static void store_url(const char *store, char *url, size_t size)
{
    const char *instead = getenv("HOLDFAST_STORE");
    if (strncmp(store, "postgres:", 9) == 0)
        snprintf(url, size, "%s", store);
    else if (instead && strcmp(instead, "postgres") == 0)
        snprintf(url, size, "%s", database_instead(strrchr(store, '/') + 1));
    else
        snprintf(url, size, "lmdb:%s", store);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

int harness_finish(void)
{
    stop_cluster();
    nftw(harness.directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%s: %u checks, %u failed\n", harness.name, harness.checks, harness.failures);
    return harness.failures == 0 && harness.checks > 0 ? 0 : 1;
}

bool harness_expect(bool condition, const char *file, int line, const char *text,
                    const char *format, ...)
{
    harness.checks++;
    if (condition)
        return true;
    harness.failures++;
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED %s:%d: %s: ", file, line, text);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    return false;
}

static void run_server(const struct harness_server *server, const char *store, pid_t parent)
{
    const char *arguments[32 + HARNESS_EXTRA_MAX];
    char port[16];
    size_t count = 0;
    snprintf(port, sizeof(port), "%u", server->port);
    const char *fixed[] = {harness.command, "serve", "--port", port, "--http", "off", "--store",
                           store, "--grace", "5", "--rpcbind", "off",
                           /* one loopback address plays many hosts */
                           "--max-per-address", "100"};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        arguments[count++] = fixed[i];
    if (server->listen) {
        arguments[count++] = "--listen";
        arguments[count++] = server->listen;
    }
    for (size_t i = 0; i < HARNESS_EXTRA_MAX && server->extra[i]; i++)
        arguments[count++] = server->extra[i];
    arguments[count] = NULL;
    int log = open(server->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    execv(harness.command, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

void harness_spawn(struct harness_server *server)
{
    pid_t parent = getpid();
    server->port = 0;
    snprintf(server->log, sizeof(server->log), "%s/log.%u", harness.directory, ++harness.starts);
    fflush(stdout);
    char url[256];
    store_url(server->store, url, sizeof(url));
    server->start_ns = dial_now_ns();
    server->pid = fork();
    if (server->pid == 0)
        run_server(server, url, parent);
    if (server->pid < 0) {
        perror("fork");
        exit(1);
    }
}

/* A number with thousands separators; a comma without a digit behind it is not part of it. */
static uint32_t number_at(const char **at)
{
    uint32_t value = 0;
    for (; isdigit((unsigned char)**at) || (**at == ',' && isdigit((unsigned char)(*at)[1]));
         (*at)++)
        if (**at != ',')
            value = value * 10 + (uint32_t)(**at - '0');
    return value;
}

/* Reads the number behind `words`, and moves on. */
static bool number_after(const char **at, const char *words, uint32_t *ret)
{
    const char *found = strncmp(*at, words, strlen(words)) == 0 ? *at : NULL;
    if (!found)
        return false;
    *at = found + strlen(words);
    *ret = number_at(at);
    return true;
}

/* A number, then one of these and as many as it says: "1 lock", "2 locks". */
static bool count_before(const char **at, const char *noun, uint32_t *ret)
{
    char words[32];
    if (!number_after(at, "", ret))
        return false;
    snprintf(words, sizeof(words), " %s%s", noun, *ret == 1 ? "" : "s");
    if (strncmp(*at, words, strlen(words)) != 0)
        return false;
    *at += strlen(words);
    return true;
}

/* holdfast: ready on port N (state S, C clients, L locks, grace G s) */
static bool parse_readiness(const char *line, struct harness_server *server)
{
    uint32_t port, state, clients, locks, grace;
    const char *at = strstr(line, "holdfast: ready on port ");
    if (!at || !number_after(&at, "holdfast: ready on port ", &port) ||
        !number_after(&at, " (state ", &state) || strncmp(at, ", ", 2) != 0)
        return false;
    at += 2;
    if (!count_before(&at, "client", &clients) || strncmp(at, ", ", 2) != 0)
        return false;
    at += 2;
    if (!count_before(&at, "lock", &locks) || !number_after(&at, ", grace ", &grace) ||
        strncmp(at, " s)\n", 4) != 0)
        return false;
    server->port = (uint16_t)port;
    server->state = state;
    server->clients = clients;
    server->locks = locks;
    server->grace_s = grace;
    return true;
}

typedef bool (*line_fn)(void *context, const char *line);

/* True when `visit` returned true for a line of the file. */
static bool visit_lines(const char *path, line_fn visit, void *context)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    if (!file)
        return false;
    while (!found && getline(&line, &size, file) > 0)
        found = visit(context, line);
    free(line);
    fclose(file);
    return found;
}

static bool is_readiness(void *context, const char *line)
{
    return parse_readiness(line, context);
}

static bool print_line(void *context, const char *line)
{
    (void)context;
    printf("    log: %s", line);
    return false;
}

bool harness_is_alive(const struct harness_server *server)
{
    siginfo_t info = {0};
    return server->pid > 0 &&
           waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

bool harness_wait_ready(struct harness_server *server)
{
    for (;;) {
        bool is_alive = harness_is_alive(server);
        uint64_t took_ns = dial_now_ns() - server->start_ns;
        if (visit_lines(server->log, is_readiness, server)) {
            server->start_ns = took_ns;
            return true;
        }
        if (!is_alive || took_ns > PATIENCE_NS)
            break;
        pause_briefly();
    }
    HARNESS_EXPECT(false, "the server did not become ready; its log:");
    visit_lines(server->log, print_line, NULL);
    return false;
}

bool harness_start(struct harness_server *server)
{
    harness_spawn(server);
    if (harness_wait_ready(server))
        return true;
    (void)harness_stop(server, SIGKILL);
    return false;
}

int harness_stop(struct harness_server *server, int signal)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    int status = 0;
    if (server->pid <= 0)
        return -1;
    kill(server->pid, signal);
    while (harness_is_alive(server)) {
        if (dial_now_ns() > deadline_ns) {
            kill(server->pid, SIGKILL);
            waitpid(server->pid, &status, 0);
            server->pid = 0;
            return -1;
        }
        pause_briefly();
    }
    waitpid(server->pid, &status, 0);
    server->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct dial_route harness_route(const struct harness_server *server, bool is_udp)
{
    return (struct dial_route){.is_udp = is_udp,
                               .server = dial_endpoint_v4(INADDR_LOOPBACK, server->port)};
}

static bool take_rss(void *context, const char *line)
{
    uint64_t *kib = context;
    if (strncmp(line, "VmRSS:", 6) != 0)
        return false;
    *kib = strtoull(line + 6, NULL, 10);
    return true;
}

uint64_t harness_rss_kib(const struct harness_server *server)
{
    char path[64];
    uint64_t kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)server->pid);
    (void)visit_lines(path, take_rss, &kib);
    return kib;
}

static bool count_line(void *context, const char *line)
{
    uint32_t *count = context;
    (void)line;
    (*count)++;
    return false;
}

uint32_t harness_log_lines(const struct harness_server *server)
{
    uint32_t count = 0;
    (void)visit_lines(server->log, count_line, &count);
    return count;
}

static bool has_text(void *context, const char *line)
{
    return strstr(line, context) != NULL;
}

bool harness_log_contains(const struct harness_server *server, const char *text)
{
    return visit_lines(server->log, has_text, (void *)(uintptr_t)text);
}

/* The two kinds of lines that callers look at; store_dump.c has the others. */
static bool parse_record(const char *line, struct harness_record *ret)
{
    struct harness_record record = {0};
    unsigned long long id, epoch;
    if (sscanf(line, "server slot=0 txn=%*u epoch=%llu next_id=%*u state=%u", &epoch,
               &record.state) == 2) {
        record.is_server = true;
    } else if (sscanf(line,
                      "registrant slot=%*u id=%llu registered_ns=%*u server_epoch=%llu "
                      "address=%63s local=%*s port=%*u transport=%*u my_prog=%u my_vers=%u "
                      "my_proc=%u told_state=%*u relayed_state=%*u priv=%32s mon_name=%3099s "
                      "my_name=%3099s",
                      &id, &epoch, record.address, &record.my_prog, &record.my_vers,
                      &record.my_proc, record.priv, record.mon_name, record.my_name) == 9) {
        record.id = id;
    } else {
        return false;
    }
    record.epoch = epoch;
    *ret = record;
    return true;
}

struct dump_context {
    harness_record_fn visit;
    void *context;
};

static bool is_other_record(const char *line)
{
    static const char *const kinds[] = {"notice ", "client ", "lock ", "waiter ", "share "};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(line, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

static void dump_line(void *context, const char *line)
{
    struct dump_context *dump = context;
    struct harness_record record;
    if (parse_record(line, &record))
        dump->visit(dump->context, &record);
    else if (!is_other_record(line))
        HARNESS_EXPECT(false, "unknown line of store_dump: %s", line);
}

struct lines_context {
    harness_line_fn visit;
    void *context;
};

static bool pass_line(void *context, const char *line)
{
    struct lines_context *lines = context;
    lines->visit(lines->context, line);
    return false;
}

bool harness_dump_lines(const char *store, harness_line_fn visit, void *context)
{
    char path[192], url[256];
    int status;
    snprintf(path, sizeof(path), "%s/dump", harness.directory);
    store_url(store, url, sizeof(url));
    if (strncmp(url, "postgres:", 9) == 0)
        wait_for_sessions();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(out, 1);
        execl(harness.dump, harness.dump, url, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid ||
        !HARNESS_EXPECT(status == 0, "store_dump %s failed", url))
        return false;
    struct lines_context lines = {visit, context};
    (void)visit_lines(path, pass_line, &lines);
    return true;
}

bool harness_dump(const char *store, harness_record_fn visit, void *context)
{
    struct dump_context dump = {visit, context};
    return harness_dump_lines(store, dump_line, &dump);
}

uint32_t harness_number(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

uint64_t harness_seed(void)
{
    const char *text = getenv("HOLDFAST_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 0) : dial_now_ns();
    printf("%s: HOLDFAST_SEED=%llu\n", harness.name, (unsigned long long)seed);
    return seed;
}

uint64_t harness_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}
