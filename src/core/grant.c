/*
 * grant.c -- the callbacks of offers; see grant.h.
 *
 * Always true between steps, and asserted by grant_check():
 *  (1) A waiter with an offer has one cookie, and is found by it.
 *  (2) OFFERED waiters have a timer, or are at the gate, or are ready to leave; EXPECTING ones have
 *      a timer; CALLING ones have neither. So a callback always follows, and never two of one offer
 *      are in flight (R-DRC-3).
 *  (3) A callback says only what is durable: its after_txn was reached before it left (P1).
 *
 * What a DENIED means (R-DRC-3). A client that has taken the lock answers DENIED to every repeat of
 * the callback, because it waits no longer. So DENIED ends an offer only when nothing before it can
 * have reached the client: it answers the first callback, or every earlier one provably did not
 * arrive. Otherwise the lock is the client's.
 */
#include "core/grant.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/lock_range.h"
#include "core/state.h"

#define PASS_NS   (5 * SECOND_NS)  /* D13 */
#define GRACE_NS  (10 * SECOND_NS) /* R-BLK-7: the client itself is in grace */
#define RESULT_NS (30 * SECOND_NS) /* R-BLK-5: received, but no GRANTED_RES */

enum { GRANTED = 5, GRANTED_MSG = 10 };

int grant_init(struct core *core, const uint32_t slots[])
{
    list_init(&core->grants.gated);
    list_init(&core->grants.turns);
    return hash_index_init(&core->grants.by_cookie, slots[RECORD_WAITER]);
}

void grant_done(struct core *core)
{
    hash_index_done(&core->grants.by_cookie);
}

static uint64_t cookie_hash(const struct core *core, uint64_t cookie)
{
    return hash_number(core->seed, cookie);
}

static struct waiter *waiter_of(struct list *queue)
{
    return LIST_ELEMENT(queue, struct waiter, grant.queue);
}

/* The next callback is due then. */
static void schedule(struct core *core, uint32_t slot, uint64_t delay_ns)
{
    waiter_set_phase(core, slot, WAITER_OFFERED);
    timers_set(&core->waiters.timers, slot, core->now_ns + delay_ns);
}

void grant_begin(struct core *core, uint32_t slot, uint32_t offer)
{
    struct waiter *w = waiter_at(core, slot);
    uint32_t known = client_at(core, waiter_client(core, w))->stored.grant_proc;
    uint64_t own = core->server.epoch << 32 | ++core->grants.next_cookie;
    w->grant = (struct grant){
        .offer = offer,
        .callback = SLOT_NONE,
        .cookie = w->client_cookie != 0 ? w->client_cookie : own,
        .after_txn = core_gate_txn(core),
        .proc = known != 0      ? known
                : w->is_message ? GRANTED_MSG
                                : GRANTED,
        .transport = w->transport,
    };
    list_init(&w->grant.queue);
    hash_index_add(&core->grants.by_cookie, cookie_hash(core, w->grant.cookie), slot);
    schedule(core, slot, 0);
}

void grant_restore(struct core *core, uint32_t slot, uint32_t offer, uint64_t cookie)
{
    struct waiter *w = waiter_at(core, slot);
    lock_at(core, offer)->link = slot;
    w->client_cookie = cookie;
    grant_begin(core, slot, offer);
    w->grant.may_have_arrived = true;
    w->grant.attempt_count = 1; /* of the run before, as far as anybody knows */
    waiter_own_touch(core, slot);
}

void grant_forget(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (!waiter_is_offered(w))
        return;
    CHECK(w->grant.offer == SLOT_NONE);
    CHECK(w->grant.callback == SLOT_NONE);
    turn_remove(core, slot);
    hash_index_remove(&core->grants.by_cookie, slot);
}

/* The request is over; its callback, if one is in flight, is not, and keeps the offer. */
static void linger(struct core *core, struct waiter *w)
{
    uint32_t callback = w->grant.callback, offer = w->grant.offer;
    w->grant.callback = w->grant.offer = SLOT_NONE;
    callback_linger(core, callback, offer);
}

void grant_withdraw(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    uint32_t offer = w->grant.offer;
    if (w->grant.callback != SLOT_NONE) {
        linger(core, w);
        return;
    }
    w->grant.offer = SLOT_NONE;
    lock_offer_withdraw(core, offer);
}

bool grant_accept(struct core *core, uint32_t slot, bool is_certain)
{
    struct waiter *w = waiter_at(core, slot);
    uint32_t offer = w->grant.offer;
    bool is_calling = w->grant.callback != SLOT_NONE; /* it is in flight, and lingers */
    bool stays = is_calling || echo_is_due(core, offer);
    if (!(is_certain ? lock_offer_confirm(core, offer, stays)
                     : lock_offer_accept(core, offer, stays)))
        return false;
    uint32_t client = waiter_client(core, w);
    struct address address = client_address(core, client);
    event_add_of_file(&core->feed, EVENT_GRANTED, &address,
                      intern_bytes(&core->names, w->caller_name),
                      client_at(core, client)->stored.id, file_handle(core, w->claim.file));
    if (is_calling)
        linger(core, w);
    else if (stays)
        lock_offer_withdraw(core, offer); /* as an offer */
    w->grant.offer = SLOT_NONE;
    waiter_remove(core, slot);
    return true;
}

void grant_lost(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->grant.callback != SLOT_NONE)
        linger(core, w);
    w->grant.offer = SLOT_NONE;
    waiter_remove(core, slot);
}

/* ---- sending ---- */

static void queue_up(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->grant.after_txn <= core->durable_txn)
        turn_add(core, slot);
    else
        list_append(&core->grants.gated, &w->grant.queue);
}

void grant_due(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->phase == WAITER_EXPECTING) {
        MARK("grant_no_result_came");
        w->grant.may_have_arrived = true;
        if (w->grant.attempt_count > 1)
            w->grant.proc = GRANTED; /* R-BLK-2: its answer needs no way back of its own */
        waiter_set_phase(core, slot, WAITER_OFFERED);
    }
    queue_up(core, slot);
}

void grant_stored(struct core *core)
{
    struct list *next;
    for (struct list *at = core->grants.gated.next; at != &core->grants.gated; at = next) {
        next = at->next;
        struct waiter *w = waiter_of(at);
        if (w->grant.after_txn > core->durable_txn)
            continue;
        list_remove(at);
        turn_add(core, table_slot(&core->waiters.table, w));
    }
}

bool grant_has_call(const struct core *core)
{
    return turn_has_any(core) && callback_has_room(core);
}

bool grant_next_call(struct core *core, struct core_call *ret)
{
    uint32_t slot = callback_has_room(core) ? turn_take(core) : SLOT_NONE;
    if (slot == SLOT_NONE)
        return false;
    struct waiter *w = waiter_at(core, slot);
    CHECK(w->phase == WAITER_OFFERED);
    w->grant.callback = callback_begin(core, slot);
    *ret = (struct core_call){
        .id = callback_id(core, w->grant.callback),
        .kind = w->grant.proc == GRANTED ? CALL_GRANTED : CALL_GRANTED_MSG,
        .to = client_address(core, waiter_client(core, w)),
        .local = w->local,
        .version = w->version,
        .transport = w->grant.transport,
        .deadline_ns = core->now_ns + core->limits.notify_timeout_ns,
        .caller_name = intern_bytes(&core->names, w->caller_name),
        .fh = file_handle(core, w->claim.file),
        .oh = intern_bytes(&core->locks.ohs, w->oh),
        .offset = w->claim.start,
        .len = w->len,
        .cookie = w->grant.cookie,
        .svid = owner_at(core, w->claim.owner)->svid,
        .exclusive = w->claim.exclusive,
    };
    if (w->grant.first_attempt_ns == 0)
        w->grant.first_attempt_ns = core->now_ns;
    w->grant.attempt_count++;
    waiter_set_phase(core, slot, WAITER_CALLING);
    waiter_own_touch(core, slot);
    return true;
}

/* ---- answers ---- */

/* The client says that it has the lock. False: no slots for it. */
static bool confirm(struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    client_granted_by(core, waiter_client(core, w), w->grant.proc);
    if (!grant_accept(core, slot, true))
        return false;
    core->grants.counters.granted++;
    return true;
}

/* It denies it, perhaps because it has it already. Where the offer becomes a lock of its own, and
 * not a part of others, a CANCEL may still end it. False: no slots for it. */
static bool doubt(struct core *core, uint32_t slot)
{
    const struct claim claim = waiter_at(core, slot)->claim;
    MARK("grant_denied_to_a_repeat");
    /* What it holds there already, in another mode, must not end with the doubt. */
    uint32_t held = lock_range_first_own(core, &claim);
    bool is_alone = held == SLOT_NONE || !claim_overlaps(&lock_at(core, held)->claim, &claim);
    if (!grant_accept(core, slot, false))
        return false;
    core->grants.counters.granted++;
    held = lock_range_first_own(core, &claim);
    if (!is_alone || held == SLOT_NONE)
        return true;
    struct lock *lock = lock_at(core, held);
    lock->is_doubtful = claim_is_same_range(&lock->claim, &claim);
    return true;
}

static void take_answer(struct core *core, uint32_t slot, uint32_t status, bool is_repeated)
{
    struct waiter *w = waiter_at(core, slot);
    if (status == LOCK_GRACE) {
        MARK("grant_client_in_grace");
        schedule(core, slot, GRACE_NS);
        return;
    }
    bool is_ambiguous = w->grant.may_have_arrived || is_repeated;
    if (status != LOCK_GRANTED && !is_ambiguous) {
        MARK("grant_denied");
        core->grants.counters.denied++;
        grant_withdraw(core, slot);
        waiter_remove(core, slot);
        return;
    }
    if (!(status == LOCK_GRANTED ? confirm(core, slot) : doubt(core, slot))) {
        w->grant.may_have_arrived = true;
        schedule(core, slot, GRACE_NS);
    }
}

/* R-BLK-5: 1, 2, 4, 8, then every 10 s, from the end of the callback. */
static uint64_t retry_delay_ns(uint32_t failure_count)
{
    return failure_count > 3 ? 10 * SECOND_NS : SECOND_NS << failure_count;
}

static void take_failure(struct core *core, uint32_t slot, enum core_call_outcome outcome)
{
    struct waiter *w = waiter_at(core, slot);
    struct grant *grant = &w->grant;
    core->grants.counters.failed++;
    if (outcome != CALL_UNDELIVERED)
        grant->may_have_arrived = true;
    if (!grant->may_have_arrived && core->now_ns - grant->first_attempt_ns >= PASS_NS) {
        MARK("grant_passed_over");
        core->grants.counters.passed_over++;
        grant_withdraw(core, slot);
        waiter_pass(core, slot);
        return;
    }
    /* R-BLK-2: the other procedure when it was heard and not understood, the other transport when
     * it was not heard; a silence can be either. */
    if (outcome == CALL_UNDELIVERED || grant->failure_count % 2 == 1)
        grant->transport = grant->transport == TRANSPORT_TCP ? TRANSPORT_UDP : TRANSPORT_TCP;
    if (outcome != CALL_UNDELIVERED)
        grant->proc = grant->proc == GRANTED ? GRANTED_MSG : GRANTED;
    schedule(core, slot, retry_delay_ns(grant->failure_count++));
}

void grant_call_done(struct core *core, uint32_t slot, const struct core_input *input)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->phase != WAITER_CALLING)
        return;
    if (input->outcome == CALL_ANSWERED)
        client_alive(core, waiter_client(core, w));
    bool is_heard = input->outcome == CALL_ANSWERED || input->outcome == CALL_REFUSED;
    turn_ended(core, waiter_client(core, w), is_heard ? TURN_ANSWERED : TURN_SILENT);
    if (w->grant.is_denied) {
        bool is_once = input->outcome == CALL_ANSWERED && !input->is_repeated;
        w->grant.is_denied = false;
        take_answer(core, slot, LOCK_DENIED, !is_once);
        return;
    }
    bool is_unreadable = w->grant.proc == GRANTED && input->status == LOCK_STATUS_NONE;
    if (input->outcome != CALL_ANSWERED || is_unreadable) {
        take_failure(core, slot, input->outcome == CALL_ANSWERED ? CALL_UNKNOWN : input->outcome);
    } else if (w->grant.proc == GRANTED) {
        take_answer(core, slot, input->status, input->is_repeated);
    } else {
        waiter_set_phase(core, slot, WAITER_EXPECTING);
        w->grant.is_repeated = input->is_repeated;
        timers_set(&core->waiters.timers, slot, core->now_ns + RESULT_NS);
    }
}

void grant_result(struct core *core, const struct peer *from, struct bytes cookie, uint32_t status)
{
    if (cookie.len != 8)
        return;
    uint64_t number = load_be64(cookie.at);
    const struct hash_index *by_cookie = &core->grants.by_cookie;
    uint32_t slot = hash_index_first(by_cookie, cookie_hash(core, number));
    for (; slot != SLOT_NONE; slot = hash_index_next(by_cookie, slot)) {
        const struct waiter *w = waiter_at(core, slot);
        struct address known = client_address(core, waiter_client(core, w));
        if (w->grant.cookie == number && address_equal(&known, &from->address))
            break;
    }
    if (slot == SLOT_NONE || waiter_at(core, slot)->grant.attempt_count == 0) {
        MARK("grant_result_for_nobody");
        return;
    }
    const struct waiter *w = waiter_at(core, slot);
    bool is_calling = w->phase == WAITER_CALLING;
    if (is_calling && status == LOCK_GRACE)
        return; /* asked again once this callback has ended */
    if (is_calling && status != LOCK_GRANTED) {
        /* What it means depends on how often the callback arrived, which is known at its end. */
        MARK("grant_denied_before_the_end");
        waiter_at(core, slot)->grant.is_denied = true;
        return;
    }
    bool is_repeated = w->grant.is_repeated;
    MARK("grant_result");
    if (is_calling) {
        (void)confirm(core, slot); /* without slots it is asked again when this call has ended */
        return;
    }
    timers_clear(&core->waiters.timers, slot);
    turn_remove(core, slot);
    take_answer(core, slot, status, is_repeated);
}

void grant_check(const struct core *core)
{
    const struct waiters *all = &core->waiters;
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct waiter *w = waiter_at(core, slot);
        if (!waiter_is_offered(w))
            continue;
        const struct lock *offer = lock_at(core, w->grant.offer);
        CHECK((offer->flags & RECORD_LOCK_OFFER) != 0 && lock_waiter(offer) == slot);
        CHECK(offer->claim.owner == w->claim.owner && offer->claim.file == w->claim.file);
        CHECK(claim_is_same_range(&offer->claim, &w->claim));
        bool is_timed = timers_is_set(&all->timers, slot);
        bool is_listed = !list_is_empty(&w->grant.queue);
        CHECK(!(is_timed && is_listed));
        CHECK((w->phase == WAITER_CALLING) == (!is_timed && !is_listed));
        CHECK((w->phase == WAITER_CALLING) == (w->grant.callback != SLOT_NONE));
        CHECK(w->phase != WAITER_EXPECTING || is_timed);
    }
}
