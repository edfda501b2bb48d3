/*
 * locks_kill9.c -- kill -9 right after a GRANTED, under LOCK / UNLOCK load and with many waiting,
 * again and again.
 *
 * Passing proves, for the real process on the real disk (P1, P2, R-BLK-19, R-RNG-4, R-PER-4; not
 * for power loss, because the page cache survives a kill):
 *  (1) every acknowledged lock is in the store after the kill, with exactly its bytes, mode, owner
 *      and client; nothing that was acknowledged as unlocked is; of calls in flight both outcomes
 *      are right, but only as a whole, also where one splits or merges locks;
 *  (2) a lock that a waiter knows of, by an answer or because it said GRANTED to a callback, is in
 *      the store; one that it has given up is not (seat.h says what else may be there, for how
 *      long); no two contenders rely on conflicting locks, and no two are stored;
 *  (3) the restarted server (--recovery resume, so that it can be asked) holds all of them: TEST
 *      names the right holder; its state is the same, its epoch one more, and it has as many
 *      clients and locks as the store. recovery_kill9 is about the other way.
 *
 * 240 addresses with 300 links (every sixth UDP, the others TCP; every fifth speaks version 3),
 * each with nine owners that lock and unlock parts of 32 bytes of their own, on 250 files. Each
 * address also has a contender for one of 60 seats. Two of three of those answer callbacks; the
 * third is not reachable and asks again (D13). Without root there are no callbacks, and all ask.
 *
 * The server is killed inside the function that takes the answer GRANTED, with at least 1,000 LOCK
 * calls in flight and 100 contenders waiting, after 20 seats were handed over, 5 of them by
 * callback: with a shared store that lasts until the echoes of the start are gone.
 * HOLDFAST_LOCK_KILL_ROUNDS (5) rounds.
 */
#include "callbacks.h"
#include "lock_call.h"
#include "lock_dump.h"
#include "lock_ledger.h"
#include "peer/load.h"
#include "seat.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES        240
#define LINKS            300
#define OWNERS           (LINKS * 9)
#define SEATS            60
#define CONTENDERS       ADDRESSES
#define FIRST_SOURCE     UINT32_C(0x7f010001) /* 127.1.0.1 */
#define SHARED_FILES     200
#define ALONE_FILE       1000 /* and on: files of owners whose last cell reaches to the end */
#define SEAT_FILE        9000
#define SEAT_FILES       20
#define SEAT_LEN         10
#define OWNER_SVID       1
#define CONTENDER_SVID   100000
#define JUDGE_SVID       4711
#define CLIENT_STATE     3
#define GRANTS_MIN       1000
#define IN_FLIGHT_MIN    1000
#define WAITING_MIN      100
#define HANDOVERS_MIN    20
#define CALLED_MIN       5
#define TESTS_PER_ROUND  400
#define MS               UINT64_C(1000000)
#define PATIENCE_NS      (180000 * MS)
#define POLL_UNCALLED_NS (30 * MS)
#define POLL_CALLED_NS   (1000 * MS)
#define ECHO_NS          (12000 * MS)
#define ECHO_SPARE_NS    (3000 * MS) /* until they are freed, and that is stored */

struct owner {
    struct lock_ledger ledger;
    uint64_t posted_turn;
    struct lock_ledger_found found;
};

struct contender {
    struct seat_contender seat;
    uint64_t posted_turn;
    struct seat_found found;
};

struct storm {
    uint64_t seed, turn;
    struct load *load;
    struct callbacks *callbacks; /* NULL: nobody is called back */
    struct harness_server server;
    struct owner owners[OWNERS];
    struct contender contenders[CONTENDERS];

    uint64_t wanted, grants, unlocks, handovers, called, gave_up, polls;
    bool is_over; /* the end has come: post nothing more */
    bool is_shared;
    uint64_t started_ns, ran_ns;
    uint32_t in_flight, waiting;
    struct lock_dump dump;
    uint32_t tests_done;
};

/* ---- who they are ---- */

static uint32_t link_of(uint32_t owner)
{
    return owner % LINKS;
}

static uint32_t address_of(uint32_t link)
{
    return FIRST_SOURCE + link % ADDRESSES;
}

static const char *name_of(uint32_t link)
{
    static char name[32];
    snprintf(name, sizeof(name), "client%u", link % ADDRESSES);
    return name;
}

static uint32_t version_of(uint32_t link)
{
    return link % 5 == 4 ? 3 : 4;
}

static bool is_alone(uint32_t owner)
{
    return owner % 54 == 7;
}

static bool is_called_back(const struct storm *storm, uint32_t contender)
{
    return storm->callbacks && contender % 3 != 0;
}

static struct lock_call call_of_owner(uint32_t index, const struct lock_ledger_operation *operation)
{
    uint64_t base = is_alone(index) ? 0 : (uint64_t)(index / SHARED_FILES) * 2 * LOCK_LEDGER_CELLS;
    bool is_to_end = is_alone(index) && operation->last == LOCK_LEDGER_CELLS - 1;
    return (struct lock_call){
        .procedure = operation->mode == LOCK_LEDGER_FREE ? PEER_NLM_UNLOCK : PEER_NLM_LOCK,
        .vers = version_of(link_of(index)),
        .name = name_of(link_of(index)),
        .svid = OWNER_SVID + index,
        .file = is_alone(index) ? ALONE_FILE + index : index % SHARED_FILES,
        .offset = base + operation->first,
        .len = is_to_end ? 0 : operation->last - operation->first + 1,
        .exclusive = operation->mode == LOCK_LEDGER_EXCLUSIVE,
        .state = CLIENT_STATE,
    };
}

static uint32_t seat_of(uint32_t contender)
{
    return contender % SEATS;
}

static struct lock_call call_of_contender(uint32_t index, enum peer_nlm_procedure procedure)
{
    return (struct lock_call){
        .procedure = procedure,
        .vers = version_of(index),
        .name = name_of(index),
        .svid = CONTENDER_SVID + index,
        .file = SEAT_FILE + seat_of(index) % SEAT_FILES,
        .offset = (uint64_t)(seat_of(index) / SEAT_FILES) * 3 * SEAT_LEN,
        .len = SEAT_LEN,
        .exclusive = index % 4 != 3,
        .block = true,
        .state = CLIENT_STATE,
    };
}

/* ---- the load ---- */

static void post_owner(struct storm *storm, uint32_t index)
{
    static struct packet packet;
    struct owner *owner = &storm->owners[index];
    uint64_t dice = harness_random(&storm->seed);
    struct lock_ledger_operation operation = {.first = dice % LOCK_LEDGER_CELLS};
    uint32_t more = (uint32_t)(dice >> 8) % (LOCK_LEDGER_CELLS - operation.first);
    operation.last = operation.first + more % ((dice >> 16) % 4 == 0 ? LOCK_LEDGER_CELLS : 6);
    uint32_t kind = (uint32_t)(dice >> 24) % 100;
    operation.mode = kind < 40   ? LOCK_LEDGER_EXCLUSIVE
                     : kind < 65 ? LOCK_LEDGER_SHARED
                                 : LOCK_LEDGER_FREE;
    struct lock_call call = call_of_owner(index, &operation);
    lock_call_put(&packet, &call);
    if (load_post(storm->load, link_of(index), index, &packet)) {
        lock_ledger_begin(&owner->ledger, &operation);
        owner->posted_turn = storm->turn;
    }
}

static void post_contender(struct storm *storm, uint32_t index)
{
    static const enum peer_nlm_procedure procedures[] = {[SEAT_LOCK] = PEER_NLM_LOCK,
                                                         [SEAT_UNLOCK] = PEER_NLM_UNLOCK,
                                                         [SEAT_CANCEL] = PEER_NLM_CANCEL};
    static struct packet packet;
    struct contender *contender = &storm->contenders[index];
    uint64_t dice = harness_random(&storm->seed) >> 8;
    bool gives_up = contender->seat.state == SEAT_WAITING && dice % 8 == 0;
    enum seat_call what = SEAT_LOCK;
    if (contender->seat.state == SEAT_HOLDING)
        what = SEAT_UNLOCK;
    else if (gives_up)
        what = dice / 8 % 2 == 0 ? SEAT_UNLOCK : SEAT_CANCEL;
    struct lock_call call = call_of_contender(index, procedures[what]);
    lock_call_put(&packet, &call);
    if (!load_post(storm->load, index, OWNERS + index, &packet))
        return;
    storm->gave_up += gives_up;
    storm->polls += what == SEAT_LOCK && contender->seat.state == SEAT_WAITING;
    seat_begin(&contender->seat, what);
    contender->posted_turn = storm->turn;
}

/* Whoever has waited or held for long enough does the next thing. */
static void turn_contenders(struct storm *storm)
{
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < CONTENDERS && !storm->is_over; i++) {
        struct seat_contender *seat = &storm->contenders[i].seat;
        if (seat->pending == SEAT_NO_CALL && now_ns >= seat->due_ns)
            post_contender(storm, i);
    }
}

static uint32_t count_waiting(const struct storm *storm)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CONTENDERS; i++)
        count += storm->contenders[i].seat.state == SEAT_WAITING;
    return count;
}

/* LOCK calls that left in an earlier turn and are not answered. */
static uint32_t count_in_flight(const struct storm *storm)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < OWNERS; i++) {
        const struct owner *owner = &storm->owners[i];
        count += owner->ledger.is_pending && owner->ledger.pending.mode != LOCK_LEDGER_FREE &&
                 owner->posted_turn < storm->turn;
    }
    for (uint32_t i = 0; i < CONTENDERS; i++)
        count += storm->contenders[i].seat.pending == SEAT_LOCK &&
                 storm->contenders[i].posted_turn < storm->turn;
    return count;
}

/* GRANTED has just been read: if enough is going on, the server dies here and now. */
static void granted(struct storm *storm)
{
    storm->grants++;
    if (storm->is_over || storm->grants < storm->wanted || storm->handovers < HANDOVERS_MIN ||
        (storm->callbacks && storm->called < CALLED_MIN))
        return;
    uint32_t waiting = count_waiting(storm), in_flight = count_in_flight(storm);
    if (waiting < WAITING_MIN || in_flight < IN_FLIGHT_MIN)
        return;
    kill(storm->server.pid, SIGKILL);
    storm->is_over = true;
    storm->waiting = waiting;
    storm->in_flight = in_flight;
}

/* P2: nobody else of that seat relies on a lock that conflicts with this one. */
static void demand_alone(const struct storm *storm, uint32_t index)
{
    bool is_exclusive = storm->contenders[index].seat.exclusive;
    for (uint32_t i = seat_of(index); i < CONTENDERS; i += SEATS) {
        const struct seat_contender *other = &storm->contenders[i].seat;
        HARNESS_EXPECT(i == index || !seat_relies(other) || (!is_exclusive && !other->exclusive),
                       "contenders %u and %u hold seat %u", i, index, seat_of(index));
    }
}

static void now_holds(struct storm *storm, uint32_t index, bool was_waiting)
{
    struct seat_contender *seat = &storm->contenders[index].seat;
    storm->handovers += was_waiting;
    seat->due_ns = dial_now_ns() + harness_random(&storm->seed) % (20 * MS);
    demand_alone(storm, index);
}

static void answer_owner(struct storm *storm, uint32_t index, const struct packet_reply *reply)
{
    struct lock_ledger *ledger = &storm->owners[index].ledger;
    struct lock_call call = call_of_owner(index, &ledger->pending);
    int status = lock_call_status(&call, reply, NULL);
    if (!HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "owner %u: %s answered %s", index,
                        peer_nlm_procedure_text(call.procedure), lock_call_text(status)))
        return; /* not acknowledged; the owner stops */
    bool is_lock = ledger->pending.mode != LOCK_LEDGER_FREE;
    lock_ledger_acknowledge(ledger);
    storm->unlocks += !is_lock;
    if (is_lock)
        granted(storm);
    if (!storm->is_over)
        post_owner(storm, index);
}

static void answer_contender(struct storm *storm, uint32_t index, const struct packet_reply *reply)
{
    struct seat_contender *seat = &storm->contenders[index].seat;
    enum seat_call was = seat->pending;
    enum seat_state before = seat->state;
    struct lock_call call = call_of_contender(index, was == SEAT_LOCK     ? PEER_NLM_LOCK
                                                     : was == SEAT_CANCEL ? PEER_NLM_CANCEL
                                                                          : PEER_NLM_UNLOCK);
    int status = lock_call_status(&call, reply, NULL);
    HARNESS_EXPECT(status >= 0 && seat_answered(seat, (uint32_t)status),
                   "contender %u: %s answered %s", index, peer_nlm_procedure_text(call.procedure),
                   lock_call_text(status));
    uint64_t pause_ns = seat->state == SEAT_IDLE       ? 2 * MS
                        : is_called_back(storm, index) ? POLL_CALLED_NS
                                                       : POLL_UNCALLED_NS;
    if (seat->state != SEAT_HOLDING)
        seat->due_ns = dial_now_ns() + pause_ns / 2 + harness_random(&storm->seed) % pause_ns;
    if (seat->state == SEAT_HOLDING && before != SEAT_HOLDING)
        now_holds(storm, index, before == SEAT_WAITING);
    if (was == SEAT_LOCK && status == PEER_NLM_IS_GRANTED)
        granted(storm);
}

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    (void)link;
    if (tag < OWNERS)
        answer_owner(context, (uint32_t)tag, reply);
    else
        answer_contender(context, (uint32_t)(tag - OWNERS), reply);
}

/* GRANTED, to be answered: the lock of the contender there, exactly as it was asked for. */
static uint32_t on_granted(void *context, uint32_t address, const struct peer_nlm_args *args)
{
    struct storm *storm = context;
    uint32_t index = address - FIRST_SOURCE;
    struct lock_call call = call_of_contender(index, PEER_NLM_LOCK);
    struct peer_nlm_bytes oh = peer_nlm_text(lock_call_oh(&call));
    bool is_echo = args->lock.svid == call.svid && args->lock.offset == call.offset &&
                   args->lock.len == call.len && args->exclusive == call.exclusive &&
                   lock_call_file(args->lock.fh.at, args->lock.fh.len) == call.file &&
                   peer_nlm_bytes_equal(&args->lock.oh, &oh);
    if (!HARNESS_EXPECT(is_echo, "contender %u was granted svid %u offset %" PRIu64, index,
                        args->lock.svid, args->lock.offset))
        return PEER_NLM_IS_DENIED;
    struct seat_contender *seat = &storm->contenders[index].seat;
    enum seat_state before = seat->state;
    uint32_t status = seat_called(seat, args->exclusive);
    storm->called += status == PEER_NLM_IS_GRANTED;
    if (before != SEAT_HOLDING && seat->state == SEAT_HOLDING)
        now_holds(storm, index, true);
    return status;
}

static bool open_links(struct storm *storm)
{
    storm->load = load_new(LINKS, on_answer, storm);
    for (uint32_t i = 0; i < LINKS; i++) {
        struct dial_route route = harness_route(&storm->server, i % 6 == 5);
        route.source = dial_endpoint_v4(address_of(i), 0);
        int link = load_open(storm->load, &route);
        if (!HARNESS_EXPECT(link == (int)i, "link %u: %s", i, strerror(-link)))
            return false;
    }
    return true;
}

static uint32_t turn(struct storm *storm, uint32_t timeout_ms)
{
    storm->turn++;
    uint32_t done = load_turn(storm->load, timeout_ms);
    if (storm->callbacks)
        done += callbacks_turn(storm->callbacks);
    return done;
}

/* Load until the server is killed, then everything that the kernel still holds for us. */
static void run_load(struct storm *storm)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    storm->wanted = GRANTS_MIN + harness_random(&storm->seed) % 4000;
    storm->grants = storm->unlocks = storm->handovers = storm->called = 0;
    storm->gave_up = storm->polls = 0;
    storm->is_over = false;
    for (uint32_t i = 0; i < OWNERS; i++)
        post_owner(storm, i);
    while (!storm->is_over && dial_now_ns() < deadline_ns) {
        turn_contenders(storm);
        turn(storm, 1);
    }
    HARNESS_EXPECT(storm->is_over,
                   "after 180 s: %" PRIu64 " grants, %u in flight, %u waiting, %" PRIu64
                   " handed over",
                   storm->grants, count_in_flight(storm), count_waiting(storm), storm->handovers);
    storm->is_over = true;
    storm->ran_ns = dial_now_ns() - storm->started_ns;
    int code = harness_stop(&storm->server, SIGKILL);
    HARNESS_EXPECT(code == 128 + SIGKILL, "the server ended with %d", code);
    for (uint32_t quiet = 0; quiet < 5;) /* answers and callbacks that were on their way */
        quiet = turn(storm, 10) > 0 ? 0 : quiet + 1;
    struct load_counts counts;
    load_count(storm->load, &counts);
    HARNESS_EXPECT(counts.unreadable == 0, "%" PRIu64 " answers are no RPC replies",
                   counts.unreadable);
    load_free(storm->load);
}

/* ---- the store ---- */

static bool is_of(const struct lock_dump_lock *lock, const struct lock_call *call, uint32_t link)
{
    char address[64];
    uint32_t source = address_of(link);
    snprintf(address, sizeof(address), "%u.%u.%u.%u", source >> 24, source >> 16 & 255,
             source >> 8 & 255, source & 255);
    return strcmp(lock->address, address) == 0 && strcmp(lock->name, call->name) == 0 &&
           lock->file == call->file && strcmp(lock->oh, lock_call_oh(call)) == 0 &&
           lock->state == CLIENT_STATE && !lock->is_unmonitored;
}

static void find_contender(struct storm *storm, uint32_t index, const struct lock_dump_lock *lock)
{
    struct lock_call call = call_of_contender(index, PEER_NLM_LOCK);
    struct seat_found *found = &storm->contenders[index].found;
    HARNESS_EXPECT(is_of(lock, &call, index) && lock->start == call.offset &&
                       lock->end == call.offset + call.len - 1,
                   "contender %u: stored for %s %s file %u %" PRIu64 "-%" PRIu64, index,
                   lock->address, lock->name, lock->file, lock->start, lock->end);
    found->is_mixed =
        seat_is_stored(found) && (found->is_mixed || found->exclusive != lock->exclusive);
    found->exclusive = lock->exclusive;
    found->held += !lock->is_offer;
    found->echoes += lock->is_echo;
    found->alone += lock->is_alone;
    found->offered += lock->is_offer && !lock->is_echo && !lock->is_alone;
}

static void find_owner(struct storm *storm, uint32_t index, const struct lock_dump_lock *lock)
{
    const struct lock_ledger_operation all = {LOCK_LEDGER_FREE, 0, LOCK_LEDGER_CELLS - 1};
    struct lock_call call = call_of_owner(index, &all);
    uint64_t last = lock->end - call.offset;
    if (is_alone(index) && lock->end == UINT64_MAX)
        last = LOCK_LEDGER_CELLS - 1;
    if (!HARNESS_EXPECT(is_of(lock, &call, link_of(index)) && lock->start >= call.offset &&
                            lock->start <= lock->end && last < LOCK_LEDGER_CELLS && !lock->is_offer,
                        "owner %u: stored for %s %s file %u %" PRIu64 "-%" PRIu64, index,
                        lock->address, lock->name, lock->file, lock->start, lock->end))
        return;
    struct lock_ledger_operation cells = {lock->exclusive ? LOCK_LEDGER_EXCLUSIVE
                                                          : LOCK_LEDGER_SHARED,
                                          (uint32_t)(lock->start - call.offset), (uint32_t)last};
    lock_ledger_find(&storm->owners[index].found, &cells);
}

static void on_lock(void *context, const struct lock_dump_lock *lock)
{
    uint32_t owner = lock->svid - OWNER_SVID, contender = lock->svid - CONTENDER_SVID;
    if (contender < CONTENDERS)
        find_contender(context, contender, lock);
    else if (HARNESS_EXPECT(owner < OWNERS, "a lock of svid %u, who is nobody", lock->svid))
        find_owner(context, owner, lock);
}

static void on_waiter(void *context, const struct lock_dump_waiter *waiter)
{
    struct storm *storm = context;
    uint32_t contender = waiter->svid - CONTENDER_SVID;
    if (HARNESS_EXPECT(contender < CONTENDERS, "a waiter of svid %u", waiter->svid))
        storm->contenders[contender].found.waits = true;
}

static void judge_seats(struct storm *storm)
{
    for (uint32_t i = 0; i < CONTENDERS; i++) {
        const struct contender *contender = &storm->contenders[i];
        const struct seat_found *found = &contender->found;
        const char *wrong = seat_judge(&contender->seat, found);
        HARNESS_EXPECT(wrong == NULL,
                       "contender %u: %s (state %d, in flight %d, adopted %d; stored: held %u, "
                       "offered %u, alone %u, echoes %u, waits %d)",
                       i, wrong, (int)contender->seat.state, (int)contender->seat.pending,
                       contender->seat.is_adopted, found->held, found->offered, found->alone,
                       found->echoes, found->waits);
        for (uint32_t j = i + SEATS; j < CONTENDERS && seat_is_stored(found); j += SEATS) {
            const struct seat_found *other = &storm->contenders[j].found;
            HARNESS_EXPECT(!seat_is_stored(other) || (!other->exclusive && !found->exclusive),
                           "contenders %u and %u are stored for seat %u", i, j, seat_of(i));
        }
    }
    for (uint32_t i = 0; i < CONTENDERS; i++)
        seat_adopt(&storm->contenders[i].seat, &storm->contenders[i].found);
    bool may_be_echoes = storm->is_shared && storm->ran_ns < ECHO_NS + ECHO_SPARE_NS;
    HARNESS_EXPECT(storm->dump.echoes == 0 || may_be_echoes,
                   "%u echoes are stored, %" PRIu64 " ms after the start", storm->dump.echoes,
                   storm->ran_ns / MS);
}

/* Reads the store and judges everybody. */
static bool look(struct storm *storm)
{
    for (uint32_t i = 0; i < OWNERS; i++)
        storm->owners[i].found = (struct lock_ledger_found){0};
    for (uint32_t i = 0; i < CONTENDERS; i++)
        storm->contenders[i].found = (struct seat_found){0};
    if (!lock_dump_read_all(storm->server.store, on_lock, on_waiter, storm, &storm->dump))
        return false;
    for (uint32_t i = 0; i < OWNERS; i++) {
        struct owner *owner = &storm->owners[i];
        const char *wrong = lock_ledger_judge(&owner->ledger, &owner->found);
        HARNESS_EXPECT(wrong == NULL, "owner %u: %s (in flight: %d, mode %d, cells %u-%u)", i,
                       wrong, owner->ledger.is_pending, (int)owner->ledger.pending.mode,
                       owner->ledger.pending.first, owner->ledger.pending.last);
        lock_ledger_adopt(&owner->ledger, &owner->found);
    }
    judge_seats(storm);
    return true;
}

/* ---- after the restart ---- */

/* What TEST of everything that belongs to this tag must say; false: nobody holds anything there. */
static bool expected_holder(const struct storm *storm, uint32_t tag, struct lock_call *ret_holder)
{
    struct lock_ledger_operation first;
    if (tag < OWNERS) {
        if (!lock_ledger_first(&storm->owners[tag].ledger.known, &first))
            return false;
        *ret_holder = call_of_owner(tag, &first);
        return true;
    }
    for (uint32_t i = seat_of(tag - OWNERS); i < CONTENDERS; i += SEATS)
        if (storm->contenders[i].seat.state == SEAT_HOLDING) {
            *ret_holder = call_of_contender(i, PEER_NLM_LOCK);
            return true;
        }
    return false;
}

/* Is it one who waited for the seat, or was called about it? Such a request goes on waiting after
 * the restart, and gets what is free; such a call may still arrive. */
static bool is_contender(const struct storm *storm, uint32_t tag, uint32_t svid)
{
    if (tag < OWNERS)
        return false;
    for (uint32_t i = seat_of(tag - OWNERS); i < CONTENDERS; i += SEATS) {
        const struct seat_found *found = &storm->contenders[i].found;
        if (call_of_contender(i, PEER_NLM_LOCK).svid == svid && (found->waits || found->echoes > 0))
            return true;
    }
    return false;
}

static struct lock_call test_of(uint32_t tag)
{
    const struct lock_ledger_operation all = {LOCK_LEDGER_FREE, 0, LOCK_LEDGER_CELLS - 1};
    struct lock_call call =
        tag < OWNERS ? call_of_owner(tag, &all) : call_of_contender(tag - OWNERS, PEER_NLM_TEST);
    call.procedure = PEER_NLM_TEST;
    call.exclusive = true;
    call.vers = 4;
    call.svid = JUDGE_SVID;
    call.name = "judge";
    return call;
}

static void on_test(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    static struct peer_nlm_res res;
    struct storm *storm = context;
    struct lock_call test = test_of((uint32_t)tag), holder = {0};
    int status = lock_call_status(&test, reply, &res);
    bool is_held = expected_holder(storm, (uint32_t)tag, &holder), is_right;
    (void)link;
    if (is_held) {
        struct peer_nlm_bytes oh = peer_nlm_text(lock_call_oh(&holder));
        /* Of several readers in a seat any one may be named. */
        bool is_shared_seat = tag >= OWNERS && !holder.exclusive;
        is_right =
            status == PEER_NLM_IS_DENIED && res.exclusive == holder.exclusive &&
            res.offset == holder.offset && res.len == holder.len &&
            (is_shared_seat || (res.svid == holder.svid && peer_nlm_bytes_equal(&res.oh, &oh)));
    } else {
        is_right = status == PEER_NLM_IS_GRANTED ||
                   (status == PEER_NLM_IS_DENIED && is_contender(storm, (uint32_t)tag, res.svid));
    }
    HARNESS_EXPECT(is_right,
                   "TEST of %u: %s, svid %u, %" PRIu64 "+%" PRIu64
                   "; expected %s, svid %u, %" PRIu64 "+%" PRIu64,
                   (uint32_t)tag, lock_call_text(status), res.svid, res.offset, res.len,
                   is_held ? "DENIED" : "GRANTED", holder.svid, holder.offset, holder.len);
    storm->tests_done++;
}

static void test_some(struct storm *storm)
{
    static struct packet packet;
    struct load *load = load_new(1, on_test, storm);
    struct dial_route route = harness_route(&storm->server, false);
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    uint32_t posted = 0;
    storm->tests_done = 0;
    if (!HARNESS_EXPECT(load && load_open(load, &route) == 0, "no link for TEST"))
        return;
    while (storm->tests_done < TESTS_PER_ROUND && dial_now_ns() < deadline_ns) {
        while (posted < TESTS_PER_ROUND && load_in_flight(load, 0) < LOAD_IN_FLIGHT_MAX / 2) {
            /* A fifth of them on seats. */
            uint32_t dice = (uint32_t)(harness_random(&storm->seed) >> 16);
            uint32_t tag = posted++ % 5 == 0 ? OWNERS + dice % CONTENDERS : dice % OWNERS;
            struct lock_call call = test_of(tag);
            lock_call_put(&packet, &call);
            (void)load_post(load, 0, tag, &packet);
        }
        load_turn(load, 10);
    }
    HARNESS_EXPECT(storm->tests_done == TESTS_PER_ROUND, "%u of %u TESTs answered",
                   storm->tests_done, TESTS_PER_ROUND);
    load_free(load);
}

/* How many locks the next start has: an offer without a waiter is its owner's, beside or within
 * what that one holds already. With a shared store it stays an offer for a while (025). */
static uint32_t locks_at_start(const struct storm *storm)
{
    uint32_t count = storm->dump.locks - storm->dump.offers;
    for (uint32_t i = 0; i < CONTENDERS && !storm->is_shared; i++) {
        const struct seat_found *found = &storm->contenders[i].found;
        count += found->alone > 0 && found->held == 0;
    }
    return count;
}

static bool restart(struct storm *storm)
{
    struct lock_dump before = storm->dump;
    if (!harness_start(&storm->server))
        return false;
    storm->started_ns = dial_now_ns();
    bool is_first = before.state == 0;
    HARNESS_EXPECT(is_first || storm->server.state == before.state, "the state went from %u to %u",
                   before.state, storm->server.state);
    /* Offers are not counted there (R-BLK-19); TEST sees them in any case. */
    uint32_t held = locks_at_start(storm);
    HARNESS_EXPECT(storm->server.locks == held && storm->server.clients == before.clients,
                   "%u locks and %u clients at start, %u and %u in the store", storm->server.locks,
                   storm->server.clients, held, before.clients);
    test_some(storm);
    return true;
}

static bool run_round(struct storm *storm, uint32_t round)
{
    uint64_t epoch = storm->dump.epoch;
    if (!restart(storm) || !open_links(storm))
        return false;
    run_load(storm);
    if (!look(storm))
        return false;
    HARNESS_EXPECT(storm->dump.epoch == epoch + 1, "the epoch went from %" PRIu64 " to %" PRIu64,
                   epoch, storm->dump.epoch);
    HARNESS_EXPECT(storm->dump.state == storm->server.state, "state %u stored, %u announced",
                   storm->dump.state, storm->server.state);
    printf("round %u: %" PRIu64 " grants and %" PRIu64 " unlocks acknowledged, %" PRIu64
           " handed over (%" PRIu64 " by callback), %" PRIu64 " polls, %" PRIu64
           " gave up; at the kill %u LOCK in flight, %u waiting; stored: %u locks, %u of them "
           "offers, %u echoes, %u waiters; state %u, ready in %" PRIu64 " ms\n",
           round, storm->grants, storm->unlocks, storm->handovers, storm->called, storm->polls,
           storm->gave_up, storm->in_flight, storm->waiting, storm->dump.locks, storm->dump.offers,
           storm->dump.echoes, storm->dump.waiters, storm->server.state,
           storm->server.start_ns / 1000000);
    return true;
}

static bool open_callbacks(struct storm *storm)
{
    if (!callbacks_enter_network()) {
        printf("locks_kill9: no network namespace (%s): nobody is called back\n", strerror(errno));
        return true;
    }
    storm->callbacks = callbacks_new(ADDRESSES, on_granted, storm);
    for (uint32_t i = 0; storm->callbacks && i < CONTENDERS; i++) {
        int result = is_called_back(storm, i) ? callbacks_add(storm->callbacks, address_of(i)) : 0;
        if (!HARNESS_EXPECT(result == 0, "port 111 of contender %u: %s", i, strerror(-result)))
            return false;
    }
    return storm->callbacks != NULL;
}

int main(void)
{
    harness_init("locks_kill9");
    uint32_t rounds = harness_number("HOLDFAST_LOCK_KILL_ROUNDS", 5), round = 0;
    struct storm *storm = calloc(1, sizeof(*storm));
    if (!storm)
        return 1;
    storm->seed = harness_seed() | 1;
    storm->server.listen = "127.0.0.1";
    storm->server.store = harness_path("store");
    storm->server.extra[0] = "--recovery";
    storm->server.extra[1] = "resume";
    const char *kind = getenv("HOLDFAST_STORE");
    storm->is_shared = kind && strcmp(kind, "postgres") == 0;
    for (uint32_t i = 0; i < CONTENDERS; i++)
        storm->contenders[i].seat.exclusive = call_of_contender(i, PEER_NLM_LOCK).exclusive;
    if (open_callbacks(storm))
        while (round < rounds && run_round(storm, round + 1))
            round++;
    HARNESS_EXPECT(round == rounds, "%u of %u rounds done", round, rounds);
    if (round == rounds && restart(storm))
        HARNESS_EXPECT(harness_stop(&storm->server, SIGTERM) == 0, "SIGTERM");
    callbacks_free(storm->callbacks);
    free(storm);
    return harness_finish();
}
