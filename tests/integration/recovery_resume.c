/*
 * recovery_resume.c -- --recovery resume: a restart that nobody notices (D12).
 *
 * Many locks are stored, and requests wait for two of them. Passing proves, after kill -9:
 *  (1) the server goes on with the same state number, without grace, and grants a new lock at once:
 *      the time from the start of the process to that is printed beside its goal;
 *  (2) a request that waited before the crash is granted when the holder unlocks after it;
 *  (3) nobody is sent SM_NOTIFY, but every client that holds locks is asked for its state: what one
 *      that rebooted meanwhile held is freed, and who waited for it is granted;
 *  (4) who sends its LOCK(block) again is still in its old place, behind the one who does not;
 *  (5) after a run that died in grace, and after one that died with a store that may have lost
 *      something, the start is a reclaim start and says why.
 */
#include "lock_bulk.h"
#include "recovery_scene.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define HOLDER  UINT32_C(0x7f100001) /* 127.16.0.1 */
#define SLEEPER UINT32_C(0x7f100002)
#define WAITER  UINT32_C(0x7f100003)
#define SECOND  UINT32_C(0x7f100004)
#define OTHER   UINT32_C(0x7f100005)

enum { FILE_MANY = 1, FILE_HELD, FILE_SLEPT, FILE_NEW };

static uint32_t lock_count, holder, sleeper, waiter, second;

static struct lock_call hold(uint32_t number)
{
    return recovery_scene_lock("holder", 1 + number % 100, FILE_MANY, (uint64_t)number * 4, 2);
}

static struct lock_call held_lock(enum peer_nlm_procedure procedure)
{
    struct lock_call call = recovery_scene_lock("holder", 7, FILE_HELD, 0, 10);
    call.procedure = procedure;
    return call;
}

static struct lock_call wait_for(const char *name, uint32_t file)
{
    struct lock_call call = recovery_scene_lock(name, 10 + file, file, 0, 10);
    call.block = true;
    return call;
}

static void set_up(void)
{
    struct lock_bulk bulk = {.what = "LOCK", .source = HOLDER, .count = lock_count, .call = hold};
    (void)lock_bulk_run(recovery_scene_server(), &bulk);
    HARNESS_EXPECT(bulk.by_status[PEER_NLM_IS_GRANTED] == lock_count, "%u of %u locks granted",
                   bulk.by_status[PEER_NLM_IS_GRANTED], lock_count);
    recovery_scene_demand(HOLDER, held_lock(PEER_NLM_LOCK), PEER_NLM_IS_GRANTED, "a lock");
    recovery_scene_demand(SLEEPER, recovery_scene_lock("sleeper", 8, FILE_SLEPT, 0, 10),
                          PEER_NLM_IS_GRANTED, "a lock");
    recovery_scene_demand(WAITER, wait_for("waiter", FILE_HELD), PEER_NLM_IS_BLOCKED,
                          "LOCK(block)");
    recovery_scene_demand(SECOND, wait_for("second", FILE_HELD), PEER_NLM_IS_BLOCKED,
                          "LOCK(block) behind it");
    recovery_scene_demand(SECOND, wait_for("second", FILE_SLEPT), PEER_NLM_IS_BLOCKED,
                          "LOCK(block) of another file");
}

/* ---- (1) to (4) ---- */

static bool start_measured(void)
{
    struct lock_call new = recovery_scene_lock("other", 1, FILE_NEW, 0, 1);
    uint64_t start_ns = dial_now_ns();
    if (!recovery_scene_start())
        return false;
    uint64_t ready_ns = dial_now_ns();
    recovery_scene_demand(OTHER, new, PEER_NLM_IS_GRANTED, "a new lock right after the start");
    uint64_t granted_ns = dial_now_ns();
    printf("%u stored locks: ready after %" PRIu64 " ms, first new lock granted %" PRIu64
           " ms after the start of the process (the goal: under 1,000)\n",
           recovery_scene_server()->locks, (ready_ns - start_ns) / RECOVERY_SCENE_MS,
           (granted_ns - start_ns) / RECOVERY_SCENE_MS);
    return true;
}

static void hand_over(void)
{
    recovery_scene_demand(SECOND, wait_for("second", FILE_HELD), PEER_NLM_IS_BLOCKED,
                          "the same LOCK(block) of the second one again");
    HARNESS_EXPECT(recovery_hosts_look(waiter).grants == 0, "granted while another holds it");
    recovery_scene_demand(HOLDER, held_lock(PEER_NLM_UNLOCK), PEER_NLM_IS_GRANTED, "UNLOCK");
    uint64_t unlocked_ns = dial_now_ns();
    if (!recovery_scene_await_grants(waiter, 1))
        return;
    struct recovery_host seen = recovery_hosts_look(waiter);
    uint64_t took_ms =
        seen.granted_ns > unlocked_ns ? (seen.granted_ns - unlocked_ns) / RECOVERY_SCENE_MS : 0;
    printf("a waiter of before the crash: granted %" PRIu64 " ms after UNLOCK was answered\n",
           took_ms);
    struct lock_call test = held_lock(PEER_NLM_TEST);
    test.name = "other";
    recovery_scene_demand(OTHER, test, PEER_NLM_IS_DENIED, "TEST of what the waiter got");
}

static void resume(void)
{
    uint32_t before = recovery_scene_server()->state;
    (void)harness_stop(recovery_scene_server(), SIGKILL);
    recovery_hosts_set_state(sleeper, 5); /* it rebooted, and its notice was lost */
    if (!start_measured())
        return;
    const struct harness_server *server = recovery_scene_server();
    HARNESS_EXPECT(server->state == before && server->grace_s == 0 &&
                       server->locks == lock_count + 2,
                   "state %u after %u, %u locks, grace %u s", server->state, before, server->locks,
                   server->grace_s);
    hand_over();
    if (recovery_scene_await_grants(second, 1)) /* of what the sleeper held, not the other */
        HARNESS_EXPECT(recovery_hosts_look(second).granted_svid == 10 + FILE_SLEPT,
                       "the second in the queue came first");
    recovery_scene_await_log("a client rebooted");
    HARNESS_EXPECT(recovery_hosts_look(holder).stats > 0 && recovery_hosts_look(sleeper).stats > 0,
                   "not everybody who holds locks was asked for its state");
    uint32_t notices = 0;
    const uint32_t all[] = {holder, sleeper, waiter, second};
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        notices += recovery_hosts_look(all[i]).notices;
    HARNESS_EXPECT(notices == 0, "%u SM_NOTIFY were sent", notices);
}

/* ---- (5) ---- */

static void demand_reclaim_start(uint32_t before, const char *why)
{
    const struct harness_server *server = recovery_scene_server();
    HARNESS_EXPECT(server->state > before && server->grace_s == 30, "state %u after %u, grace %u s",
                   server->state, before, server->grace_s);
    recovery_scene_await_log("--recovery resume is not possible this time");
    recovery_scene_await_log(why);
    recovery_scene_await_told(holder);
    HARNESS_EXPECT(recovery_scene_is_in_grace(), "no grace");
}

static void after_a_crash_in_grace(void)
{
    static const char *const reclaim[] = {"--grace", "30", "--name", "nas", NULL};
    static const char *const resuming[] = {"--grace", "30",  "--recovery", "resume",
                                           "--name",  "nas", NULL};
    static const char *const lost[] = {"--grace",       "30",     "--recovery", "resume",
                                       "--assume-lost", "--name", "nas",        NULL};
    recovery_scene_options(reclaim);
    if (!recovery_scene_restart(SIGKILL))
        return;
    uint32_t before = recovery_scene_server()->state;
    recovery_scene_await_told(holder);
    recovery_scene_options(resuming);
    if (!recovery_scene_restart(SIGKILL))
        return;
    demand_reclaim_start(before, "the last run ended before every stored lock");
    before = recovery_scene_server()->state;
    recovery_scene_options(lost);
    if (recovery_scene_restart(SIGKILL))
        demand_reclaim_start(before, "the store may have lost records");
}

int main(void)
{
    static const char *const options[] = {
        "--grace", "30",     "--recovery", "resume", "--max-locks-per-client",
        "100100",  "--name", "nas",        NULL};
    lock_count = harness_number("HOLDFAST_RESUME_LOCKS", 20000);
    if (!recovery_scene_open("recovery_resume", 4))
        return HARNESS_SKIPPED;
    holder = recovery_scene_host(HOLDER, "holder");
    sleeper = recovery_scene_host(SLEEPER, "sleeper");
    waiter = recovery_scene_host(WAITER, "waiter");
    second = recovery_scene_host(SECOND, "second");
    recovery_scene_options(options);
    if (recovery_scene_start()) {
        set_up();
        resume();
        after_a_crash_in_grace();
    }
    return recovery_scene_close();
}
