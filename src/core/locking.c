/*
 * locking.c -- what the lock procedures decide; see locking.h.
 *
 * LOCK, in the order in which things are looked at:
 *
 *   no such handle, or a range beyond the largest file ........ STALE_FH, FBIG
 *   its caller may not lock that file (R-SEC-11) .............. as the request says
 *   a reclaim ................................................. see reclaim()
 *   a newer state than any before ............................. what it held is freed (R-SEC-5)
 *   in grace .................................................. GRACE
 *   the same request is being offered ......................... GRANTED: its answer (R-BLK-5)
 *   the same range is queued or offered in the other mode ..... that request is over (R-BLK-11)
 *   a lock or offer of another owner is in the way ............ DENIED, or it waits
 *   blocking, holds nothing, and an earlier waiter is in the way  it waits behind it (R-BLK-15)
 *   a program on this machine is in the way (mirror.h) ........ DENIED, or it waits
 *   nothing is in the way ..................................... GRANTED
 *
 * A client is recorded when it gets or waits for something, and not for being refused (D1).
 *
 * Nothing here looks at who sent a request beyond its client key: the source address is part of
 * the key, so a call from elsewhere finds another client, or none, and changes nothing (P5).
 */
#include "core/locking.h"

#include "base/check.h"
#include "core/admit.h"
#include "core/deadlock.h"
#include "core/lock_element.h"
#include "core/state.h"

enum { DOOMED_PER_REQUEST = CLIENT_DRAIN_MAX };

/* What a request is about, as far as it is known here. */
struct subject {
    uint32_t client;    /* SLOT_NONE: not known */
    struct claim claim; /* its owner and file likewise */
};

uint32_t locking_find_client(struct core *core, const struct peer *from, struct bytes name)
{
    uint32_t slot = client_find(core, &from->address, name);
    if (slot != SLOT_NONE)
        client_called(core, slot);
    return slot;
}

static struct subject find_subject(struct core *core, const struct peer *from,
                                   const struct lock_request *r)
{
    struct subject s = {
        .client = locking_find_client(core, from, r->caller_name),
        .claim = {r->start, r->end, SLOT_NONE, SLOT_NONE, r->exclusive},
    };
    core->ahead.client = s.client;
    if (s.client != SLOT_NONE)
        s.claim.owner = owner_find(core, s.client, r->svid);
    if (!r->is_bad_handle)
        s.claim.file = file_find(core, r->fh);
    return s;
}

/* Owner and file are known: it may have something there. */
static bool is_known(const struct subject *s)
{
    return s->claim.owner != SLOT_NONE && s->claim.file != SLOT_NONE;
}

/*
 * What is in the way. Locks of clients that rebooted are freed piece by piece; one that is met
 * before its turn comes is freed on the spot, so that nobody is denied what is nobody's any more.
 * The file goes with the last of them.
 */
static uint32_t find_obstacle(struct core *core, struct subject *s)
{
    uint32_t left = DOOMED_PER_REQUEST, slot;
    file_keep(core, s->claim.file);
    do
        slot = lock_find_conflict(core, &s->claim);
    while (slot != SLOT_NONE && left-- > 0 && lock_free_if_doomed(core, slot));
    if (file_release(core, s->claim.file))
        s->claim.file = SLOT_NONE;
    return slot;
}

/* Whatever the tables say. LOCK_GRANTED: it is not refused. */
static enum lock_status refusal_of(const struct lock_request *r)
{
    return r->is_bad_handle ? LOCK_STALE_HANDLE : r->is_too_big ? LOCK_TOO_BIG : r->refusal;
}

/* ---- TEST ---- */

static enum lock_status test(struct core *core, const struct peer *from,
                             const struct lock_request *r, struct lock_holder *ret_holder)
{
    /* DENIED must name a holder: nobody, and all of what was asked for. */
    *ret_holder = (struct lock_holder){.exclusive = true, .start = r->start, .end = r->end};
    if (refusal_of(r) != LOCK_GRANTED)
        return refusal_of(r);
    struct subject s = find_subject(core, from, r);
    if (grace_is_on(core))
        return LOCK_GRACE;
    uint32_t slot = s.claim.file == SLOT_NONE ? SLOT_NONE : find_obstacle(core, &s);
    if (slot == SLOT_NONE)
        return mirror_test(core, r->fh, &s.claim, ret_holder) ? LOCK_GRANTED : LOCK_DENIED;
    const struct lock *lock = lock_at(core, slot);
    if (lock_element_is_doomed(core, lock))
        return LOCK_GRACE; /* there is more of it than one request frees: ask again */
    *ret_holder = (struct lock_holder){
        .exclusive = lock->claim.exclusive,
        .svid = owner_at(core, lock->claim.owner)->svid,
        .oh = intern_bytes(&core->locks.ohs, lock->oh),
        .start = lock->claim.start,
        .end = lock->claim.end,
    };
    namesake_of_lock(core, from, r, slot);
    return LOCK_DENIED;
}

/* ---- LOCK ---- */

/*
 * R-SEC-5: a newer state than any before says that the client rebooted and that its SM_NOTIFY
 * was lost. What it held before is freed first; the owner may be gone with it.
 * False: there is so much of it that the client must ask again.
 */
static bool is_of_this_life(struct core *core, struct subject *s, const struct lock_request *r)
{
    if (s->client == SLOT_NONE)
        return true;
    reboot_of_request(core, s->client, r->state);
    if (list_is_empty(&client_at(core, s->client)->life.draining))
        return true;
    if (!client_drain_now(core, s->client))
        return false;
    s->claim.owner = owner_find(core, s->client, r->svid);
    s->claim.file = file_find(core, r->fh);
    return true;
}

/* Does the owner hold every byte of it, in that mode or a stronger one, as far as the store knows:
 * with what a run before had offered to it (R-BLK-19)? */
static bool may_be_held(const struct core *core, const struct subject *s)
{
    return is_known(s) && (lock_covers(core, &s->claim) || leftover_covers(core, &s->claim));
}

/* Nothing is in the way. */
static enum lock_status grant(struct core *core, const struct peer *from,
                              const struct lock_request *r, struct subject s, uint32_t waiter)
{
    /* What it has already in that mode or a stronger one needs no room: an answer that was lost,
     * or a downgrade, must not fail for a limit. */
    if (!may_be_held(core, &s) && !admit_lock(core, from, r, s.client))
        return LOCK_NO_RESOURCES;
    s.claim.file = admit_file(core, from, r, s.claim.file);
    if (s.claim.file == SLOT_NONE)
        return LOCK_NO_RESOURCES;
    s.client = admit_client(core, from, r, s.client);
    if (s.client == SLOT_NONE) {
        file_release(core, s.claim.file);
        return LOCK_NO_RESOURCES;
    }
    s.claim.owner = owner_add(core, s.client, r->svid);
    struct lock_want want = {
        .claim = s.claim,
        .len = r->len,
        .state = r->state != 0 ? r->state : client_at(core, s.client)->stored.state_seen,
        .is_unmonitored = r->is_unmonitored,
        .oh = r->oh,
        .wall_ns = core->wall_ns,
    };
    bool is_taken = lock_take(core, &want);
    if (is_taken && waiter != SLOT_NONE) {
        MARK("lock_granted_to_a_poll");
        waiter_remove(core, waiter);
    }
    if (!is_taken)
        admit_report_slots(core, from, r, s.client);
    if (table_is_live(&core->owners.table, s.claim.owner))
        owner_release(core, s.claim.owner);
    file_release(core, s.claim.file);
    client_counts_changed(core, s.client);
    return is_taken ? LOCK_GRANTED : LOCK_NO_RESOURCES;
}

/* Something is in the way of a request that will wait for it. */
static enum lock_status block(struct core *core, const struct peer *from,
                              const struct request *request, struct subject s, uint32_t waiter)
{
    const struct lock_request *r = &request->lock;
    /* Also who asks again: a circle can be closed by what others were granted meanwhile, and who
     * comes back into the queue closes one like one who is new there. */
    if (s.claim.owner != SLOT_NONE && deadlock_closes(core, &s.claim, waiter)) {
        if (waiter != SLOT_NONE)
            waiter_remove(core, waiter);
        return LOCK_DEADLOCK;
    }
    if (waiter != SLOT_NONE)
        return waiter_heard(core, waiter, from, request);
    s.client = admit_client(core, from, r, s.client);
    if (s.client == SLOT_NONE)
        return LOCK_NO_RESOURCES;
    s.claim.owner = owner_add(core, s.client, r->svid);
    enum lock_status status = waiter_add(core, &s.claim, from, request);
    if (status != LOCK_BLOCKED) {
        owner_release(core, s.claim.owner);
        client_counts_changed(core, s.client);
    }
    return status;
}

/* R-NM-1. */
static bool may_wait(const struct lock_request *r)
{
    return r->block && !r->is_unmonitored && !r->reclaim;
}

/* Nobody here is in the way; a program on this machine may be. Not of what the owner holds already
 * in that mode or a stronger one: a client whose answer was lost would think it has what it had. */
static enum lock_status grant_beside_programs(struct core *core, const struct peer *from,
                                              const struct request *request, struct subject s,
                                              uint32_t waiter)
{
    const struct lock_request *r = &request->lock;
    if (core->mirrors.world == NULL)
        return grant(core, from, r, s, waiter);
    s.claim.file = admit_file(core, from, r, s.claim.file);
    if (s.claim.file == SLOT_NONE)
        return LOCK_NO_RESOURCES;
    enum lock_status status = LOCK_NO_RESOURCES;
    enum mirror_result result = mirror_take(core, &s.claim);
    if (result != MIRROR_TAKEN && is_known(&s) && lock_covers(core, &s.claim))
        result = MIRROR_TAKEN;
    switch (result) {
    case MIRROR_TAKEN:
        status = grant(core, from, r, s, waiter);
        if (status != LOCK_GRANTED)
            mirror_loosen(core, &s.claim);
        break;
    case MIRROR_REFUSED:
        MARK("lock_meets_a_program");
        status = may_wait(r) ? block(core, from, request, s, waiter) : LOCK_DENIED;
        break;
    case MIRROR_NOT_NOW:
        status = LOCK_GRACE;
        break;
    case MIRROR_NO_ROOM:
        event_add_of_file(&core->events, EVENT_LOCAL_NO_ROOM, &from->address, r->caller_name, 0,
                          r->fh);
        break;
    }
    file_release(core, s.claim.file);
    return status;
}

/*
 * The owner has asked for this range in the other mode before. An offer that may have been taken is
 * its lock by now, so that the new request changes what it has; anything else is withdrawn
 * (R-BLK-11). False: no slots for that.
 */
static bool replace(struct core *core, uint32_t waiter)
{
    const struct waiter *w = waiter_at(core, waiter);
    if (waiter_is_offered(w) && w->grant.attempt_count > 0) {
        MARK("lock_other_mode_than_offered");
        return grant_accept(core, waiter, false);
    }
    MARK("lock_other_mode_than_queued");
    grant_cancel(core, waiter);
    waiter_remove(core, waiter);
    return true;
}

void locking_note_reclaim(struct core *core, const struct peer *from, const struct lock_request *r,
                          enum lock_status status, bool is_news)
{
    if (status == LOCK_GRANTED) {
        uint32_t client = client_find(core, &from->address, r->caller_name);
        core->grace.counters.reclaims_granted++;
        client_at(core, client)->recovery.reclaimed_count += is_news ? 1 : 0;
        grace_reclaimed(core, client);
        return;
    }
    MARK("reclaim_denied");
    core->grace.counters.reclaims_denied++;
    event_add_of_file(&core->events, EVENT_RECLAIM_DENIED, &from->address, r->caller_name, 0,
                      r->fh);
}

/*
 * A reclaim is granted when the owner holds it as far as the store knows: every byte, in that mode
 * or a stronger one (R-GRACE-4). That is so in grace and after it, as long as the bytes were not
 * released. It is then stamped and settled; an exact one changes nothing that is stored
 * (R-GRACE-9).
 *
 * What matches nothing is refused: in grace for good, because others may hold it; afterwards it is
 * too late. A store that may have lost something, and `--trust-reclaim`, take it if nothing is in
 * its way (D11, D16). A reclaim never waits.
 */
static enum lock_status reclaim(struct core *core, const struct peer *from,
                                const struct request *request)
{
    const struct lock_request *r = &request->lock;
    struct subject s = find_subject(core, from, r);
    bool is_stored = may_be_held(core, &s);
    if (!is_stored && is_known(&s)) {
        /* It may be about an offer whose answer is on its way. Where it is not, the offer stays: it
         * may have been taken after this was sent, and must not be weakened by it. */
        grant_reclaim(core, &s.claim);
        is_stored = may_be_held(core, &s);
    }
    bool is_taken_on_trust = !is_stored && grace_is_on(core) && grace_trusts(core) &&
                             (s.claim.file == SLOT_NONE || find_obstacle(core, &s) == SLOT_NONE);
    enum lock_status status = grace_is_on(core) ? LOCK_DENIED : LOCK_GRACE;
    bool is_news = is_taken_on_trust || (is_stored && unsettled_meets(core, &s.claim));
    if (s.client != SLOT_NONE && r->state != 0)
        reboot_of_reclaim(core, s.client, r->state);
    if (is_stored)
        status = grant(core, from, r, s, SLOT_NONE);
    else if (is_taken_on_trust)
        status = grant_beside_programs(core, from, request, s, SLOT_NONE);
    else
        namesake_of_reclaim(core, from, r);
    locking_note_reclaim(core, from, r, status, is_news);
    return status;
}

static enum lock_status lock(struct core *core, const struct peer *from,
                             const struct request *request)
{
    const struct lock_request *r = &request->lock;
    if (refusal_of(r) != LOCK_GRANTED)
        return refusal_of(r);
    if (r->reclaim)
        return reclaim(core, from, request);
    struct subject s = find_subject(core, from, r);
    if (!is_of_this_life(core, &s, r) || grace_is_on(core))
        return LOCK_GRACE;
    uint32_t waiter = is_known(&s) ? waiter_find(core, &s.claim, r->len) : SLOT_NONE;
    if (waiter != SLOT_NONE) {
        const struct waiter *w = waiter_at(core, waiter);
        bool is_offered = waiter_is_offered(w), is_same = w->claim.exclusive == r->exclusive;
        if (is_same && (is_offered || r->block))
            waiter_saw_state(core, waiter, r->state);
        if (is_offered && is_same) {
            MARK("lock_is_the_answer_to_an_offer");
            return grant_accept(core, waiter, true) ? LOCK_GRANTED : LOCK_NO_RESOURCES;
        }
        if (!is_same && (is_offered || r->block)) {
            if (!replace(core, waiter))
                return LOCK_NO_RESOURCES;
            waiter = SLOT_NONE;
            s = find_subject(core, from, r);
        }
    }
    if (s.claim.file == SLOT_NONE)
        return grant_beside_programs(core, from, request, s, SLOT_NONE);

    bool is_same = waiter != SLOT_NONE && waiter_at(core, waiter)->claim.exclusive == r->exclusive;
    uint32_t obstacle = find_obstacle(core, &s);
    if (s.claim.file == SLOT_NONE)
        return grant_beside_programs(core, from, request, s, SLOT_NONE);
    if (obstacle != SLOT_NONE) {
        if (lock_element_is_doomed(core, lock_at(core, obstacle)))
            return LOCK_GRACE;
        namesake_of_lock(core, from, r, obstacle);
    } else if (may_wait(r) &&
               (s.claim.owner == SLOT_NONE || owner_at(core, s.claim.owner)->lock_count == 0)) {
        uint64_t order = waiter != SLOT_NONE ? waiter_at(core, waiter)->order : UINT64_MAX;
        obstacle = waiter_queue_earlier(core, &s.claim, order);
        if (obstacle != SLOT_NONE)
            MARK("lock_waits_behind_a_waiter");
    }
    if (obstacle == SLOT_NONE)
        return grant_beside_programs(core, from, request, s, is_same ? waiter : SLOT_NONE);
    return may_wait(r) ? block(core, from, request, s, waiter) : LOCK_DENIED;
}

/* ---- UNLOCK and CANCEL ---- */

/* R-NLM-7: nothing but GRANTED, or "ask again" when a split finds no slot at all (R-RNG-5). */
static enum lock_status unlock(struct core *core, const struct peer *from,
                               const struct lock_request *r)
{
    struct subject s = find_subject(core, from, r);
    if (!is_known(&s) || r->is_too_big)
        return LOCK_GRANTED;
    if (!grant_unlock(core, &s.claim))
        return LOCK_GRACE;
    const struct table *owners = &core->owners.table;
    if (!table_is_live(owners, s.claim.owner))
        return LOCK_GRANTED; /* it had nothing but a waiter */
    if (!lock_release(core, &s.claim)) {
        admit_report_slots(core, from, r, s.client);
        return LOCK_GRACE;
    }
    bool is_rest = table_is_live(owners, s.claim.owner) && leftover_meets(core, &s.claim);
    return is_rest ? LOCK_GRACE : LOCK_GRANTED;
}

/* The table of protocol.md 4.3: GRANTED means "you do not have it". */
static enum lock_status cancel(struct core *core, const struct peer *from,
                               const struct lock_request *r)
{
    struct subject s = find_subject(core, from, r);
    if (!is_known(&s) || r->is_too_big)
        return LOCK_GRANTED;
    uint32_t waiter = waiter_find(core, &s.claim, r->len);
    if (waiter != SLOT_NONE && waiter_at(core, waiter)->claim.exclusive == r->exclusive) {
        grant_cancel(core, waiter);
        return LOCK_GRANTED;
    }
    if (lock_offer_is_doubtful(core, &s.claim)) {
        MARK("cancel_ends_a_doubt");
        return lock_release(core, &s.claim) ? LOCK_GRANTED : LOCK_DENIED;
    }
    if (!may_be_held(core, &s))
        return LOCK_GRANTED;
    /* What it is told to have it must keep: of what a run before granted this is a reclaim. */
    if (unsettled_meets(core, &s.claim) || !lock_covers(core, &s.claim)) {
        MARK("cancel_reclaims");
        if (grant(core, from, r, s, SLOT_NONE) != LOCK_GRANTED)
            return LOCK_GRACE;
    }
    MARK("cancel_of_a_held_lock");
    return LOCK_DENIED;
}

/*
 * A client that learns that it does not have these bytes may ask for them again, and wait. A
 * callback about them that still arrives would be taken for the answer, so the reply waits.
 */
static void wait_for_callbacks(struct core *core, const struct peer *from,
                               const struct lock_request *r, struct response *ret)
{
    if (ret->status != LOCK_GRANTED || r->is_too_big || !callback_is_any_lingering(core))
        return;
    struct subject s = find_subject(core, from, r);
    if (is_known(&s))
        ret->when = callback_defer(core, &s.claim, &ret->ticket);
}

void locking_answer(struct core *core, const struct peer *from, const struct request *request,
                    struct response *ret)
{
    const struct lock_request *r = &request->lock;
    *ret = (struct response){.status = LOCK_GRANTED, .cookie = request->cookie};
    switch (request->kind) {
    case REQUEST_NLM_TEST:
        ret->status = test(core, from, r, &ret->holder);
        return;
    case REQUEST_NLM_LOCK:
        ret->status = lock(core, from, request);
        return;
    case REQUEST_NLM_CANCEL:
        ret->status = cancel(core, from, r);
        wait_for_callbacks(core, from, r, ret);
        return;
    case REQUEST_NLM_UNLOCK:
        ret->status = unlock(core, from, r);
        wait_for_callbacks(core, from, r, ret);
        return;
    case REQUEST_NLM_GRANTED:
        ret->status = LOCK_DENIED; /* we wait for nobody's locks */
        return;
    case REQUEST_NLM_GRANTED_RES:
        grant_result(core, from, request->cookie, r->status);
        return;
    case REQUEST_NLM_SHARE:
        ret->status = locking_share(core, from, r);
        return;
    case REQUEST_NLM_UNSHARE:
        locking_unshare(core, from, r);
        return;
    case REQUEST_NLM_FREE_ALL:
        (void)client_free_all(core, &from->address, request->mon_name, request->state);
        return;
    case REQUEST_NSM_STAT:
    case REQUEST_NSM_MON:
    case REQUEST_NSM_UNMON:
    case REQUEST_NSM_UNMON_ALL:
    case REQUEST_NSM_SIMU_CRASH:
    case REQUEST_NSM_NOTIFY:
        break;
    }
    UNREACHABLE();
}
