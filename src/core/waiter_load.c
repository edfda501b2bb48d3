/*
 * waiter_load.c -- waiters and their records, for runs that are resumed (D12); see waiter.h.
 *
 * A resumed run continues where the last one was killed. A queued waiter takes its place in the
 * queue again and is looked at; one with an offer is called back again, and because the callback
 * may have reached its client before, the offer counts as possibly delivered (R-DRC-3). Its cookie
 * stays the same, so that a late GRANTED_RES still finds it.
 */
#include "base/check.h"
#include "core/state.h"

/* The offer of this waiter, as it was stored; SLOT_NONE: there is none that fits it. */
static uint32_t find_offer(const struct core *core, const struct record_waiter *record,
                           const struct waiter *loaded)
{
    if (!table_is_live(&core->locks.table, record->offer))
        return SLOT_NONE;
    const struct lock *lock = lock_at(core, record->offer);
    bool fits = (lock->flags & RECORD_LOCK_OFFER) && !(lock->flags & RECORD_LOCK_LINGERS) &&
                lock_waiter(lock) == SLOT_NONE && lock->claim.owner == loaded->claim.owner &&
                lock->claim.file == loaded->claim.file &&
                claim_is_same_range(&lock->claim, &loaded->claim) &&
                lock->claim.exclusive == loaded->claim.exclusive;
    return fits ? record->offer : SLOT_NONE;
}

/* The bytes that a stored waiter means. The wire's reading of a range is the version's, and it was
 * accepted when the request came. */
static uint64_t end_of(const struct record_waiter *record)
{
    uint64_t last = record->offset + record->len - 1;
    bool is_short = record->version != 4;
    bool to_the_end =
        record->len == 0 || last < record->offset ||
        (is_short ? record->len == UINT32_MAX || last > UINT32_MAX : last > INT64_MAX);
    return to_the_end ? UINT64_MAX : last;
}

bool waiter_load(struct core *core, uint32_t slot, const struct record_waiter *record)
{
    const struct record_of *of = &record->of;
    if (!table_is_live(&core->clients.table, of->client) ||
        client_at(core, of->client)->stored.id != of->client_id)
        return false;
    uint32_t file = file_add(core, record->fh);
    uint32_t owner = owner_add(core, of->client, record->svid);
    CHECK(file != SLOT_NONE); /* core_new reserved room for all that is stored */
    struct claim claim = {.start = record->offset,
                          .end = end_of(record),
                          .owner = owner,
                          .file = file,
                          .exclusive = record->flags & RECORD_WAITER_EXCLUSIVE};
    struct waiter loaded = {
        .order = record->order,
        .claim = claim,
        .len = record->len,
        .queued_ns = record->queued_ns,
        .is_message = record->flags & RECORD_WAITER_MESSAGE,
        .state = of->state,
        .version = record->version,
        .transport = record->transport,
        .local = record->local,
        .hangs_on = SLOT_NONE,
        .grant = {.offer = SLOT_NONE, .callback = SLOT_NONE},
    };
    uint32_t offer = record->offer != SLOT_NONE ? find_offer(core, record, &loaded) : SLOT_NONE;
    bool is_sound = record->offer == offer && waiter_find(core, &claim, record->len) == SLOT_NONE &&
                    table_add_at(&core->waiters.table, slot);
    if (is_sound) {
        loaded.oh = intern_add(&core->locks.ohs, record->oh);
        loaded.caller_name = intern_add(&core->names, record->caller_name);
        CHECK(loaded.oh != SLOT_NONE && loaded.caller_name != SLOT_NONE);
        waiter_link(core, slot, &loaded);
        if (record->order >= core->waiters.next_order)
            core->waiters.next_order = record->order + 1;
        if (offer != SLOT_NONE)
            grant_restore(core, slot, offer, record->cookie);
        else
            waiter_enter_queue(core, slot);
    }
    file_release(core, file);
    owner_release(core, owner);
    return is_sound;
}

void waiter_start(struct core *core)
{
    const struct table *table = &core->waiters.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        if (waiter_at(core, slot)->phase == WAITER_QUEUED)
            waiter_be_patient(core, slot);
}

bool waiter_is_stored(const struct core *core, uint32_t slot)
{
    return core->limits.resume && table_is_live(&core->waiters.table, slot) &&
           waiter_at(core, slot)->phase != WAITER_PLACE;
}

uint32_t waiter_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct waiter *w = waiter_at(core, slot);
    const struct owner *owner = owner_at(core, w->claim.owner);
    const struct client *client = client_at(core, owner->client);
    struct record_waiter record = {
        .of = {.client_id = client->stored.id,
               .client = owner->client,
               .incarnation = client->stored.incarnation,
               .state = w->state},
        .queued_ns = w->queued_ns,
        .order = w->order,
        .cookie = waiter_is_offered(w) ? w->grant.cookie : 0,
        .offset = w->claim.start,
        .len = w->len,
        .local = w->local,
        .offer = w->grant.offer,
        .svid = owner->svid,
        .version = w->version,
        .transport = w->transport,
        .flags = (w->claim.exclusive ? RECORD_WAITER_EXCLUSIVE : 0U) |
                 (w->is_message ? RECORD_WAITER_MESSAGE : 0U),
        .caller_name = intern_bytes(&core->names, w->caller_name),
        .fh = file_handle(core, w->claim.file),
        .oh = intern_bytes(&core->locks.ohs, w->oh),
    };
    return record_put_waiter(buffer, slot, &record);
}
