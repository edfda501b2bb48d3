/*
 * scenario_lock.c -- named stories of lockers; see scenario.h.
 *
 * The world is that of story.h.
 */
#include "ask.h"
#include "called.h"
#include "claim.h"
#include "claim_disk.h"
#include "machine.h"
#include "mail.h"
#include "story.h"

#include <stdlib.h>

#define EXPECT SCENARIO_EXPECT

/* ---- GRANTED_MSG and its results ---- */

static void begin_result(struct world *world)
{
    story_take(world, ALPHA);
    story_wait_for(world, GAMMA);
    world->lockers->holds_results = true;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 300);
    EXPECT(story_has(world, GAMMA) && world->lockers->kept_count == 1);
}

/* Something is committed, so that the disk is looked at. */
static void commit_something(struct world *world)
{
    story_ask(world, DELTA, PEER_NLM_LOCK, &(struct extent){.file = 0, .offset = 9, .len = 1},
              false);
    story_wait_ms(world, 300);
    story_ask(world, DELTA, PEER_NLM_UNLOCK, &(struct extent){.file = 0, .offset = 9, .len = 1},
              false);
    story_wait_ms(world, 300);
}

STORY(late_result, "GRANTED_RES comes after the second callback", 0)
{
    begin_result(world);
    story_wait_ms(world, 32000);
    EXPECT(world->lockers->kept_count == 2); /* it was called again, and said DENIED */
    called_release(world, 1);
    story_wait_ms(world, 200);
    EXPECT(story_status(world).locks == 1 && story_status(world).offers == 0);
    called_release(world, 0); /* for nobody */
    story_wait_ms(world, 200);
    commit_something(world);
    story_give_back(world, GAMMA);
    EXPECT(story_status(world).locks == 0);
}

/* Both copies were executed; the answer to the second one is the first to arrive. */
STORY(early_denied, "DENIED to a second copy arrives first", 0)
{
    world->lockers->is_mute = true;
    begin_result(world);
    story_wait_ms(world, 1500);
    EXPECT(world->lockers->kept_count >= 2);
    called_release(world, 1);
    story_wait_ms(world, 6000);
    commit_something(world);
    EXPECT(story_status(world).locks == 1);
}

STORY(result_from_elsewhere, "GRANTED_RES from another address (P5)", 0)
{
    static struct packet packet;
    static struct peer_nlm_res res;
    uint8_t cookie[8];
    world->lockers->at[GAMMA].is_tcp = true;
    begin_result(world);
    store_be32(cookie, (uint32_t)(world->lockers->cookie_seen >> 32));
    store_be32(cookie + 4, (uint32_t)world->lockers->cookie_seen);
    res.cookie = peer_nlm_bytes_of(cookie, 8);
    res.status = PEER_NLM_IS_DENIED;
    packet_clear(&packet);
    peer_nlm_put_res_call(&packet, 1, 4, PEER_NLM_GRANTED_RES, &res);
    story_send(world, "10.66.6.6", 700, &packet);
    story_wait_ms(world, 100);
    commit_something(world);
    EXPECT(story_status(world).offers == 1);
    called_release(world, 0);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).locks == 1);
}

/* The socket that it calls from is the one that it listens on: the result comes once. */
STORY(one_socket, "the result of a message goes to one port once", 0)
{
    struct locker *gamma = &world->lockers->at[GAMMA];
    gamma->port = (uint16_t)(gamma->host->port_base + 1); /* 100021 over UDP */
    story_take(world, GAMMA); /* its status monitor is asked, once (R-SEC-4) */
    story_give_back(world, GAMMA);
    uint32_t called = world->calls_out;
    story_take(world, GAMMA);
    story_give_back(world, GAMMA);
    EXPECT(world->calls_out == called);
}

/* ---- the queue ---- */

/* It refuses a copy that may not have been the first: the lock is its own, perhaps, until it says
 * CANCEL. */
STORY(doubt, "a refusal that says little, and CANCEL", 0)
{
    story_take(world, ALPHA);
    story_wait_for(world, GAMMA);
    story_wait_for(world, DELTA);
    story_process(world, GAMMA)->is_cancelling = true;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 1000);
    EXPECT(!story_has(world, GAMMA) && !story_has(world, DELTA));
    story_do(world, GAMMA, PEER_NLM_CANCEL, true);
    story_wait_ms(world, 1000);
    EXPECT(story_has(world, DELTA));
}

/* The same where it holds some of those bytes in the other mode: they stay when the doubt ends. */
STORY(doubt_about_an_upgrade, "and what it held before", 0)
{
    struct extent shared = {.offset = 0, .len = 3};
    EXPECT(story_lock(world, GAMMA, shared) == PEER_NLM_IS_GRANTED);
    EXPECT(story_lock(world, ALPHA, story_part(0, 5, 1)) == PEER_NLM_IS_GRANTED);
    story_do(world, GAMMA, PEER_NLM_LOCK, true);
    EXPECT(story_is_waiting(world, GAMMA));
    story_process(world, GAMMA)->is_cancelling = true;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 1000);
    story_do(world, GAMMA, PEER_NLM_CANCEL, true);
    story_wait_ms(world, 1000);
    EXPECT(story_holds(world, GAMMA, shared));
}

/* R-BLK-15: who holds nothing waits behind those who came before; when it holds something it does
 * not. */
STORY(leaves_the_queue_order, "a waiter that holds something waits for nobody's turn", 0)
{
    struct extent rest = story_part(0, 4, 2);
    EXPECT(story_lock(world, ALPHA, story_part(0, 2, 2)) == PEER_NLM_IS_GRANTED);
    story_wait_for(world, BETA);
    story_ask(world, OTHER, PEER_NLM_LOCK, &rest, true);
    story_wait_ms(world, 100);
    EXPECT(story_is_waiting(world, OTHER));
    EXPECT(story_lock(world, OTHER, story_part(1, 0, 1)) == PEER_NLM_IS_GRANTED);
    story_wait_ms(world, 1000);
    EXPECT(story_holds(world, OTHER, rest));
}

/* A program starts anew: it says the same with the same xid, from another port. */
STORY(other_port, "a cached answer is for one port (R-DRC-1)", 0)
{
    struct locker *locker = &world->lockers->at[BETA];
    uint32_t xid_count = locker->xid_count;
    story_take(world, BETA);
    story_give_back(world, BETA);
    story_take(world, DELTA);
    locker->xid_count = xid_count;
    locker->port = 5005;
    locker->life++;
    story_do(world, BETA, PEER_NLM_LOCK, false);
    EXPECT(!story_has(world, BETA));
}

/* The same of one that was told to wait and was killed, by which it refuses what it waited for:
 * when it asks anew, from another port, nobody is in its way, and BLOCKED would be said for ever.
 */
STORY(blocked_from_another_port, "and BLOCKED is for the moment (R-DRC-1)", 0)
{
    struct locker *locker = &world->lockers->at[BETA];
    struct process *process = story_process(world, BETA);
    uint32_t xid_count = locker->xid_count;
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    process->is_waiting = process->is_blocked = false;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).waiters == 0);
    locker->xid_count = xid_count;
    locker->port = 5005;
    locker->life++;
    story_do(world, BETA, PEER_NLM_LOCK, true);
    EXPECT(world->lockers->answered == PEER_NLM_IS_GRACE);
    story_do(world, BETA, PEER_NLM_LOCK, true);
    EXPECT(story_has(world, BETA));
}

/* What exclusion (5) of P2 excludes: a late copy of UNLOCK after a restart. */
STORY(late_unlock, "exclusion (5) of P2: an old UNLOCK after a restart", WORLD_LATE)
{
    story_take(world, BETA);
    story_ask(world, BETA, PEER_NLM_UNLOCK, &story_bytes, false);
    struct ask *removal = story_process(world, BETA)->ask;
    story_wait_ms(world, 100);
    story_take(world, BETA);
    story_restart(world);
    world->is_unjudged = true;
    mail_arrive_late(world, removal, world->lockers->at[BETA].port);
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).locks == 0 &&
           story_has(world, BETA)); /* it believes that it has it */
}

/* ---- many locks, and addresses ---- */

#define ADDRESS_OF_BETA "192.0.2.12"

/* A client that the oracle does not know. */
static void many(struct world *world, struct story_raw call)
{
    call.name = "many";
    story_raw(world, &call);
}

static void lock_raw(struct world *world, uint32_t svid, uint64_t offset, uint64_t len,
                     bool exclusive)
{
    many(world, (struct story_raw){.procedure = PEER_NLM_LOCK,
                                   .svid = svid,
                                   .offset = offset,
                                   .len = len,
                                   .is_shared = !exclusive,
                                   .block = !exclusive});
}

static void free_all_raw(struct world *world)
{
    many(world, (struct story_raw){.procedure = PEER_NLM_FREE_ALL});
}

static void unlock_raw(struct world *world, uint32_t svid, uint64_t len)
{
    many(world, (struct story_raw){
                    .procedure = PEER_NLM_UNLOCK, .svid = svid, .len = len, .wait_ms = 100});
}

static void take_many(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        lock_raw(world, 1, 2 * i, 1, true);
        if (i % 16 == 15 || i + 1 == count) {
            machine_turn(world);
            story_wait_ms(world, 10);
        }
    }
    EXPECT(story_status(world).locks == count);
}

/* One client's answers are as long as can be. Another's, at the same address, are known as long as
 * before. */
STORY(long_answers, "long answers of one client do not flush the short ones of another", 0)
{
    world->is_unjudged = true;
    story_take(world, BETA);
    story_ask(world, BETA, PEER_NLM_UNLOCK, &story_bytes, false);
    struct ask *removal = story_process(world, BETA)->ask;
    story_wait_ms(world, 100);
    story_take(world, BETA);
    for (uint32_t i = 0; i < 300; i++)
        many(world, (struct story_raw){.procedure = i % 2 == 0 ? PEER_NLM_LOCK : PEER_NLM_UNLOCK,
                                       .from = ADDRESS_OF_BETA,
                                       .svid = 1,
                                       .offset = 1000,
                                       .len = 1,
                                       .cookie_len = PEER_NLM_NETOBJ_MAX,
                                       .wait_ms = 20});
    mail_arrive_late(world, removal, world->lockers->at[BETA].port);
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).locks == 1 && story_has(world, BETA));
}

/* The server dies when the reboot is stored, and nothing is freed yet. */
STORY(drain_goes_on, "the server dies in the middle of a FREE_ALL", 0)
{
    world->is_unjudged = true;
    take_many(world, 50);
    world->machine.holds_commits = true;
    free_all_raw(world);
    machine_turn(world);
    EXPECT(disk_apply(&world->disk) == NULL);
    EXPECT(disk_count(&world->disk, RECORD_LOCK) == 50);
    world->machine.holds_commits = false;
    story_restart(world);
    EXPECT(story_status(world).locks == 0 && !story_status(world).grace.is_on);
}

/* It holds 80 bytes and waits for many more, which it is offered; it does not answer, and we are
 * restarted. That would become more pieces than one batch may take: the offer stands as it is. */
static void offer_in_pieces(struct world *world)
{
    world->is_unjudged = true;
    take_many(world, 80);
    lock_raw(world, 2, 1000, 1, true);
    lock_raw(world, 1, 0, 2000, false);
    machine_turn(world);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).waiters == 1);
    story_be(world, DELTA, CALLEE_SILENT);
    unlock_raw(world, 2, 0);
    EXPECT(story_status(world).offers == 1);
    story_restart(world);
    EXPECT(story_status(world).offers == 1 && story_status(world).locks == 80);
}

/* Until its owner has fewer. */
STORY(offer_in_pieces, "an offer over many locks of its owner", 0)
{
    offer_in_pieces(world);
    unlock_raw(world, 1, 120); /* all of them */
    story_wait_ms(world, 5000);
    EXPECT(story_status(world).offers == 0 && story_status(world).grace.is_on);
}

/* R-BLK-19, R-GRACE-5: such an offer stays as long as its client's locks, and can be reclaimed. */
STORY(offer_in_pieces_is_held, "and what becomes of it after a restart", 0)
{
    world->plan.holds = true;
    world->plan.grace_ns = 20 * SECOND;
    offer_in_pieces(world);
    story_wait_for_end(world, 5000);
    EXPECT(!story_status(world).grace.is_on && story_status(world).offers == 1);
    many(world, (struct story_raw){.procedure = PEER_NLM_LOCK,
                                   .svid = 1,
                                   .len = 2000,
                                   .is_shared = true,
                                   .reclaim = true,
                                   .wait_ms = 100});
    EXPECT(story_status(world).offers == 0 && story_status(world).locks == 1);
}

/* R-GRACE-5: and goes with the rest of its client at the end of grace. */
STORY(offer_in_pieces_is_given_up, "and when nobody reclaims it", 0)
{
    offer_in_pieces(world);
    story_wait_for_end(world, -500);
    EXPECT(story_status(world).offers == 1 && story_status(world).locks == 80);
    story_wait_for_end(world, 1000);
    EXPECT(story_status(world).offers == 0 && story_status(world).locks == 0);
    EXPECT(disk_count(&world->disk, RECORD_LOCK) == 0);
    EXPECT(story_lock(world, ALPHA, story_bytes) == PEER_NLM_IS_GRANTED);
}

/* D17: alpha's name and number from another address, as alpha's clone has them, while nobody can
 * call alpha: nothing moves by itself. */
STORY(clone, "D17: the same name and state number from another address", 0)
{
    struct locker *alpha = story_locker(world, ALPHA), *other = story_locker(world, OTHER);
    struct host *old = alpha->host;
    story_take(world, ALPHA);
    world->is_unjudged = true;
    old->mood = CALLEE_SILENT;
    alpha->host = other->host;
    alpha->host->nsm_state = alpha->state;
    for (int i = 0; i < 5; i++) {
        story_do(world, ALPHA, PEER_NLM_LOCK, false);
        EXPECT(world->lockers->answered == PEER_NLM_IS_DENIED);
        story_wait_ms(world, 50000);
    }
    EXPECT(story_status(world).clients == 1 && story_status(world).namesakes == 1);
    alpha->host = old;
    story_do(world, ALPHA, PEER_NLM_UNLOCK, false);
    EXPECT(story_status(world).locks == 0 && story_status(world).namesakes == 0);
}

/* And an operator, who knows that they are one, moves its record. */
STORY(moved_client, "exclusion (4) of P2: an operator moves a client (D17)", WORLD_OVERRIDE)
{
    struct locker *alpha = story_locker(world, ALPHA), *other = story_locker(world, OTHER);
    story_take(world, ALPHA);
    world->is_unjudged = true;
    alpha->host->mood = CALLEE_SILENT;
    struct address to = other->host->address;
    EXPECT(operator_move(world, alpha, &to) == ORDER_DONE);
    other->host->nsm_state = alpha->state + 100; /* whose that is must be found out anew */
    story_notice(world, "198.51.100.9", "alpha", alpha->state + 2);
    alpha->host = other->host;
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).locks == 1);
    EXPECT(story_is_told(world, ALPHA));
    story_do(world, ALPHA, PEER_NLM_LOCK, false);
    EXPECT(world->lockers->answered == PEER_NLM_IS_GRANTED);
    EXPECT(story_status(world).clients == 1);
    story_restart(world);
    story_wait_ms(world, 1000);
    story_do(world, ALPHA, PEER_NLM_UNLOCK, false);
    EXPECT(story_status(world).locks == 0);
}

/* Meanwhile it is told to ask again. */
static void lock_again(struct world *world)
{
    for (uint32_t i = 0; i < 2; i++) {
        lock_raw(world, 1, 1000001, 1, true);
        machine_turn(world);
        story_wait_ms(world, i == 0 ? 1000 : 100);
    }
    EXPECT(story_status(world).locks == 1);
}

/* More than one turn frees. */
STORY(drained_in_pieces, "FREE_ALL of more than one turn frees", 0)
{
    world->is_unjudged = true;
    take_many(world, 2500);
    free_all_raw(world);
    lock_again(world);
    free_all_raw(world);
    machine_turn(world);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).locks == 0);
    take_many(world, 2500);
    free_all_raw(world);
    machine_turn(world); /* begins */
    free_all_raw(world);
    lock_again(world);
}
