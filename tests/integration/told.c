/*
 * told.c -- after kill -9 every client that held monitored locks hears SM_NOTIFY, in a way that it
 * takes for us.
 *
 * Emulated hosts (tests/peer) of every kind mount the server under the name or address that they
 * would use, and lock. The server is killed and started again. Shown: the status monitor of each
 * recognises the restart (2.4), called from the address that was mounted (R-NOTIFY-1) and a
 * privileged port (R-NOTIFY-3), over TCP (D4), under each name once with one larger, odd state
 * (R-NOTIFY-2); one that was never monitored hears nothing (R-NM-1); one that is gone is tried in
 * vain, counts as crashed, and stays marked (D5, P3). The store says so after a clean stop, and the
 * start after that begins anew.
 */
#include "harness.h"
#include "peer/emu_client.h"
#include "peer/emu_portmap.h"
#include "peer/emu_table.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_ADDRESS UINT32_C(0x7f050001) /* 127.5.0.1 */
#define SERVER_AT     UINT32_C(0x7f000001)
#define PATIENCE_MS   60000

enum { GONE, PCNFS, HOST_COUNT = 8 };

static const struct {
    const char *kind, *name, *server_name; /* NULL: by address */
} cast[HOST_COUNT] = {
    [GONE] = {"linux", "gone", NULL},
    [PCNFS] = {"pcnfs", "pc", "nas"},
    {"linux", "linux", NULL},
    {"linux", "linux-by-name", "nas.example"},
    {"freebsd", "freebsd", "nas.example"},
    {"macos", "macos", "nas"},
    {"solaris", "solaris", "nas"},
    {"hpux-like", "hpux", "NAS.example"}, /* as typed at the mount */
};

static struct emu_host *hosts[HOST_COUNT];
static struct harness_server server;

static void make_hosts(void)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        struct emu_host_config config = {.address = FIRST_ADDRESS + i,
                                         .name = cast[i].name,
                                         .server = dial_endpoint_v4(SERVER_AT + i % 2, server.port),
                                         .server_name = cast[i].server_name,
                                         .portmap_port = EMU_PORTMAP_PORT};
        struct emu_request request = {
            .file = 1, .svid = 7, .exclusive = true, .offset = 100 * (uint64_t)i, .len = 10};
        hosts[i] = emu_host_new(&emu_table_get(cast[i].kind)->kind, &config);
        if (!HARNESS_EXPECT(hosts[i], "%s: no sockets: %s", cast[i].name, strerror(errno)))
            continue;
        int status = emu_client_lock(hosts[i], &request);
        HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "%s: lock: %d", cast[i].name, status);
    }
}

static uint32_t notices(const struct emu_host *host)
{
    uint32_t count;
    EMU_NET_LOCKED(count = emu_host_count(host, PEER_NSM_PROGRAM, PEER_NSM_NOTIFY));
    return count;
}

static bool log_says(const char *text)
{
    for (int i = 0; i < PATIENCE_MS / 50; i++) {
        if (harness_log_contains(&server, text))
            return true;
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return false;
}

/* The notices from `first` on: each name once, all with our state, from where it knows us. */
static void judge_notices(const struct emu_host *host, uint32_t index, uint32_t first)
{
    uint32_t count = emu_host_count(host, PEER_NSM_PROGRAM, PEER_NSM_NOTIFY);
    for (uint32_t i = first; i < count; i++) {
        const struct emu_record *got = emu_host_nth(host, PEER_NSM_PROGRAM, PEER_NSM_NOTIFY, i);
        HARNESS_EXPECT(got->is_readable && got->args.state == server.state,
                       "%s: state %u in a notice of state %u", host->name, got->args.state,
                       server.state);
        HARNESS_EXPECT(got->from == SERVER_AT + index % 2 && got->from_port < 1024 && !got->is_udp,
                       "%s: told from %s, port %u, over %s", host->name,
                       emu_host_address_text(got->from), got->from_port,
                       got->is_udp ? "UDP" : "TCP");
        for (uint32_t k = first; k < i; k++) {
            const struct emu_record *other =
                emu_host_nth(host, PEER_NSM_PROGRAM, PEER_NSM_NOTIFY, k);
            HARNESS_EXPECT(
                !peer_nlm_bytes_equal(&got->args.lock.caller_name, &other->args.lock.caller_name),
                "%s: the same name twice", host->name);
        }
    }
    HARNESS_EXPECT(count >= first + 3, "%s: %u names", host->name, count - first);
}

/* Everybody but the first two has heard of as many restarts. */
static void judge_round(uint32_t restarts, uint32_t *firsts)
{
    if (!HARNESS_EXPECT(log_says("first round of notifications finished"), "the round never ends"))
        return;
    for (uint32_t i = PCNFS + 1; i < HOST_COUNT; i++) {
        emu_net_lock();
        uint32_t seen = hosts[i]->restarts_seen;
        /* Linux acts once on a state, others on every name that they know. */
        bool is_once = hosts[i]->kind->statd == EMU_STATD_ADDRESS_OR_NAME;
        HARNESS_EXPECT(is_once ? seen == restarts : seen >= restarts && seen % restarts == 0,
                       "%s took %u notices for us in %u restarts", hosts[i]->name, seen, restarts);
        judge_notices(hosts[i], i, firsts[i]);
        emu_net_unlock();
        firsts[i] = notices(hosts[i]);
    }
    HARNESS_EXPECT(notices(hosts[PCNFS]) == 0, "PC-NFS was told, and has no status monitor");
    HARNESS_EXPECT(log_says("a client is unreachable"), "nobody is missed");
    HARNESS_EXPECT(harness_log_contains(&server, "name=\"gone\""), "it is not said who");
}

struct verdict {
    uint32_t told, crashed, seen;
};

/* A client's line of store_dump. */
static void read_client(void *context, const char *line)
{
    struct verdict *verdict = context;
    const char *told = strstr(line, "told_state="), *flags = strstr(line, " flags=");
    unsigned state, bits;
    if (strncmp(line, "client", 6) != 0 || !told || !flags ||
        sscanf(told, "told_state=%u", &state) != 1 || sscanf(flags, " flags=%u", &bits) != 1)
        return;
    verdict->seen++;
    verdict->told += state == server.state;
    verdict->crashed += bits >> 1 & 1;
    bool is_gone = strstr(line, "gone") != NULL;
    HARNESS_EXPECT(is_gone == ((bits & 2) != 0), "a mark too many or too few: %s", line);
}

static void judge_store(void)
{
    struct verdict verdict = {0};
    int code = harness_stop(&server, SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    HARNESS_EXPECT(harness_dump_lines(server.store, read_client, &verdict), "no store");
    HARNESS_EXPECT(
        verdict.seen == HOST_COUNT && verdict.told == HOST_COUNT - 2 && verdict.crashed == 1,
        "of %u clients %u are told, %u crashed", verdict.seen, verdict.told, verdict.crashed);
}

int main(void)
{
    static const char *const options[] = {"--name", "nas.example",      "--name",
                                          "nas",    "--notify-timeout", "2"};
    uint32_t firsts[HOST_COUNT] = {0};
    if (!emu_net_enter()) {
        printf("told: skipped: no network namespace of its own (%s); it takes root\n",
               strerror(errno));
        return HARNESS_SKIPPED;
    }
    harness_init("told");
    server.store = harness_path("store");
    for (uint32_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        server.extra[i] = options[i];
    if (!emu_net_start() || !harness_start(&server))
        return 1;
    make_hosts();
    uint32_t before = server.state;
    harness_stop(&server, SIGKILL);
    emu_host_free(hosts[GONE]);
    if (harness_start(&server)) {
        HARNESS_EXPECT(server.state > before && server.state % 2 == 1, "state %u after %u",
                       server.state, before);
        judge_round(1, firsts);
        judge_store();
    }
    if (harness_start(&server)) {
        judge_round(2, firsts);
        judge_store();
    }
    for (uint32_t i = PCNFS; i < HOST_COUNT; i++)
        emu_host_free(hosts[i]);
    emu_net_stop();
    return harness_finish();
}
