/*
 * scenario_exclusion.c -- what happens instead where P2 makes an exception; see story.h.
 *
 * One story, at least, for each of its conditions (1) to (4), and for the orders of operators,
 * which are (4); those of (5) are late-datagram and late-unlock. Users read the same in
 * docs/recovery.md. With the switch of its exclusion off, each of these stories would be a broken
 * promise.
 */
#include "ask.h"
#include "disk.h"
#include "machine.h"
#include "mail.h"
#include "story.h"

#include <stdio.h>

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED
#define DENIED  PEER_NLM_IS_DENIED
#define GRACE   PEER_NLM_IS_GRACE

static bool is_grace(const struct world *world)
{
    return story_status(world).grace.is_on;
}

static bool believes(struct world *world, enum who who)
{
    return story_process(world, who)->believed[story_bytes.file].any != 0;
}

/* (1) One address, one name: for us they are one client, and each unlocks for the other. */
STORY(alike, "exclusion (1) of P2: two clients that cannot be told apart", WORLD_ALIKE)
{
    struct locker *alpha = story_locker(world, ALPHA), *beta = story_locker(world, BETA);
    world->is_unjudged = true;
    beta->host = alpha->host;
    (void)snprintf(beta->name, sizeof beta->name, "%s", alpha->name);
    story_take(world, ALPHA);
    story_take(world, BETA);
    EXPECT(story_has(world, ALPHA) && story_has(world, BETA));
    story_give_back(world, BETA);
    EXPECT(story_lock(world, DELTA, story_bytes) == GRANTED && story_has(world, ALPHA));
}

static void reserve(struct world *world, enum who who)
{
    struct ask_what what = {.procedure = PEER_NLM_SHARE, .reservation = {1, 1}};
    (void)ask_begin(world, story_process(world, who), &what);
    story_wait_ms(world, 100);
    EXPECT(story_process(world, who)->ask == NULL && world->lockers->answered == GRANTED);
}

/* (1) A SHARE does not say of which life its client is: what is reserved between a reboot and the
 * first sign of it goes with what was there before. */
STORY(share_before_the_notice, "exclusion (1): two lives of a client that cannot be told apart",
      WORLD_ALIKE)
{
    struct locker *alpha = story_locker(world, ALPHA);
    world->is_unjudged = true;
    story_take(world, ALPHA);
    reserve(world, ALPHA);
    locker_reboot(world, alpha);
    reserve(world, ALPHA);
    story_notice(world, "192.0.2.11", "alpha", alpha->state);
    story_wait_ms(world, 300);
    EXPECT(story_status(world).locks == 0 && story_status(world).shares == 0);
    EXPECT(story_process(world, ALPHA)->reserved[0].mode == 1); /* it believes in it */
    reserve(world, ALPHA);
    story_notice(world, "192.0.2.11", "alpha", alpha->state);
    story_wait_ms(world, 300);
    EXPECT(story_status(world).shares == 1);
}

/* (2) It is not told before its locks are given up, and is refused when it comes. */
STORY(untold, "exclusion (2): cut off for longer than grace", WORLD_UNTOLD)
{
    story_take(world, BETA);
    story_be(world, BETA, CALLEE_SILENT);
    story_restart(world);
    story_wait_for_end(world, 100);
    EXPECT(!is_grace(world) && believes(world, BETA));
    EXPECT(story_lock(world, ALPHA, story_bytes) == GRANTED);
    story_be(world, BETA, CALLEE_WELL);
    story_wait_ms(world, 125000);
    EXPECT(story_is_told(world, BETA) && !believes(world, BETA)); /* refused: it knows now */
    EXPECT(story_has(world, ALPHA));
}

/* (2) It is told in time and reclaims too late. */
STORY(too_late, "exclusion (2): told, and too slow", WORLD_UNTOLD)
{
    story_take(world, BETA);
    world->lockers->holds_reclaims = true;
    story_restart(world);
    story_wait_for_end(world, 500);
    EXPECT(story_is_told(world, BETA) && believes(world, BETA));
    EXPECT(story_reclaim(world, BETA, story_bytes) == GRACE);
    EXPECT(story_lock(world, ALPHA, story_bytes) == GRANTED);
}

static void lose_a_lock(struct world *world)
{
    disk_corrupt(&world->disk, RECORD_LOCK, 0);
    world->ledger.incomplete = true;
    world->is_unjudged = true;
    world->lockers->holds_reclaims = true;
    story_restart(world);
}

/* (3) The store has lost a lock. Grace stands to its end, and its owner can have it back, as long
 * as nothing is in its way. */
STORY(lost_lock_is_reclaimed, "exclusion (3): an incomplete store (D16)", WORLD_INCOMPLETE)
{
    struct extent of_beta = story_part(1, 0, 2);
    story_take(world, ALPHA);
    EXPECT(story_lock(world, BETA, of_beta) == GRANTED);
    lose_a_lock(world);
    EXPECT(story_status(world).locks == 1 && story_status(world).incomplete);
    EXPECT(story_reclaim(world, BETA, of_beta) == GRANTED);
    EXPECT(is_grace(world)); /* who knows what is missing */
    EXPECT(story_lock(world, OTHER, story_part(0, 9, 1)) == GRACE);
    EXPECT(story_reclaim(world, OTHER, story_part(1, 1, 1)) == DENIED);
    EXPECT(story_reclaim(world, ALPHA, story_bytes) == GRANTED);
    story_wait_for_end(world, -200);
    EXPECT(is_grace(world));
    story_wait_for_end(world, 200);
    EXPECT(!is_grace(world) && !story_status(world).incomplete);
    EXPECT(story_lock(world, OTHER, story_bytes) == DENIED);
}

/* (3) Nobody reclaims it: somebody else gets it. Of two that claim it the first one does. */
STORY(lost_lock_is_gone, "exclusion (3): and nobody reclaims it", WORLD_INCOMPLETE)
{
    story_take(world, ALPHA);
    lose_a_lock(world);
    EXPECT(story_status(world).locks == 0 && is_grace(world));
    EXPECT(story_reclaim(world, BETA, story_part(0, 2, 1)) == GRANTED); /* it never had it */
    EXPECT(story_reclaim(world, ALPHA, story_bytes) == DENIED);
    story_wait_for_end(world, 200);
    EXPECT(story_lock(world, OTHER, story_part(0, 3, 3)) == GRANTED);
}

/* (4) The operator ends grace: what nobody has reclaimed is given up, at once. */
STORY(end_grace, "exclusion (4): the operator ends grace", WORLD_OVERRIDE)
{
    struct extent of_beta = story_part(1, 0, 2);
    story_take(world, ALPHA);
    EXPECT(story_lock(world, BETA, of_beta) == GRANTED);
    world->lockers->holds_reclaims = true;
    story_restart(world);
    EXPECT(story_reclaim(world, BETA, of_beta) == GRANTED);
    EXPECT(story_order(world, ORDER_END_GRACE, ALPHA, NULL) == ORDER_DONE);
    EXPECT(!is_grace(world) && believes(world, ALPHA));
    EXPECT(story_lock(world, OTHER, story_bytes) == GRANTED);
    EXPECT(story_lock(world, OTHER, of_beta) == DENIED);
    EXPECT(story_reclaim(world, ALPHA, story_bytes) == GRACE);
    EXPECT(story_order(world, ORDER_END_GRACE, ALPHA, NULL) == ORDER_NOTHING);
}

/* (4) --grace 0: nobody can reclaim. */
STORY(no_grace, "exclusion (4): --grace 0", WORLD_OVERRIDE | WORLD_UNTOLD)
{
    story_take(world, ALPHA);
    world->plan.grace_ns = 0;
    story_restart(world);
    story_wait_ms(world, 1000);
    EXPECT(story_is_told(world, ALPHA) && !story_has(world, ALPHA) && !believes(world, ALPHA));
    EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
}

/* (4) The operator releases a client: on one file, then everywhere. Who waits is served; the client
 * is told, and nobody else. */
STORY(release, "exclusion (4): the operator releases a client", WORLD_OVERRIDE)
{
    struct extent elsewhere = story_part(1, 0, 2);
    story_take(world, ALPHA);
    EXPECT(story_lock(world, ALPHA, elsewhere) == GRANTED);
    EXPECT(story_lock(world, DELTA, story_part(0, 8, 1)) == GRANTED);
    story_wait_for(world, BETA);
    struct extent wanted = story_part(0, 8, 1);
    story_ask(world, ALPHA, PEER_NLM_LOCK, &wanted, true);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).waiters == 2);
    uint32_t before = story_status(world).state;
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, &story_bytes) == ORDER_DONE);
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).waiters == 0); /* it does not wait there any more, either */
    story_process(world, ALPHA)->is_waiting = false;
    EXPECT(story_has(world, BETA) && story_holds(world, ALPHA, elsewhere));
    EXPECT(story_status(world).state == before + 2 && story_is_told(world, ALPHA));
    EXPECT(!story_is_told(world, DELTA) && !is_grace(world));
    EXPECT(!believes(world, ALPHA)); /* it reclaimed, and was refused */
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, NULL) == ORDER_DONE);
    story_wait_ms(world, 1000);
    EXPECT(!story_holds(world, ALPHA, elsewhere));
    EXPECT(story_lock(world, DELTA, elsewhere) == GRANTED);
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, NULL) == ORDER_DONE); /* it is forgotten */
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, NULL) == ORDER_NO_CLIENT);
    uint32_t after = story_status(world).state;
    story_restart(world);
    EXPECT(story_status(world).state > after && story_is_told(world, DELTA));
}

/* P3: the retry for one client meets an order for another whose number is not stored yet. */
STORY(order_and_stalled_store, "nothing is told that is not stored", 0)
{
    story_take(world, ALPHA);
    EXPECT(story_lock(world, DELTA, story_part(0, 8, 1)) == GRANTED);
    story_be(world, ALPHA, CALLEE_SILENT);
    world->plan.grace_ns = 90 * SECOND;
    story_restart(world);
    story_wait_ms(world, 3000);
    world->machine.holds_commits = true;
    EXPECT(story_order(world, ORDER_NOTIFY, DELTA, NULL) == ORDER_DONE);
    story_wait_ms(world, 3000); /* its first attempt has ended */
    story_be(world, ALPHA, CALLEE_WELL);
    story_wait_ms(world, 20000); /* its retries are due: what leaves is durable, or nothing does */
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    story_wait_ms(world, 10000);
    EXPECT(story_is_told(world, DELTA) && story_has(world, ALPHA) && !is_grace(world));
}

/* (4) A copy of the LOCK arrives after that: it takes nothing, and is not told that it has what it
 * has not (decision 020). */
STORY(release_and_a_copy, "exclusion (4): a copy of a LOCK whose lock was released", WORLD_OVERRIDE)
{
    story_ask(world, ALPHA, PEER_NLM_LOCK, &story_bytes, false);
    struct ask *first = story_process(world, ALPHA)->ask;
    story_wait_ms(world, 100);
    EXPECT(story_has(world, ALPHA));
    story_be(world, ALPHA, CALLEE_SILENT);
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, NULL) == ORDER_DONE);
    EXPECT(story_lock(world, DELTA, story_bytes) == GRANTED);
    mail_arrive_late(world, first, story_locker(world, ALPHA)->port);
    EXPECT(world->lockers->put_off == 1);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).locks == 1 && story_has(world, DELTA));
    story_be(world, ALPHA, CALLEE_WELL);
}

/* (4) The operator knows that a client is gone for good: nobody tries to tell it any more. */
STORY(gone_for_good, "exclusion (4): a dead client is forgotten", WORLD_OVERRIDE | WORLD_UNTOLD)
{
    story_take(world, ALPHA);
    story_be(world, ALPHA, CALLEE_SILENT);
    story_restart(world);
    story_wait_for_end(world, 1000);
    EXPECT(story_status(world).locks == 0 && story_status(world).notify.owed == 1);
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, NULL) == ORDER_DONE);
    EXPECT(story_status(world).notify.owed == 0 && story_status(world).clients == 0);
    EXPECT(story_order(world, ORDER_RELEASE, ALPHA, NULL) == ORDER_NO_CLIENT);
}

/* An order that breaks nothing: the client is told, reclaims outside of grace, and has it all. */
STORY(told_by_order, "the operator has a client reclaim", 0)
{
    story_take(world, ALPHA);
    EXPECT(story_lock(world, DELTA, story_part(0, 8, 1)) == GRANTED);
    uint32_t heard = story_locker(world, ALPHA)->heard_count;
    story_be(world, ALPHA, CALLEE_SILENT);
    EXPECT(story_order(world, ORDER_NOTIFY, ALPHA, NULL) == ORDER_DONE);
    story_wait_ms(world, 500);
    EXPECT(story_order(world, ORDER_NOTIFY, ALPHA, NULL) == ORDER_DONE); /* during the call */
    story_be(world, ALPHA, CALLEE_WELL); /* and hears the first one */
    story_wait_ms(world, 20000);
    EXPECT(story_is_told(world, ALPHA) && story_locker(world, ALPHA)->heard_count > heard);
    EXPECT(!story_is_told(world, DELTA) && story_has(world, ALPHA) && !is_grace(world));
}
