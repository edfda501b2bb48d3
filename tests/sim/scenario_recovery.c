/*
 * scenario_recovery.c -- stories of our restarts: told, grace, reclaims, their end; see story.h.
 *
 * Where a story lets clients reclaim by hand they do nothing by themselves (holds_reclaims). G is
 * the end of grace.
 */
#include "ask.h"
#include "locker.h"
#include "machine.h"
#include "mail.h"
#include "story.h"

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED
#define DENIED  PEER_NLM_IS_DENIED
#define GRACE   PEER_NLM_IS_GRACE

static bool is_grace(const struct world *world)
{
    return story_status(world).grace.is_on;
}

/* By hand, with this grace. */
static void restart_by_hand(struct world *world, uint64_t grace_s)
{
    world->plan.grace_ns = grace_s * SECOND;
    world->lockers->holds_reclaims = true;
    story_restart(world);
}

/* R-GRACE-5: told when nobody else would have its locks any more, and its answer is lost. It
 * reclaims one lock after another, and has all of them. */
STORY(hold_answer_lost, "R-GRACE-5: told, and its answer is lost", 0)
{
    world->plan.holds = true;
    story_take(world, BETA);
    EXPECT(story_lock(world, BETA, story_part(1, 0, 1)) == GRANTED);
    EXPECT(story_lock(world, BETA, story_part(1, 8, 1)) == GRANTED);
    story_be(world, BETA, CALLEE_SILENT);
    story_restart(world);
    story_wait_for_end(world, 60000);
    world->lockers->falls_silent = true;
    story_be(world, BETA, CALLEE_WELL);
    story_wait_ms(world, 125000);
    EXPECT(story_has(world, BETA) && story_holds(world, BETA, story_part(1, 0, 1)));
    EXPECT(story_holds(world, BETA, story_part(1, 8, 1)));
    EXPECT(story_status(world).grace.unsettled == 0 && story_status(world).locks == 3);
}

/* D5: two at one address. One calls while nobody answers there: neither has crashed. */
STORY(one_of_two_calls, "D5 is judged by address", 0)
{
    story_locker(world, BETA)->host = story_locker(world, ALPHA)->host;
    story_take(world, ALPHA);
    EXPECT(story_lock(world, BETA, story_part(1, 0, 1)) == GRANTED);
    story_be(world, ALPHA, CALLEE_SILENT);
    world->plan.grace_ns = 90 * SECOND;
    story_restart(world);
    story_wait_ms(world, 2000);
    EXPECT(story_lock(world, ALPHA, story_part(1, 5, 1)) == GRACE);
    story_wait_ms(world, 8000);
    EXPECT(story_status(world).reboots.crashes_detected == 0);
    story_be(world, ALPHA, CALLEE_WELL);
    story_wait_ms(world, 10000);
    EXPECT(!is_grace(world) && story_has(world, ALPHA));
}

/* R-NOTIFY-2: it knows us by one of our names, and hears another one before it is cut off. */
STORY(another_name_first, "the last of our names is the one that it knows", 0)
{
    story_locker(world, DELTA)->mounted = 2; /* our address: told last */
    story_take(world, DELTA);
    world->lockers->falls_silent = true;
    world->plan.grace_ns = 90 * SECOND;
    story_restart(world);
    story_wait_ms(world, 10000);
    EXPECT(!story_is_told(world, DELTA) && is_grace(world));
    world->lockers->falls_silent = false;
    story_be(world, DELTA, CALLEE_WELL);
    story_wait_ms(world, 7000);
    EXPECT(story_is_told(world, DELTA) && !is_grace(world) && story_has(world, DELTA));
}

/* What was granted before it and is given up afterwards is not granted again by the cache. */
STORY(simulated_crash_and_cache, "R-DRC-1: the duplicate cache is empty after it", WORLD_UNTOLD)
{
    story_ask(world, BETA, PEER_NLM_LOCK, &story_bytes, false);
    struct ask *lock = story_process(world, BETA)->ask;
    story_wait_ms(world, 100);
    EXPECT(story_has(world, BETA));
    world->lockers->holds_reclaims = true;
    story_simulate_crash(world);
    story_wait_ms(world, 100);
    story_wait_for_end(world, 500);
    EXPECT(story_lock(world, OTHER, story_bytes) == GRANTED);
    mail_arrive_late(world, lock, story_locker(world, BETA)->port);
    story_wait_ms(world, 100);
    EXPECT(story_holds(world, OTHER, story_bytes));
}

/* An answer that has to wait for the store, for longer than grace: what it grants is still there
 * when it leaves. */
STORY(simulated_crash_and_stalled_store, "its grace begins when its state is stored",
      WORLD_OVERRIDE)
{
    world->machine.holds_commits = true;
    story_ask(world, BETA, PEER_NLM_LOCK, &story_bytes, false);
    story_wait_ms(world, 10);
    story_simulate_crash(world);
    story_wait_ms(world, 60000);
    EXPECT(!story_has(world, BETA));
    /* It would give up what an answer has yet to give. */
    EXPECT(story_order(world, ORDER_END_GRACE, BETA, NULL) == ORDER_LATER);
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    story_wait_ms(world, 3000);
    EXPECT(story_has(world, BETA) && story_is_told(world, BETA) && !is_grace(world));
}

/* D16: a simulated crash inside the grace of an incomplete store begins another whole one. After
 * its end nothing is missing any more, also when the disk does not know that yet: what is answered
 * then waits until it does. */
STORY(simulated_crash_and_incomplete, "D16: it begins another grace, unless one is over",
      WORLD_INCOMPLETE)
{
    world->machine.power_lost = true; /* and nothing with it, but who knows */
    story_restart(world);
    EXPECT(is_grace(world) && story_status(world).incomplete);
    story_wait_ms(world, 10000);
    story_simulate_crash(world);
    story_wait_ms(world, 19000);
    EXPECT(story_lock(world, ALPHA, story_bytes) == GRACE);
    story_wait_for_end(world, -100);
    EXPECT(is_grace(world) && story_status(world).incomplete);
    world->machine.holds_commits = true;
    story_wait_for_end(world, 100);
    EXPECT(!is_grace(world) && world->disk.is_busy && world->ledger.incomplete);
    story_simulate_crash(world);
    story_ask(world, BETA, PEER_NLM_LOCK, &story_bytes, false);
    story_wait_ms(world, 100);
    EXPECT(!is_grace(world) && !story_has(world, BETA));
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    story_wait_ms(world, 1000);
    EXPECT(story_has(world, BETA) && !world->ledger.incomplete);
}

/* R-GRACE-8: the clock starts when we are registered. */
STORY(ready_late, "grace is counted from readiness", 0)
{
    story_take(world, ALPHA);
    world->plan.ready_min_ns = 20 * SECOND;
    restart_by_hand(world, 30);
    story_wait_for_end(world, -5000);
    EXPECT(story_lock(world, OTHER, story_part(1, 0, 1)) == GRACE);
    EXPECT(story_reclaim(world, ALPHA, story_bytes) == GRANTED);
}

/* Decision 022: the process is stopped inside grace for longer than its rest. */
STORY(stands_still_in_grace, "stopped inside grace for longer than its rest", WORLD_UNTOLD)
{
    story_take(world, ALPHA);
    EXPECT(story_lock(world, BETA, story_part(1, 0, 1)) == GRANTED);
    restart_by_hand(world, 20);
    story_wait_for_end(world, -5000);
    machine_stand_still(world, 60 * SECOND);
    story_wait_ms(world, 1000);
    EXPECT(is_grace(world));
    EXPECT(story_lock(world, OTHER, story_bytes) == GRACE);
    EXPECT(story_reclaim(world, ALPHA, story_bytes) == GRANTED);
    story_wait_ms(world, 2000);
    EXPECT(is_grace(world));
    story_wait_ms(world, 3000);
    EXPECT(!is_grace(world)); /* what was left before, and no more */
    EXPECT(story_lock(world, OTHER, story_bytes) == DENIED);
    story_wait_ms(world, 30000);
    EXPECT(story_lock(world, OTHER, story_part(1, 0, 1)) == GRANTED);
}

/* The same: a reclaim is in the socket when grace would end. So short a standstill counts. */
STORY(unread_when_grace_ends, "a reclaim waits in a socket when grace would end", WORLD_UNTOLD)
{
    story_take(world, ALPHA);
    restart_by_hand(world, 20);
    story_wait_for_end(world, -2);
    world->plan.delay_max_ns = 1;
    (void)ask_begin(
        world, story_process(world, ALPHA),
        &(struct ask_what){.procedure = PEER_NLM_LOCK, .extent = story_bytes, .reclaim = true});
    machine_stand_still(world, 900 * MILLISECOND);
    story_wait_ms(world, 100);
    EXPECT(world->lockers->answered == GRANTED);
    EXPECT(story_lock(world, OTHER, story_bytes) == DENIED);
}

/* Decision 020: the answer to a reclaim is lost, and a LOCK of its process was refused since. */
STORY(reclaim_and_a_refused_lock, "the repeat of a reclaim is told the same", 0)
{
    struct lockers *all = world->lockers;
    story_take(world, ALPHA);
    EXPECT(story_lock(world, DELTA, story_part(0, 8, 1)) == GRANTED);
    restart_by_hand(world, 20);
    EXPECT(story_lock(world, ALPHA, story_part(1, 0, 1)) == GRACE);
    EXPECT(story_reclaim(world, ALPHA, story_bytes) == GRANTED);
    struct ask *reclaim = all->asks[all->ask_count - 1];
    EXPECT(reclaim->reclaim);
    EXPECT(story_lock(world, ALPHA, story_part(1, 0, 1)) == GRACE);
    mail_arrive_late(world, reclaim, story_locker(world, ALPHA)->port);
    EXPECT(all->put_off == 0);
    EXPECT(story_reclaim(world, DELTA, story_part(0, 8, 1)) == GRANTED);
}
