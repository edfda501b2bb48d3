/*
 * locks_limits.c -- the limits of locks, waiters and clients, and the options that concern locks,
 * as clients meet them.
 *
 * Passing proves (D2, R-SEC-6, R-SEC-7, R-RNG-5, D14), over the wire:
 *  (1) over --max-locks-per-client and --max-locks a new lock is DENIED_NOLOCKS, in versions 4 and
 *      3, while locks that are held are confirmed, weakened and unlocked, also where an UNLOCK
 *      splits one; what an UNLOCK frees can be taken again; the log says which limit it was;
 *  (2) over --max-waiters a LOCK that would wait is DENIED_NOLOCKS, one that waits already is not,
 *      and a waiter that gives up makes room;
 *  (3) over --max-clients a new client is DENIED_NOLOCKS and leaves no trace, a known one is
 *      served;
 *  (4) a restart with lower limits keeps every lock;
 *  (5) with --require-privileged-port LOCK from a high port is refused with AUTH_TOOWEAK and from a
 *      low one it is not; NULL is answered to all;
 *  (6) a --share that is none ends the start with exit code 2 and says what is allowed.
 */
#include "lock_call.h"
#include "lock_dump.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SOURCE UINT32_C(0x7f090001) /* 127.9.0.1 */
#define PER_CLIENT   20
#define TOTAL        50
#define WAITERS      10
#define CLIENTS      14
#define PATIENCE_MS  60000
#define AUTH_TOOWEAK 5

static struct harness_server server = {.listen = "127.0.0.1",
                                       .extra = {"--max-locks-per-client", "20", "--max-locks",
                                                 "50", "--max-waiters", "10", "--max-clients", "14",
                                                 "--recovery", "resume"}};

static const char *name_of(uint32_t client)
{
    static char name[32];
    snprintf(name, sizeof(name), "limited%u", client);
    return name;
}

/* Client, file and the place of a lock of 10 bytes. */
static struct lock_call call_of(enum peer_nlm_procedure procedure, uint32_t client, uint32_t file,
                                uint32_t place)
{
    return (struct lock_call){.procedure = procedure,
                              .vers = place % 2 == 0 ? 4 : 3,
                              .name = name_of(client),
                              .svid = 5,
                              .file = file,
                              .offset = (uint64_t)place * 20,
                              .len = 10,
                              .exclusive = true,
                              .state = 3};
}

static void demand(uint32_t client, const struct lock_call *call, uint32_t expected,
                   const char *what)
{
    int status = lock_call_once(&server, FIRST_SOURCE + client, false, call, NULL);
    HARNESS_EXPECT(status == (int)expected, "%s (client %u, offset %llu): %s and not %s", what,
                   client, (unsigned long long)call->offset, lock_call_text(status),
                   peer_nlm_status_text(expected));
}

/* The line is written after the answer has left. */
static void demand_log(const char *text)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t start_ns = dial_now_ns();
    while (!harness_log_contains(&server, text) &&
           dial_now_ns() - start_ns < PATIENCE_MS * UINT64_C(1000000))
        nanosleep(&pause, NULL);
    HARNESS_EXPECT(harness_log_contains(&server, text), "the log does not say \"%s\"", text);
}

/* Places first to last of a file of the client's own. */
static void take(uint32_t client, uint32_t first, uint32_t last, uint32_t expected,
                 const char *what)
{
    for (uint32_t place = first; place <= last; place++) {
        struct lock_call call = call_of(PEER_NLM_LOCK, client, client, place);
        demand(client, &call, expected, what);
    }
}

/* (1) */
static void too_many_locks(void)
{
    take(1, 0, PER_CLIENT - 1, PEER_NLM_IS_GRANTED, "LOCK up to the limit of a client");
    take(1, PER_CLIENT, PER_CLIENT + 1, PEER_NLM_IS_NOLOCKS, "one LOCK too many of a client");
    demand_log("--max-locks-per-client");
    take(1, 0, 3, PEER_NLM_IS_GRANTED, "LOCK of what it has");
    struct lock_call weaker = call_of(PEER_NLM_LOCK, 1, 1, 0);
    weaker.exclusive = false;
    demand(1, &weaker, PEER_NLM_IS_GRANTED, "a downgrade at the limit");
    struct lock_call middle = call_of(PEER_NLM_UNLOCK, 1, 1, 2);
    middle.offset += 4;
    middle.len = 2;
    demand(1, &middle, PEER_NLM_IS_GRANTED, "UNLOCK that splits at the limit");
    struct lock_call unlock = call_of(PEER_NLM_UNLOCK, 1, 1, 4);
    demand(1, &unlock, PEER_NLM_IS_GRANTED, "UNLOCK");
    take(1, PER_CLIENT, PER_CLIENT, PEER_NLM_IS_NOLOCKS, "LOCK while the split counts");
    unlock = call_of(PEER_NLM_UNLOCK, 1, 1, 2);
    demand(1, &unlock, PEER_NLM_IS_GRANTED, "UNLOCK of both halves");
    take(1, PER_CLIENT, PER_CLIENT + 1, PEER_NLM_IS_GRANTED, "LOCK after UNLOCK");

    take(2, 0, PER_CLIENT - 1, PEER_NLM_IS_GRANTED, "LOCK of another client");
    take(3, 0, TOTAL - 2 * PER_CLIENT - 1, PEER_NLM_IS_GRANTED, "LOCK up to the limit of all");
    take(3, PER_CLIENT, PER_CLIENT + 1, PEER_NLM_IS_NOLOCKS, "one LOCK too many of all");
    demand_log("--max-locks reached");
    unlock = call_of(PEER_NLM_UNLOCK, 2, 2, 0);
    demand(2, &unlock, PEER_NLM_IS_GRANTED, "UNLOCK at the limit of all");
    take(3, PER_CLIENT, PER_CLIENT, PEER_NLM_IS_GRANTED, "LOCK after UNLOCK of another");
}

static struct lock_call waiting(uint32_t client, uint32_t svid)
{
    struct lock_call call = call_of(PEER_NLM_LOCK, client, 1, 6); /* which client 1 has */
    call.block = true;
    call.svid = svid;
    return call;
}

/* (2) */
static void too_many_waiters(void)
{
    struct lock_call call = {0};
    for (uint32_t i = 0; i < WAITERS; i++) {
        call = waiting(4, 100 + i);
        demand(4, &call, PEER_NLM_IS_BLOCKED, "LOCK that waits");
    }
    call = waiting(4, 100 + WAITERS);
    demand(4, &call, PEER_NLM_IS_NOLOCKS, "one waiter too many");
    demand_log("--max-waiters");
    struct lock_call again = waiting(4, 100);
    demand(4, &again, PEER_NLM_IS_BLOCKED, "LOCK that waits already");
    again.block = false;
    demand(4, &again, PEER_NLM_IS_DENIED, "LOCK that does not wait");
    again.procedure = PEER_NLM_UNLOCK;
    demand(4, &again, PEER_NLM_IS_GRANTED, "a waiter gives up");
    demand(4, &call, PEER_NLM_IS_BLOCKED, "a waiter after that");
}

/* (3) */
static void too_many_clients(void)
{
    for (uint32_t client = 5; client <= CLIENTS; client++) {
        struct lock_call call = call_of(PEER_NLM_SHARE, client, 100 + client, 0);
        call.mode = call.access = 3;
        demand(client, &call, PEER_NLM_IS_GRANTED, "SHARE of a new client");
    }
    for (uint32_t client = CLIENTS + 1; client <= CLIENTS + 3; client++) {
        struct lock_call call = call_of(PEER_NLM_SHARE, client, 100 + client, 0);
        demand(client, &call, PEER_NLM_IS_NOLOCKS, "SHARE of one client too many");
        call = waiting(client, 5);
        demand(client, &call, PEER_NLM_IS_NOLOCKS, "LOCK that waits of one client too many");
    }
    struct lock_call call = call_of(PEER_NLM_SHARE, CLIENTS, 7, 0);
    demand(CLIENTS, &call, PEER_NLM_IS_GRANTED, "SHARE of a known client");
}

/* (4) */
static void restart_lower(void)
{
    struct lock_dump dump = {0};
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    if (!lock_dump_read(server.store, NULL, NULL, &dump))
        return;
    HARNESS_EXPECT(dump.locks == TOTAL && dump.shares == CLIENTS - 3 && dump.clients == CLIENTS,
                   "stored: %u locks, %u shares of %u clients", dump.locks, dump.shares,
                   dump.clients);
    server.extra[1] = server.extra[3] = server.extra[7] = "2";
    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.locks == TOTAL && server.clients == CLIENTS,
                   "%u locks of %u clients under lower limits", server.locks, server.clients);
    take(1, 5, 6, PEER_NLM_IS_GRANTED, "LOCK of what it has, above the limit");
    take(1, 100, 100, PEER_NLM_IS_NOLOCKS, "LOCK above a lower limit");
    struct lock_call unlock = call_of(PEER_NLM_UNLOCK, 1, 1, 0);
    unlock.len = 0;
    demand(1, &unlock, PEER_NLM_IS_GRANTED, "UNLOCK of everything, above the limit");
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}

/* A call from this source port; what came back, or negative errno. */
static int call_from_port(uint16_t port, bool is_udp, const struct lock_call *call,
                          struct packet_reply *ret)
{
    static struct packet packet, answer;
    struct dial_route route = harness_route(&server, is_udp);
    route.source = dial_endpoint_v4(FIRST_SOURCE, port);
    lock_call_put(&packet, call);
    packet_set_xid(&packet, port + 1u);
    return dial_call(&route, &packet, PATIENCE_MS, &answer, ret);
}

/* (5) */
static void privileged_ports(void)
{
    struct lock_dump dump = {0};
    server = (struct harness_server){.listen = "127.0.0.1",
                                     .store = harness_path("privileged"),
                                     .extra = {"--require-privileged-port"}};
    if (!harness_start(&server))
        return;
    for (int is_udp = 0; is_udp < 2; is_udp++) {
        struct packet_reply reply = {0};
        struct lock_call lock = call_of(PEER_NLM_LOCK, 1, 1, (uint32_t)is_udp);
        struct lock_call null = call_of(PEER_NLM_NULL, 1, 1, 0);
        int result = call_from_port(0, is_udp, &lock, &reply);
        HARNESS_EXPECT(result == 0 && !reply.accepted && reply.status == PACKET_AUTH_ERROR &&
                           reply.auth_why == AUTH_TOOWEAK,
                       "LOCK from a high port: %s",
                       result < 0 ? strerror(-result) : packet_reply_text(&reply));
        result = call_from_port(0, is_udp, &null, &reply);
        HARNESS_EXPECT(result == 0 && reply.accepted && reply.status == PACKET_SUCCESS,
                       "NULL from a high port");
        if (geteuid() != 0) {
            puts("not shown: LOCK from a low port; it takes root");
            continue;
        }
        result = call_from_port((uint16_t)(1000 + is_udp), is_udp, &lock, &reply);
        int status = result == 0 ? lock_call_status(&lock, &reply, NULL) : result;
        HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "LOCK from a low port: %s",
                       lock_call_text(status));
    }
    demand_log("--require-privileged-port");
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    uint32_t expected = geteuid() == 0 ? 2 : 0;
    if (lock_dump_read(server.store, NULL, NULL, &dump))
        HARNESS_EXPECT(dump.locks == expected, "%u locks stored", dump.locks);
}

/* (6) */
static void bad_shares(void)
{
    static const struct {
        const char *first, *second, *message;
    } rows[] = {
        {"home", NULL, "not NAME=HEXPREFIX"},
        {"=0102", NULL, "not a name"},
        {"a b=0102", NULL, "not a name"},
        {"home=", NULL, "not a file handle prefix"},
        {"home=012", NULL, "not a file handle prefix"},
        {"home=xy", NULL, "not a file handle prefix"},
        {"default=01", NULL, "choose another"},
        {"home=01", "home=02", "already defined"},
        {"home=0a", "work=0A", "the same prefix"},
    };
    const struct timespec pause = {.tv_nsec = 2000000};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        server = (struct harness_server){.store = harness_path("shares"),
                                         .extra = {"--share", rows[i].first}};
        if (rows[i].second) {
            server.extra[2] = "--share";
            server.extra[3] = rows[i].second;
        }
        harness_spawn(&server);
        uint64_t start_ns = dial_now_ns();
        while (harness_is_alive(&server) &&
               dial_now_ns() - start_ns < PATIENCE_MS * UINT64_C(1000000))
            nanosleep(&pause, NULL);
        int code = harness_stop(&server, SIGKILL);
        HARNESS_EXPECT(code == 2 && harness_log_contains(&server, rows[i].message) &&
                           harness_log_contains(&server, "--share"),
                       "--share %s: exit %d, or without \"%s\"", rows[i].first, code,
                       rows[i].message);
    }
    server = (struct harness_server){.listen = "127.0.0.1",
                                     .store = harness_path("good-shares"),
                                     .extra = {"--share", "one=00000001", "--share", "all=00"}};
    if (!harness_start(&server))
        return;
    take(1, 0, 1, PEER_NLM_IS_GRANTED, "LOCK on a file of a share");
    take(2, 0, 1, PEER_NLM_IS_GRANTED, "LOCK on a file of another share");
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}

int main(void)
{
    harness_init("locks_limits");
    server.store = harness_path("store");
    if (harness_start(&server)) {
        too_many_locks();
        too_many_waiters();
        too_many_clients();
        restart_lower();
    }
    privileged_ports();
    bad_shares();
    return harness_finish();
}
