/*
 * peers.c -- the programs that are measured; see peers.h.
 */
#include "bench/peers.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATD_PORT     13024
#define STATD_OUT_PORT "13025"
#define PORTMAP_PORT   111
#define START_MS       20000
#define CONNECT_MS     10000
#define PATHS          8
#define HOSTS_SECONDS  "240"

static struct {
    struct peers_paths paths;
    struct process rpcbind;
    char why[REPORT_TEXT_MAX];
} peers;

void peers_init(const struct peers_paths *paths)
{
    peers.paths = *paths;
    process_set_directory(paths->work);
}

bool peers_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(peers.why, sizeof(peers.why), format, arguments);
    va_end(arguments);
    return false;
}

const char *peers_why(void)
{
    return peers.why;
}

const char *peers_path(const char *name)
{
    static char texts[PATHS][512];
    static uint32_t turn;
    char *text = texts[turn++ % PATHS];
    snprintf(text, sizeof(texts[0]), "%s/%s", peers.paths.work, name);
    return text;
}

const char *peers_holdfastd(void)
{
    return peers.paths.holdfastd;
}

const char *peers_tool(const char *name)
{
    static char text[512];
    snprintf(text, sizeof(text), "%s/%s", peers.paths.tools, name);
    return text;
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

void peers_remove(const char *name)
{
    nftw(peers_path(name), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "10,000 clients" has separators: a comma before a digit is one. */
static void remove_separators(char *text)
{
    size_t len = 0;
    for (const char *from = text; *from != '\0'; from++)
        if (*from != ',' || !isdigit((unsigned char)from[1]))
            text[len++] = *from;
    text[len] = '\0';
}

static bool read_readiness(struct peers_server *server, char *line)
{
    unsigned port;
    remove_separators(line);
    if (sscanf(line, "holdfast: ready on port %u (state %u, %u client%*[s,] %u lock", &port,
               &server->state, &server->clients, &server->locks) != 4)
        return peers_fail("holdfastd has another readiness line than the bench knows");
    server->port = (uint16_t)port;
    return true;
}

static bool read_monitor_readiness(struct peers_server *server, char *line)
{
    unsigned port;
    remove_separators(line);
    if (sscanf(line, "holdfast: monitoring on port %u (state %u, %u host", &port, &server->state,
               &server->clients) != 3)
        return peers_fail("holdfastd has another readiness line than the bench knows");
    server->port = (uint16_t)port;
    return true;
}

bool peers_boot_machine(void)
{
    static uint32_t boots;
    static const char *const directories[] = {"machine", "machine/proc", "machine/proc/sys",
                                              "machine/proc/sys/kernel",
                                              "machine/proc/sys/kernel/random"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
        (void)mkdir(peers_path(directories[i]), 0700); /* the file shows whether they are there */
    FILE *file = fopen(peers_path("machine/proc/sys/kernel/random/boot_id"), "we");
    if (!file)
        return peers_fail("cannot fake a boot: %s", strerror(errno));
    fprintf(file, "%08u-1111-2222-3333-444444444444\n", ++boots);
    return (fclose(file) == 0 && setenv("HOLDFAST_MACHINE_ROOT", peers_path("machine"), 1) == 0) ||
           peers_fail("cannot fake a boot: %s", strerror(errno));
}

bool peers_start_monitor(struct peers_server *server, const char *store, uint32_t clients_max,
                         const char *const more[])
{
    char url[600], max[16], line[256];
    snprintf(url, sizeof(url), "lmdb:%s", peers_path(store));
    snprintf(max, sizeof(max), "%u", clients_max);
    const char *arguments[PROCESS_ARGUMENTS_MAX] = {
        peers.paths.holdfastd, "--role",  "monitor", "--port",        "0", "--http", "off",
        "--no-rpcbind",        "--store", url,       "--max-clients", max};
    for (int count = 12; more && *more && count < PROCESS_ARGUMENTS_MAX - 1; more++)
        arguments[count++] = *more;
    *server = (struct peers_server){.kind = PEERS_HOLDFASTD, .started_ns = process_now_ns()};
    if (!process_start(&server->process, arguments) ||
        !process_wait_line(&server->process, "holdfast: monitoring on port ", START_MS, line,
                           sizeof(line))) {
        peers_fail("the monitor did not become ready: %s", process_last_words(&server->process));
        peers_stop(server, SIGKILL);
        return false;
    }
    server->ready_ns = process_now_ns();
    return read_monitor_readiness(server, line);
}

bool peers_start_holdfastd(struct peers_server *server, const char *store, uint32_t clients_max,
                           const char *const more[])
{
    char url[600], max[16], line[256];
    bool is_url = strncmp(store, "postgres:", 9) == 0;
    snprintf(url, sizeof(url), "%s%s", is_url ? "" : "lmdb:", is_url ? store : peers_path(store));
    snprintf(max, sizeof(max), "%u", clients_max);
    const char *arguments[PROCESS_ARGUMENTS_MAX] = {peers.paths.holdfastd,
                                                    "--port",
                                                    "0",
                                                    "--http",
                                                    "off",
                                                    "--no-rpcbind",
                                                    "--store",
                                                    url,
                                                    "--sync",
                                                    "full",
                                                    "--max-clients",
                                                    max,
                                                    "--max-per-address",
                                                    "100"}; /* one address plays all hosts */
    for (int count = 14; more && *more && count < PROCESS_ARGUMENTS_MAX - 1; more++)
        arguments[count++] = *more;
    *server = (struct peers_server){.kind = PEERS_HOLDFASTD, .started_ns = process_now_ns()};
    if (!process_start(&server->process, arguments) ||
        !process_wait_line(&server->process, "holdfast: ready on port ", START_MS, line,
                           sizeof(line))) {
        peers_fail("holdfastd did not become ready: %s", process_last_words(&server->process));
        peers_stop(server, SIGKILL);
        return false;
    }
    server->ready_ns = process_now_ns();
    return read_readiness(server, line);
}

bool peers_read_durable(const struct peers_server *server, struct peers_durable *ret)
{
    static const char said[] = "committed in this run ";
    struct peers_durable durable;
    char line[256];
    if (!process_find_line(&server->process, said, line, sizeof(line)) ||
        sscanf(strstr(line, said) + strlen(said),
               "batches=%" SCNu64 " records=%" SCNu64 " lock_changes=%" SCNu64, &durable.batches,
               &durable.records, &durable.lock_changes) != 3)
        return peers_fail("holdfastd did not say what it made durable: %s",
                          process_last_words(&server->process));
    *ret = durable;
    return true;
}

bool peers_read_round(const struct peers_server *server, struct peers_round *ret)
{
    static const char said[] = "first round of notifications finished"; /* clients= or hosts= */
    struct peers_round round;
    char line[256];
    if (!process_find_line(&server->process, said, line, sizeof(line)))
        return peers_fail("holdfastd has said nothing of it");
    remove_separators(line);
    if (sscanf(strstr(line, said) + strlen(said),
               " %*[a-z]=\"%u of %u reached, %u failed\" milliseconds=%u", &round.reached,
               &round.count, &round.failed, &round.took_ms) != 4)
        return peers_fail("holdfastd sums up a round in other words than the bench knows");
    *ret = round;
    return true;
}

bool peers_start_echo(struct peers_server *server)
{
    const char *arguments[] = {peers_tool("echo"), NULL};
    char line[128];
    unsigned port;
    *server = (struct peers_server){.kind = PEERS_ECHO};
    if (!process_start(&server->process, arguments) ||
        !process_wait_line(&server->process, "echo: ready", START_MS, line, sizeof(line)) ||
        sscanf(line, "echo: ready on port %u", &port) != 1)
        return peers_fail("the raw echo did not start: %s", process_last_words(&server->process));
    server->port = (uint16_t)port;
    return true;
}

bool peers_start_rpcbind(void)
{
    const char *arguments[] = {"rpcbind", "-f", NULL};
    if (process_is_alive(&peers.rpcbind))
        return true;
    if (!process_is_installed("rpcbind"))
        return peers_fail("rpcbind is not installed (Debian: rpcbind)");
    if (!process_start(&peers.rpcbind, arguments) ||
        !process_wait_port(&peers.rpcbind, PORTMAP_PORT, CONNECT_MS))
        return peers_fail("rpcbind did not start: %s", process_last_words(&peers.rpcbind));
    return true;
}

void peers_stop_rpcbind(void)
{
    (void)process_stop(&peers.rpcbind, SIGTERM);
}

/* One file: the address of who registered, program, version, procedure, priv, and the names. */
static bool write_statd_file(const char *directory, uint32_t address)
{
    char name[INET_ADDRSTRLEN], path[600];
    struct in_addr in = {htonl(address)};
    inet_ntop(AF_INET, &in, name, sizeof(name));
    snprintf(path, sizeof(path), "%s/sm/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    fprintf(file, "0100007f 000186b5 00000004 00000010 01020304000000000000000000000000 %s bench\n",
            name);
    return fclose(file) == 0;
}

bool peers_write_statd_directory(const char *name, uint32_t first, uint32_t count)
{
    static const uint8_t state[4] = {3};
    const char *directory = peers_path(name);
    char path[600];
    FILE *file;
    bool is_made = mkdir(directory, 0700) == 0;
    snprintf(path, sizeof(path), "%s/sm", directory);
    is_made = is_made && mkdir(path, 0700) == 0;
    snprintf(path, sizeof(path), "%s/sm.bak", directory);
    is_made = is_made && mkdir(path, 0700) == 0;
    snprintf(path, sizeof(path), "%s/state", directory);
    file = is_made ? fopen(path, "we") : NULL;
    is_made = file && fwrite(state, sizeof(state), 1, file) == 1;
    is_made = file && fclose(file) == 0 && is_made;
    for (uint32_t i = 0; is_made && i < count; i++)
        is_made = write_statd_file(directory, first + i);
    return is_made || peers_fail("cannot write %s: %s", directory, strerror(errno));
}

bool peers_start_statd(struct peers_server *server, const char *name, uint32_t registered)
{
    const char *directory = peers_path(name);
    char port[16];
    snprintf(port, sizeof(port), "%u", STATD_PORT);
    const char *arguments[] = {"rpc.statd", "-F",           "-L", "-p",      port,
                               "-o",        STATD_OUT_PORT, "-P", directory, NULL};
    *server = (struct peers_server){.kind = PEERS_STATD, .port = STATD_PORT};
    if (!process_is_installed("rpc.statd"))
        return peers_fail("rpc.statd is not installed (Debian: nfs-common)");
    /* The keys of the load generator are addresses in 10/8. */
    if (access(directory, F_OK) < 0 &&
        !peers_write_statd_directory(name, UINT32_C(10) << 24, registered))
        return false;
    if (!peers_start_rpcbind())
        return false;
    if (!process_start(&server->process, arguments) ||
        !process_wait_port(&server->process, STATD_PORT, START_MS)) {
        peers_fail("rpc.statd did not start: %s", process_last_words(&server->process));
        peers_stop(server, SIGKILL);
        return false;
    }
    return true;
}

void peers_stop(struct peers_server *server, int signal)
{
    (void)process_stop(&server->process, signal);
}

/* The arguments of one start of a generator. */
struct arguments {
    const char *list[PROCESS_ARGUMENTS_MAX];
    char texts[PROCESS_ARGUMENTS_MAX][600];
    int count;
};

__attribute__((format(printf, 2, 3))) static void add(struct arguments *arguments,
                                                      const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(arguments->texts[arguments->count], sizeof(arguments->texts[0]), format, values);
    va_end(values);
    arguments->list[arguments->count] = arguments->texts[arguments->count];
    arguments->list[++arguments->count] = NULL;
}

static void add_nsm(struct arguments *arguments, const struct peers_server *server,
                    const struct peers_traffic *traffic)
{
    add(arguments, "registered=%u", traffic->registered);
    add(arguments, "state=%u", server->state);
    if (server->kind == PEERS_ECHO)
        add(arguments, "void=1");
    if (traffic->keys)
        add(arguments, "keys=%s", peers_path(traffic->keys));
}

static void add_locks(struct arguments *arguments, const struct peers_traffic *traffic)
{
    add(arguments, "files=%u", traffic->files);
    add(arguments, "held=%u", traffic->held);
    if (traffic->sources > 0)
        add(arguments, "sources=%u", traffic->sources);
    if (traffic->source)
        add(arguments, "source=%s", traffic->source);
    if (traffic->handles)
        add(arguments, "handles=%s", peers_path(traffic->handles));
}

bool peers_begin_traffic(const struct peers_server *server, const struct peers_traffic *traffic,
                         struct process *ret)
{
    static struct arguments arguments;
    arguments.count = 0;
    add(&arguments, "%s", peers_tool(traffic->is_locks ? "locks" : "traffic"));
    add(&arguments, "%s", traffic->kind);
    add(&arguments, "%u", server->port);
    add(&arguments, "connections=%u", traffic->connections);
    add(&arguments, "in_flight=%u", traffic->in_flight);
    add(&arguments, "milliseconds=%u", traffic->milliseconds);
    add(&arguments, "drain=%u", traffic->drain_ms);
    if (traffic->is_locks)
        add_locks(&arguments, traffic);
    else
        add_nsm(&arguments, server, traffic);
    return process_start(ret, arguments.list) || peers_fail("cannot start the load generator");
}

bool peers_end_traffic(struct process *process, const struct peers_traffic *traffic,
                       struct report_sample *ret, uint64_t *ret_answered)
{
    uint64_t answered, wrong, missing, counted, window_ns, p50_ns, p99_ns, max_ns;
    char line[512];
    int code = process_wait_end(process, traffic->milliseconds + traffic->drain_ms + CONNECT_MS);
    if (!process_last_line(process, "traffic answered=", line, sizeof(line)) ||
        sscanf(line,
               "traffic answered=%" SCNu64 " wrong=%" SCNu64 " missing=%" SCNu64 " counted=%" SCNu64
               " window_ns=%" SCNu64 " p50_ns=%" SCNu64 " p99_ns=%" SCNu64 " max_ns=%" SCNu64,
               &answered, &wrong, &missing, &counted, &window_ns, &p50_ns, &p99_ns, &max_ns) != 8)
        return peers_fail("the load generator ended without a result: %s",
                          process_last_words(process));
    if (code != 0) {
        char words[200] = "";
        (void)process_last_line(process, "traffic:", words, sizeof(words));
        return peers_fail("%" PRIu64 " wrong answers, %" PRIu64 " missing. %s", wrong, missing,
                          words);
    }
    *ret = (struct report_sample){.rate =
                                      window_ns > 0 ? (double)counted * 1e9 / (double)window_ns : 0,
                                  .p50_us = (double)p50_ns / 1e3,
                                  .p99_us = (double)p99_ns / 1e3,
                                  .max_us = (double)max_ns / 1e3};
    *ret_answered = answered;
    return true;
}

/* The generator is left in *ret_generator, ended. */
static bool measure(const struct peers_server *server, const struct peers_traffic *traffic,
                    struct process *ret_generator, struct report_sample *ret)
{
    struct report_sample sample;
    uint64_t answered, before_ns = process_cpu_ns(&server->process);
    process_place(&server->process, traffic->is_apart ? PROCESS_LAST : PROCESS_ANYWHERE);
    process_place(NULL, traffic->is_apart ? PROCESS_NOT_LAST : PROCESS_ANYWHERE);
    bool has_begun = peers_begin_traffic(server, traffic, ret_generator);
    process_place(NULL, PROCESS_ANYWHERE);
    if (!has_begun || !peers_end_traffic(ret_generator, traffic, &sample, &answered))
        return false;
    uint64_t cpu_ns = process_cpu_ns(&server->process) - before_ns;
    sample.cpu_us = answered > 0 ? (double)cpu_ns / 1e3 / (double)answered : 0;
    *ret = sample;
    return true;
}

bool peers_measure(const struct peers_server *server, const struct peers_traffic *traffic,
                   struct report_sample *ret)
{
    struct process generator = {0};
    return measure(server, traffic, &generator, ret);
}

bool peers_measure_locks(const struct peers_server *server, const struct peers_traffic *traffic,
                         struct report_sample *ret, uint64_t *ret_changes)
{
    struct process generator = {0};
    char line[64];
    if (!measure(server, traffic, &generator, ret))
        return false;
    if (!process_last_line(&generator, "locks changes=", line, sizeof(line)) ||
        sscanf(line, "locks changes=%" SCNu64, ret_changes) != 1)
        return peers_fail("the load generator did not count its locks");
    return true;
}

bool peers_start_hosts(struct process *process, const char *first, uint32_t count)
{
    char number[16], line[128];
    snprintf(number, sizeof(number), "%u", count);
    const char *arguments[] = {peers_tool("hosts"), first, number, HOSTS_SECONDS, NULL};
    return (process_start(process, arguments) &&
            process_wait_line(process, "hosts called=", START_MS, line, sizeof(line))) ||
           peers_fail("the fake hosts did not start: %s", process_last_words(process));
}

bool peers_read_hosts(const struct process *process, struct peers_hosts *ret)
{
    struct peers_hosts hosts;
    char line[512];
    if (!process_last_line(process, "hosts called=", line, sizeof(line)) ||
        sscanf(line,
               "hosts called=%u asked=%u calls=%u foreign=%u unreadable=%u first_ns=%" SCNu64
               " last_ns=%" SCNu64 " state_low=%u state_high=%u",
               &hosts.called, &hosts.asked, &hosts.calls, &hosts.foreign, &hosts.unreadable,
               &hosts.first_ns, &hosts.last_ns, &hosts.state_low, &hosts.state_high) != 9)
        return peers_fail("the fake hosts say nothing: %s", process_last_words(process));
    *ret = hosts;
    return true;
}

bool peers_enroll(const struct peers_server *server, const char *first, uint32_t count,
                  const char *how)
{
    char port[16], number[16];
    struct process process = {0};
    snprintf(port, sizeof(port), "%u", server->port);
    snprintf(number, sizeof(number), "%u", count);
    const char *arguments[] = {peers_tool("enroll"), port, first, number, how, NULL};
    if (!process_start(&process, arguments) || process_wait_end(&process, 60000) != 0)
        return peers_fail("registration failed: %s", process_last_words(&process));
    return true;
}

bool peers_run(const char *const arguments[], struct process *ret)
{
    if (!process_is_installed(arguments[0]))
        return peers_fail("%s is not installed", arguments[0]);
    if (!process_start(ret, arguments) || process_wait_end(ret, 10000) != 0)
        return peers_fail("%s failed: %s", arguments[0], process_last_words(ret));
    return true;
}
