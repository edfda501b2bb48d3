/*
 * scenario_shares.c -- one address has a share of each table, and a full table forgets who holds
 * nothing (R-SEC-12); see story.h.
 */
#include "core/turn.h"
#include "machine.h"
#include "story.h"
#include "stranger.h"

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED
#define NOLOCKS PEER_NLM_IS_NOLOCKS

/* From the next start on there is room for so many clients. */
static void restart_with(struct world *world, uint32_t clients_max)
{
    world->lockers->plan.is_limited = true;
    world->plan.clients_max = world->machine.clients_max = clients_max;
    story_restart(world);
}

/* Over its share an address is refused, and nobody else is. */
STORY(share_of_an_address, "R-SEC-12: an address over its share", 0)
{
    world->plan.locks_max = 20; /* two for each address */
    world->plan.per_address_percent = 10;
    restart_with(world, 100);
    EXPECT(story_lock(world, ALPHA, story_part(0, 0, 1)) == GRANTED);
    EXPECT(story_lock(world, ALPHA, story_part(0, 4, 1)) == GRANTED);
    EXPECT(story_lock(world, ALPHA, story_part(1, 0, 1)) == NOLOCKS);
    EXPECT(story_lock(world, BETA, story_part(1, 0, 1)) == GRANTED);
    EXPECT(story_status(world).quota.refused == 1);
}

/* A full table forgets the idle for a new client, and nobody who holds something. */
STORY(full_table, "R-SEC-12: the idle go for a new client", 0)
{
    restart_with(world, 2);
    EXPECT(story_lock(world, ALPHA, story_part(0, 0, 1)) == GRANTED);
    story_take(world, BETA);
    EXPECT(story_lock(world, DELTA, story_part(1, 4, 1)) == NOLOCKS);
    story_give_back(world, BETA);
    EXPECT(story_lock(world, DELTA, story_part(1, 4, 1)) == GRANTED);
    EXPECT(story_status(world).quota.evicted_clients == 1);
    EXPECT(story_holds(world, ALPHA, story_part(0, 0, 1)));
    EXPECT(story_lock(world, OTHER, story_part(1, 6, 1)) == NOLOCKS); /* both hold something */
}

/* P3: who must be told stays while it is tried; test_evict tells what follows. */
STORY(owed_in_a_full_table, "P3: who is still tried stays", WORLD_UNTOLD)
{
    restart_with(world, 1);
    story_take(world, BETA);
    story_be(world, BETA, CALLEE_SILENT);
    story_restart(world);
    story_wait_for_end(world, 1000);
    EXPECT(story_status(world).locks == 0 && story_status(world).notify.owed == 1);
    EXPECT(story_lock(world, DELTA, story_part(1, 4, 1)) == NOLOCKS);
    EXPECT(story_status(world).clients == 1 && story_status(world).notify.owed == 1);
}

/* The same of one that was idle, and is owed something since. */
STORY(owed_by_order, "and who was idle before", WORLD_OVERRIDE)
{
    restart_with(world, 1);
    story_take(world, BETA);
    story_give_back(world, BETA);
    story_be(world, BETA, CALLEE_SILENT);
    EXPECT(story_order(world, ORDER_NOTIFY, BETA, NULL) == ORDER_DONE);
    EXPECT(story_lock(world, DELTA, story_part(1, 4, 1)) == NOLOCKS);
    story_be(world, BETA, CALLEE_WELL);
    story_wait_ms(world, 130000);
    EXPECT(story_lock(world, DELTA, story_part(1, 4, 1)) == GRANTED);
}

/* P7: a hundred callbacks to a host that answers none keep nobody waiting for his. */
STORY(silent_stranger, "P7: callbacks that nobody answers delay no others", 0)
{
    world->plan.waiters_max = 400;
    world->plan.calls_max = TURN_CALLS_MAX + 16;
    stranger_add(world, 1, (struct prng){1});
    struct strangers *all = world->strangers;
    restart_with(world, 100);
    all->hosts[0].mood = CALLEE_SILENT;
    all->theme = STRANGER_OFFERS;
    all->version = 4;
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    for (all->length = 200; all->said < all->length; story_wait_ms(world, 2))
        all->said += stranger_say(world);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).offers > 190);
    story_give_back(world, ALPHA);
    story_wait_ms(world, 500);
    EXPECT(story_has(world, BETA));
}
