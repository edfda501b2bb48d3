/*
 * view_lock.c -- locks, waiters and sets of files as operators see them; see view.h.
 *
 * The cursor is the slot to go on with. Locks of one client or one file come from its own list when
 * that is short: of the slots there, the smallest that is not below the cursor. So the order is the
 * same whichever way they are found, and a list may grow or shrink past VIEW_DIRECT_MAX in between.
 */
#include "base/check.h"
#include "core/state.h"
#include "core/view.h"

static void view_owner(const struct core *core, uint32_t owner_slot, struct view_owner *ret)
{
    const struct owner *owner = owner_at(core, owner_slot);
    const struct client *client = client_at(core, owner->client);
    *ret = (struct view_owner){
        .client = client->stored.id,
        .name = intern_bytes(&core->names, client->stored.name),
        .address = client_address(core, owner->client),
        .svid = owner->svid,
        .seen_ns = client_last_seen_ns(client),
    };
}

static void view_claim(const struct core *core, const struct claim *claim, uint32_t oh,
                       struct view_claim *ret)
{
    *ret = (struct view_claim){
        .oh = intern_bytes(&core->locks.ohs, oh),
        .fh = file_handle(core, claim->file),
        .file_set = core->limits.file_sets[file_at(core, claim->file)->set].name,
        .start = claim->start,
        .end = claim->end,
        .is_exclusive = claim->exclusive,
    };
    view_owner(core, claim->owner, &ret->owner);
}

static enum view_lock_state state_of(const struct core *core, const struct lock *lock)
{
    const struct client *client = client_at(core, owner_at(core, lock->claim.owner)->client);
    if (client_is_over(client, lock->incarnation, lock->state))
        return VIEW_OVER;
    if (lock->flags & RECORD_LOCK_OFFER)
        return VIEW_OFFERED;
    return unsettled_meets_lock(core, lock) ? VIEW_UNSETTLED : VIEW_HELD;
}

static uint32_t chain_count(const struct chains *chains, uint32_t chain)
{
    uint32_t count = 0, slot = chains_first(chains, chain);
    for (; slot != SLOT_NONE && count < VIEW_COUNT_MAX; slot = chains_next(chains, slot))
        count++;
    return count;
}

static void view_lock(const struct core *core, uint32_t slot, struct view_lock *ret)
{
    const struct lock *lock = lock_at(core, slot);
    *ret = (struct view_lock){
        .granted_ns = lock->granted_ns,
        .is_monitored = !(lock->flags & RECORD_LOCK_UNMONITORED),
        .state = state_of(core, lock),
        .waiter_count = chain_count(&core->waiters.on_lock, slot),
    };
    view_claim(core, &lock->claim, lock->oh, &ret->claim);
}

/* ---- which ---- */

/* A filter with slots instead of what they stand for. */
struct wanted {
    uint32_t client, file; /* SLOT_NONE: any */
    bool has_file_set;
    uint32_t file_set;
};

bool view_handle(const struct core *core, uint64_t id, uint64_t *ret)
{
    uint32_t slot = client_find_id(core, id);
    if (slot != SLOT_NONE)
        *ret = table_handle(&core->clients.table, slot);
    return slot != SLOT_NONE;
}

/* False: there can be none. */
static bool resolve(const struct core *core, const struct view_filter *filter, struct wanted *ret)
{
    *ret = (struct wanted){.client = SLOT_NONE,
                           .file = SLOT_NONE,
                           .has_file_set = filter->has_file_set,
                           .file_set = filter->file_set};
    if (filter->fh.len > 0 && (ret->file = file_find(core, filter->fh)) == SLOT_NONE)
        return false;
    if (filter->client != 0)
        ret->client = table_find(&core->clients.table, filter->client);
    return filter->client == 0 || ret->client != SLOT_NONE;
}

static bool is_wanted(const struct core *core, const struct wanted *wanted,
                      const struct claim *claim)
{
    return (wanted->client == SLOT_NONE ||
            owner_at(core, claim->owner)->client == wanted->client) &&
           (wanted->file == SLOT_NONE || claim->file == wanted->file) &&
           (!wanted->has_file_set || file_at(core, claim->file)->set == wanted->file_set);
}

static void choose(const struct core *core, const struct wanted *wanted, uint32_t slot,
                   uint64_t from, uint32_t *best)
{
    if (slot >= from && slot < *best && is_wanted(core, wanted, &lock_at(core, slot)->claim))
        *best = slot;
}

/* The smallest slot of a client's or a file's own list that is not below `from`; SLOT_NONE: none.
 * False: the list is too long, or there is no list. */
static bool find_direct(const struct core *core, const struct wanted *wanted, uint64_t from,
                        uint32_t *budget, uint32_t *ret)
{
    uint32_t best = SLOT_NONE, slot;
    if (wanted->file != SLOT_NONE && file_at(core, wanted->file)->lock_count <= VIEW_DIRECT_MAX) {
        const struct spans *spans = &core->locks.by_start;
        span_root root = file_at(core, wanted->file)->locks;
        for (slot = span_first(spans, root); slot != SLOT_NONE; slot = span_next(spans, root, slot))
            choose(core, wanted, slot, from, &best);
        *budget -= file_at(core, wanted->file)->lock_count;
    } else if (wanted->client != SLOT_NONE &&
               client_at(core, wanted->client)->life.lock_count <= VIEW_DIRECT_MAX) {
        const struct chains *chains = &core->locks.by_client;
        for (slot = chains_first(chains, wanted->client); slot != SLOT_NONE;
             slot = chains_next(chains, slot))
            choose(core, wanted, slot, from, &best);
        *budget -= client_at(core, wanted->client)->life.lock_count;
    } else {
        return false;
    }
    *ret = best;
    return true;
}

bool view_next_lock(const struct core *core, const struct view_filter *filter, uint64_t *cursor,
                    uint32_t *budget, struct view_lock *ret)
{
    const struct table *table = &core->locks.table;
    struct wanted wanted;
    uint32_t slot = SLOT_NONE;
    if (*cursor >= table->used || !resolve(core, filter, &wanted)) {
        *cursor = VIEW_END;
        return false;
    }
    bool is_filtered = wanted.client != SLOT_NONE || wanted.file != SLOT_NONE;
    if (is_filtered && *budget < VIEW_DIRECT_MAX)
        return false;
    if (!is_filtered || !find_direct(core, &wanted, *cursor, budget, &slot)) {
        for (slot = (uint32_t)*cursor; slot < table->used; slot++) {
            if (*budget == 0) {
                *cursor = slot;
                return false;
            }
            --*budget;
            if (table_is_live(table, slot) && is_wanted(core, &wanted, &lock_at(core, slot)->claim))
                break;
        }
    }
    if (slot >= table->used) {
        *cursor = VIEW_END;
        return false;
    }
    view_lock(core, slot, ret);
    *cursor = (uint64_t)slot + 1;
    return true;
}

/* ---- waiters ---- */

static const char *word_of_phase(enum waiter_phase phase)
{
    switch (phase) {
    case WAITER_QUEUED:
        return "queued";
    case WAITER_OFFERED:
        return "offered";
    case WAITER_CALLING:
        return "calling";
    case WAITER_EXPECTING:
        return "expecting";
    case WAITER_PASSED:
        return "passed";
    case WAITER_PLACE:
        return "cancelled";
    case WAITER_NEW:
        break;
    }
    UNREACHABLE();
}

/* It is blocked by what this owner has, or will have when it says yes. */
static void set_blocker(const struct core *core, uint32_t owner, struct view_waiter *ret)
{
    uint32_t client = owner_at(core, owner)->client;
    ret->is_blocked = true;
    ret->blocker_phase = silent_phase_of(core, client);
    ret->blocker_heard_ns = client_at(core, client)->life.seen_ns;
    view_owner(core, owner, &ret->blocker);
}

/* Who holds what a queued waiter waits for in the end: behind how many others, and whose lock. */
static void view_blocker(const struct core *core, const struct waiter *waiter,
                         struct view_waiter *ret)
{
    for (; ret->ahead_count < VIEW_COUNT_MAX && waiter->hangs_on != SLOT_NONE; ret->ahead_count++) {
        if (!waiter->on_waiter) {
            set_blocker(core, lock_at(core, waiter->hangs_on)->claim.owner, ret);
            return;
        }
        waiter = waiter_at(core, waiter->hangs_on);
        if (waiter_is_offered(waiter)) {
            ret->ahead_count++;
            set_blocker(core, waiter->claim.owner, ret);
            return;
        }
    }
}

static void view_waiter(const struct core *core, uint32_t slot, struct view_waiter *ret)
{
    const struct waiter *waiter = waiter_at(core, slot);
    *ret = (struct view_waiter){
        .queued_ns = waiter->queued_ns,
        .phase = word_of_phase(waiter->phase),
    };
    view_claim(core, &waiter->claim, waiter->oh, &ret->claim);
    view_blocker(core, waiter, ret);
}

bool view_next_waiter(const struct core *core, const struct view_filter *filter, uint64_t *cursor,
                      uint32_t *budget, struct view_waiter *ret)
{
    const struct table *table = &core->waiters.table;
    struct wanted wanted;
    if (*cursor >= table->used || !resolve(core, filter, &wanted)) {
        *cursor = VIEW_END;
        return false;
    }
    for (uint32_t slot = (uint32_t)*cursor; slot < table->used; slot++) {
        if (*budget == 0) {
            *cursor = slot;
            return false;
        }
        --*budget;
        if (!table_is_live(table, slot))
            continue;
        if (!is_wanted(core, &wanted, &waiter_at(core, slot)->claim))
            continue;
        view_waiter(core, slot, ret);
        *cursor = (uint64_t)slot + 1;
        return true;
    }
    *cursor = VIEW_END;
    return false;
}

bool view_silent(const struct core *core, uint32_t index, struct view_silent *ret)
{
    const struct list *head = &core->silent.holders;
    for (const struct list *at = head->next; at != head; at = at->next) {
        const struct silent_holder *holder = LIST_ELEMENT(at, struct silent_holder, listed);
        uint32_t slot = table_find(&core->clients.table, holder->ask.client);
        if (slot == SLOT_NONE || holder->phase != SILENT_NO_ANSWER || holder->wait_count == 0)
            continue;
        if (index-- > 0)
            continue;
        const struct client *client = client_at(core, slot);
        *ret = (struct view_silent){
            .holder = {.client = client->stored.id,
                       .name = intern_bytes(&core->names, client->stored.name),
                       .address = client_address(core, slot),
                       .seen_ns = client_last_seen_ns(client)},
            .wait_count = holder->wait_count,
            .oldest_ns = holder->oldest_ns,
            .heard_ns = client->life.seen_ns,
        };
        return true;
    }
    return false;
}

static void view_pair(const struct core *core, const struct namesake *pair,
                      struct view_namesake *ret)
{
    uint32_t slot = table_find(&core->clients.table, pair->client);
    const struct client *client = client_at(core, slot);
    struct bytes name = intern_bytes(&core->names, client->stored.name);
    uint32_t other = client_find(core, &pair->from, name);
    *ret = (struct view_namesake){
        .holder = {.client = client->stored.id,
                   .name = name,
                   .address = client_address(core, slot),
                   .seen_ns = client_last_seen_ns(client)},
        .refused = pair->from,
        .refused_seen_ns = pair->heard_wall_ns,
        .refused_count = pair->count,
    };
    if (other == SLOT_NONE)
        return;
    const struct client *there = client_at(core, other);
    ret->refused_client = there->stored.id;
    ret->is_taken = !client_may_give_way(core, other);
    if (there->life.heard_wall_ns != 0 && there->life.seen_ns >= pair->heard_ns)
        ret->refused_seen_ns = there->life.heard_wall_ns;
}

bool view_namesake(const struct core *core, uint32_t index, struct view_namesake *ret)
{
    for (uint32_t i = 0; i < NAMESAKES_MAX; i++) {
        const struct namesake *pair = namesake_at(core, i);
        if (pair == NULL || index-- > 0)
            continue;
        view_pair(core, pair, ret);
        return true;
    }
    return false;
}

/* ---- sets of files ---- */

bool view_file_set(const struct core *core, uint32_t index, struct view_file_set *ret)
{
    if (index >= core->limits.file_set_count)
        return false;
    *ret = (struct view_file_set){.name = core->limits.file_sets[index].name,
                                  .prefix = core->limits.file_sets[index].prefix,
                                  .lock_count = core->locks.file_set_counts[index]};
    return true;
}

bool view_find_file_set(const struct core *core, struct bytes name, uint32_t *ret)
{
    for (uint32_t i = 0; i < core->limits.file_set_count; i++) {
        if (bytes_equal(core->limits.file_sets[i].name, name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}
