/*
 * takeover.c -- two servers on two machines and one database: the second takes over, and the first
 * can no longer answer (P1, P2, docs/high-availability.md).
 *
 * Two network namespaces are the machines (nodes.h). Shown:
 *  (1) kill -9 of the active server: the standby runs its hook, has every client and every lock, a
 *      larger state and the next epoch, and is in grace: nobody gets what another one held, its
 *      owner reclaims it, and what is not reclaimed is free when grace is over. Or, to be resumed,
 *      it goes on as if nothing had happened;
 *  (2) a server that stands still (SIGSTOP) while another takes over, because its session was ended
 *      or PostgreSQL was started anew, and that goes on later with 1,000 requests in its sockets,
 *      TESTs and repeats of LOCKs that it had answered, over UDP and TCP: it answers none of them
 *      and ends with 76;
 *  (3) a server whose cable was pulled: what it was asked before stays without an answer for ever,
 *      somebody else gets the lock, and when the cable is back it ends with 76;
 *  (4) PostgreSQL is restarted while nobody asks for anything, at once or after a while: the active
 *      server stays the active one;
 *  (5) --standby that is told to stop ends with 0, also while its hook runs, and nothing of the
 *      hook is left, nor of one that failed. `holdfast status` says who is what;
 *  (6) one that stands still inside a commit, for longer than --store-timeout, ends with 76 too:
 *      the time was its own, not the store's;
 *  (7) one that stands still while a callback of it waits for an answer, and goes on when it was
 *      replaced and the repeat is due, soon after its last commit: the repeat does not leave (025).
 */
#include "hosts_net.h"
#include "pair.h"
#include "postgres/cluster.h"
#include "postgres/proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STANDSTILL_NS UINT64_C(8000000000) /* more than --store-timeout 1 and 5 s beyond it */
#define REPEAT_NS     UINT64_C(1300000000) /* a callback over UDP is repeated after 1 s */
#define SOCKETS       20                   /* every second one UDP */
#define REPEATS       25                   /* on each: LOCKs that were answered before */
#define TESTS         25                   /* and new TESTs: 1,000 in all */
#define AWAY_S        4 /* longer than a standby stands back (STANDBY_COURTESY_NS) */

/* What `holdfast status` says of a node. */
static void demand_role(uint32_t node, const char *role)
{
    char expected[64], line[256];
    bool is_found = false;
    (void)snprintf(expected, sizeof(expected), "\"role\": \"%s\"", role);
    FILE *output = pair_command_at(node, "status --json");
    while (output && fgets(line, sizeof(line), output))
        is_found = is_found || strstr(line, expected);
    int status = output ? pclose(output) : -1; /* 1: clients are missing */
    HARNESS_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) <= 1 && is_found, "node %u is not %s",
                   node, role);
}

static void end_grace(uint32_t node)
{
    char line[256];
    FILE *output = pair_command_at(node, "end-grace --yes");
    while (output && fgets(line, sizeof(line), output))
        continue;
    HARNESS_EXPECT(output && pclose(output) == 0, "end-grace at node %u", node);
}

/* What client 0 held before is nobody else's: refused in grace, reclaimed, refused for good. Grace
 * is long enough for a busy machine; an operator may end it. */
static void demand_recovery(uint32_t node, bool is_ended)
{
    struct lock_call lock = pair_call_of(1, 0, PEER_NLM_LOCK);
    pair_demand(1, node, &lock, PEER_NLM_IS_GRACE);
    for (uint32_t file = 0; file + 1 < PAIR_LOCKS; file++) {
        struct lock_call reclaim = pair_call_of(0, file, PEER_NLM_LOCK);
        reclaim.reclaim = true;
        pair_demand(0, node, &reclaim, PEER_NLM_IS_GRANTED);
    }
    if (is_ended)
        end_grace(node);
    pair_demand_after(1, node, &lock, PEER_NLM_IS_GRACE, PEER_NLM_IS_DENIED);
    struct lock_call last = pair_call_of(1, PAIR_LOCKS - 1, PEER_NLM_LOCK);
    pair_demand_after(1, node, &last, PEER_NLM_IS_DENIED, PEER_NLM_IS_GRANTED);
}

/* ---- (1) ---- */

static void kill_active(void)
{
    const char *store = harness_postgres("kill_active");
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, "ip addr add 10.99.0.100/24 dev eth0");
    demand_role(0, "active");
    demand_role(1, "standby");
    pair_take_locks(0);
    uint32_t state = pair_servers[0].state;
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    if (!pair_wait_taken_over(1, "kill -9"))
        return;
    HARNESS_EXPECT(pair_servers[1].locks == PAIR_LOCKS && pair_servers[1].clients == 1 &&
                       pair_servers[1].grace_s > 0,
                   "%u locks, %u clients, grace %u", pair_servers[1].locks, pair_servers[1].clients,
                   pair_servers[1].grace_s);
    HARNESS_EXPECT(pair_servers[1].state > state && pair_servers[1].state % 2 == 1,
                   "state %u after %u", pair_servers[1].state, state);
    struct lock_call lock = pair_call_of(1, 0, PEER_NLM_LOCK);
    int status = pair_ask(1, NODES_SERVICE, pair_servers[1].port, &lock);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRACE, "at the address that moved: %s",
                   status < 0 ? strerror(-status) : lock_call_text(status));
    demand_role(1, "active");
    demand_recovery(1, false);
    pair_start_standby(0, store, NULL); /* the old machine comes back, and back again */
    HARNESS_EXPECT(harness_stop(&pair_servers[1], SIGTERM) == 0, "SIGTERM");
    if (pair_wait_taken_over(0, "a clean stop"))
        HARNESS_EXPECT(pair_servers[0].locks == PAIR_LOCKS, "%u locks", pair_servers[0].locks);
    pair_stop_all();
}

/* With --recovery resume nobody notices: the same state, no grace, every lock as it was (D12). */
static void resume(void)
{
    const char *store = harness_postgres("resume");
    pair_resumes = true;
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, NULL);
    pair_resumes = false;
    pair_take_locks(0);
    uint32_t state = pair_servers[0].state;
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    if (!pair_wait_taken_over(1, "resumed"))
        return;
    HARNESS_EXPECT(pair_servers[1].locks == PAIR_LOCKS && pair_servers[1].grace_s == 0 &&
                       pair_servers[1].state == state,
                   "%u locks, grace %u, state %u after %u", pair_servers[1].locks,
                   pair_servers[1].grace_s, pair_servers[1].state, state);
    struct lock_call other = pair_call_of(1, 0, PEER_NLM_LOCK),
                     unlock = pair_call_of(0, 0, PEER_NLM_UNLOCK);
    pair_demand(1, 1, &other, PEER_NLM_IS_DENIED);
    pair_demand(0, 1, &unlock, PEER_NLM_IS_GRANTED);
    pair_demand(1, 1, &other, PEER_NLM_IS_GRANTED);
    pair_stop_all();
}

/* ---- (2) ---- */

struct caller {
    int fd;
    bool is_udp;
};

static void open_callers(struct caller callers[SOCKETS], uint32_t node)
{
    for (uint32_t i = 0; i < SOCKETS; i++) {
        struct dial_route route = {.is_udp = i % 2 == 0};
        route.server = dial_endpoint_v4(nodes_address(node), pair_servers[node].port);
        route.source = dial_endpoint_v4(NODES_CLIENT + 2, 0);
        callers[i] = (struct caller){dial_open(&route, PAIR_PATIENCE_MS), route.is_udp};
        HARNESS_EXPECT(callers[i].fd >= 0, "socket %u: %s", i, strerror(-callers[i].fd));
    }
}

static void put_numbered(struct packet *packet, uint32_t socket, uint32_t number,
                         enum peer_nlm_procedure procedure)
{
    struct lock_call call = pair_call_of(2, 1000 + socket * REPEATS + number % REPEATS, procedure);
    lock_call_put(packet, &call);
    packet_set_xid(packet, 1 + socket * 1000 + number);
}

static void send_numbered(const struct caller *caller, uint32_t socket, uint32_t number,
                          enum peer_nlm_procedure procedure)
{
    static struct packet packet;
    put_numbered(&packet, socket, number, procedure);
    int result = caller->is_udp
                     ? dial_send(caller->fd, packet.bytes, packet.len, PAIR_PATIENCE_MS)
                     : dial_send_record(caller->fd, packet.bytes, packet.len, PAIR_PATIENCE_MS);
    HARNESS_EXPECT(result == 0, "socket %u: %s", socket, strerror(-result));
}

static void lock_all(const struct caller callers[SOCKETS])
{
    static struct packet packet, answer;
    struct packet_reply reply;
    for (uint32_t i = 0; i < SOCKETS; i++)
        for (uint32_t number = 0; number < REPEATS; number++) {
            put_numbered(&packet, i, number, PEER_NLM_LOCK);
            int result = dial_exchange(callers[i].fd, callers[i].is_udp, &packet, PAIR_PATIENCE_MS,
                                       &answer, &reply);
            struct lock_call call = pair_call_of(2, 0, PEER_NLM_LOCK);
            HARNESS_EXPECT(result == 0 && lock_call_status(&call, &reply, NULL) == 0,
                           "lock %u of socket %u: %d", number, i, result);
        }
}

/* Everything that came back: bytes, and none are allowed. */
static void demand_silence(struct caller callers[SOCKETS])
{
    uint32_t answered = 0;
    for (uint32_t i = 0; i < SOCKETS; i++) {
        uint8_t bytes[512];
        int len = dial_receive(callers[i].fd, bytes, sizeof(bytes), 10);
        if (len > 0)
            answered++;
        close(callers[i].fd);
    }
    HARNESS_EXPECT(answered == 0, "%u of %u sockets were answered by the old server", answered,
                   SOCKETS);
}

static void freeze_active(const char *database, bool restart_postgres)
{
    struct caller callers[SOCKETS];
    const char *store = harness_postgres(database);
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, NULL);
    pair_take_locks(0);
    open_callers(callers, 0);
    lock_all(callers);
    kill(pair_servers[0].pid, SIGSTOP);
    for (uint32_t i = 0; i < SOCKETS; i++)
        for (uint32_t number = 0; number < REPEATS + TESTS; number++)
            send_numbered(&callers[i], i, number, number < REPEATS ? PEER_NLM_LOCK : PEER_NLM_TEST);
    if (restart_postgres) {
        cluster_stop(harness_cluster(), SIGINT);
        HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL does not start");
    } else {
        pair_end_session_of(harness_cluster(), &pair_servers[0]);
    }
    if (!pair_wait_taken_over(1, restart_postgres ? "frozen, PostgreSQL restarted" : "frozen"))
        return;
    demand_recovery(1, true);
    kill(pair_servers[0].pid, SIGCONT);
    pair_demand_replaced(0);
    demand_silence(callers);
    pair_stop_all();
}

/* ---- (3) ---- */

static void pull_the_cable(void)
{
    struct proxy *proxy = proxy_new(harness_cluster());
    const char *store = harness_postgres("cable");
    if (!HARNESS_EXPECT(proxy, "no proxy"))
        return;
    char through_proxy[256];
    snprintf(through_proxy, sizeof(through_proxy), "%s", proxy_url(proxy, "cable"));
    if (!pair_start_active(0, through_proxy))
        return;
    pair_start_standby(1, store, NULL);
    pair_take_locks(0);
    struct dial_route route = {.server = dial_endpoint_v4(nodes_address(0), pair_servers[0].port)};
    route.source = dial_endpoint_v4(NODES_CLIENT + 3, 0);
    int fd = dial_open(&route, PAIR_PATIENCE_MS);
    static struct packet packet;
    struct lock_call wanted = pair_call_of(3, 2000, PEER_NLM_LOCK);
    lock_call_put(&packet, &wanted);
    packet_set_xid(&packet, 77);
    proxy_cut(proxy);
    HARNESS_EXPECT(dial_send_record(fd, packet.bytes, packet.len, PAIR_PATIENCE_MS) == 0, "a LOCK");
    /* It has read the LOCK when the NULL behind it, which needs no store, is answered. */
    packet_clear(&packet);
    struct packet_call null = {.xid = 78, .prog = PEER_NLM_PROGRAM, .vers = 4};
    packet_put_call(&packet, &null);
    static struct packet answer;
    struct packet_reply reply;
    HARNESS_EXPECT(dial_exchange(fd, false, &packet, PAIR_PATIENCE_MS, &answer, &reply) == 0,
                   "NULL waits for the store");
    nodes_set_link(0, false);
    if (!pair_wait_taken_over(1, "cable pulled"))
        return;
    demand_recovery(1, true);
    struct lock_call other = pair_call_of(1, 2000, PEER_NLM_LOCK);
    pair_demand(1, 1, &other, PEER_NLM_IS_GRANTED); /* two must not rely on it */
    nodes_set_link(0, true);
    nodes_forget_neighbours();
    proxy_mend(proxy);
    pair_demand_replaced(0);
    uint8_t bytes[64];
    int len = dial_receive(fd, bytes, sizeof(bytes), 100);
    HARNESS_EXPECT(len <= 0, "the old server answered %d bytes", len);
    close(fd);
    pair_stop_all();
    proxy_free(proxy);
}

/* ---- (4) ---- */

static void restart_postgres(const char *database, time_t away_s)
{
    const char *store = harness_postgres(database);
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, NULL);
    pair_take_locks(0);
    cluster_stop(harness_cluster(), SIGINT);
    (void)nanosleep(&(struct timespec){.tv_sec = away_s}, NULL);
    HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL does not start");
    /* Until both are back, and the active server has the lock. */
    char sql[320];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) = 2 AND bool_or(application_name LIKE 'holdfast %% %d %%' AND EXISTS "
             "(SELECT FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'advisory' AND granted)) "
             "FROM pg_stat_activity a WHERE application_name LIKE 'holdfast %%'",
             (int)pair_servers[0].pid);
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    const char *answer = NULL;
    while ((!answer || *answer != 't') && dial_now_ns() < deadline_ns) {
        pair_pause_briefly();
        answer = cluster_ask(harness_cluster(), "postgres", sql);
    }
    HARNESS_EXPECT(answer && *answer == 't', "the active server has not come back first");
    HARNESS_EXPECT(!harness_log_contains(&pair_servers[1], "this server is now active") &&
                       harness_is_alive(&pair_servers[0]),
                   "the standby took over from a server that was well");
    struct lock_call lock = pair_call_of(1, 0, PEER_NLM_LOCK);
    pair_demand(1, 0, &lock, PEER_NLM_IS_DENIED);
    pair_stop_all();
}

/* ---- (5) ---- */

static void stop_standby(void)
{
    const char *store = harness_postgres("stop_standby"), *path = harness_path("failed.pid");
    char hook[300];
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, NULL);
    HARNESS_EXPECT(harness_stop(&pair_servers[1], SIGTERM) == 0, "a standby and SIGTERM");
    snprintf(hook, sizeof(hook), "sleep 1000 & echo $! >%s; exit 3", path);
    pair_start_standby(1, store, hook);
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGTERM) == 0, "SIGTERM");
    int code = pair_wait_exit(1), pid = pair_wait_for_pid(path);
    HARNESS_EXPECT(code == 75, "a hook that fails: exit %d", code);
    HARNESS_EXPECT(harness_log_contains(&pair_servers[1], "failed with code 3"), "no word of it");
    pair_demand_gone(pid);
}

static void stop_in_hook(void)
{
    const char *store = harness_postgres("stop_in_hook"), *path = harness_path("hook.pid");
    char hook[300];
    snprintf(hook, sizeof(hook), "sleep 1000 & echo $! >%s; wait", path);
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, hook);
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGTERM) == 0, "SIGTERM");
    int pid = pair_wait_for_pid(path);
    HARNESS_EXPECT(pid > 0 && pair_runs(pid), "the hook does not run");
    int code = harness_stop(&pair_servers[1], SIGTERM);
    HARNESS_EXPECT(code == 0, "told to stop in its hook: exit %d", code);
    pair_demand_gone(pid);
}

/* ---- (6) ---- */

static void freeze_in_commit(void)
{
    const char *store = harness_postgres("in_commit");
    char conninfo[256];
    pair_is_hasty = true;
    bool is_ready = pair_start_active(0, store);
    pair_is_hasty = false;
    if (!is_ready)
        return;
    pair_start_standby(1, store, NULL);
    snprintf(conninfo, sizeof(conninfo), "host=%s user=holdfast dbname=in_commit",
             harness_cluster()->directory);
    PGconn *blocker = PQconnectdb(conninfo);
    PQclear(PQexec(blocker, "BEGIN"));
    PQclear(PQexec(blocker, "SELECT FROM server FOR UPDATE"));
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    const char *count = NULL;
    while ((!count || *count != '1') && dial_now_ns() < deadline_ns)
        count = cluster_ask(harness_cluster(), "postgres",
                            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                            "AND application_name LIKE 'holdfast %'");
    kill(pair_servers[0].pid, SIGSTOP);
    uint64_t stopped_ns = dial_now_ns();
    pair_end_session_of(harness_cluster(), &pair_servers[0]);
    PQfinish(blocker);
    if (!pair_wait_taken_over(1, "frozen in a commit"))
        return;
    while (dial_now_ns() - stopped_ns < STANDSTILL_NS)
        pair_pause_briefly();
    kill(pair_servers[0].pid, SIGCONT);
    pair_demand_replaced(0);
    pair_stop_all();
}

/* ---- (7) ---- */

struct silent_host {
    uint32_t granted; /* calls that it heard, and did not answer */
};

static uint16_t port_of(const void *host, uint32_t prog, uint32_t vers, uint32_t prot)
{
    (void)host;
    (void)vers;
    return prog == PEER_NLM_PROGRAM && prot == IPPROTO_UDP ? HOSTS_NET_PORTMAP : 0;
}

static bool hear(void *context, const struct hosts_net_message *message)
{
    static struct packet reply;
    struct silent_host *host = context;
    struct packet_reader reader = {message->bytes, message->len, false};
    struct packet_call call;
    if (!packet_get_call(&reader, &call))
        return false;
    host->granted += call.prog == PEER_NLM_PROGRAM && call.proc == PEER_NLM_GRANTED;
    packet_clear(&reply);
    if (call.prog == HOSTS_NET_PORTMAP_PROGRAM) {
        hosts_net_portmap(&call, &reader, port_of, host, &reply);
        (void)hosts_net_send(message->socket, &message->from, reply.bytes, reply.len);
    }
    return true;
}

static uint32_t heard(struct hosts_net *net, const struct silent_host *host)
{
    hosts_net_lock(net);
    uint32_t count = host->granted;
    hosts_net_unlock(net);
    return count;
}

/* Client 2 waits, over UDP, for what client 1 has. */
static void let_one_wait(void)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    struct lock_call lock = pair_call_of(1, 0, PEER_NLM_LOCK);
    pair_demand(1, 0, &lock, PEER_NLM_IS_GRANTED);
    lock = pair_call_of(2, 0, PEER_NLM_LOCK);
    lock.block = true;
    struct dial_route route = {.is_udp = true};
    route.server = dial_endpoint_v4(nodes_address(0), pair_servers[0].port);
    route.source = dial_endpoint_v4(NODES_CLIENT + 2, 0);
    lock_call_put(&packet, &lock);
    int result = dial_call(&route, &packet, PAIR_PATIENCE_MS, &answer, &reply);
    HARNESS_EXPECT(result == 0 && lock_call_status(&lock, &reply, NULL) == PEER_NLM_IS_BLOCKED,
                   "a LOCK that waits: %d", result);
}

static void freeze_with_a_callback(void)
{
    const char *store = harness_postgres("callback");
    struct silent_host host = {0};
    struct hosts_net *net = hosts_net_new(&(struct hosts_net_user){&host, hear, NULL});
    struct dial_endpoint at = dial_endpoint_v4(NODES_CLIENT + 2, HOSTS_NET_PORTMAP);
    bool is_there = net && hosts_net_start(net);
    if (is_there) {
        hosts_net_lock(net);
        is_there = hosts_net_listen(net, 0, &at, true) >= 0;
        hosts_net_unlock(net);
    }
    pair_resumes = true; /* its successor calls nobody from an address that it does not have */
    if (!HARNESS_EXPECT(is_there, "a host") || !pair_start_active(0, store))
        return;
    pair_start_standby(1, store, NULL);
    pair_resumes = false;
    let_one_wait();
    struct lock_call unlock = pair_call_of(1, 0, PEER_NLM_UNLOCK);
    pair_demand(1, 0, &unlock, PEER_NLM_IS_GRANTED);
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    while (heard(net, &host) == 0 && dial_now_ns() < deadline_ns)
        continue;
    kill(pair_servers[0].pid, SIGSTOP);
    uint64_t stopped_ns = dial_now_ns();
    HARNESS_EXPECT(heard(net, &host) == 1, "%u callbacks", heard(net, &host));
    pair_end_session_of(harness_cluster(), &pair_servers[0]);
    if (!pair_wait_taken_over(1, "frozen with a callback"))
        return;
    while (dial_now_ns() - stopped_ns < REPEAT_NS)
        pair_pause_briefly();
    kill(pair_servers[0].pid, SIGCONT);
    pair_demand_replaced(0);
    HARNESS_EXPECT(heard(net, &host) == 1, "%u callbacks of a server that was replaced",
                   heard(net, &host) - 1);
    pair_stop_all();
    hosts_net_free(net);
}

int main(void)
{
    harness_init("takeover");
    if (!nodes_init()) {
        nodes_done();
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    kill_active();
    resume();
    freeze_active("frozen", false);
    freeze_active("frozen_restart", true);
    pull_the_cable();
    restart_postgres("restart", 0);
    restart_postgres("restart_late", AWAY_S);
    stop_standby();
    stop_in_hook();
    freeze_in_commit();
    freeze_with_a_callback();
    nodes_done();
    return harness_finish();
}
