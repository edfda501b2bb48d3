/*
 * recovery_kill9.c -- kill -9 under load, and what its clients live through: they reclaim, or the
 * server resumes.
 *
 *   usage: recovery_kill9 reclaim|resume
 *
 * 1,320 processes on 120 hosts (crowd.h) lock, wait and unlock ranges that conflict between hosts.
 * Each round kills the server inside the function that takes a GRANTED, when at least 1,000 locks
 * were granted in this round, 100 processes wait, and 20 hand-overs are in flight: a callback was
 * taken and its answer has not left. The clients read what the server had sent, and it is started
 * again; load goes on from the first moment. Every fourth round kills it once more, soon after the
 * start, with some told and some reclaimed.
 *
 * Passing proves, for the real process on the real disk:
 *  (1) no two clients ever rely on conflicting bytes (P2), as the clients themselves see it;
 *  (2) reclaim: everybody who relied on a lock is told, with a larger, odd state (P3); all reclaims
 *      are granted; grace is over as soon as everything stored is settled, and not before (D10);
 *      where a lock is stored that its owner never heard of, and that is left so in every third
 *      round, it stands to its end;
 *      resume: the state is the same, nobody is told, and nobody ever hears "in grace" (D12);
 *  (3) clients that waited before the crash get their locks, or give up (P4): after a reclaim
 *      start by asking again, after a resume without doing anything;
 *  (4) in the end everybody unlocks, and then nothing is locked.
 *
 * HOLDFAST_RECOVERY_KILL_ROUNDS (4) rounds. Hosts have ports 111 of their own: it takes root.
 */
#include "callbacks.h"
#include "crowd_recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRANTS_MIN      1000
#define GRANTS_MORE     1000 /* at random */
#define WAITING_MIN     100
#define HANDOVERS_MIN   20
#define HANDOVERS_MORE  5 /* at random */
#define HANDOVERS_SPARE 5 /* a poll or an UNLOCK may have ended as many before the kill */
#define PATIENCE_NS     (180000 * CROWD_MS)
#define SOON_NS         (100 * CROWD_MS) /* after a start: when it is killed again, at most */
#define GRACE_LONG      "60"             /* never stood to its end */
#define GRACE_SHORT     "4"
#define GRACE_LEAST     (4000 * CROWD_MS)
#define EARLY_NS        (30000 * CROWD_MS)

/* What was under way when the server died. */
struct moment {
    uint32_t waiting, handovers, relied;
    uint32_t went_on, patient; /* those who waited go on; without asking again */
    struct lock_dump dump;
    uint32_t unknown;
};

struct totals {
    uint64_t grants, callbacks, told, reclaims, went_on;
    uint32_t kills, grants_min, waiting_min, handovers_min, offers_min;
};

struct test {
    bool is_resume;
    struct crowd crowd;
    struct harness_server server;
    uint64_t wanted; /* grants, before the kill; 0: no kill */
    uint32_t wanted_handovers;
    uint64_t started_ns; /* the server, last */
    struct moment kill;
    struct totals totals;
};

/* ---- the kill ---- */

/* GRANTED has just been read: if enough is going on, the server dies here and now. */
static void on_granted(void *context)
{
    struct test *test = context;
    struct crowd *crowd = &test->crowd;
    if (crowd->is_over || test->wanted == 0 || crowd->counts.grants < test->wanted ||
        callees_held(crowd->callees) < test->wanted_handovers || crowd_waiting(crowd) < WAITING_MIN)
        return;
    kill(test->server.pid, SIGKILL);
    crowd->is_over = true;
    test->kill.waiting = crowd_waiting(crowd);
    test->kill.handovers = callees_held(crowd->callees);
}

/* The server is dead, or dies now; what it had sent is read. */
static bool bury(struct test *test, bool is_settled)
{
    struct crowd *crowd = &test->crowd;
    crowd->is_over = true;
    int code = harness_stop(&test->server, SIGKILL);
    HARNESS_EXPECT(code == 128 + SIGKILL, "the server ended with %d", code);
    for (uint32_t quiet = 0; quiet < 5;)
        quiet = crowd_turn(crowd, 10) > 0 ? 0 : quiet + 1;
    crowd_disconnect(crowd);
    crowd_recovery_crash(crowd, !test->is_resume);
    test->kill.relied = crowd_relied(crowd);
    test->kill.went_on = crowd_left_waiting(crowd);
    test->kill.patient = crowd_patient(crowd);
    test->totals.kills++;
    return crowd_recovery_look(crowd, test->server.store, is_settled && !test->is_resume,
                               &test->kill.dump, &test->kill.unknown);
}

static bool load_and_kill(struct test *test, bool is_settled)
{
    struct crowd *crowd = &test->crowd;
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    crowd_count_anew(crowd);
    test->wanted = GRANTS_MIN + harness_random(&crowd->seed) % GRANTS_MORE;
    test->wanted_handovers =
        HANDOVERS_MIN + HANDOVERS_SPARE + (uint32_t)(harness_random(&crowd->seed) % HANDOVERS_MORE);
    while (!crowd->is_over && harness_is_alive(&test->server) && dial_now_ns() < deadline_ns)
        crowd_turn(crowd, 1);
    bool is_killed = crowd->is_over;
    HARNESS_EXPECT(
        is_killed, "%" PRIu64 " grants of %" PRIu64 ", %u waiting, %u hand-overs in flight",
        crowd->counts.grants, test->wanted, crowd_waiting(crowd), callees_held(crowd->callees));
    test->wanted = 0;
    return bury(test, is_settled) && is_killed;
}

/* ---- the start ---- */

static bool start(struct test *test, const char *grace, bool is_first)
{
    const char *options[] = {"--recovery", test->is_resume ? "resume" : "reclaim", "--grace",
                             grace};
    uint32_t before = test->server.state;
    memcpy(test->server.extra, options, sizeof(options));
    test->started_ns = dial_now_ns();
    if (!harness_start(&test->server))
        return false;
    crowd_recovery_restart(&test->crowd, &test->server);
    const struct harness_server *server = &test->server;
    if (!is_first && test->is_resume) {
        HARNESS_EXPECT(server->state == before && server->grace_s == 0,
                       "resumed with state %u after %u, grace %u s", server->state, before,
                       server->grace_s);
        HARNESS_EXPECT(!harness_log_contains(server, "resume is not possible"), "not resumed");
    } else if (!is_first) {
        HARNESS_EXPECT(server->state > before && server->state % 2 == 1 && server->grace_s > 0,
                       "started with state %u after %u, grace %u s", server->state, before,
                       server->grace_s);
    }
    return crowd_connect(&test->crowd, server);
}

/* Everybody concerned was told and has reclaimed; waiting clients have their locks. */
static bool recover(struct test *test)
{
    struct crowd *crowd = &test->crowd;
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    bool is_over = false;
    while (!is_over && harness_is_alive(&test->server) && dial_now_ns() < deadline_ns) {
        crowd_turn(crowd, 1);
        is_over = crowd_recovery_is_over(crowd) && crowd_left_waiting(crowd) == 0;
    }
    uint32_t told, concerned = crowd_recovery_concerned(crowd, &told);
    for (uint32_t i = 0; i < CROWD_HOSTS && !test->is_resume; i++)
        HARNESS_EXPECT(crowd->hosts[i].is_told || !crowd->hosts[i].relied,
                       "host %u relied on locks and was not told", i);
    return HARNESS_EXPECT(
               is_over,
               "after three minutes: %u of %u hosts told, %u reclaimed, %s, %u still waiting", told,
               concerned, crowd->reclaims, crowd->open_ns ? "grace is over" : "in grace",
               crowd_left_waiting(crowd)) &&
           HARNESS_EXPECT(harness_is_alive(&test->server), "the server is gone");
}

static void judge_grace(const struct test *test, bool is_settled)
{
    const struct crowd *crowd = &test->crowd;
    /* We hear late that it is ready; its clock began after it was started in any case. */
    uint64_t stood_ns = crowd->open_ns - test->started_ns;
    if (!test->is_resume && !is_settled && test->kill.unknown > 0)
        HARNESS_EXPECT(stood_ns >= GRACE_LEAST,
                       "grace ended after %" PRIu64 " ms, and %u stored locks were not settled",
                       stood_ns / CROWD_MS, test->kill.unknown);
    else
        HARNESS_EXPECT(stood_ns < EARLY_NS, "grace ended after %" PRIu64 " ms",
                       stood_ns / CROWD_MS);
    HARNESS_EXPECT(callees_strange(crowd->callees) == 0, "%u calls that make no sense",
                   callees_strange(crowd->callees));
}

/* ---- rounds ---- */

static void smallest(uint32_t *least, uint64_t value)
{
    if (value < *least)
        *least = (uint32_t)value;
}

static void count_round(struct totals *totals, const struct crowd_counts *counts,
                        const struct moment *at)
{
    totals->grants += counts->grants;
    totals->callbacks += counts->callbacks;
    totals->went_on += at->went_on;
    smallest(&totals->grants_min, counts->grants);
    smallest(&totals->waiting_min, at->waiting);
    smallest(&totals->handovers_min, at->handovers);
    smallest(&totals->offers_min, at->dump.offers);
}

static bool run_round(struct test *test, uint32_t round)
{
    struct crowd *crowd = &test->crowd;
    bool is_settled = round % 3 != 2;
    const char *grace = is_settled ? GRACE_LONG : GRACE_SHORT;
    uint32_t stats = callees_stats(crowd->callees), told;
    if (!load_and_kill(test, is_settled))
        return false;
    struct crowd_counts counts = crowd->counts;
    struct moment at = test->kill;
    bool is_killed_again = round % 4 == 3;
    if (!start(test, grace, false))
        return false;
    if (is_killed_again) {
        uint64_t until_ns = dial_now_ns() + harness_random(&crowd->seed) % SOON_NS;
        while (dial_now_ns() < until_ns)
            crowd_turn(crowd, 1);
        if (!bury(test, is_settled) || !start(test, grace, false))
            return false;
    }
    if (!recover(test))
        return false;
    judge_grace(test, is_settled);
    uint32_t concerned = crowd_recovery_concerned(crowd, &told);
    count_round(&test->totals, &counts, &at);
    test->totals.told += told;
    test->totals.reclaims += crowd->reclaims;
    printf("%s round %u: %" PRIu64 " grants (%" PRIu64 " by callback, %" PRIu64
           " by polling), %" PRIu64 " unlocks, %" PRIu64
           " gave up; at the kill %u locks relied on, %u waiting, %u hand-overs in flight; "
           "stored %u locks, %u of them offers, %u waiters, %u unknown to their owners;%s ready in "
           "%" PRIu64 " ms, %u of %u hosts told, %u reclaims granted, open after %" PRIu64
           " ms, %u waits went on (%u without asking again), %u asked for their state\n",
           test->is_resume ? "resume" : "reclaim", round, counts.grants, counts.callbacks,
           counts.polls, counts.unlocks, counts.gave_up, at.relied, at.waiting, at.handovers,
           at.dump.locks, at.dump.offers, at.dump.waiters, at.unknown,
           is_killed_again ? " killed again;" : "", test->server.start_ns / CROWD_MS, told,
           concerned, crowd->reclaims, (crowd->open_ns - crowd->ready_ns) / CROWD_MS, at.went_on,
           at.patient, callees_stats(crowd->callees) - stats);
    return true;
}

/* Everybody goes home. Nothing is left behind. */
static void leave(struct test *test)
{
    struct crowd *crowd = &test->crowd;
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    crowd->is_leaving = true;
    while (!crowd_is_idle(crowd) && dial_now_ns() < deadline_ns)
        crowd_turn(crowd, 1);
    HARNESS_EXPECT(crowd_is_idle(crowd), "%u locks and %u waiters will not go", crowd_relied(crowd),
                   crowd_waiting(crowd));
    for (uint32_t i = 0; i < CROWD_FILES; i++) {
        struct lock_call call = {.procedure = PEER_NLM_LOCK,
                                 .name = "judge",
                                 .svid = 1,
                                 .file = i,
                                 .exclusive = true,
                                 .state = CROWD_NSM_STATE};
        int status = lock_call_once(&test->server, 0, false, &call, NULL);
        HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "file %u: %s, and everybody had unlocked", i,
                       lock_call_text(status));
    }
    crowd_disconnect(crowd);
    HARNESS_EXPECT(harness_stop(&test->server, SIGTERM) == 0, "SIGTERM");
}

static void print_totals(const struct test *test, uint32_t rounds)
{
    const struct totals *totals = &test->totals;
    printf("%s: %u rounds, %u kills, %" PRIu64 " grants, %" PRIu64 " by callback, %" PRIu64
           " hosts told, %" PRIu64 " locks reclaimed, %" PRIu64
           " waits went on; in each round at least %u grants, %u waiting, %u hand-overs in flight, "
           "%u offers stored\n",
           test->is_resume ? "resume" : "reclaim", rounds, totals->kills, totals->grants,
           totals->callbacks, totals->told, totals->reclaims, totals->went_on, totals->grants_min,
           totals->waiting_min, totals->handovers_min, totals->offers_min);
    HARNESS_EXPECT(totals->grants_min >= GRANTS_MIN && totals->waiting_min >= WAITING_MIN &&
                       totals->handovers_min >= HANDOVERS_MIN &&
                       totals->offers_min >= HANDOVERS_MIN,
                   "a round with too little load");
}

int main(int count, char **arguments)
{
    if (count != 2 ||
        (strcmp(arguments[1], "reclaim") != 0 && strcmp(arguments[1], "resume") != 0)) {
        fprintf(stderr, "usage: recovery_kill9 reclaim|resume\n");
        return 2;
    }
    if (!callbacks_enter_network()) {
        printf("recovery_kill9: skipped: no network namespace of its own (%s); it takes root\n",
               strerror(errno));
        return HARNESS_SKIPPED;
    }
    harness_init("recovery_kill9");
    uint32_t rounds = harness_number("HOLDFAST_RECOVERY_KILL_ROUNDS", 4), round = 0;
    struct test *test = calloc(1, sizeof(*test));
    if (!test)
        return 1;
    test->is_resume = strcmp(arguments[1], "resume") == 0;
    test->totals.grants_min = test->totals.waiting_min = UINT32_MAX;
    test->totals.handovers_min = test->totals.offers_min = UINT32_MAX;
    test->server.store = harness_path("store");
    test->crowd.granted = on_granted;
    test->crowd.context = test;
    if (crowd_init(&test->crowd, harness_seed() | 1) && start(test, GRACE_LONG, true))
        while (round < rounds && run_round(test, round + 1))
            round++;
    HARNESS_EXPECT(round == rounds, "%u of %u rounds done", round, rounds);
    if (round == rounds) {
        leave(test);
        print_totals(test, rounds);
    }
    crowd_done(&test->crowd);
    free(test);
    return harness_finish();
}
