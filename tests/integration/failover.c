/*
 * failover.c -- what else can be lost beside the active server: its network in the middle of an
 * answer, the database, the office itself while a hook runs (docs/high-availability.md).
 *
 * Machines are network namespaces (nodes.h), PostgreSQL is reached over their network. Shown:
 *  (1) the cable of the active server is pulled while PostgreSQL has an answer for it: keepalive
 *      says nothing then, but the session ends all the same, and the standby takes over. The time
 *      is printed;
 *  (2) the machine of the database dies, and its synchronous replica is promoted: the server that
 *      was told of both goes on, with every lock, although the first one swallows whatever it is
 *      sent; and so does one that starts;
 *  (3) a standby whose session ends while its hook runs, so that a third server takes over: the
 *      hook and all that it started is killed, exit 76. If nobody takes over, it has its office
 *      back, the hook is left alone, and it serves;
 *  (4) the cable is pulled while a hook runs: the hook has ended before PostgreSQL gives the
 *      session up and the next server's hook begins, exit 74.
 */
#include "pair.h"

#include "postgres/cluster.h"

#include <libpq-fe.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DATABASE_NODE 2
#define HERE          "10.99.0.254"
#define DEAD          "10.99.0.3" /* the database's node */
#define SOON_NS       UINT64_C(20000000000)
/* Half a second before the cut a hook may have been confirmed, for 8 s; PostgreSQL waits for 11. */
#define HOOK_NS UINT64_C(9500000000)

static void wait_for(const struct cluster *cluster, const char *sql, const char *expected)
{
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    const char *answer = NULL;
    while ((!answer || strcmp(answer, expected) != 0) && dial_now_ns() < deadline_ns) {
        pair_pause_briefly();
        answer = cluster_ask(cluster, "postgres", sql);
    }
    HARNESS_EXPECT(answer && strcmp(answer, expected) == 0, "%s: %s", sql, answer ? answer : "?");
}

/* A database that the nodes reach over the network. */
static bool start_cluster(struct cluster *cluster, const char *address)
{
    const char *why = "it does not start";
    bool is_there = cluster_init(cluster, &why);
    cluster->address = address;
    return HARNESS_EXPECT(is_there && cluster_start(cluster), "PostgreSQL: %s", why) &&
           HARNESS_EXPECT(cluster_fresh(cluster, "failover"), "a database");
}

static void demand_denied(uint32_t node)
{
    struct lock_call other = pair_call_of(1, 0, PEER_NLM_LOCK);
    pair_demand(1, node, &other, PEER_NLM_IS_DENIED);
}

/* ---- (1) ---- */

static void cut_under_load(void)
{
    static const char store[] = "postgres:host=" HERE " user=holdfast dbname=failover";
    struct cluster cluster;
    char conninfo[256];
    if (!start_cluster(&cluster, HERE) || !pair_start_active(0, store))
        return;
    pair_start_standby(1, store, NULL);
    pair_take_locks(0);
    /* Its next commit waits, and is answered when nobody hears it any more. */
    snprintf(conninfo, sizeof(conninfo), "host=%s user=holdfast dbname=failover",
             cluster.directory);
    PGconn *blocker = PQconnectdb(conninfo);
    PQclear(PQexec(blocker, "BEGIN"));
    PQclear(PQexec(blocker, "SELECT FROM server FOR UPDATE"));
    wait_for(&cluster,
             "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
             "AND application_name LIKE 'holdfast %'",
             "1");
    nodes_set_link(0, false);
    PQfinish(blocker);
    uint64_t cut_ns = dial_now_ns();
    bool is_taken = pair_wait_taken_over(1, "cut under load");
    uint64_t took_ns = dial_now_ns() - cut_ns;
    HARNESS_EXPECT(is_taken && took_ns < SOON_NS, "the standby serves after %llu ms",
                   (unsigned long long)(took_ns / 1000000));
    nodes_set_link(0, true);
    pair_demand_replaced(0);
    pair_stop_all();
    cluster_done(&cluster);
}

/* ---- (2) ---- */

static void promote_the_replica(void)
{
    static const char store[] = "postgres:host=" DEAD "," HERE
                                " user=holdfast dbname=failover target_session_attrs=read-write";
    struct cluster primary, replica;
    nodes_enter(DATABASE_NODE);
    bool is_there = start_cluster(&primary, DEAD) && cluster_copy(&replica, &primary);
    nodes_enter(NODES_HERE);
    if (!HARNESS_EXPECT(is_there, "a replica"))
        return;
    replica.address = HERE;
    HARNESS_EXPECT(
        cluster_start(&replica) &&
            cluster_run(&primary, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'") &&
            cluster_run(&primary, "postgres", "SELECT pg_reload_conf()"),
        "the replica");
    wait_for(&primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
    if (!pair_start_active(0, store))
        return;
    pair_take_locks(0);
    uint32_t state = pair_servers[0].state;
    /* A machine that is gone, in a network that does not say so. */
    nodes_run(0, "ip neigh replace " DEAD " lladdr 02:00:00:00:00:03 dev eth0 nud permanent");
    nodes_set_link(DATABASE_NODE, false);
    cluster_stop(&primary, SIGKILL);
    HARNESS_EXPECT(cluster_run(&replica, "postgres", "SELECT pg_promote()"), "promotion");
    uint64_t gone_ns = dial_now_ns();
    struct lock_call more = pair_call_of(0, PAIR_LOCKS, PEER_NLM_LOCK);
    pair_demand(0, 0, &more, PEER_NLM_IS_GRANTED);
    printf("the replica was promoted: a lock was granted after %llu ms\n",
           (unsigned long long)((dial_now_ns() - gone_ns) / 1000000));
    demand_denied(0);
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGTERM) == 0, "SIGTERM");
    if (pair_start_active(0, store))
        HARNESS_EXPECT(pair_servers[0].locks == PAIR_LOCKS + 1 && pair_servers[0].state > state,
                       "%u locks, state %u after %u", pair_servers[0].locks, pair_servers[0].state,
                       state);
    pair_stop_all();
    nodes_set_link(DATABASE_NODE, true);
    cluster_done(&replica);
    cluster_done(&primary);
}

/* ---- (3) ---- */

static void lose_office_in_hook(void)
{
    const char *store = harness_postgres("lose_office"), *path = harness_path("office.pid");
    char hook[300];
    snprintf(hook, sizeof(hook), "sleep 1000 & echo $! >%s; wait", path);
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, hook);
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    int pid = pair_wait_for_pid(path);
    HARNESS_EXPECT(pid > 0 && pair_runs(pid), "the hook does not run");
    pair_start_standby(2, store, NULL);
    pair_end_session_of(harness_cluster(), &pair_servers[1]);
    if (!pair_wait_taken_over(2, "a third one"))
        return;
    pair_demand_replaced(1);
    pair_demand_gone(pid);
    pair_stop_all();
}

static void keep_office_in_hook(void)
{
    const char *store = harness_postgres("keep_office"), *path = harness_path("kept.pid");
    const char *go_on = harness_path("go_on");
    char hook[600], sql[256];
    snprintf(hook, sizeof(hook), "echo $$ >%s; while ! [ -e %s ]; do sleep 0.1; done", path, go_on);
    if (!pair_start_active(0, store))
        return;
    pair_start_standby(1, store, hook);
    pair_take_locks(0);
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    HARNESS_EXPECT(pair_wait_for_pid(path) > 0, "the hook does not run");
    pair_end_session_of(harness_cluster(), &pair_servers[1]);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = "
             "'advisory' AND granted AND application_name LIKE 'holdfast %% %d %%'",
             (int)pair_servers[1].pid);
    wait_for(harness_cluster(), sql, "1"); /* it has the lock again, while its hook runs */
    HARNESS_EXPECT(mkdir(go_on, 0700) == 0, "%s", go_on);
    if (pair_wait_taken_over(1, "a session lost in the hook"))
        HARNESS_EXPECT(pair_servers[1].locks == PAIR_LOCKS, "%u locks", pair_servers[1].locks);
    rmdir(go_on);
    pair_stop_all();
}

/* ---- (4) ---- */

/* The last moment at which a hook was seen alive by itself; its kind of clock. */
static uint64_t read_beat(const char *path)
{
    unsigned long long ns = 0;
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%llu", &ns) != 1)
        ns = 0;
    if (file)
        fclose(file);
    return ns;
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The first hook says again and again that it lives, the second one only when it began. */
static void cut_in_hook(void)
{
    static const char store[] = "postgres:host=" HERE " user=holdfast dbname=failover";
    struct cluster cluster;
    const char *pids = harness_path("cut.pid"), *beats = harness_path("cut.beats");
    const char *next = harness_path("cut.next");
    char hook[900], next_hook[600];
    snprintf(hook, sizeof(hook),
             "echo $$ >%s; while :; do date +%%s%%N >%s.new; mv %s.new %s; sleep 0.05; done", pids,
             beats, beats, beats);
    snprintf(next_hook, sizeof(next_hook), "date +%%s%%N >%s.new; mv %s.new %s", next, next, next);
    if (!start_cluster(&cluster, HERE) || !pair_start_active(0, store))
        return;
    pair_start_standby(1, store, hook);
    HARNESS_EXPECT(harness_stop(&pair_servers[0], SIGKILL) == 128 + SIGKILL, "kill -9");
    int pid = pair_wait_for_pid(pids);
    pair_start_standby(2, store, next_hook);
    nodes_set_link(1, false);
    uint64_t cut_ns = wall_ns();
    bool is_taken = pair_wait_taken_over(2, "cut in a hook");
    uint64_t last_ns = read_beat(beats), next_ns = read_beat(next);
    HARNESS_EXPECT(is_taken && last_ns > cut_ns && last_ns - cut_ns < HOOK_NS,
                   "the hook lived for %lld ms", (long long)(last_ns - cut_ns) / 1000000);
    HARNESS_EXPECT(next_ns > last_ns, "the next hook began %lld ms after its end",
                   (long long)(next_ns - last_ns) / 1000000);
    printf("the hook ended %lld ms after the cut, the next one began %lld ms later\n",
           (long long)(last_ns - cut_ns) / 1000000, (long long)(next_ns - last_ns) / 1000000);
    pair_demand_gone(pid);
    int code = pair_wait_exit(1);
    HARNESS_EXPECT(code == 74, "the first one ended with %d", code);
    nodes_set_link(1, true);
    pair_stop_all();
    cluster_done(&cluster);
}

int main(void)
{
    harness_init("failover");
    if (!nodes_init()) {
        nodes_done();
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    (void)harness_cluster(); /* or it is skipped */
    cut_under_load();
    promote_the_replica();
    lose_office_in_hook();
    keep_office_in_hook();
    cut_in_hook();
    nodes_done();
    return harness_finish();
}
