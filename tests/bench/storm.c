/*
 * storm.c -- an honest client beside a hostile one.
 *
 * usage: storm waiters|readers|offers|connections PORT COUNT MILLISECONDS
 *
 * A child of this process is the hostile client. When it has what it needs it says so and goes on
 * at full speed until the end:
 *
 *   waiters      one owner waits for COUNT bytes of a file, asks for each again and again, and
 *                unlocks bytes between them
 *   readers      COUNT owners read a file; a writer that holds something else waits for it and asks
 *                again and again
 *   offers       COUNT bytes that it waits for are offered to it, and its host never answers
 *   connections  8 connections, 64 calls in flight on each: LOCK and UNLOCK
 *
 * The honest one has two hosts. One locks and unlocks, one call at a time; now and then the other
 * waits for a lock of the first, which gives it up: the time until its GRANTED callback has come is
 * measured. Nobody polls meanwhile.
 *
 * Prints a line of numbers for the bench; exit 1 when an answer was wrong. Needs port 111 of
 * loopback addresses: tests/bench/run gives it a network of its own.
 */
#include "peer/emu_client.h"
#include "peer/emu_table.h"
#include "peer/load.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS_NS          UINT64_C(1000000)
#define HOSTILE        UINT32_C(0x7f420001) /* 127.66.0.1 */
#define ACCOMPLICE     UINT32_C(0x7f420002)
#define HONEST         UINT32_C(0x7f280001) /* 127.40.0.1 */
#define CONNECTIONS    8
#define IN_FLIGHT      32
#define SETUP_MS       120000
#define GRANT_LIMIT_MS 60000
#define PAIRS_BETWEEN  20

enum storm_kind { STORM_WAITERS, STORM_READERS, STORM_OFFERS, STORM_CONNECTIONS, STORM_END };

static const char *const kinds[] = {"waiters", "readers", "offers", "connections"};

/* ---- the hostile one ---- */

struct hostile {
    enum storm_kind kind;
    uint16_t port;
    uint32_t count;
    struct load *load;
    uint32_t links[CONNECTIONS];
    uint64_t posted, answered, unexpected;
    uint32_t expected; /* status of every answer while it sets up */
};

static void die(const char *why)
{
    fprintf(stderr, "storm: the hostile client: %s\n", why);
    exit(1);
}

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    struct hostile *hostile = context;
    struct packet_reader reader = {reply->body, reply->body_len, false};
    static struct peer_nlm_res res;
    (void)link;
    (void)tag;
    hostile->answered++;
    if (!reply->accepted || !peer_nlm_get_res(&reader, 4, PEER_NLM_LOCK, &res) ||
        res.status != hostile->expected)
        hostile->unexpected++;
}

static uint32_t open_link(struct hostile *hostile, uint32_t address)
{
    struct dial_route route = {.server = dial_endpoint_v4(INADDR_LOOPBACK, hostile->port),
                               .source = dial_endpoint_v4(address, 0)};
    int link = load_open(hostile->load, &route);
    if (link < 0)
        die("cannot connect");
    return (uint32_t)link;
}

struct ask {
    enum peer_nlm_procedure procedure;
    uint32_t link, file, svid;
    uint64_t offset, len;
    bool exclusive, block;
};

static void post(struct hostile *hostile, const struct ask *ask)
{
    static struct peer_nlm_args args;
    static struct packet call;
    char name[24];
    snprintf(name, sizeof(name), "hostile%u", ask->link);
    args = (struct peer_nlm_args){.block = ask->block, .exclusive = ask->exclusive};
    args.cookie = peer_nlm_text("12345678");
    args.lock.caller_name = peer_nlm_text(name);
    args.lock.fh = emu_client_handle(ask->file);
    args.lock.oh = peer_nlm_text(name);
    args.lock.svid = ask->svid;
    args.lock.offset = ask->offset;
    args.lock.len = ask->len;
    peer_nlm_put_call(&call, 0, 4, ask->procedure, &args);
    while (load_in_flight(hostile->load, hostile->links[ask->link]) >= IN_FLIGHT)
        load_turn(hostile->load, 100);
    if (!load_post(hostile->load, hostile->links[ask->link], hostile->posted++, &call))
        die("the connection was closed");
}

/* Everything was answered, and as it should be. */
static void settle(struct hostile *hostile)
{
    uint64_t end_ns = dial_now_ns() + SETUP_MS * MS_NS;
    while (hostile->answered < hostile->posted && dial_now_ns() < end_ns)
        load_turn(hostile->load, 100);
    if (hostile->answered < hostile->posted || hostile->unexpected > 0)
        die("it was not answered as it should be");
}

static void hold(struct hostile *hostile, uint32_t link, uint32_t file)
{
    hostile->expected = PEER_NLM_IS_GRANTED;
    post(hostile, &(struct ask){PEER_NLM_LOCK, link, file, 1, 0, 0, true, false});
    settle(hostile);
}

static void wait_for_all(struct hostile *hostile)
{
    hostile->expected = PEER_NLM_IS_BLOCKED;
    for (uint32_t i = 0; i < hostile->count; i++)
        post(hostile, &(struct ask){PEER_NLM_LOCK, 0, 1, 1, 2 * (uint64_t)i, 1, true, true});
    settle(hostile);
}

/* A host where somebody listens and nobody answers. */
static void be_silent(uint32_t address)
{
    struct dial_endpoint at = dial_endpoint_v4(address, 111);
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(udp, (struct sockaddr *)&at.at, at.len) != 0 ||
        bind(tcp, (struct sockaddr *)&at.at, at.len) != 0 || listen(tcp, 4096) != 0)
        die("cannot have port 111");
}

static void prepare(struct hostile *hostile)
{
    hostile->links[0] = open_link(hostile, HOSTILE);
    hostile->links[1] = open_link(hostile, ACCOMPLICE);
    switch (hostile->kind) {
    case STORM_WAITERS:
        hold(hostile, 1, 1);
        hold(hostile, 0, 2);
        wait_for_all(hostile);
        break;
    case STORM_READERS:
        hold(hostile, 0, 2);
        for (uint32_t i = 0; i < hostile->count; i++)
            post(hostile, &(struct ask){PEER_NLM_LOCK, 1, 1, i, 0, 0, false, false});
        settle(hostile);
        break;
    case STORM_OFFERS:
        be_silent(HOSTILE);
        hold(hostile, 1, 1);
        wait_for_all(hostile);
        hostile->expected = PEER_NLM_IS_GRANTED;
        post(hostile, &(struct ask){PEER_NLM_UNLOCK, 1, 1, 1, 0, 0, true, false});
        settle(hostile);
        break;
    case STORM_CONNECTIONS:
        for (uint32_t i = 2; i < CONNECTIONS; i++)
            hostile->links[i] = open_link(hostile, HOSTILE);
        break;
    case STORM_END:
        break;
    }
}

static void rage(struct hostile *hostile, uint64_t i)
{
    uint64_t at = 2 * (i * 7919 % (hostile->count > 0 ? hostile->count : 1));
    uint32_t link = (uint32_t)(i / 2 % CONNECTIONS);
    enum peer_nlm_procedure turn = i % 2 ? PEER_NLM_UNLOCK : PEER_NLM_LOCK;
    switch (hostile->kind) {
    case STORM_WAITERS:
        post(hostile, turn == PEER_NLM_LOCK ? &(struct ask){turn, 0, 1, 1, at, 1, true, true}
                                            : &(struct ask){turn, 0, 1, 1, at + 1, 1, true, false});
        return;
    case STORM_READERS:
        post(hostile, &(struct ask){PEER_NLM_LOCK, 0, 1, 1, 0, 0, true, true});
        return;
    case STORM_CONNECTIONS:
        post(hostile,
             &(struct ask){turn, link, 10 + link, (uint32_t)(i / 16 % 1000), 0, 8, true, false});
        return;
    case STORM_OFFERS:
    case STORM_END:
        load_turn(hostile->load, 1000); /* the storm is the callbacks */
        return;
    }
}

static void be_hostile(struct hostile *hostile, int ready_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    hostile->load = load_new(CONNECTIONS, on_answer, hostile);
    if (!hostile->load)
        die("no memory");
    prepare(hostile);
    if (write(ready_fd, "r", 1) != 1)
        die("nobody listens");
    for (uint64_t i = 0;; i++)
        rage(hostile, i);
}

/* ---- the honest one ---- */

struct figures {
    uint64_t count, sum_ns, max_ns;
};

static void add(struct figures *figures, uint64_t from_ns)
{
    uint64_t took_ns = dial_now_ns() - from_ns;
    figures->count++;
    figures->sum_ns += took_ns;
    if (took_ns > figures->max_ns)
        figures->max_ns = took_ns;
}

static bool pair(struct emu_host *host, struct figures *locks)
{
    struct emu_request request = {.file = 100, .svid = 1, .exclusive = true, .len = 8};
    uint64_t start_ns = dial_now_ns();
    if (emu_client_lock(host, &request) != PEER_NLM_IS_GRANTED)
        return false;
    add(locks, start_ns);
    return emu_client_unlock(host, &request) == PEER_NLM_IS_GRANTED;
}

static bool hand_over(struct emu_host *from, struct emu_host *to, struct figures *grants)
{
    struct emu_request request = {.file = 101, .svid = 2, .exclusive = true, .len = 8};
    uint32_t wait;
    if (emu_client_lock(from, &request) != PEER_NLM_IS_GRANTED ||
        emu_client_block(to, &request, &wait) != PEER_NLM_IS_BLOCKED)
        return false;
    uint64_t start_ns = dial_now_ns();
    if (emu_client_unlock(from, &request) != PEER_NLM_IS_GRANTED ||
        emu_client_wait(to, wait, GRANT_LIMIT_MS) != PEER_NLM_IS_GRANTED)
        return false;
    add(grants, start_ns);
    return emu_client_unlock(to, &request) == PEER_NLM_IS_GRANTED;
}

static struct emu_host *new_host(uint32_t address, const char *name, uint16_t port)
{
    struct emu_host_config config = {.address = address,
                                     .name = name,
                                     .server = dial_endpoint_v4(INADDR_LOOPBACK, port),
                                     .portmap_port = 111};
    struct emu_host *host = emu_host_new(&emu_table_get("linux")->kind, &config);
    if (host) {
        host->timeout_ms = GRANT_LIMIT_MS;
        host->poll_ms = host->resend_ms = GRANT_LIMIT_MS;
    }
    return host;
}

static bool be_honest(uint16_t port, uint32_t milliseconds)
{
    struct figures locks = {0}, grants = {0};
    bool is_well = emu_net_start();
    struct emu_host *a = new_host(HONEST, "honest-a", port);
    struct emu_host *b = new_host(HONEST + 1, "honest-b", port);
    is_well = is_well && a && b;
    uint64_t end_ns = dial_now_ns() + milliseconds * MS_NS;
    while (is_well && (grants.count == 0 || dial_now_ns() < end_ns)) {
        for (uint32_t i = 0; i < PAIRS_BETWEEN && is_well; i++)
            is_well = pair(a, &locks);
        is_well = is_well && hand_over(a, b, &grants);
    }
    emu_host_free(a);
    emu_host_free(b);
    emu_net_stop();
    if (!is_well) {
        fprintf(stderr,
                "storm: the honest client was not served after %" PRIu64 " locks, %" PRIu64
                " callbacks\n",
                locks.count, grants.count);
        return false;
    }
    printf("storm locks=%" PRIu64 " mean_ns=%" PRIu64 " max_ns=%" PRIu64 " grants=%" PRIu64
           " grant_mean_ns=%" PRIu64 " grant_max_ns=%" PRIu64 "\n",
           locks.count, locks.sum_ns / locks.count, locks.max_ns, grants.count,
           grants.sum_ns / grants.count, grants.max_ns);
    return true;
}

int main(int count, char **arguments)
{
    struct hostile hostile = {.kind = STORM_END};
    int ready[2];
    char byte;
    for (int i = 0; count == 5 && i < STORM_END; i++)
        if (strcmp(arguments[1], kinds[i]) == 0)
            hostile.kind = (enum storm_kind)i;
    if (hostile.kind == STORM_END || pipe(ready) != 0) {
        fprintf(stderr, "usage: storm waiters|readers|offers|connections PORT COUNT MS\n");
        return 2;
    }
    hostile.port = (uint16_t)strtoul(arguments[2], NULL, 10);
    hostile.count = (uint32_t)strtoul(arguments[3], NULL, 10);
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        be_hostile(&hostile, ready[1]);
    }
    close(ready[1]);
    bool is_well = child > 0 && read(ready[0], &byte, 1) == 1 &&
                   be_honest(hostile.port, (uint32_t)strtoul(arguments[4], NULL, 10));
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return is_well ? 0 : 1;
}
