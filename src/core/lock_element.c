/*
 * lock_element.c -- one element of the lock table comes, changes or goes; see lock_element.h.
 *
 * Always true, and asserted by lock_check():
 *  (1) An element is in the set of its file and on the chain of its client, and a held one in the
 *      set of its holding. Owner, client, file and holding count it, each once.
 *  (2) It holds one reference to its file and one to its oh.
 *  (3) A holding has at least one lock. It is the near one of its owner or among the far ones, not
 *      both. Most processes lock one file at a time: theirs is found without a search.
 *
 * Waiters wait on the slots of elements (waiter.h). They are woken while the slot is still live and
 * before it can be used again: at the start of a removal, when everything is still as it was, and
 * after a change after which the element blocks less than before, when it is as it will be. An
 * element that grew or became exclusive is in the way of its waiters as much as before, and nobody
 * is woken. waiter_wake_lock_changed only notes who must look again; it asks nothing.
 *
 * lock_drain walks the chain of a client a few elements at a time, and any of them may go in
 * between. When the one goes that it would look at next, it is sent to the successor. What is added
 * meanwhile goes to the front of the chain, behind its back; it is never of an old incarnation,
 * because lock.c does not split elements that are to be freed but frees them.
 */
#include "core/lock_element.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/lock_range.h"
#include "core/missed.h"
#include "core/state.h"

bool lock_element_is_alike(const struct lock *a, const struct lock *b)
{
    return a->claim.exclusive == b->claim.exclusive &&
           (a->flags & RECORD_LOCK_UNMONITORED) == (b->flags & RECORD_LOCK_UNMONITORED) &&
           a->state == b->state && a->incarnation == b->incarnation;
}

static struct client *client_of(const struct core *core, const struct lock *lock)
{
    return client_at(core, owner_at(core, lock->claim.owner)->client);
}

bool lock_element_is_doomed(const struct core *core, const struct lock *lock)
{
    return !lock->is_lingering && (lock->flags & RECORD_LOCK_LINGERS) == 0 &&
           client_is_over(client_of(core, lock), lock->incarnation, lock->state);
}

uint32_t lock_element_free_count(const struct core *core)
{
    return core->locks.table.max - core->locks.table.count;
}

/* ---- holdings ---- */

static struct holding *holding_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->locks.holdings, slot);
}

static uint64_t far_hash(const struct core *core, uint32_t owner, uint32_t file)
{
    return hash_number(core->seed, (uint64_t)owner << 32 | file);
}

static uint32_t find_far(const struct core *core, uint32_t owner, uint32_t file)
{
    const struct hash_index *far = &core->locks.far_holdings;
    uint32_t slot = hash_index_first(far, far_hash(core, owner, file));
    for (; slot != SLOT_NONE; slot = hash_index_next(far, slot)) {
        const struct holding *holding = holding_at(core, slot);
        if (holding->owner == owner && holding->file == file)
            return slot;
    }
    return SLOT_NONE;
}

uint32_t lock_element_holding(const struct core *core, uint32_t owner, uint32_t file)
{
    const struct owner *o = owner_at(core, owner);
    if (o->lock_count == 0)
        return SLOT_NONE;
    if (o->near != 0 && holding_at(core, o->near - 1)->file == file)
        return o->near - 1;
    return find_far(core, owner, file);
}

struct holding *lock_element_enter_holding(struct core *core, uint32_t slot)
{
    struct locks *all = &core->locks;
    struct lock *lock = lock_at(core, slot);
    struct owner *owner = owner_at(core, lock->claim.owner);
    lock->link = lock_element_holding(core, lock->claim.owner, lock->claim.file);
    if (lock->link != SLOT_NONE)
        return holding_at(core, lock->link);
    lock->link = table_add(&all->holdings);
    CHECK(lock->link != SLOT_NONE); /* there are as many as locks */
    if (owner->near == 0)
        owner->near = lock->link + 1;
    else
        hash_index_add(&all->far_holdings, far_hash(core, lock->claim.owner, lock->claim.file),
                       lock->link);
    struct holding *holding = holding_at(core, lock->link);
    *holding = (struct holding){.owner = lock->claim.owner, .file = lock->claim.file};
    return holding;
}

void lock_element_leave_holding(struct core *core, uint32_t slot)
{
    struct locks *all = &core->locks;
    uint32_t at = lock_holding(lock_at(core, slot));
    struct holding *holding = holding_at(core, at);
    struct owner *owner = owner_at(core, holding->owner);
    lock_at(core, slot)->link = SLOT_NONE;
    if (holding->locks != 0)
        return;
    CHECK(holding->unsettled == 0);
    if (owner->near == at + 1)
        owner->near = 0;
    else
        hash_index_remove(&all->far_holdings, at);
    table_remove(&all->holdings, at);
}

/* ---- elements ---- */

static void join_holding(struct core *core, uint32_t slot)
{
    span_add(&core->locks.own, &lock_element_enter_holding(core, slot)->locks, slot);
}

void lock_element_index(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    span_add(&core->locks.by_start, &file_at(core, lock->claim.file)->locks, slot);
    if ((lock->flags & RECORD_LOCK_OFFER) == 0)
        join_holding(core, slot);
}

/* What counts and lists it, but for the trees. */
static void enter(struct core *core, uint32_t slot)
{
    struct locks *all = &core->locks;
    const struct lock *lock = lock_at(core, slot);
    CHECK(lock->claim.start <= lock->claim.end);
    struct file *file = file_at(core, lock->claim.file);
    struct owner *owner = owner_at(core, lock->claim.owner);
    file_keep(core, lock->claim.file);
    intern_keep(&all->ohs, lock->oh);
    chains_add(&all->by_client, owner->client, slot);
    all->offer_count += (lock->flags & RECORD_LOCK_OFFER) != 0;
    file->lock_count++;
    all->file_set_counts[file->set]++;
    struct client *client = client_at(core, owner->client);
    uint32_t most = core->limits.locks_per_client_max, count = ++client->life.lock_count;
    core->clients.near_count += quota_is_near(count, most) && !quota_is_near(count - 1, most);
    quota_add(core, client->quota, QUOTA_LOCK, 1);
    client->life.current_count += lock->incarnation == client->stored.incarnation;
    owner->lock_count++;
    if (owner->lock_count == 1) {
        owner_note(core, lock->claim.owner);
        waiter_wake_owner_holds(core, lock->claim.owner);
    }
}

/* The same backwards; its slot may be used again already. */
static void leave(struct core *core, const struct lock *lock)
{
    struct locks *all = &core->locks;
    struct owner *owner = owner_at(core, lock->claim.owner);
    struct client *client = client_at(core, owner->client);
    struct file *file = file_at(core, lock->claim.file);
    CHECK(owner->lock_count > 0);
    CHECK(client->life.lock_count > 0);
    CHECK(file->lock_count > 0);
    owner->lock_count--;
    owner_note(core, lock->claim.owner);
    uint32_t most = core->limits.locks_per_client_max, count = client->life.lock_count--;
    core->clients.near_count -= quota_is_near(count, most) && !quota_is_near(count - 1, most);
    quota_remove(core, client->quota, QUOTA_LOCK, 1);
    client->life.current_count -= lock->incarnation == client->stored.incarnation;
    all->offer_count -= (lock->flags & RECORD_LOCK_OFFER) != 0;
    file->lock_count--;
    CHECK(all->file_set_counts[file->set] > 0);
    all->file_set_counts[file->set]--;
    (void)intern_release(&all->ohs, lock->oh);
    file_release(core, lock->claim.file);
}

void lock_element_load(struct core *core, uint32_t slot, const struct lock *content)
{
    *lock_at(core, slot) = *content;
    enter(core, slot);
}

void lock_element_unload(struct core *core, uint32_t slot)
{
    struct lock lock = *lock_at(core, slot);
    chains_remove(&core->locks.by_client, owner_at(core, lock.claim.owner)->client, slot);
    table_remove(&core->locks.table, slot);
    leave(core, &lock);
    owner_release(core, lock.claim.owner);
}

uint32_t lock_element_add(struct core *core, const struct lock *content)
{
    uint32_t slot = table_add(&core->locks.table);
    CHECK(slot != SLOT_NONE);
    CHECK(!content->is_unsettled);
    *lock_at(core, slot) = *content;
    lock_element_index(core, slot);
    enter(core, slot);
    lock_at(core, slot)->serial = ++core->locks.serial;
    dirty_put(&core->dirty, RECORD_LOCK, slot);
    return slot;
}

void lock_element_restamp(struct core *core, uint32_t slot, uint32_t incarnation)
{
    struct lock *lock = lock_at(core, slot);
    CHECK(client_is_over(client_of(core, lock), lock->incarnation, lock->state));
    lock->incarnation = incarnation;
    dirty_put(&core->dirty, RECORD_LOCK, slot);
}

static void set(struct core *core, struct lock *lock, const struct lock *content)
{
    if (lock->oh != content->oh) {
        intern_keep(&core->locks.ohs, content->oh);
        (void)intern_release(&core->locks.ohs, lock->oh);
        lock->oh = content->oh;
    }
    lock->serial = ++core->locks.serial;
    lock->is_doubtful = false;
    lock->claim = content->claim;
    lock->len = content->len;
    lock->granted_ns = content->granted_ns;
    lock->state = content->state;
    lock->asked = content->asked;
    struct client *client = client_of(core, lock);
    client->life.current_count -= lock->incarnation == client->stored.incarnation;
    client->life.current_count += content->incarnation == client->stored.incarnation;
    lock->incarnation = content->incarnation;
    lock->flags = (uint8_t)((lock->flags & ~RECORD_LOCK_UNMONITORED) |
                            (content->flags & RECORD_LOCK_UNMONITORED));
}

void lock_element_change(struct core *core, uint32_t slot, const struct lock *content)
{
    struct locks *all = &core->locks;
    struct lock *lock = lock_at(core, slot);
    CHECK(content->claim.start <= content->claim.end);
    CHECK(content->claim.owner == lock->claim.owner);
    CHECK(content->claim.file == lock->claim.file);
    CHECK(lock_holding(lock) != SLOT_NONE); /* an offer is taken and withdrawn as it is */
    if (!claim_is_same_range(&content->claim, &lock->claim))
        unsettled_detach(core, slot);
    const struct claim before = lock->claim;
    bool is_less = !claim_is_inside(&lock->claim, &content->claim) ||
                   !claim_has_mode(&content->claim, &lock->claim);
    if (content->claim.start == lock->claim.start) {
        set(core, lock, content);
        span_change(&all->by_start, file_at(core, before.file)->locks, slot, &before);
        span_change(&all->own, holding_at(core, lock_holding(lock))->locks, slot, &before);
    } else {
        span_root *in_file = &file_at(core, lock->claim.file)->locks;
        span_root *own = &holding_at(core, lock_holding(lock))->locks;
        span_remove(&all->by_start, in_file, slot);
        span_remove(&all->own, own, slot);
        set(core, lock, content);
        span_add(&all->by_start, in_file, slot);
        span_add(&all->own, own, slot);
    }
    dirty_put(&core->dirty, RECORD_LOCK, slot);
    if (is_less) {
        mirror_loosen(core, &before);
        waiter_wake_lock_changed(core, slot);
    }
}

void lock_element_leave_over(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    uint32_t client = owner_at(core, lock->claim.owner)->client;
    lock->is_left_over = true;
    chains_add(&core->locks.left_over, client, slot);
    tree_add(&core->locks.left_over_own, &owner_at(core, lock->claim.owner)->left_over, slot);
    missed_more(core, client_at(core, client), &client_at(core, client)->recovery.left_over_count);
    core->offers_left++;
}

void lock_element_unleave(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    uint32_t client = owner_at(core, lock->claim.owner)->client;
    if (!lock->is_left_over)
        return;
    lock->is_left_over = false;
    chains_remove(&core->locks.left_over, client, slot);
    tree_remove(&core->locks.left_over_own, &owner_at(core, lock->claim.owner)->left_over, slot);
    missed_less(core, client_at(core, client), &client_at(core, client)->recovery.left_over_count);
    core->offers_left--;
}

void lock_element_restore(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    CHECK(lock->flags & RECORD_LOCK_OFFER);
    lock_element_unleave(core, slot);
    lock->flags &= (uint8_t)~RECORD_LOCK_OFFER;
    lock->is_echoed = false;
    lock->link = SLOT_NONE;
    core->locks.offer_count--;
    join_holding(core, slot);
}

void lock_element_hold(struct core *core, uint32_t slot)
{
    lock_element_restore(core, slot);
    dirty_put(&core->dirty, RECORD_LOCK, slot);
}

void lock_element_remove(struct core *core, uint32_t slot)
{
    struct locks *all = &core->locks;
    waiter_wake_lock_changed(core, slot);
    lock_element_unleave(core, slot);
    unsettled_detach(core, slot);
    struct lock lock = *lock_at(core, slot);
    struct owner *owner = owner_at(core, lock.claim.owner);
    struct client *client = client_at(core, owner->client);
    uint32_t behind = chains_next(&all->by_client, slot) + 1; /* SLOT_NONE becomes 0 */
    if (client->life.drain_at == slot + 1)
        client->life.drain_at = behind;
    if (client->recovery.unsettled_at == slot + 1)
        client->recovery.unsettled_at = behind;
    chains_remove(&all->by_client, owner->client, slot);
    span_remove(&all->by_start, &file_at(core, lock.claim.file)->locks, slot);
    if ((lock.flags & RECORD_LOCK_OFFER) == 0) {
        span_remove(&all->own, &holding_at(core, lock_holding(&lock))->locks, slot);
        lock_element_leave_holding(core, slot);
    }
    table_remove(&all->table, slot);
    dirty_delete(&core->dirty, RECORD_LOCK, slot);
    mirror_loosen(core, &lock.claim);
    leave(core, &lock);
}

void lock_element_finish(struct core *core, uint32_t owner)
{
    uint32_t client = owner_at(core, owner)->client;
    owner_release(core, owner);
    client_counts_changed(core, client);
}
