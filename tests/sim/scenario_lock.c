/*
 * scenario_lock.c -- named stories of lockers; see scenario.h.
 *
 * A story runs in a world without faults in which processes do only what they are told. Five
 * lockers with two processes each: alpha and beta are Linux, gamma is macOS, delta is FreeBSD, the
 * last is Linux again; all speak version 4, over UDP unless a story says otherwise, and can be
 * called. The oracle watches as always.
 */
#include "ask.h"
#include "called.h"
#include "callee.h"
#include "claim.h"
#include "claim_disk.h"
#include "machine.h"
#include "mail.h"
#include "scenario.h"
#include "watcher.h"

#include <stdlib.h>

#define EXPECT SCENARIO_EXPECT

enum who { ALPHA, BETA, GAMMA, DELTA, OTHER };

static struct process *process_of(struct world *world, enum who who)
{
    return &world->lockers->at[who].processes[0];
}

static void wait_ms(struct world *world, uint64_t ms)
{
    world_run_until(world, world->now_ns + ms * MILLISECOND);
}

/* Everything is about the same bytes, unless said otherwise. */
static const struct extent bytes = {.file = 0, .offset = 2, .len = 4, .exclusive = true};

static void ask(struct world *world, enum who who, enum peer_nlm_procedure procedure,
                const struct extent *extent, bool block)
{
    struct process *process = process_of(world, who);
    if (procedure == PEER_NLM_LOCK && block) {
        process->wish = *extent;
        process->is_waiting = true;
    }
    process->is_cancelling = procedure == PEER_NLM_CANCEL;
    process->locks_again = false;
    (void)ask_begin(world, process,
                    &(struct ask_what){.procedure = procedure, .extent = *extent, .block = block});
}

/* Asks and is answered. */
static void do_now(struct world *world, enum who who, enum peer_nlm_procedure procedure, bool block)
{
    ask(world, who, procedure, &bytes, block);
    wait_ms(world, 100);
    EXPECT(process_of(world, who)->ask == NULL);
}

static bool has(struct world *world, enum who who)
{
    return (process_of(world, who)->held[0].any & locker_cells(bytes.offset, bytes.len)) != 0;
}

static bool is_waiting(struct world *world, enum who who)
{
    return process_of(world, who)->is_waiting;
}

static void take(struct world *world, enum who who)
{
    do_now(world, who, PEER_NLM_LOCK, false);
    EXPECT(has(world, who));
}

static void wait_for_it(struct world *world, enum who who)
{
    do_now(world, who, PEER_NLM_LOCK, true);
    EXPECT(!has(world, who) && is_waiting(world, who));
}

static void give_back(struct world *world, enum who who)
{
    do_now(world, who, PEER_NLM_UNLOCK, false);
}

static void be(struct world *world, enum who who, enum callee_mood mood)
{
    world->lockers->at[who].host->mood = mood;
}

static struct core_status status_of(const struct world *world)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    return status;
}

static void restart(struct world *world)
{
    machine_crash(world, "killed by the story", false);
    wait_ms(world, 3000);
    EXPECT(world->machine.is_up);
}

/* Alpha has it, beta waits and cannot hear, alpha gives it back: a callback is under way. */
static void begin_callback(struct world *world, enum who waits)
{
    take(world, ALPHA);
    wait_for_it(world, waits);
    be(world, waits, CALLEE_DEAF);
    give_back(world, ALPHA);
    wait_ms(world, 2500);
    EXPECT(!has(world, waits) && status_of(world).offers == 1);
}

/* Whoever waits from now on is not told what somebody was told before. */
static void expect_no_callback(struct world *world, enum who who)
{
    uint32_t called = world->lockers->callbacks;
    wait_for_it(world, who);
    be(world, who, CALLEE_WELL);
    wait_ms(world, 20000);
    EXPECT(world->lockers->callbacks == called && !has(world, who));
}

static void play_cancel_crosses_granted(struct world *world)
{
    begin_callback(world, BETA);
    do_now(world, BETA, PEER_NLM_CANCEL, true);
    EXPECT(!is_waiting(world, BETA) && status_of(world).offers == 0);
    take(world, DELTA);
    expect_no_callback(world, BETA);
}

static void play_poll_crosses_callback(struct world *world)
{
    begin_callback(world, BETA);
    do_now(world, BETA, PEER_NLM_LOCK, true); /* the poll is the answer (R-BLK-5) */
    EXPECT(has(world, BETA));
    give_back(world, BETA);
    take(world, DELTA);
    expect_no_callback(world, BETA);
}

static void play_unlock_before_the_answer(struct world *world)
{
    take(world, ALPHA);
    wait_for_it(world, BETA);
    world->lockers->is_mute = true;
    give_back(world, ALPHA);
    wait_ms(world, 300);
    EXPECT(has(world, BETA) && status_of(world).offers == 1);
    give_back(world, BETA);
    EXPECT(status_of(world).offers == 0 && status_of(world).locks == 0);
    take(world, DELTA);
    world->lockers->is_mute = false;
    expect_no_callback(world, BETA);
}

static void play_free_all_during_callback(struct world *world)
{
    world->lockers->at[BETA].frees_all = true;
    begin_callback(world, BETA);
    locker_reboot(world, &world->lockers->at[BETA]);
    wait_ms(world, 100);
    EXPECT(status_of(world).offers == 0 && status_of(world).waiters == 0);
    take(world, DELTA);
    expect_no_callback(world, BETA);
}

static void play_part_of_an_offer(struct world *world)
{
    begin_callback(world, BETA);
    process_of(world, BETA)->is_waiting = false;
    ask(world, BETA, PEER_NLM_UNLOCK, &(struct extent){.offset = 2, .len = 1}, false);
    wait_ms(world, 100);
    EXPECT(status_of(world).offers == 0);
    EXPECT(claim_disk_cells(world, process_of(world, BETA), 0, true).exclusive == 0x38);
    be(world, BETA, CALLEE_WELL);
    give_back(world, BETA);
    EXPECT(status_of(world).locks == 0);
}

static void play_offer_and_crash(struct world *world)
{
    begin_callback(world, BETA);
    restart(world);
    EXPECT(status_of(world).offers == 0 && status_of(world).locks == 1);
    do_now(world, DELTA, PEER_NLM_LOCK, false);
    EXPECT(!has(world, DELTA));
    do_now(world, BETA, PEER_NLM_LOCK, true);
    EXPECT(has(world, BETA));
}

/* R-BLK-5: 1, 2, 4, 8 s after a callback that nobody heard there is another one. */
static void play_callback_is_repeated(struct world *world)
{
    begin_callback(world, BETA);
    wait_ms(world, 12000);
    be(world, BETA, CALLEE_WELL);
    wait_ms(world, 10000);
    EXPECT(has(world, BETA));
}

/* ---- GRANTED_MSG and its results ---- */

static void begin_result(struct world *world)
{
    take(world, ALPHA);
    wait_for_it(world, GAMMA);
    world->lockers->holds_results = true;
    give_back(world, ALPHA);
    wait_ms(world, 300);
    EXPECT(has(world, GAMMA) && world->lockers->kept_count == 1);
}

/* Something is committed, so that the disk is looked at. */
static void commit_something(struct world *world)
{
    ask(world, DELTA, PEER_NLM_LOCK, &(struct extent){.file = 0, .offset = 9, .len = 1}, false);
    wait_ms(world, 300);
    ask(world, DELTA, PEER_NLM_UNLOCK, &(struct extent){.file = 0, .offset = 9, .len = 1}, false);
    wait_ms(world, 300);
}

static void play_late_result(struct world *world)
{
    begin_result(world);
    wait_ms(world, 32000);
    EXPECT(world->lockers->kept_count == 2); /* it was called again, and said DENIED */
    called_release(world, 1);
    wait_ms(world, 200);
    EXPECT(status_of(world).locks == 1 && status_of(world).offers == 0);
    called_release(world, 0); /* for nobody */
    wait_ms(world, 200);
    commit_something(world);
    give_back(world, GAMMA);
    EXPECT(status_of(world).locks == 0);
}

/* Both copies were executed; the answer to the second one is the first to arrive. */
static void play_early_denied(struct world *world)
{
    world->lockers->is_mute = true;
    begin_result(world);
    wait_ms(world, 1500);
    EXPECT(world->lockers->kept_count >= 2);
    called_release(world, 1);
    wait_ms(world, 6000);
    commit_something(world);
    EXPECT(status_of(world).locks == 1);
}

static void send_raw(struct world *world, const char *from, uint16_t port,
                     const struct packet *packet)
{
    struct rpc_source source = {.peer = {.port = port, .transport = RECORD_UDP}};
    struct bytes reply;
    (void)address_parse(bytes_of_text(from), &source.peer.address);
    (void)address_parse(bytes_of_text("192.0.2.1"), &source.peer.local);
    enum rpc_verdict verdict =
        machine_receive_raw(world, &source, (struct bytes){packet->bytes, packet->len}, &reply);
    EXPECT(verdict != RPC_BUSY);
}

static void play_result_from_elsewhere(struct world *world)
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
    send_raw(world, "10.66.6.6", 700, &packet);
    wait_ms(world, 100);
    commit_something(world);
    EXPECT(status_of(world).offers == 1);
    called_release(world, 0);
    wait_ms(world, 100);
    EXPECT(status_of(world).locks == 1);
}

/* The socket that it calls from is the one that it listens on: the result comes once. */
static void play_one_socket(struct world *world)
{
    struct locker *gamma = &world->lockers->at[GAMMA];
    gamma->port = (uint16_t)(gamma->host->port_base + 1); /* 100021 over UDP */
    uint32_t called = world->calls_out;
    take(world, GAMMA);
    give_back(world, GAMMA);
    EXPECT(world->calls_out == called);
}

/* ---- the queue ---- */

static void play_cancel_and_relock(struct world *world)
{
    take(world, ALPHA);
    wait_for_it(world, GAMMA);
    wait_for_it(world, DELTA);
    struct process *gamma = process_of(world, GAMMA);
    ask(world, GAMMA, PEER_NLM_CANCEL, &bytes, true);
    gamma->locks_again = true;
    wait_ms(world, 300);
    EXPECT(is_waiting(world, GAMMA) && gamma->ask == NULL);
    give_back(world, ALPHA);
    wait_ms(world, 300);
    EXPECT(has(world, GAMMA) && !has(world, DELTA)); /* it kept its place (R-BLK-12) */
    give_back(world, GAMMA);
    wait_ms(world, 300);
    EXPECT(has(world, DELTA));
}

static void play_duplicate_lock(struct world *world)
{
    take(world, ALPHA);
    for (int i = 0; i < 4; i++)
        wait_for_it(world, BETA);
    EXPECT(status_of(world).waiters == 1);
    uint32_t called = world->lockers->callbacks;
    give_back(world, ALPHA);
    wait_ms(world, 5000);
    EXPECT(has(world, BETA) && world->lockers->callbacks == called + 1);
    EXPECT(status_of(world).waiters == 0);
}

static void play_upgrade_deadlock(struct world *world)
{
    struct extent shared = bytes;
    shared.exclusive = false;
    ask(world, ALPHA, PEER_NLM_LOCK, &shared, false);
    ask(world, BETA, PEER_NLM_LOCK, &shared, false);
    wait_ms(world, 100);
    do_now(world, ALPHA, PEER_NLM_LOCK, true);
    EXPECT(is_waiting(world, ALPHA));
    do_now(world, BETA, PEER_NLM_LOCK, true);
    EXPECT(!is_waiting(world, BETA)); /* DEADLCK */
    give_back(world, BETA);
    wait_ms(world, 300);
    EXPECT(process_of(world, ALPHA)->held[0].exclusive != 0);
}

/* Each waits for what the other has, but one of them was not there to be told and comes back. */
static void play_back_in_the_queue(struct world *world)
{
    struct extent second = {.file = 1, .len = 1, .exclusive = true};
    world->lockers->at[BETA].host->kind = CALLEE_HINT;
    ask(world, BETA, PEER_NLM_LOCK, &second, false);
    wait_ms(world, 100);
    take(world, ALPHA);
    wait_for_it(world, BETA);
    give_back(world, ALPHA);
    wait_ms(world, 15000); /* passed over (D13) */
    take(world, ALPHA);
    ask(world, ALPHA, PEER_NLM_LOCK, &second, true);
    wait_ms(world, 100);
    EXPECT(is_waiting(world, ALPHA));
    do_now(world, BETA, PEER_NLM_LOCK, true);
    EXPECT(!is_waiting(world, BETA));
}

static void play_passed_over(struct world *world)
{
    struct host *host = world->lockers->at[BETA].host;
    host->kind = CALLEE_HINT; /* not registered */
    take(world, ALPHA);
    wait_for_it(world, BETA);
    wait_for_it(world, DELTA);
    give_back(world, ALPHA);
    wait_ms(world, 15000);
    EXPECT(has(world, DELTA) && !has(world, BETA));
    wait_for_it(world, BETA); /* it polls, and is in the queue again */
    host->kind = CALLEE_BOTH;
    give_back(world, DELTA);
    wait_ms(world, 15000);
    EXPECT(has(world, BETA));
}

static void play_silent_waiter(struct world *world)
{
    take(world, ALPHA);
    wait_for_it(world, BETA);
    wait_ms(world, 290000);
    EXPECT(status_of(world).waiters == 1);
    wait_ms(world, 20000);
    EXPECT(status_of(world).waiters == 0);
}

/* A program starts anew: it says the same with the same xid, from another port. */
static void play_other_port(struct world *world)
{
    struct locker *locker = &world->lockers->at[BETA];
    uint32_t xid_count = locker->xid_count;
    take(world, BETA);
    give_back(world, BETA);
    take(world, DELTA);
    locker->xid_count = xid_count;
    locker->port = 5005;
    locker->life++;
    do_now(world, BETA, PEER_NLM_LOCK, false);
    EXPECT(!has(world, BETA));
}

/* What exclusion (5) of P2 excludes: a late copy of UNLOCK after a restart. */
static void play_late_unlock(struct world *world)
{
    take(world, BETA);
    ask(world, BETA, PEER_NLM_UNLOCK, &bytes, false);
    struct ask *removal = process_of(world, BETA)->ask;
    wait_ms(world, 100);
    take(world, BETA);
    restart(world);
    world->is_unjudged = true;
    mail_arrive_late(world, removal, world->lockers->at[BETA].port);
    wait_ms(world, 1000);
    EXPECT(status_of(world).locks == 0 && has(world, BETA)); /* it believes that it has it */
}

/* ---- many locks, and addresses ---- */

static void lock_raw(struct world *world, uint32_t svid, uint64_t offset, uint64_t len,
                     bool exclusive)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    static uint32_t xid = 1000;
    memset(&args, 0, sizeof args);
    args.cookie = peer_nlm_text("raw");
    args.block = args.exclusive = exclusive;
    args.lock.caller_name = peer_nlm_text("many");
    args.lock.fh = locker_handle(0);
    args.lock.svid = svid;
    args.lock.offset = offset;
    args.lock.len = len;
    args.block = !exclusive;
    packet_clear(&packet);
    peer_nlm_put_call(&packet, xid++, 4, PEER_NLM_LOCK, &args);
    send_raw(world, "192.0.2.14", 800, &packet);
}

static void free_all_raw(struct world *world)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    static uint32_t xid = 1;
    args.lock.caller_name = peer_nlm_text("many");
    packet_clear(&packet);
    peer_nlm_put_call(&packet, xid++, 4, PEER_NLM_FREE_ALL, &args);
    send_raw(world, "192.0.2.14", 800, &packet);
}

static void take_many(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        lock_raw(world, 1, 2 * i, 1, true);
        if (i % 16 == 15 || i + 1 == count) {
            machine_turn(world);
            wait_ms(world, 10);
        }
    }
    EXPECT(status_of(world).locks == count);
}

/* More than one turn frees; what the client takes meanwhile stays. */
static void play_drained_in_pieces(struct world *world)
{
    world->is_unjudged = true;
    take_many(world, 2500);
    free_all_raw(world);
    lock_raw(world, 1, 1000001, 1, true);
    machine_turn(world);
    wait_ms(world, 1000);
    EXPECT(status_of(world).locks == 1);
    free_all_raw(world);
    machine_turn(world);
    wait_ms(world, 100);
    EXPECT(status_of(world).locks == 0);
    take_many(world, 2500);
    free_all_raw(world);
    machine_turn(world); /* begins */
    free_all_raw(world);
    lock_raw(world, 1, 1000001, 1, true);
    machine_turn(world);
    wait_ms(world, 1000);
    EXPECT(status_of(world).locks == 1);
}

/* The server dies when the reboot and a new lock are stored, and nothing is freed yet. */
static void play_drain_goes_on(struct world *world)
{
    world->is_unjudged = true;
    take_many(world, 50);
    world->machine.holds_commits = true;
    free_all_raw(world);
    lock_raw(world, 1, 1000001, 1, true);
    machine_turn(world);
    EXPECT(disk_apply(&world->disk) == NULL);
    EXPECT(disk_count(&world->disk, RECORD_LOCK) == 51);
    world->machine.holds_commits = false;
    restart(world);
    EXPECT(status_of(world).locks == 1);
}

/* An offer that would become more pieces than one batch may take stands as it is. */
static void play_offer_in_pieces(struct world *world)
{
    world->is_unjudged = true;
    take_many(world, 80);
    lock_raw(world, 2, 1000, 1, true);
    lock_raw(world, 1, 0, 2000, false);
    machine_turn(world);
    wait_ms(world, 100);
    EXPECT(status_of(world).waiters == 1);
    be(world, DELTA, CALLEE_SILENT);
    static struct packet packet;
    static struct peer_nlm_args args;
    args.lock.caller_name = peer_nlm_text("many");
    args.lock.fh = locker_handle(0);
    args.lock.svid = 2;
    packet_clear(&packet);
    peer_nlm_put_call(&packet, 7, 4, PEER_NLM_UNLOCK, &args);
    send_raw(world, "192.0.2.14", 800, &packet);
    machine_turn(world);
    wait_ms(world, 100);
    EXPECT(status_of(world).offers == 1);
    restart(world);
    EXPECT(status_of(world).offers == 1 && status_of(world).locks == 80);
}

/* D17: alpha comes back from another address; the old one is silent, its state is the same. */
static void play_moved_client(struct world *world)
{
    struct locker *alpha = &world->lockers->at[ALPHA];
    struct host *old = alpha->host;
    take(world, ALPHA);
    world->is_unjudged = true;
    old->mood = CALLEE_SILENT;
    alpha->host = world->lockers->at[OTHER].host;
    alpha->host->nsm_state = alpha->state;
    do_now(world, ALPHA, PEER_NLM_LOCK, false);
    EXPECT(status_of(world).clients == 1);
    wait_ms(world, 100000);
    do_now(world, ALPHA, PEER_NLM_UNLOCK, false);
    EXPECT(status_of(world).locks == 0);
}

const struct scenario scenario_lock_all[] = {
    {"cancel-crosses-granted", "CANCEL ends an offer whose callback is under way",
     play_cancel_crosses_granted, false},
    {"poll-crosses-callback", "a poll is the answer, and the callback is void then",
     play_poll_crosses_callback, false},
    {"unlock-before-the-answer", "UNLOCK overtakes the answer to the callback",
     play_unlock_before_the_answer, false},
    {"free-all-during-callback", "a client reboots while it is being called",
     play_free_all_during_callback, false},
    {"part-of-an-offer", "UNLOCK of some bytes of an offer that may have been taken",
     play_part_of_an_offer, false},
    {"offer-and-crash", "the server dies with an offer: it is a lock afterwards",
     play_offer_and_crash, false},
    {"callback-is-repeated", "nobody heard the first callback", play_callback_is_repeated, false},
    {"late-result", "GRANTED_RES comes after the second callback", play_late_result, false},
    {"early-denied", "DENIED to a second copy arrives first", play_early_denied, false},
    {"result-from-elsewhere", "GRANTED_RES from another address (P5)", play_result_from_elsewhere,
     false},
    {"one-socket", "the result of a message goes to one port once", play_one_socket, false},
    {"cancel-and-relock", "macOS keeps its place in the queue", play_cancel_and_relock, false},
    {"duplicate-lock", "the same blocking LOCK several times", play_duplicate_lock, false},
    {"upgrade-deadlock", "two readers both want to write", play_upgrade_deadlock, false},
    {"back-in-the-queue", "a circle is closed by one who was passed over", play_back_in_the_queue,
     false},
    {"passed-over", "D13: nobody there, the next one gets it; its own poll brings it back",
     play_passed_over, false},
    {"silent-waiter", "R-BLK-6: a queued request that nobody repeats", play_silent_waiter, false},
    {"other-port", "a cached answer is for one port (R-DRC-1)", play_other_port, false},
    {"late-unlock", "exclusion (5) of P2: an old UNLOCK after a restart", play_late_unlock, true},
    {"drained-in-pieces", "FREE_ALL of more than one turn frees", play_drained_in_pieces, false},
    {"drain-goes-on", "the server dies in the middle of a FREE_ALL", play_drain_goes_on, false},
    {"offer-in-pieces", "an offer over many locks of its owner", play_offer_in_pieces, false},
    {"moved-client", "D17: the same client from another address", play_moved_client, false},
};
const uint32_t scenario_lock_count = sizeof scenario_lock_all / sizeof scenario_lock_all[0];

static void init_locker(struct world *world, enum who who)
{
    static const enum locker_kind kinds[] = {LOCKER_LINUX, LOCKER_LINUX, LOCKER_MACOS,
                                             LOCKER_FREEBSD, LOCKER_LINUX};
    struct locker *locker = &world->lockers->at[who];
    struct host *host = &world->hosts[who];
    locker->kind = kinds[who];
    locker->host = host;
    locker->version = 4;
    locker->is_tcp = locker->restarts = locker->frees_all = false;
    locker->keeps_port = true;
    locker->port = (uint16_t)(700 + who);
    host->nsm_state = locker->state;
    host->kind = CALLEE_BOTH;
    host->versions = 1U << 2 | 1U << 3 | 1U << 4;
    host->portmapper_tcp_only = false;
}

void scenario_lock_run(const struct scenario *scenario, bool verbose)
{
    struct world *world = world_new(&(struct world_options){
        .seed = 1, .verbose = verbose, .late_datagrams = scenario->late_datagrams});
    world->scenario = scenario->name;
    world->is_manual = world->is_calm = true;
    world->plan = (struct plan){.lockers = 5,
                                .names = 8,
                                .clients_max = 100,
                                .locks_max = 4000,
                                .locks_per_client_max = 4000,
                                .waiters_max = 100,
                                .outbox_max = 64,
                                .cache_max = 4096,
                                .batch_puts_max = 64,
                                .bytes_max = 1024 * 1024,
                                .calls_max = 64,
                                .lines_max = 64,
                                .window_ns = 90 * SECOND,
                                .give_up_ns = 900 * SECOND,
                                .commit_max_ns = 5 * MILLISECOND};
    world->lockers->plan = (struct locker_plan){.files = 2, .span = 8};
    watcher_init(world);
    callee_init(world);
    locker_init(world);
    for (uint32_t i = 0; i < world->plan.lockers; i++)
        init_locker(world, (enum who)i);
    machine_boot(world);
    wait_ms(world, 1000);
    scenario->play(world);
    claim_disk_audit(world);
    world_free(world);
}
