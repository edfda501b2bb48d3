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
 *      the time was its own, not the store's.
 */
#include "lock_call.h"
#include "nodes.h"
#include "postgres/cluster.h"
#include "postgres/proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS   60000
#define PATIENCE_NS   UINT64_C(60000000000)
#define STANDSTILL_NS UINT64_C(8000000000) /* more than --store-timeout 1 and 5 s beyond it */
#define LOCKS         50                   /* held by client 0, one per file */
#define SOCKETS       20                   /* every second one UDP */
#define REPEATS       25                   /* on each: LOCKs that were answered before */
#define TESTS         25                   /* and new TESTs: 1,000 in all */
#define AWAY_S        4 /* longer than a standby stands back (STANDBY_COURTESY_NS) */
#define CLIENT_STATE  3
#define OWNER_SVID    1
#define OTHER_SVID    2

static struct harness_server servers[NODES_COUNT];
static bool resumes;  /* --recovery resume */
static bool is_hasty; /* --store-timeout 1 */

static void pause_briefly(void)
{
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
}

static struct lock_call call_of(uint32_t client, uint32_t file, enum peer_nlm_procedure procedure)
{
    static const char *const names[] = {"client0", "client1", "client2", "client3"};
    return (struct lock_call){.procedure = procedure,
                              .name = names[client],
                              .svid = client == 0 ? OWNER_SVID : OTHER_SVID,
                              .file = file,
                              .offset = 100,
                              .len = 10,
                              .exclusive = true,
                              .state = CLIENT_STATE};
}

/* One call of a client to an address; the status, or a negative errno. */
static int ask(uint32_t client, uint32_t address, uint16_t port, const struct lock_call *call)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    struct dial_route route = {.is_udp = false, .server = dial_endpoint_v4(address, port)};
    route.source = dial_endpoint_v4(NODES_CLIENT + client, 0);
    lock_call_put(&packet, call);
    int result = dial_call(&route, &packet, PATIENCE_MS, &answer, &reply);
    return result < 0 ? result : lock_call_status(call, &reply, NULL);
}

static void demand(uint32_t client, uint32_t node, const struct lock_call *call, int expected)
{
    int status = ask(client, nodes_address(node), servers[node].port, call);
    HARNESS_EXPECT(status == expected, "client %u, file %u at node %u: %s, expected %s", client,
                   call->file, node, status < 0 ? strerror(-status) : lock_call_text(status),
                   lock_call_text(expected));
}

/* The same, as long as the answer is another one: until grace is over, or a lock is given up. */
static void demand_after(uint32_t client, uint32_t node, const struct lock_call *call, int other,
                         int expected)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (ask(client, nodes_address(node), servers[node].port, call) == other &&
           dial_now_ns() < deadline_ns)
        pause_briefly();
    demand(client, node, call, expected);
}

static void prepare(uint32_t node, const char *store, bool is_standby, const char *hook)
{
    struct harness_server *server = &servers[node];
    uint32_t count = 0;
    *server = (struct harness_server){.store = store};
    server->extra[count++] = "--notify-timeout";
    server->extra[count++] = "2";
    server->extra[count++] = "--grace";
    server->extra[count++] = "15";
    server->extra[count++] = "--control";
    server->extra[count++] = harness_path(node == 0 ? "control.0" : "control.1");
    if (is_standby)
        server->extra[count++] = "--standby";
    if (resumes) {
        server->extra[count++] = "--recovery";
        server->extra[count++] = "resume";
    }
    if (is_hasty) {
        server->extra[count++] = "--store-timeout";
        server->extra[count++] = "1";
    }
    if (hook) {
        server->extra[count++] = "--takeover-hook";
        server->extra[count++] = hook;
    }
}

/* A command of the operator: its output. */
static FILE *command_at(uint32_t node, const char *words)
{
    char command[1024];
    (void)snprintf(command, sizeof(command), "\"$HOLDFAST\" %s --control '%s'", words,
                   harness_path(node == 0 ? "control.0" : "control.1"));
    return popen(command, "r");
}

/* What `holdfast status` says of a node. */
static void demand_role(uint32_t node, const char *role)
{
    char expected[64], line[256];
    bool is_found = false;
    (void)snprintf(expected, sizeof(expected), "\"role\": \"%s\"", role);
    FILE *output = command_at(node, "status --json");
    while (output && fgets(line, sizeof(line), output))
        is_found = is_found || strstr(line, expected);
    HARNESS_EXPECT(output && pclose(output) == 0 && is_found, "node %u is not %s", node, role);
}

static bool start_active(uint32_t node, const char *store)
{
    prepare(node, store, false, NULL);
    nodes_spawn(node, &servers[node]);
    return harness_wait_ready(&servers[node]);
}

static void start_standby(uint32_t node, const char *store, const char *hook)
{
    prepare(node, store, true, hook);
    nodes_spawn(node, &servers[node]);
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (!harness_log_contains(&servers[node], "holdfast: standing by") &&
           dial_now_ns() < deadline_ns)
        pause_briefly();
    HARNESS_EXPECT(dial_now_ns() < deadline_ns, "node %u does not stand by", node);
}

/* The standby serves. How long that took is said. */
static bool wait_taken_over(uint32_t node, const char *why)
{
    servers[node].start_ns = dial_now_ns();
    bool is_ready = harness_wait_ready(&servers[node]);
    printf("%s: node %u serves after %" PRIu64 " ms (state %u, %u clients, %u locks)\n", why, node,
           servers[node].start_ns / 1000000, servers[node].state, servers[node].clients,
           servers[node].locks);
    return is_ready;
}

static void take_locks(uint32_t node)
{
    for (uint32_t file = 0; file < LOCKS; file++) {
        struct lock_call lock = call_of(0, file, PEER_NLM_LOCK);
        demand(0, node, &lock, PEER_NLM_IS_GRANTED);
    }
}

static void end_grace(uint32_t node)
{
    char line[256];
    FILE *output = command_at(node, "end-grace");
    while (output && fgets(line, sizeof(line), output))
        continue;
    HARNESS_EXPECT(output && pclose(output) == 0, "end-grace at node %u", node);
}

/* What client 0 held before is nobody else's: refused in grace, reclaimed, refused for good. Grace
 * is long enough for a busy machine; an operator may end it. */
static void demand_recovery(uint32_t node, bool is_ended)
{
    struct lock_call lock = call_of(1, 0, PEER_NLM_LOCK);
    demand(1, node, &lock, PEER_NLM_IS_GRACE);
    for (uint32_t file = 0; file + 1 < LOCKS; file++) {
        struct lock_call reclaim = call_of(0, file, PEER_NLM_LOCK);
        reclaim.reclaim = true;
        demand(0, node, &reclaim, PEER_NLM_IS_GRANTED);
    }
    if (is_ended)
        end_grace(node);
    demand_after(1, node, &lock, PEER_NLM_IS_GRACE, PEER_NLM_IS_DENIED);
    struct lock_call last = call_of(1, LOCKS - 1, PEER_NLM_LOCK);
    demand_after(1, node, &last, PEER_NLM_IS_DENIED, PEER_NLM_IS_GRANTED);
}

static int wait_exit(uint32_t node)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (harness_is_alive(&servers[node]) && dial_now_ns() < deadline_ns)
        pause_briefly();
    return harness_stop(&servers[node], 0);
}

static void demand_replaced(uint32_t node)
{
    int code = wait_exit(node);
    HARNESS_EXPECT(code == 76, "the old server ended with %d", code);
    HARNESS_EXPECT(harness_log_contains(&servers[node], "another server has taken over"),
                   "its log does not say why");
}

static void stop_all(void)
{
    for (uint32_t node = 0; node < NODES_COUNT; node++)
        if (servers[node].pid > 0)
            HARNESS_EXPECT(harness_stop(&servers[node], SIGTERM) == 0, "node %u and SIGTERM", node);
}

/* ---- (1) ---- */

static void kill_active(void)
{
    const char *store = harness_postgres("kill_active");
    if (!start_active(0, store))
        return;
    start_standby(1, store, "ip addr add 10.99.0.100/24 dev eth0");
    demand_role(0, "active");
    demand_role(1, "standby");
    take_locks(0);
    uint32_t state = servers[0].state;
    HARNESS_EXPECT(harness_stop(&servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    if (!wait_taken_over(1, "kill -9"))
        return;
    HARNESS_EXPECT(servers[1].locks == LOCKS && servers[1].clients == 1 && servers[1].grace_s > 0,
                   "%u locks, %u clients, grace %u", servers[1].locks, servers[1].clients,
                   servers[1].grace_s);
    HARNESS_EXPECT(servers[1].state > state && servers[1].state % 2 == 1, "state %u after %u",
                   servers[1].state, state);
    struct lock_call lock = call_of(1, 0, PEER_NLM_LOCK);
    int status = ask(1, NODES_SERVICE, servers[1].port, &lock);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRACE, "at the address that moved: %s",
                   status < 0 ? strerror(-status) : lock_call_text(status));
    demand_role(1, "active");
    demand_recovery(1, false);
    start_standby(0, store, NULL); /* the old machine comes back, and back again */
    HARNESS_EXPECT(harness_stop(&servers[1], SIGTERM) == 0, "SIGTERM");
    if (wait_taken_over(0, "a clean stop"))
        HARNESS_EXPECT(servers[0].locks == LOCKS, "%u locks", servers[0].locks);
    stop_all();
}

/* With --recovery resume nobody notices: the same state, no grace, every lock as it was (D12). */
static void resume(void)
{
    const char *store = harness_postgres("resume");
    resumes = true;
    if (!start_active(0, store))
        return;
    start_standby(1, store, NULL);
    resumes = false;
    take_locks(0);
    uint32_t state = servers[0].state;
    HARNESS_EXPECT(harness_stop(&servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    if (!wait_taken_over(1, "resumed"))
        return;
    HARNESS_EXPECT(servers[1].locks == LOCKS && servers[1].grace_s == 0 &&
                       servers[1].state == state,
                   "%u locks, grace %u, state %u after %u", servers[1].locks, servers[1].grace_s,
                   servers[1].state, state);
    struct lock_call other = call_of(1, 0, PEER_NLM_LOCK), unlock = call_of(0, 0, PEER_NLM_UNLOCK);
    demand(1, 1, &other, PEER_NLM_IS_DENIED);
    demand(0, 1, &unlock, PEER_NLM_IS_GRANTED);
    demand(1, 1, &other, PEER_NLM_IS_GRANTED);
    stop_all();
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
        route.server = dial_endpoint_v4(nodes_address(node), servers[node].port);
        route.source = dial_endpoint_v4(NODES_CLIENT + 2, 0);
        callers[i] = (struct caller){dial_open(&route, PATIENCE_MS), route.is_udp};
        HARNESS_EXPECT(callers[i].fd >= 0, "socket %u: %s", i, strerror(-callers[i].fd));
    }
}

static void put_numbered(struct packet *packet, uint32_t socket, uint32_t number,
                         enum peer_nlm_procedure procedure)
{
    struct lock_call call = call_of(2, 1000 + socket * REPEATS + number % REPEATS, procedure);
    lock_call_put(packet, &call);
    packet_set_xid(packet, 1 + socket * 1000 + number);
}

static void send_numbered(const struct caller *caller, uint32_t socket, uint32_t number,
                          enum peer_nlm_procedure procedure)
{
    static struct packet packet;
    put_numbered(&packet, socket, number, procedure);
    int result = caller->is_udp
                     ? dial_send(caller->fd, packet.bytes, packet.len, PATIENCE_MS)
                     : dial_send_record(caller->fd, packet.bytes, packet.len, PATIENCE_MS);
    HARNESS_EXPECT(result == 0, "socket %u: %s", socket, strerror(-result));
}

static void lock_all(const struct caller callers[SOCKETS])
{
    static struct packet packet, answer;
    struct packet_reply reply;
    for (uint32_t i = 0; i < SOCKETS; i++)
        for (uint32_t number = 0; number < REPEATS; number++) {
            put_numbered(&packet, i, number, PEER_NLM_LOCK);
            int result = dial_exchange(callers[i].fd, callers[i].is_udp, &packet, PATIENCE_MS,
                                       &answer, &reply);
            struct lock_call call = call_of(2, 0, PEER_NLM_LOCK);
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

static void end_session_of(const struct harness_server *server)
{
    /* `holdfast` becomes holdfastd by exec, so the pid is the one in the name of the session. */
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
             "WHERE application_name LIKE 'holdfast %% %d %%'",
             (int)server->pid);
    const char *count = cluster_ask(harness_cluster(), "postgres", sql);
    HARNESS_EXPECT(count && strcmp(count, "1") == 0, "%s sessions ended", count ? count : "no");
}

static void freeze_active(const char *database, bool restart_postgres)
{
    struct caller callers[SOCKETS];
    const char *store = harness_postgres(database);
    if (!start_active(0, store))
        return;
    start_standby(1, store, NULL);
    take_locks(0);
    open_callers(callers, 0);
    lock_all(callers);
    kill(servers[0].pid, SIGSTOP);
    for (uint32_t i = 0; i < SOCKETS; i++)
        for (uint32_t number = 0; number < REPEATS + TESTS; number++)
            send_numbered(&callers[i], i, number, number < REPEATS ? PEER_NLM_LOCK : PEER_NLM_TEST);
    if (restart_postgres) {
        cluster_stop(harness_cluster(), SIGINT);
        HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL does not start");
    } else {
        end_session_of(&servers[0]);
    }
    if (!wait_taken_over(1, restart_postgres ? "frozen, PostgreSQL restarted" : "frozen"))
        return;
    demand_recovery(1, true);
    kill(servers[0].pid, SIGCONT);
    demand_replaced(0);
    demand_silence(callers);
    stop_all();
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
    if (!start_active(0, through_proxy))
        return;
    start_standby(1, store, NULL);
    take_locks(0);
    struct dial_route route = {.server = dial_endpoint_v4(nodes_address(0), servers[0].port)};
    route.source = dial_endpoint_v4(NODES_CLIENT + 3, 0);
    int fd = dial_open(&route, PATIENCE_MS);
    static struct packet packet;
    struct lock_call wanted = call_of(3, 2000, PEER_NLM_LOCK);
    lock_call_put(&packet, &wanted);
    packet_set_xid(&packet, 77);
    proxy_cut(proxy);
    HARNESS_EXPECT(dial_send_record(fd, packet.bytes, packet.len, PATIENCE_MS) == 0, "a LOCK");
    /* It has read the LOCK when the NULL behind it, which needs no store, is answered. */
    packet_clear(&packet);
    struct packet_call null = {.xid = 78, .prog = PEER_NLM_PROGRAM, .vers = 4};
    packet_put_call(&packet, &null);
    static struct packet answer;
    struct packet_reply reply;
    HARNESS_EXPECT(dial_exchange(fd, false, &packet, PATIENCE_MS, &answer, &reply) == 0,
                   "NULL waits for the store");
    nodes_set_link(0, false);
    if (!wait_taken_over(1, "cable pulled"))
        return;
    demand_recovery(1, true);
    struct lock_call other = call_of(1, 2000, PEER_NLM_LOCK);
    demand(1, 1, &other, PEER_NLM_IS_GRANTED); /* two must not rely on it */
    nodes_set_link(0, true);
    nodes_forget_neighbours();
    proxy_mend(proxy);
    demand_replaced(0);
    uint8_t bytes[64];
    int len = dial_receive(fd, bytes, sizeof(bytes), 100);
    HARNESS_EXPECT(len <= 0, "the old server answered %d bytes", len);
    close(fd);
    stop_all();
    proxy_free(proxy);
}

/* ---- (4) ---- */

static void restart_postgres(const char *database, time_t away_s)
{
    const char *store = harness_postgres(database);
    if (!start_active(0, store))
        return;
    start_standby(1, store, NULL);
    take_locks(0);
    cluster_stop(harness_cluster(), SIGINT);
    (void)nanosleep(&(struct timespec){.tv_sec = away_s}, NULL);
    HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL does not start");
    /* Until both are back, and the active server has the lock. */
    char sql[320];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) = 2 AND bool_or(application_name LIKE 'holdfast %% %d %%' AND EXISTS "
             "(SELECT FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'advisory' AND granted)) "
             "FROM pg_stat_activity a WHERE application_name LIKE 'holdfast %%'",
             (int)servers[0].pid);
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    const char *answer = NULL;
    while ((!answer || *answer != 't') && dial_now_ns() < deadline_ns) {
        pause_briefly();
        answer = cluster_ask(harness_cluster(), "postgres", sql);
    }
    HARNESS_EXPECT(answer && *answer == 't', "the active server has not come back first");
    HARNESS_EXPECT(!harness_log_contains(&servers[1], "the active one now") &&
                       harness_is_alive(&servers[0]),
                   "the standby took over from a server that was well");
    struct lock_call lock = call_of(1, 0, PEER_NLM_LOCK);
    demand(1, 0, &lock, PEER_NLM_IS_DENIED);
    stop_all();
}

/* ---- (5) ---- */

/* The pid in a file, when it is there. */
static int wait_for_pid(const char *path)
{
    int pid = 0;
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (pid == 0 && dial_now_ns() < deadline_ns) {
        FILE *file = fopen(path, "re");
        if (file && fscanf(file, "%d\n", &pid) != 1)
            pid = 0;
        if (file)
            fclose(file);
        pause_briefly();
    }
    return pid;
}

/* True: it runs. One that has ended may stay a zombie, if nobody takes note of its end. */
static bool runs(int pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state != 'Z' && state != 'X';
}

static void demand_gone(int pid)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (runs(pid) && dial_now_ns() < deadline_ns)
        pause_briefly();
    if (!HARNESS_EXPECT(pid > 0 && !runs(pid), "what the hook started goes on") && pid > 0)
        kill(pid, SIGKILL);
}

static void stop_standby(void)
{
    const char *store = harness_postgres("stop_standby"), *path = harness_path("failed.pid");
    char hook[300];
    if (!start_active(0, store))
        return;
    start_standby(1, store, NULL);
    HARNESS_EXPECT(harness_stop(&servers[1], SIGTERM) == 0, "a standby and SIGTERM");
    snprintf(hook, sizeof(hook), "sleep 1000 & echo $! >%s; exit 3", path);
    start_standby(1, store, hook);
    HARNESS_EXPECT(harness_stop(&servers[0], SIGTERM) == 0, "SIGTERM");
    int code = wait_exit(1), pid = wait_for_pid(path);
    HARNESS_EXPECT(code == 2, "a hook that fails: exit %d", code);
    HARNESS_EXPECT(harness_log_contains(&servers[1], "failed with code 3"), "no word of it");
    demand_gone(pid);
}

static void stop_in_hook(void)
{
    const char *store = harness_postgres("stop_in_hook"), *path = harness_path("hook.pid");
    char hook[300];
    snprintf(hook, sizeof(hook), "sleep 1000 & echo $! >%s; wait", path);
    if (!start_active(0, store))
        return;
    start_standby(1, store, hook);
    HARNESS_EXPECT(harness_stop(&servers[0], SIGTERM) == 0, "SIGTERM");
    int pid = wait_for_pid(path);
    HARNESS_EXPECT(pid > 0 && runs(pid), "the hook does not run");
    int code = harness_stop(&servers[1], SIGTERM);
    HARNESS_EXPECT(code == 0, "told to stop in its hook: exit %d", code);
    demand_gone(pid);
}

/* ---- (6) ---- */

static void freeze_in_commit(void)
{
    const char *store = harness_postgres("in_commit");
    char conninfo[256];
    is_hasty = true;
    bool is_ready = start_active(0, store);
    is_hasty = false;
    if (!is_ready)
        return;
    start_standby(1, store, NULL);
    snprintf(conninfo, sizeof(conninfo), "host=%s user=holdfast dbname=in_commit",
             harness_cluster()->directory);
    PGconn *blocker = PQconnectdb(conninfo);
    PQclear(PQexec(blocker, "BEGIN"));
    PQclear(PQexec(blocker, "SELECT FROM server FOR UPDATE"));
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    const char *count = NULL;
    while ((!count || *count != '1') && dial_now_ns() < deadline_ns)
        count = cluster_ask(harness_cluster(), "postgres",
                            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                            "AND application_name LIKE 'holdfast %'");
    kill(servers[0].pid, SIGSTOP);
    uint64_t stopped_ns = dial_now_ns();
    end_session_of(&servers[0]);
    PQfinish(blocker);
    if (!wait_taken_over(1, "frozen in a commit"))
        return;
    while (dial_now_ns() - stopped_ns < STANDSTILL_NS)
        pause_briefly();
    kill(servers[0].pid, SIGCONT);
    demand_replaced(0);
    stop_all();
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
    nodes_done();
    return harness_finish();
}
