/*
 * scenario_rare.c -- stories of what seeds meet rarely or never; see story.h.
 */
#include "ask.h"
#include "core/callback.h"
#include "core/namesake.h"
#include "core/turn.h"
#include "machine.h"
#include "mail.h"
#include "story.h"
#include "stranger.h"

#include <stdio.h>

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED
#define BLOCKED PEER_NLM_IS_BLOCKED

/* A client without a status monitor, which says FREE_ALL when it boots, and counts its calls from 1
 * then: its second FREE_ALL looks like a late copy of the first one. */
STORY(free_all_of_two_boots, "a FREE_ALL looks like a late copy of the one before", 0)
{
    struct locker *beta = story_locker(world, BETA);
    struct process *process = story_process(world, BETA);
    beta->kind = LOCKER_PCNFS;
    beta->version = 3;
    beta->frees_all = true;
    EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
    locker_reboot(world, beta);
    struct ask *first = process->ask;
    story_wait_ms(world, 100);
    EXPECT(process->ask == NULL && story_status(world).locks == 0);
    mail_arrive_late(world, first, beta->port); /* nothing that it says is untrue */
    EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
    mail_arrive_late(world, first, beta->port);
    mail_arrive_late(world, first, beta->port + 1);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).locks == 1 && story_has(world, BETA)); /* P2 */
    beta->xid_count = first->cookie[3] - 1U;
    locker_reboot(world, beta);
    EXPECT(process->ask != NULL && process->ask->xid == first->xid);
    story_wait_ms(world, 60000);
    EXPECT(process->ask != NULL && story_status(world).locks == 1); /* nor is it answered */
    story_wait_ms(world, 65000);
    EXPECT(process->ask == NULL && story_status(world).locks == 0); /* P4 */
}

/* The same without a record, because it never held anything: after its boot an UNLOCK that looks
 * like one of before is executed. */
STORY(free_all_of_nobody, "R-DRC-1: it has no record, and its calls are forgotten", 0)
{
    struct locker *beta = story_locker(world, BETA);
    beta->kind = LOCKER_PCNFS;
    beta->version = 3;
    beta->frees_all = true;
    uint32_t xid_count = beta->xid_count = 10;
    story_give_back(world, BETA); /* what it does not have */
    EXPECT(story_status(world).clients == 0);
    locker_reboot(world, beta);
    story_wait_ms(world, 100);
    EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
    beta->xid_count = xid_count;
    story_give_back(world, BETA);
    EXPECT(story_status(world).locks == 0);
}

/* Decision 020: a client may have so many answers that wait for the end of a callback; the next
 * call is executed and not answered, and its repeat is a new call. */
static enum rpc_verdict unlock_raw(struct world *world, uint32_t xid)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    const struct process *process = story_process(world, BETA);
    struct rpc_source from = {.peer = {.address = process->locker->host->address,
                                       .local = process->locker->host->local,
                                       .port = 800,
                                       .transport = TRANSPORT_UDP}};
    struct bytes reply;
    args.lock.caller_name = peer_nlm_text(process->locker->name);
    args.lock.fh = locker_handle(story_bytes.file);
    args.lock.oh = locker_oh(process);
    args.lock.svid = process->svid;
    args.lock.offset = story_bytes.offset;
    args.lock.len = story_bytes.len;
    packet_clear(&packet);
    peer_nlm_put_call(&packet, xid, 4, PEER_NLM_UNLOCK, &args);
    return machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
}

STORY(too_many_answers_wait, "more than may wait for the end of a callback", 0)
{
    story_locker(world, BETA)->is_tcp = true; /* and is called over TCP, too */
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    world->lockers->is_mute = true;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 300);
    EXPECT(story_has(world, BETA) && story_status(world).offers == 1); /* it has not said so */
    world->is_unjudged = true;
    const uint32_t many = CALLBACK_LATE_PER_CLIENT_MAX;
    for (uint32_t i = 0; i < many; i++)
        EXPECT(unlock_raw(world, 1 + i) == RPC_WAITING);
    EXPECT(unlock_raw(world, 1 + many) == RPC_NO_ANSWER);
    EXPECT(unlock_raw(world, 1 + many) == RPC_NO_ANSWER);
    uint32_t answers = world->answers;
    story_wait_ms(world, 200);
    EXPECT(world->answers == answers && story_status(world).offers == 1);
    story_wait_ms(world, 5000);
    EXPECT(world->answers == answers + many && story_status(world).offers == 0);
    EXPECT(unlock_raw(world, 1 + many) == RPC_WAITING);
    machine_turn(world);
    story_wait_ms(world, 100);
    EXPECT(world->answers == answers + many + 1);
}

/* GRANTED is written, and the network holds it for longer than a CANCEL waits: the connection must
 * be aborted before that is answered. Closed, the kernel would deliver it to BETA's next
 * request. */
STORY(granted_held_by_the_network, "A2: a callback is aborted before CANCEL is answered", 0)
{
    story_locker(world, BETA)->is_tcp = true; /* and is called over TCP, too */
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    world->holds_ns = 12 * SECOND;
    story_give_back(world, ALPHA);
    story_wait_ms(world, 300);
    EXPECT(!story_has(world, BETA) && story_status(world).offers == 1);
    world->holds_ns = 0;
    story_ask(world, BETA, PEER_NLM_CANCEL, &story_bytes, true);
    story_wait_ms(world, 4000);
    EXPECT(story_process(world, BETA)->ask != NULL);
    EXPECT(story_lock(world, GAMMA, story_bytes) == PEER_NLM_IS_DENIED);
    story_wait_ms(world, 2000);
    EXPECT(story_process(world, BETA)->ask == NULL && story_status(world).offers == 0);
    story_take(world, GAMMA);
    story_wait_for(world, BETA);
    story_wait_ms(world, 10000);
    EXPECT(!story_has(world, BETA) && story_has(world, GAMMA));
}

/* D17: a client is refused by its own name, and waits; that makes a record at its new address. When
 * an operator moves the old one there, the new one gives way with its wait. */
STORY(moved_to_a_waiter, "exclusion (4) of P2: where it moves, a record of its name waits (D17)",
      WORLD_OVERRIDE)
{
    struct locker *alpha = story_locker(world, ALPHA), *other = story_locker(world, OTHER);
    struct host *old = alpha->host;
    struct extent elsewhere = story_part(1, 0, 1);
    story_take(world, ALPHA);
    world->is_unjudged = true;
    old->mood = CALLEE_SILENT;
    alpha->host = other->host;
    story_do(world, ALPHA, PEER_NLM_LOCK, true);
    EXPECT(world->lockers->answered == BLOCKED);
    EXPECT(story_status(world).clients == 2 && story_status(world).waiters == 1);
    EXPECT(story_lock(world, ALPHA, elsewhere) == GRANTED);
    struct address to = other->host->address;
    alpha->host = old;
    EXPECT(operator_move(world, alpha, &to) == ORDER_TAKEN);
    alpha->host = other->host;
    story_ask(world, ALPHA, PEER_NLM_UNLOCK, &elsewhere, false);
    story_wait_ms(world, 100);
    alpha->host = old;
    EXPECT(operator_move(world, alpha, &to) == ORDER_DONE);
    alpha->host = other->host;
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).clients == 1 && story_status(world).waiters == 0);
    EXPECT(story_status(world).locks == 1 && story_is_told(world, ALPHA));
    story_restart(world);
    EXPECT(story_status(world).clients == 1 && story_status(world).locks == 1);
    story_give_back(world, ALPHA);
    EXPECT(story_status(world).locks == 0);
}

/* The last number that the store can hold for the lives of its clients. */
static void age(struct world *world)
{
    static uint8_t bytes[RECORD_VALUE_MAX];
    for (uint32_t slot = 0; slot < disk_slots_used(&world->disk, RECORD_CLIENT); slot++) {
        struct record_client client;
        EXPECT(record_get_client(disk_at(&world->disk, RECORD_CLIENT, slot), slot, &client) ==
               RECORD_GOOD);
        client.incarnation = UINT32_MAX;
        uint32_t len = record_put_client(bytes, slot, &client);
        disk_rewrite(&world->disk, RECORD_CLIENT, slot, (struct bytes){bytes, len});
    }
    for (uint32_t slot = 0; slot < disk_slots_used(&world->disk, RECORD_LOCK); slot++) {
        struct record_lock lock;
        EXPECT(record_get_lock(disk_at(&world->disk, RECORD_LOCK, slot), slot, &lock) ==
               RECORD_GOOD);
        lock.of.incarnation = UINT32_MAX;
        uint32_t len = record_put_lock(bytes, slot, &lock);
        disk_rewrite(&world->disk, RECORD_LOCK, slot, (struct bytes){bytes, len});
    }
}

/* Nothing that a client can count up ends the server: after the last number comes the first, and
 * frees what is older all the same. */
STORY(last_incarnation, "A16: a client has as many lives as can be counted", 0)
{
    struct locker *alpha = story_locker(world, ALPHA);
    alpha->frees_all = true;
    story_take(world, ALPHA);
    story_wait_ms(world, 1000);
    machine_crash(world, "killed by the story", false);
    age(world);
    story_wait_ms(world, 5000);
    EXPECT(world->machine.is_up && story_has(world, ALPHA) && story_status(world).locks == 1);
    for (uint32_t i = 0; i < 2; i++) {
        locker_reboot(world, alpha);
        story_wait_ms(world, 500);
        EXPECT(story_status(world).locks == 0 && disk_count(&world->disk, RECORD_LOCK) == 0);
        EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
        story_give_back(world, BETA);
        story_take(world, ALPHA);
        story_restart(world);
        EXPECT(story_has(world, ALPHA) && story_status(world).locks == 1);
    }
}

/* What is counted is what was freed, when it was: a reboot of one that had nothing is none. */
STORY(counted_when_freed, "A20: counters say what was freed", 0)
{
    struct locker *alpha = story_locker(world, ALPHA);
    struct ask_what share = {.procedure = PEER_NLM_SHARE, .reservation = {1, 1}};
    story_take(world, ALPHA);
    (void)ask_begin(world, story_process(world, ALPHA), &share);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).shares == 1 && story_status(world).reboots.crashes_detected == 0);
    world->machine.holds_commits = true;
    locker_reboot(world, alpha);
    story_notice(world, "192.0.2.11", "alpha", alpha->state);
    struct reboot_counters counters = story_status(world).reboots;
    uint32_t freed = 2 - story_status(world).locks - story_status(world).shares;
    EXPECT(counters.crashes_detected == 1 && counters.locks_cleaned == freed);
    EXPECT(counters.cleanups == (freed > 0 ? 1 : 0));
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    story_wait_ms(world, 1000);
    counters = story_status(world).reboots;
    EXPECT(story_status(world).locks == 0 && story_status(world).shares == 0);
    EXPECT(counters.cleanups == 1 && counters.locks_cleaned == 2);
    locker_reboot(world, alpha);
    story_notice(world, "192.0.2.11", "alpha", alpha->state);
    story_wait_ms(world, 1000);
    counters = story_status(world).reboots;
    EXPECT(counters.crashes_detected == 2);
    EXPECT(counters.cleanups == 1 && counters.locks_cleaned == 2);
}

static void lock_from(struct world *world, uint32_t host)
{
    char from[32];
    (void)snprintf(from, sizeof from, "198.51.100.%u", host);
    story_raw(world, &(struct story_raw){.procedure = PEER_NLM_LOCK,
                                         .name = story_locker(world, ALPHA)->name,
                                         .from = from,
                                         .file = story_bytes.file,
                                         .svid = 1,
                                         .wait_ms = 20});
}

static bool is_met(struct world *world, uint32_t host)
{
    char text[32];
    struct address from;
    (void)snprintf(text, sizeof text, "198.51.100.%u", host);
    return address_parse(bytes_of_text(text), &from) &&
           namesake_find(world->machine.core, 0, &from) != NULL;
}

/* D17: the list of those who met their own name is short. The one that was refused longest ago
 * leaves it. */
STORY(many_namesakes, "D17: more pairs than are remembered", 0)
{
    story_take(world, ALPHA); /* the first client here */
    world->is_unjudged = true;
    for (uint32_t host = 1; host <= NAMESAKES_MAX; host++)
        lock_from(world, host);
    EXPECT(story_status(world).namesakes == NAMESAKES_MAX && is_met(world, 1));
    lock_from(world, 1); /* and again: 2 is the one now */
    lock_from(world, NAMESAKES_MAX + 1);
    EXPECT(story_status(world).namesakes == NAMESAKES_MAX);
    EXPECT(is_met(world, 1) && !is_met(world, 2) && is_met(world, 3));
    EXPECT(is_met(world, NAMESAKES_MAX + 1) && story_status(world).locks == 1);
    story_give_back(world, ALPHA);
    EXPECT(story_status(world).namesakes == 0);
}

/* P7: a hundred callbacks to a host that answers none delay nobody else's. */
STORY(silent_stranger, "P7: callbacks that nobody answers delay no others", 0)
{
    world->plan.waiters_max = 400;
    world->plan.calls_max = TURN_CALLS_MAX + 16;
    stranger_add(world, 1, (struct prng){1});
    struct strangers *all = world->strangers;
    world->lockers->plan.is_limited = true;
    story_restart(world);
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
