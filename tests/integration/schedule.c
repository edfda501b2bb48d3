/*
 * schedule.c -- three servers, one database, clients that are watched, and whatever can go wrong
 * between them, at random (P1, P2, P3, P4, docs/high-availability.md).
 *
 *   usage: schedule reclaim|resume
 *
 * HOLDFAST_SCHEDULES (2) schedules, half of them in each mode, each with a seed of its own. One
 * server is active and two stand by, each on a machine of its own (nodes.h); PostgreSQL
 * is reached over the same network; the address that clients know moves by the takeover hook.
 * While the clients of reliers.h lock, wait, give up and unlock, the active server is
 *
 *   killed (kill -9),
 *   stopped, and replaced or not, and goes on at any moment before, while or after that,
 *   without its session (pg_terminate_backend), or
 *   cut off, and comes back soon or after it was replaced;
 *
 * in every second schedule the network loses packets as well. Servers that ended are started again
 * as standbys. Passing proves: no two clients ever relied on conflicting ranges, every reclaim was
 * granted, waiting clients then got their locks, and when everybody has unlocked everything,
 * nothing is locked. A failure prints the seed and what happened.
 *
 * With HOLDFAST_SEED=N HOLDFAST_SCHEDULE_FIRST=I HOLDFAST_SCHEDULES=2 the faults of one are
 * repeated; what happens between processes differs from run to run.
 */
#include "reliers.h"

#include "postgres/cluster.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS          UINT64_C(1000000)
#define PATIENCE_NS (60000 * MS)
#define HERE        "10.99.0.254"
#define STORE       "postgres:host=" HERE " user=holdfast dbname=schedule"
#define HOOK        "ip addr replace 10.99.0.100/24 dev eth0"
#define NOBODY      NODES_COUNT

struct schedule {
    uint64_t seed;
    bool is_resume, is_lossy;
    struct cluster *cluster;
    struct reliers *reliers;
    struct harness_server servers[NODES_COUNT];
    bool is_serving[NODES_COUNT]; /* has said that it is ready */
    uint32_t active;              /* whom clients reach; NOBODY */
    uint64_t looked_ns;
    uint32_t takeovers, kills, stops, cuts, ends;
};

static const char *controls[NODES_COUNT];

static uint64_t random_below(struct schedule *schedule, uint64_t max)
{
    return (harness_random(&schedule->seed) >> 11) % max;
}

/* ---- servers ---- */

static void start(struct schedule *schedule, uint32_t node)
{
    struct harness_server *server = &schedule->servers[node];
    const char *const options[] = {"--port",
                                   "4045",
                                   "--control",
                                   controls[node],
                                   "--grace",
                                   "20",
                                   "--standby",
                                   "--notify-timeout",
                                   "2",
                                   "--takeover-hook",
                                   HOOK,
                                   "--recovery",
                                   schedule->is_resume ? "resume" : "reclaim"};
    *server = (struct harness_server){.store = STORE};
    memcpy(server->extra, options, sizeof(options));
    schedule->is_serving[node] = false;
    nodes_spawn(node, server);
    reliers_note(schedule->reliers, "node %u is started, pid %d", node, (int)server->pid);
}

/* What its service manager does: takes the address away, and starts it again. */
static void bury(struct schedule *schedule, uint32_t node)
{
    int code = harness_stop(&schedule->servers[node], 0);
    reliers_note(schedule->reliers, "node %u ended with %d", node, code);
    bool is_right = code == 76 || code == 74 || code == 128 + SIGKILL;
    HARNESS_EXPECT(is_right, "node %u ended with %d", node, code);
    nodes_run(node, "ip addr del 10.99.0.100/24 dev eth0 2>/dev/null; true");
    start(schedule, node);
}

/* Who serves, who has ended. */
static void look_at_servers(struct schedule *schedule)
{
    if (dial_now_ns() - schedule->looked_ns < 20 * MS)
        return;
    schedule->looked_ns = dial_now_ns();
    for (uint32_t node = 0; node < NODES_COUNT; node++) {
        if (!harness_is_alive(&schedule->servers[node])) {
            bury(schedule, node);
        } else if (!schedule->is_serving[node] &&
                   harness_log_contains(&schedule->servers[node], "holdfast: ready on port")) {
            schedule->is_serving[node] = true;
            schedule->active = node;
            schedule->takeovers++;
            nodes_move_service(node);
            reliers_note(schedule->reliers, "node %u serves", node);
        }
    }
}

static void turn(struct schedule *schedule)
{
    reliers_turn(schedule->reliers, 2);
    look_at_servers(schedule);
}

static void go_on(struct schedule *schedule, uint64_t time_ns)
{
    uint64_t until_ns = dial_now_ns() + time_ns;
    while (dial_now_ns() < until_ns)
        turn(schedule);
}

/* Until a server serves that did not before. */
static bool wait_for_takeover(struct schedule *schedule, uint32_t before)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (schedule->takeovers == before && dial_now_ns() < deadline_ns)
        turn(schedule);
    return HARNESS_EXPECT(schedule->takeovers > before, "nobody takes over");
}

/* ---- what goes wrong ---- */

static void end_session(struct schedule *schedule)
{
    reliers_note(schedule->reliers, "the session of the active server is ended");
    schedule->ends++;
    HARNESS_EXPECT(cluster_run(schedule->cluster, "postgres",
                               "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = "
                               "'advisory' AND granted"),
                   "a session");
}

static void kill_active(struct schedule *schedule)
{
    uint32_t before = schedule->takeovers;
    reliers_note(schedule->reliers, "kill -9 of node %u", schedule->active);
    schedule->kills++;
    kill(schedule->servers[schedule->active].pid, SIGKILL);
    (void)wait_for_takeover(schedule, before);
}

static void stop_active(struct schedule *schedule)
{
    uint32_t node = schedule->active, before = schedule->takeovers;
    bool is_replaced = random_below(schedule, 4) != 0;
    pid_t pid = schedule->servers[node].pid;
    reliers_note(schedule->reliers, "node %u stands still", node);
    schedule->stops++;
    kill(pid, SIGSTOP);
    if (is_replaced) {
        go_on(schedule, random_below(schedule, 200 * MS));
        end_session(schedule);
    }
    if (is_replaced && random_below(schedule, 3) == 0)
        (void)wait_for_takeover(schedule, before);
    go_on(schedule, random_below(schedule, random_below(schedule, 3) == 0 ? 4000 * MS : 1000 * MS));
    reliers_note(schedule->reliers, "node %u goes on", node);
    kill(pid, SIGCONT);
    if (is_replaced && schedule->takeovers == before)
        go_on(schedule, 2000 * MS);
}

static void cut_active(struct schedule *schedule)
{
    uint32_t node = schedule->active, before = schedule->takeovers;
    bool is_noticed = random_below(schedule, 3) == 0; /* else an operator is faster */
    reliers_note(schedule->reliers, "node %u is cut off", node);
    schedule->cuts++;
    nodes_set_link(node, false);
    if (is_noticed && random_below(schedule, 2) == 0) {
        (void)wait_for_takeover(schedule, before);
    } else {
        go_on(schedule, random_below(schedule, 1500 * MS));
        if (!is_noticed)
            end_session(schedule);
        go_on(schedule, random_below(schedule, 3000 * MS));
    }
    reliers_note(schedule->reliers, "node %u is connected again", node);
    nodes_set_link(node, true);
}

static void do_harm(struct schedule *schedule)
{
    switch (random_below(schedule, 8)) {
    case 0:
    case 1:
        kill_active(schedule);
        return;
    case 2:
    case 3:
    case 4:
    case 5:
        stop_active(schedule);
        return;
    case 6:
        end_session(schedule);
        go_on(schedule, random_below(schedule, 1500 * MS));
        return;
    default:
        cut_active(schedule);
        return;
    }
}

/* ---- one schedule ---- */

static void set_loss(struct schedule *schedule, bool is_on)
{
    char command[256];
    uint64_t percent = 5 + random_below(schedule, 20);
    snprintf(command, sizeof(command),
             "nft add table inet loss && nft 'add chain inet loss in { type filter hook input "
             "priority 0; }' && nft add rule inet loss in ip saddr 10.99.0.0/24 ip "
             "saddr != 10.99.0.254 numgen random mod "
             "100 '<' %u drop",
             (unsigned)percent);
    for (uint32_t node = 0; node <= NODES_COUNT; node++)
        nodes_run(node, is_on ? command : "nft delete table inet loss");
}

/* Everybody gives back what he has, and then everything is free. */
static void settle(struct schedule *schedule)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    reliers_leave(schedule->reliers);
    while (!reliers_are_idle(schedule->reliers) && dial_now_ns() < deadline_ns)
        turn(schedule);
    if (!HARNESS_EXPECT(reliers_are_idle(schedule->reliers), "somebody has not come to an end"))
        reliers_print_history(schedule->reliers);
    for (uint32_t file = 0; file < RELIERS_FILES; file++)
        if (!HARNESS_EXPECT(reliers_take_all(schedule->reliers, file, PATIENCE_NS),
                            "file %u is not free", file))
            reliers_print_history(schedule->reliers);
}

static void stop_servers(struct schedule *schedule)
{
    for (uint32_t node = 0; node < NODES_COUNT; node++) {
        int code = harness_stop(&schedule->servers[node], SIGTERM);
        bool is_right = code == 0 || code == 76 || code == 74 || code == 128 + SIGTERM;
        HARNESS_EXPECT(is_right, "node %u ended with %d", node, code); /* or had just begun */
        nodes_run(node, "ip addr del 10.99.0.100/24 dev eth0 2>/dev/null; true");
    }
}

static void run_schedule(struct cluster *cluster, uint64_t seed, uint32_t number, bool is_resume,
                         bool can_lose)
{
    static struct schedule schedule;
    schedule = (struct schedule){.seed = seed + number,
                                 .is_resume = is_resume,
                                 .is_lossy = can_lose && number % 2 == 1,
                                 .cluster = cluster,
                                 .active = NOBODY};
    schedule.reliers = reliers_new(harness_random(&schedule.seed));
    if (!HARNESS_EXPECT(schedule.reliers && cluster_fresh(cluster, "schedule"), "clients"))
        return;
    for (uint32_t node = 0; node < NODES_COUNT; node++)
        start(&schedule, node);
    if (wait_for_takeover(&schedule, 0)) {
        if (schedule.is_lossy)
            set_loss(&schedule, true);
        for (uint64_t harms = 2 + random_below(&schedule, 3); harms > 0; harms--) {
            go_on(&schedule, 200 * MS + random_below(&schedule, 1500 * MS));
            do_harm(&schedule);
        }
        go_on(&schedule, random_below(&schedule, 2000 * MS));
        if (schedule.is_lossy)
            set_loss(&schedule, false);
        settle(&schedule);
    }
    stop_servers(&schedule);
    struct reliers_counts counts = reliers_counts(schedule.reliers);
    HARNESS_EXPECT(reliers_failures(schedule.reliers) == 0,
                   "HOLDFAST_SEED=%" PRIu64 " HOLDFAST_SCHEDULE_FIRST=%u", seed, number);
    printf("schedule %u (%s%s): %u kills, %u standstills, %u sessions ended, %u cuts, %u times "
           "somebody began to serve; %" PRIu64 " grants, %" PRIu64 " by callback, %" PRIu64
           " cancelled, %" PRIu64 " told, %" PRIu64 " reclaimed\n",
           number, schedule.is_resume ? "resume" : "reclaim", schedule.is_lossy ? ", loss" : "",
           schedule.kills, schedule.stops, schedule.ends, schedule.cuts, schedule.takeovers,
           counts.grants, counts.callbacks, counts.cancels, counts.told, counts.reclaims);
    fflush(stdout);
    reliers_free(schedule.reliers);
}

int main(int argc, char **argv)
{
    struct cluster cluster;
    bool is_resume = argc == 2 && strcmp(argv[1], "resume") == 0;
    const char *why = "PostgreSQL does not start";
    uint64_t seed = harness_seed();
    harness_init("schedule");
    bool is_there = nodes_init();
    if (is_there) {
        is_there = cluster_init(&cluster, &why);
        cluster.address = HERE;
        is_there = is_there && cluster_start(&cluster);
        if (!is_there)
            printf("skipped: %s\n", why);
    }
    if (!is_there) {
        nodes_done();
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    static const char *const names[NODES_COUNT] = {"control.0", "control.1", "control.2"};
    for (uint32_t node = 0; node < NODES_COUNT; node++)
        controls[node] = harness_path(names[node]);
    bool can_lose = nodes_try("nft list ruleset >/dev/null 2>&1");
    if (!can_lose)
        printf("not shown: lost packets; it takes nft\n");
    uint32_t first = harness_number("HOLDFAST_SCHEDULE_FIRST", 0);
    uint32_t count = harness_number("HOLDFAST_SCHEDULES", 2);
    for (uint32_t i = 0; i < (count + 1) / 2; i++)
        run_schedule(&cluster, seed, first + i, is_resume, can_lose);
    cluster_done(&cluster);
    nodes_done();
    return harness_finish();
}
