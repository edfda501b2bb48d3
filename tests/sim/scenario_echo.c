/*
 * scenario_echo.c -- a server that was replaced may still call (decision 025); see story.h.
 *
 * BETA is offered what ALPHA gives back and does not hear of it; then the server is replaced.
 * Whatever BETA does after that, nobody else gets these bytes before the old server is silent.
 */
#include "machine.h"
#include "story.h"

#define EXPECT SCENARIO_EXPECT

static void begin_with(struct world *world, bool resumes, enum callee_mood mood)
{
    world->plan.resumes = resumes;
    world->plan.has_echo = true;
    story_restart(world);
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    story_be(world, BETA, mood);
    story_give_back(world, ALPHA);
    story_wait_ms(world, 300);
    EXPECT(story_status(world).offers == 1);
}

static void begin(struct world *world, bool resumes)
{
    begin_with(world, resumes, CALLEE_SILENT);
}

/* DELTA waits, and is called when nobody can be told any more. */
static void expect_kept(struct world *world)
{
    uint64_t until_ns = world->machine.boot_ns + ECHO_NS - SECOND;
    story_wait_for(world, DELTA);
    while (world->now_ns < until_ns) {
        EXPECT(!story_has(world, DELTA));
        story_wait_ms(world, 500);
    }
    story_wait_ms(world, 3000);
    EXPECT(story_has(world, DELTA));
}

/* The old server only stood still, and goes on while its last commit lets it send: a GRANTED over
 * UDP that is due to be repeated by then needs a commit of its own, which it does not get. */
STORY(takeover_goes_on, "025: the replaced server repeats nothing", 0)
{
    world->plan.lease.is_shared = true;
    story_locker(world, BETA)->host->kind = CALLEE_UDP;
    begin_with(world, true, CALLEE_DEAF);
    world->machine.leaves_ghost = true;
    machine_crash(world, "to be replaced", false);
    EXPECT(world->machine.ghost != NULL);
    story_wait_ms(world, 1200);
    rpc_client_tick(world->machine.ghost, world->now_ns);
    line_turn_ghost(world);
    EXPECT(world->machine.ghost_sent == 0);
}

/* BETA's callback is written, the network holds it, the server is replaced; BETA cancels. */
static void replace_with_callback(struct world *world, uint64_t hold_ns)
{
    world->plan.lease.is_shared = true;
    story_locker(world, BETA)->host->kind = CALLEE_BOTH;
    story_locker(world, BETA)->is_tcp = true; /* and is called over TCP, too */
    world->holds_ns = hold_ns;
    begin_with(world, true, CALLEE_WELL);
    EXPECT(!story_has(world, BETA));
    story_be(world, BETA, CALLEE_SILENT); /* to whoever calls it now */
    world->machine.leaves_ghost = true;
    story_restart(world);
    story_do(world, BETA, PEER_NLM_CANCEL, true);
    while (story_process(world, BETA)->ask != NULL)
        story_wait_ms(world, 100);
    story_be(world, BETA, CALLEE_WELL);
}

/* The process stands still, its kernel does not: what it delivers is what BETA was to be told, and
 * BETA waits for the same again. */
STORY(takeover_kernel, "025: the kernel of a replaced server delivers a callback", 0)
{
    replace_with_callback(world, 9 * SECOND);
    story_wait_for(world, DELTA);
    story_wait_ms(world, 500);
    story_ask(world, BETA, PEER_NLM_LOCK, &story_bytes, true);
    story_wait_ms(world, 9000);
    EXPECT(story_has(world, BETA) && !story_has(world, DELTA));
    story_give_back(world, BETA);
    story_wait_ms(world, 8000);
    EXPECT(story_has(world, DELTA));
}

/* It gives up before anybody else gets these bytes. */
STORY(takeover_kernel_gives_up, "and not for longer than its successor waits", 0)
{
    replace_with_callback(world, 22 * SECOND);
    story_wait_for(world, DELTA);
    story_wait_ms(world, 13000);
    EXPECT(story_has(world, DELTA));
    story_wait_for(world, BETA);
    story_wait_ms(world, 15000);
    EXPECT(story_has(world, DELTA) && !story_has(world, BETA));
}

STORY(takeover_cancel, "025: what was on offer is cancelled", 0)
{
    begin(world, true);
    story_restart(world);
    story_do(world, BETA, PEER_NLM_CANCEL, true);
    expect_kept(world);
}

/* Who takes over from us within the time knows of it, and that it is nobody's. */
STORY(takeover_twice, "and the server is replaced again", 0)
{
    begin(world, true);
    story_restart(world);
    story_do(world, BETA, PEER_NLM_CANCEL, true);
    story_wait_ms(world, 6000); /* until our own callback is over, too */
    story_restart(world);
    expect_kept(world);
}

STORY(takeover_unlock, "or taken and unlocked", 0)
{
    begin(world, true);
    story_be(world, BETA, CALLEE_WELL);
    story_restart(world);
    story_wait_ms(world, 300);
    EXPECT(story_has(world, BETA));
    story_give_back(world, BETA);
    expect_kept(world);
}

STORY(takeover_free_all, "or its client frees all", 0)
{
    begin(world, true);
    story_restart(world);
    world->lockers->at[BETA].frees_all = true;
    locker_reboot(world, &world->lockers->at[BETA]);
    story_wait_ms(world, 6000); /* longer than our own callback lingers */
    EXPECT(story_status(world).offers == 1);
    expect_kept(world);
}

STORY(takeover_free_all_in_grace, "the same in grace", 0)
{
    begin(world, false);
    story_restart(world);
    world->lockers->at[BETA].frees_all = true;
    locker_reboot(world, &world->lockers->at[BETA]);
    story_wait_ms(world, 300);
    EXPECT(!story_status(world).grace.is_on);
    expect_kept(world);
}

/* BETA has taken it, which was not heard. */
STORY(takeover_reclaim, "or it is reclaimed and unlocked", 0)
{
    world->plan.has_echo = true;
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    world->lockers->is_mute = true;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 300);
    EXPECT(story_has(world, BETA) && story_status(world).offers == 1);
    world->lockers->is_mute = false;
    story_restart(world);
    story_wait_ms(world, 3000);
    EXPECT(story_has(world, BETA) && !story_status(world).grace.is_on);
    story_give_back(world, BETA);
    expect_kept(world);
}

/* In grace nobody reclaims it. */
STORY(takeover_end_of_grace, "or nobody reclaims it", WORLD_OVERRIDE)
{
    begin(world, false);
    story_restart(world);
    EXPECT(story_order(world, ORDER_END_GRACE, BETA, NULL) == ORDER_DONE);
    expect_kept(world);
}

/* BETA has taken it, which was not heard, and the operator releases it on that file: BETA relies on
 * what is nobody's now, so it has to be notified. */
STORY(takeover_release, "or the operator releases it", WORLD_OVERRIDE)
{
    begin(world, false);
    story_restart(world);
    uint32_t state = story_status(world).state;
    EXPECT(story_order(world, ORDER_RELEASE, BETA, &story_bytes) == ORDER_DONE);
    EXPECT(story_status(world).state > state);
    EXPECT(story_order(world, ORDER_RELEASE, BETA, &story_bytes) == ORDER_NOTHING);
    EXPECT(story_order(world, ORDER_END_GRACE, BETA, NULL) == ORDER_NOTHING);
    expect_kept(world);
}
