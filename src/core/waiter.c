/*
 * waiter.c -- the queue of blocked requests; see waiter.h.
 *
 * Always true between steps, and asserted by waiter_check():
 *  (1) A QUEUED waiter is woken, or hangs on exactly one thing that stands in its way: a lock or
 *      offer of another owner that conflicts with it, or an earlier conflicting waiter that is
 *      queued or offered. Hence a waiter whose conflict is gone is always woken (P4).
 *  (2) Only QUEUED waiters are in the tree of their file.
 *  (3) There is at most one waiter per (owner, file, offset, len), in whatever phase (R-BLK-9).
 *
 * waiter_lock_changed only moves waiters to the heap of the woken. Nothing is offered inside it:
 * the lock table may be half way through a change.
 */
#include "core/waiter.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

#define SECOND_NS   UINT64_C(1000000000)
#define PATIENCE_NS (300 * SECOND_NS) /* R-BLK-6: a queued waiter not heard of for that long goes */
#define PLACE_NS    (5 * SECOND_NS)   /* R-BLK-12 */

enum {
    WOKEN_PER_TURN = 256,
    LEAVING_PER_TURN = 1024,
    OVERDUE_PER_TURN = 256,
    LOOKED_AT_MAX = 256, /* waiters of a file, in one search for an earlier one */
};

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    const struct waiter *x = waiter_at(core, a), *y = waiter_at(core, b);
    if (x->claim.start != y->claim.start)
        return x->claim.start < y->claim.start;
    return x->order > y->order;
}

static bool is_earlier(const void *context, uint32_t a, uint32_t b)
{
    return waiter_at(context, a)->order < waiter_at(context, b)->order;
}

static struct waiter_reach join(struct waiter_reach a, const struct waiter_reach *b)
{
    if (b->first_order == UINT64_MAX)
        return a;
    if (a.first_order == UINT64_MAX)
        return *b;
    return (struct waiter_reach){
        .end = a.end > b->end ? a.end : b->end,
        .first_order = a.first_order < b->first_order ? a.first_order : b->first_order,
    };
}

static bool is_same(const struct waiter_reach *a, const struct waiter_reach *b)
{
    return a->end == b->end && a->first_order == b->first_order;
}

static bool sum_up(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    struct core *core = context;
    struct waiter *w = waiter_at(core, slot);
    struct waiter_reach any = {.end = w->claim.end, .first_order = w->order};
    struct waiter_reach exclusives =
        w->claim.exclusive ? any : (struct waiter_reach){.first_order = UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        uint32_t child = i == 0 ? left : right;
        if (child == SLOT_NONE)
            continue;
        any = join(any, &waiter_at(core, child)->any);
        exclusives = join(exclusives, &waiter_at(core, child)->exclusives);
    }
    bool is_changed = !is_same(&any, &w->any) || !is_same(&exclusives, &w->exclusives);
    w->any = any;
    w->exclusives = exclusives;
    return is_changed;
}

int waiter_init(struct core *core, uint32_t slots_max, uint32_t lock_slots_max)
{
    struct waiters *all = &core->waiters;
    list_init(&all->places);
    list_init(&all->wake_turns);
    int err = table_init(&all->table, slots_max, sizeof(struct waiter));
    if (err == 0)
        err = chains_init_hash(&all->by_key, slots_max);
    if (err == 0)
        err = chains_init(&all->behind, core->owners.table.max, slots_max);
    if (err == 0)
        err = waiter_own_init(core, slots_max);
    if (err == 0)
        err = chains_init(&all->by_client, core->clients.table.max, slots_max);
    if (err == 0)
        err = chains_init(&all->on_lock, lock_slots_max, slots_max);
    if (err == 0)
        err = chains_init(&all->on_waiter, slots_max, slots_max);
    if (err == 0)
        err = tree_init(&all->queued, slots_max, core->seed, comes_before, sum_up, core);
    if (err == 0)
        err = tree_init(&all->woken, slots_max, core->seed, is_earlier, NULL, core);
    if (err == 0)
        err = timers_init(&all->timers, slots_max);
    return err;
}

void waiter_done(struct core *core)
{
    struct waiters *all = &core->waiters;
    table_done(&all->table);
    chains_done(&all->by_key);
    chains_done(&all->behind);
    waiter_own_done(core);
    chains_done(&all->by_client);
    chains_done(&all->on_lock);
    chains_done(&all->on_waiter);
    tree_done(&all->queued);
    tree_done(&all->woken);
    timers_done(&all->timers);
}

struct waiter *waiter_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->waiters.table, slot);
}

bool waiter_is_offered(const struct waiter *waiter)
{
    return waiter->phase == WAITER_OFFERED || waiter->phase == WAITER_CALLING ||
           waiter->phase == WAITER_EXPECTING;
}

void waiter_set_phase(struct core *core, uint32_t slot, enum waiter_phase phase)
{
    static const uint8_t next[] = {
        [WAITER_NEW] = 1 << WAITER_QUEUED | 1 << WAITER_OFFERED,
        [WAITER_QUEUED] = 1 << WAITER_OFFERED | 1 << WAITER_PASSED | 1 << WAITER_PLACE,
        [WAITER_OFFERED] = 1 << WAITER_OFFERED | 1 << WAITER_CALLING | 1 << WAITER_PLACE,
        [WAITER_CALLING] =
            1 << WAITER_OFFERED | 1 << WAITER_EXPECTING | 1 << WAITER_PASSED | 1 << WAITER_PLACE,
        [WAITER_EXPECTING] = 1 << WAITER_OFFERED | 1 << WAITER_PLACE,
        [WAITER_PASSED] = 1 << WAITER_QUEUED | 1 << WAITER_PLACE,
        [WAITER_PLACE] = 1 << WAITER_QUEUED,
    };
    struct waiter *w = waiter_at(core, slot);
    CHECK(next[w->phase] & 1 << phase);
    w->phase = phase;
}

uint32_t waiter_count(const struct core *core)
{
    return core->waiters.table.count - core->waiters.place_count;
}

uint32_t waiter_client(const struct core *core, const struct waiter *waiter)
{
    return owner_at(core, waiter->claim.owner)->client;
}

uint64_t waiter_key_hash(const struct core *core, const struct claim *claim, uint64_t len)
{
    uint64_t hash = hash_mix(core->seed, (uint64_t)claim->owner << 32 | claim->file);
    return hash_mix(hash_mix(hash, claim->start), len);
}

uint32_t waiter_find(const struct core *core, const struct claim *claim, uint64_t len)
{
    const struct chains *by_key = &core->waiters.by_key;
    uint64_t hash = waiter_key_hash(core, claim, len);
    uint32_t slot = chains_first(by_key, chains_of_hash(by_key, hash));
    for (; slot != SLOT_NONE; slot = chains_next(by_key, slot)) {
        const struct waiter *w = waiter_at(core, slot);
        if (w->claim.owner == claim->owner && w->claim.file == claim->file &&
            w->claim.start == claim->start && w->len == len)
            return slot;
    }
    return SLOT_NONE;
}

/* What a search among the queued waiters of a file is for. */
struct search {
    const struct claim *claim;
    uint64_t order;
    uint32_t left; /* how many waiters may still be looked at */
};

/*
 * The first in the order of the tree, which of equal ranges is the latest. The depth of a treap
 * bounds the recursion. Where short early requests and long late ones are mixed the sums leave
 * nothing out, so the search has an end of its own: beyond it the order of the queue is not looked
 * at, which costs fairness and nothing else.
 */
static uint32_t find_below(const struct core *core, uint32_t slot, struct search *search)
{
    const struct tree *tree = &core->waiters.queued;
    const struct claim *claim = search->claim;
    while (slot != SLOT_NONE && search->left > 0) {
        search->left--;
        const struct waiter *w = waiter_at(core, slot);
        const struct waiter_reach *reach = claim->exclusive ? &w->any : &w->exclusives;
        if (reach->first_order >= search->order || reach->end < claim->start)
            return SLOT_NONE;
        uint32_t found = find_below(core, tree_left(tree, slot), search);
        if (found != SLOT_NONE)
            return found;
        if (w->order < search->order && claim_conflicts(&w->claim, claim))
            return slot;
        slot = w->claim.start <= claim->end ? tree_right(tree, slot) : SLOT_NONE;
    }
    return SLOT_NONE;
}

uint32_t waiter_find_earlier(const struct core *core, const struct claim *claim, uint64_t order)
{
    struct search search = {claim, order, LOOKED_AT_MAX};
    return find_below(core, tree_top(file_at(core, claim->file)->waiters), &search);
}

/* Waiters outlive a run only where a run is resumed (R-BLK-14, D12). */
static void mark_changed(struct core *core, uint32_t slot)
{
    if (core->limits.resume)
        dirty_put(&core->dirty, RECORD_WAITER, slot);
}

static void mark_gone(struct core *core, uint32_t slot)
{
    if (core->limits.resume)
        dirty_delete(&core->dirty, RECORD_WAITER, slot);
}

/* ---- hanging and waking ---- */

static void unhang(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->hangs_on != SLOT_NONE && w->on_waiter)
        chains_remove(&core->waiters.behind, w->claim.owner, slot);
    if (w->hangs_on != SLOT_NONE)
        chains_remove(w->on_waiter ? &core->waiters.on_waiter : &core->waiters.on_lock, w->hangs_on,
                      slot);
    w->hangs_on = SLOT_NONE;
}

static void hang(struct core *core, uint32_t slot, bool on_waiter, uint32_t thing)
{
    struct waiter *w = waiter_at(core, slot);
    CHECK(w->hangs_on == SLOT_NONE);
    w->on_waiter = on_waiter;
    w->hangs_on = thing;
    chains_add(on_waiter ? &core->waiters.on_waiter : &core->waiters.on_lock, thing, slot);
    if (on_waiter)
        chains_add(&core->waiters.behind, w->claim.owner, slot);
}

static struct quota *quota_of(const struct core *core, const struct waiter *w)
{
    return quota_at(core, client_at(core, waiter_client(core, w))->quota);
}

/* Whose turn it is when this file has its own: its first one's address. */
static void rank_file(struct core *core, struct file *file)
{
    list_remove(&file->wake_turn);
    uint32_t first = tree_first(&core->waiters.woken, file->woken);
    if (first == SLOT_NONE)
        return;
    struct quota *quota = quota_of(core, waiter_at(core, first));
    list_append(&quota->woken_files, &file->wake_turn);
    if (list_is_empty(&quota->wake_turn))
        list_append(&core->waiters.wake_turns, &quota->wake_turn);
}

static void join_woken(struct core *core, uint32_t slot)
{
    struct file *file = file_at(core, waiter_at(core, slot)->claim.file);
    tree_add(&core->waiters.woken, &file->woken, slot);
    waiter_at(core, slot)->is_woken = true;
    if (tree_first(&core->waiters.woken, file->woken) == slot)
        rank_file(core, file);
}

static void leave_woken(struct core *core, uint32_t slot)
{
    struct file *file = file_at(core, waiter_at(core, slot)->claim.file);
    bool was_first = tree_first(&core->waiters.woken, file->woken) == slot;
    tree_remove(&core->waiters.woken, &file->woken, slot);
    waiter_at(core, slot)->is_woken = false;
    if (was_first)
        rank_file(core, file);
}

static void wake(struct core *core, uint32_t slot)
{
    unhang(core, slot);
    if (!waiter_at(core, slot)->is_woken)
        join_woken(core, slot);
}

/* The next one to be looked at; SLOT_NONE: none. */
static uint32_t take_woken(struct core *core)
{
    struct list *turns = &core->waiters.wake_turns;
    while (!list_is_empty(turns)) {
        struct quota *quota = LIST_ELEMENT(turns->next, struct quota, wake_turn);
        list_remove(&quota->wake_turn);
        if (list_is_empty(&quota->woken_files))
            continue;
        list_append(turns, &quota->wake_turn);
        struct file *file = LIST_ELEMENT(quota->woken_files.next, struct file, wake_turn);
        uint32_t slot = tree_first(&core->waiters.woken, file->woken);
        leave_woken(core, slot);
        return slot;
    }
    return SLOT_NONE;
}

void waiter_moved(struct core *core, uint32_t client)
{
    const struct chains *by_client = &core->waiters.by_client;
    uint32_t slot = chains_first(by_client, client);
    for (; slot != SLOT_NONE; slot = chains_next(by_client, slot))
        if (waiter_at(core, slot)->is_woken)
            rank_file(core, file_at(core, waiter_at(core, slot)->claim.file));
}

static void wake_chain(struct core *core, const struct chains *chains, uint32_t chain)
{
    uint32_t slot;
    while ((slot = chains_first(chains, chain)) != SLOT_NONE)
        wake(core, slot);
}

void waiter_lock_changed(struct core *core, uint32_t lock)
{
    wake_chain(core, &core->waiters.on_lock, lock);
}

void waiter_owner_holds(struct core *core, uint32_t owner)
{
    struct owner *at = owner_at(core, owner);
    if (chains_first(&core->waiters.behind, owner) != SLOT_NONE && list_is_empty(&at->leaving))
        list_append(&core->owners.leaving, &at->leaving);
}

/* Those who need not wait behind waiters any more look again, a bounded number of them. */
static void leave_queue_order(struct core *core)
{
    struct list *leaving = &core->owners.leaving;
    const struct owner *first = (const void *)core->owners.table.elements;
    for (uint32_t left = LEAVING_PER_TURN; left > 0 && !list_is_empty(leaving); left--) {
        struct owner *owner = LIST_ELEMENT(leaving->next, struct owner, leaving);
        uint32_t slot = chains_first(&core->waiters.behind, (uint32_t)(owner - first));
        if (slot == SLOT_NONE || owner->lock_count == 0) {
            list_remove(&owner->leaving);
            continue;
        }
        MARK("waiter_leaves_queue_order");
        wake(core, slot);
    }
}

static uint32_t slot_of(const struct core *core, const struct waiter *w)
{
    return (uint32_t)(w - (const struct waiter *)(const void *)core->waiters.table.elements);
}

static void leave_place(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->phase != WAITER_PLACE)
        return;
    list_remove(&w->place);
    core->waiters.place_count--;
    quota_add(core, client_at(core, waiter_client(core, w))->quota, QUOTA_WAITER, 1);
}

static void leave_queue(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->phase != WAITER_QUEUED)
        return;
    unhang(core, slot);
    if (w->is_woken)
        leave_woken(core, slot);
    tree_remove(&core->waiters.queued, &file_at(core, w->claim.file)->waiters, slot);
    owner_at(core, w->claim.owner)->queued_count--;
    owner_note(core, w->claim.owner);
}

static void offer(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    struct lock_want want = {
        .claim = w->claim,
        .len = w->len,
        .state = w->state,
        .oh = intern_bytes(&core->locks.ohs, w->oh),
        .wall_ns = core->wall_ns,
    };
    uint32_t lock = SLOT_NONE;
    if (lock_room(core, waiter_client(core, w)) == LOCK_ROOM)
        lock = lock_offer(core, &want, slot);
    if (lock == SLOT_NONE) {
        MARK("waiter_no_room_for_offer");
        waiter_pass(core, slot); /* its own poll is told why */
        return;
    }
    leave_queue(core, slot);
    grant_begin(core, slot, lock);
    mark_changed(core, slot);
}

/* Is something still in the way? Then it hangs on that; else it gets its offer. */
static void look_again(struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    uint32_t thing = SLOT_NONE;
    if (owner_at(core, w->claim.owner)->lock_count == 0)
        thing = waiter_find_earlier(core, &w->claim, w->order);
    if (thing != SLOT_NONE) {
        MARK("waiter_behind_waiter");
        hang(core, slot, true, thing);
        return;
    }
    thing = lock_find_conflict(core, &w->claim);
    if (thing != SLOT_NONE)
        hang(core, slot, false, thing);
    else
        offer(core, slot);
}

/* ---- coming and going ---- */

void waiter_be_patient(struct core *core, uint32_t slot)
{
    waiter_at(core, slot)->heard_ns = core->now_ns;
    timers_set(&core->waiters.timers, slot, core->now_ns + PATIENCE_NS);
}

void waiter_enter_queue(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    waiter_set_phase(core, slot, WAITER_QUEUED);
    tree_add(&core->waiters.queued, &file_at(core, w->claim.file)->waiters, slot);
    owner_at(core, w->claim.owner)->queued_count++;
    owner_note(core, w->claim.owner);
    waiter_be_patient(core, slot);
    wake(core, slot);
}

/* The same for one that is not stored like that. */
static void enqueue(struct core *core, uint32_t slot)
{
    waiter_enter_queue(core, slot);
    mark_changed(core, slot);
}

static void release_references(struct core *core, const struct waiter *w)
{
    if (w->oh != SLOT_NONE)
        (void)intern_release(&core->locks.ohs, w->oh);
    if (w->caller_name != SLOT_NONE)
        (void)intern_release(&core->names, w->caller_name);
}

/* The way back, and what a callback says beside the lock itself. */
static void remember_way(struct waiter *w, const struct peer *from, const struct request *request)
{
    bool has_cookie = request->lock.is_message && request->cookie.len == 8;
    w->local = from->local;
    w->transport = from->transport;
    w->version = request->lock.version;
    w->is_message = request->lock.is_message;
    w->client_cookie = has_cookie ? load_be64(request->cookie.at) : 0;
}

void waiter_link(struct core *core, uint32_t slot, const struct waiter *content)
{
    struct waiters *all = &core->waiters;
    uint32_t client = waiter_client(core, content);
    *waiter_at(core, slot) = *content;
    list_init(&waiter_at(core, slot)->grant.queue);
    list_init(&waiter_at(core, slot)->place);
    chains_add(&all->by_key, chains_of_hash(&all->by_key, content->key_hash), slot);
    waiter_own_add(core, slot);
    chains_add(&all->by_client, client, slot);
    file_keep(core, content->claim.file);
    owner_at(core, content->claim.owner)->waiter_count++;
    client_at(core, client)->waiter_count++;
    quota_add(core, client_at(core, client)->quota, QUOTA_WAITER, 1);
    client_settle(core, client);
}

/* May one more wait? One that is stored needs room like a lock (R-PER-8). The reason is reported
 * when it may not. */
static bool may_wait(struct core *core, uint32_t client, const struct peer *from,
                     const struct lock_request *r)
{
    if (waiter_count(core) >= core->limits.waiters_max) {
        MARK("waiter_limit");
        event_add(&core->events, EVENT_WAITER_LIMIT, &from->address, r->caller_name,
                  core->limits.waiters_max);
        return false;
    }
    if (!quota_admits(core, client_at(core, client)->quota, QUOTA_WAITER)) {
        quota_refused(core, &from->address, r->caller_name, QUOTA_WAITER);
        return false;
    }
    if (core->limits.resume && !core->has_room) {
        MARK("waiter_no_room_in_the_store");
        event_add(&core->events, EVENT_NO_ROOM, &from->address, r->caller_name, 0);
        return false;
    }
    return true;
}

/* A slot for one of this owner who may wait. Where those who only keep a place have taken all of
 * them, the one that has kept it longest goes. */
static uint32_t take_slot(struct core *core, uint32_t owner)
{
    struct waiters *all = &core->waiters;
    if (all->table.count == all->table.max) {
        MARK("waiter_place_is_needed");
        const struct waiter *oldest = LIST_ELEMENT(all->places.next, struct waiter, place);
        owner_at(core, owner)->waiter_count++; /* it may be its own, and all that it has */
        waiter_remove(core, slot_of(core, oldest));
        owner_at(core, owner)->waiter_count--;
    }
    uint32_t slot = table_add(&all->table);
    CHECK(slot != SLOT_NONE); /* there are at least waiters_max */
    return slot;
}

enum lock_status waiter_add(struct core *core, const struct claim *claim, const struct peer *from,
                            const struct request *request)
{
    struct waiters *all = &core->waiters;
    const struct lock_request *r = &request->lock;
    uint32_t client = owner_at(core, claim->owner)->client;
    if (!may_wait(core, client, from, r))
        return LOCK_NO_RESOURCES;
    struct waiter fresh = {
        .order = all->next_order,
        .claim = *claim,
        .len = r->len,
        .queued_ns = core->wall_ns,
        .key_hash = waiter_key_hash(core, claim, r->len),
        .state = r->state != 0 ? r->state : client_at(core, client)->state_seen,
        .hangs_on = SLOT_NONE,
        .grant = {.offer = SLOT_NONE, .callback = SLOT_NONE},
    };
    fresh.oh = intern_add(&core->locks.ohs, r->oh);
    fresh.caller_name = intern_add(&core->names, r->caller_name);
    if (fresh.oh == SLOT_NONE || fresh.caller_name == SLOT_NONE) {
        release_references(core, &fresh);
        event_add(&core->events, EVENT_NO_BYTES, &from->address, r->caller_name,
                  core->limits.bytes_max);
        return LOCK_NO_RESOURCES;
    }
    remember_way(&fresh, from, request);
    uint32_t slot = take_slot(core, claim->owner);
    all->next_order++;
    waiter_link(core, slot, &fresh);
    event_add(&core->feed, EVENT_BLOCKED, &from->address, r->caller_name,
              client_at(core, client)->id);
    enqueue(core, slot);
    client_waits(core, client);
    return LOCK_BLOCKED;
}

enum lock_status waiter_heard(struct core *core, uint32_t slot, const struct peer *from,
                              const struct request *request)
{
    struct waiter *w = waiter_at(core, slot);
    switch (w->phase) {
    case WAITER_QUEUED:
        MARK("waiter_polled");
        waiter_be_patient(core, slot);
        return LOCK_BLOCKED;
    case WAITER_PLACE:
        if (!may_wait(core, waiter_client(core, w), from, &request->lock))
            return LOCK_NO_RESOURCES;
        MARK("waiter_takes_its_place_again");
        leave_place(core, slot);
        remember_way(w, from, request); /* it is a new request, with a new cookie */
        enqueue(core, slot);
        return LOCK_BLOCKED;
    case WAITER_PASSED:
        MARK("waiter_passed_over_polls");
        remember_way(w, from, request); /* the way it was not reached by need not be its only one */
        enqueue(core, slot);
        return LOCK_BLOCKED;
    case WAITER_OFFERED:
    case WAITER_CALLING:
    case WAITER_EXPECTING:
        w->heard_ns = core->now_ns;
        return LOCK_BLOCKED;
    case WAITER_NEW:
        break;
    }
    UNREACHABLE();
}

/* Those who hung on it look at the world without it. */
static void stand_aside(struct core *core, uint32_t slot)
{
    leave_queue(core, slot);
    leave_place(core, slot);
    grant_forget(core, slot);
    timers_clear(&core->waiters.timers, slot);
    wake_chain(core, &core->waiters.on_waiter, slot);
}

void waiter_keep_place(struct core *core, uint32_t slot, uint64_t untold_ns)
{
    stand_aside(core, slot);
    waiter_set_phase(core, slot, WAITER_PLACE);
    waiter_own_touch(core, slot);
    list_append(&core->waiters.places, &waiter_at(core, slot)->place);
    core->waiters.place_count++;
    quota_remove(core, client_at(core, waiter_client(core, waiter_at(core, slot)))->quota,
                 QUOTA_WAITER, 1);
    timers_set(&core->waiters.timers, slot, core->now_ns + PLACE_NS + untold_ns);
    mark_gone(core, slot);
}

void waiter_pass(struct core *core, uint32_t slot)
{
    stand_aside(core, slot);
    waiter_set_phase(core, slot, WAITER_PASSED);
    waiter_own_touch(core, slot);
    timers_set(&core->waiters.timers, slot, core->now_ns + PATIENCE_NS);
    mark_changed(core, slot);
}

void waiter_remove(struct core *core, uint32_t slot)
{
    struct waiters *all = &core->waiters;
    stand_aside(core, slot);
    struct waiter w = *waiter_at(core, slot);
    CHECK(w.grant.offer == SLOT_NONE);
    uint32_t client = waiter_client(core, &w);
    chains_remove(&all->by_key, chains_of_hash(&all->by_key, w.key_hash), slot);
    waiter_own_remove(core, slot);
    chains_remove(&all->by_client, client, slot);
    table_remove(&all->table, slot);
    mark_gone(core, slot);
    release_references(core, &w);
    file_release(core, w.claim.file);
    owner_at(core, w.claim.owner)->waiter_count--;
    owner_release(core, w.claim.owner);
    client_at(core, client)->waiter_count--;
    quota_remove(core, client_at(core, client)->quota, QUOTA_WAITER, 1);
    client_settle(core, client);
}

/* ---- time ---- */

/* R-BLK-6: any call of its client counts as a word of it. Then it is looked at again later. */
static bool is_client_alive(struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    uint64_t until_ns = client_at(core, waiter_client(core, w))->seen_ns + PATIENCE_NS;
    if (until_ns <= core->now_ns)
        return false;
    timers_set(&core->waiters.timers, slot, until_ns);
    return true;
}

static void end_silent(struct core *core, uint32_t slot)
{
    MARK("waiter_silent_too_long");
    core->waiters.expired++;
    waiter_remove(core, slot);
}

static void overdue(struct core *core, uint32_t slot)
{
    switch (waiter_at(core, slot)->phase) {
    case WAITER_QUEUED:
        if (is_client_alive(core, slot))
            return;
        end_silent(core, slot);
        return;
    case WAITER_PASSED: /* only its own poll brings it back, so only that counts */
        end_silent(core, slot);
        return;
    case WAITER_PLACE:
        waiter_remove(core, slot);
        return;
    case WAITER_OFFERED:
    case WAITER_EXPECTING:
        grant_due(core, slot);
        return;
    case WAITER_NEW:
    case WAITER_CALLING:
        break;
    }
    UNREACHABLE();
}

bool waiter_work(struct core *core)
{
    struct waiters *all = &core->waiters;
    uint32_t slot;
    for (uint32_t i = 0; i < OVERDUE_PER_TURN; i++) {
        if ((slot = timers_take(&all->timers, core->now_ns)) == SLOT_NONE)
            break;
        overdue(core, slot);
    }
    leave_queue_order(core);
    for (uint32_t i = 0; i < WOKEN_PER_TURN && !core_is_full(core); i++) {
        if ((slot = take_woken(core)) == SLOT_NONE)
            break;
        look_again(core, slot);
    }
    return !list_is_empty(&all->wake_turns) || timers_next_ns(&all->timers) <= core->now_ns;
}

uint64_t waiter_deadline_ns(const struct core *core)
{
    /* A full batch lets nobody in; what is durable next brings the next turn by itself. */
    if (!list_is_empty(&core->waiters.wake_turns) && !core_is_full(core))
        return core->now_ns;
    if (!list_is_empty(&core->owners.leaving))
        return core->now_ns;
    return timers_next_ns(&core->waiters.timers);
}

/* ---- invariants ---- */

static void check_hanging(const struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    CHECK(w->is_woken == (w->phase == WAITER_QUEUED && w->hangs_on == SLOT_NONE));
    if (w->hangs_on == SLOT_NONE)
        return;
    CHECK(w->phase == WAITER_QUEUED);
    if (w->on_waiter) {
        const struct waiter *other = waiter_at(core, w->hangs_on);
        CHECK(other->phase == WAITER_QUEUED || waiter_is_offered(other));
        CHECK(other->order < w->order && claim_conflicts(&other->claim, &w->claim));
        CHECK(owner_at(core, w->claim.owner)->lock_count == 0 ||
              !list_is_empty(&owner_at(core, w->claim.owner)->leaving));
    } else {
        CHECK(claim_conflicts(&lock_at(core, w->hangs_on)->claim, &w->claim));
    }
}

void waiter_check(const struct core *core)
{
    const struct waiters *all = &core->waiters;
    table_check(&all->table);
    timers_check(&all->timers);
    uint32_t slot = table_next(&all->table, SLOT_NONE), places = 0;
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct waiter *w = waiter_at(core, slot);
        CHECK(w->phase != WAITER_NEW);
        CHECK((w->phase == WAITER_PLACE) == !list_is_empty(&w->place));
        places += w->phase == WAITER_PLACE;
        CHECK(waiter_find(core, &w->claim, w->len) == slot);
        CHECK(waiter_is_offered(w) == (w->grant.offer != SLOT_NONE));
        CHECK(w->claim.start <= w->claim.end && w->order < all->next_order);
        check_hanging(core, slot);
        waiter_own_check(core, slot);
    }
    CHECK(places == all->place_count);
    grant_check(core);
}
