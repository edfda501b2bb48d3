/*
 * waiter.c -- the queue of blocked requests; see waiter.h.
 *
 * Always true between steps, and asserted by waiter_check():
 *  (1) Only QUEUED waiters are in the tree of their file (waiter_queue.c), and they are woken or
 *      wait on what conflicts with them (waiter_wake.c).
 *  (2) There is at most one waiter per (owner, file, offset, len), in whatever phase (R-BLK-9).
 */
#include "core/waiter.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/state.h"

#define PLACE_NS (5 * SECOND_NS) /* R-BLK-12 */

int waiter_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_WAITER];
    struct waiters *all = &core->waiters;
    list_init(&all->places);
    int err = table_init_linked(&all->table, slots_max, sizeof(struct waiter));
    if (err == 0)
        err = hash_index_init_in(&all->by_key, &all->table);
    if (err == 0)
        err = waiter_own_init(core, slots_max);
    if (err == 0)
        err = chains_init(&all->by_client, core->clients.table.max, slots_max);
    if (err == 0)
        err = waiter_queue_init(core, slots_max);
    if (err == 0)
        err = waiter_wake_init(core, slots_max, slots[RECORD_LOCK]);
    if (err == 0)
        err = timers_init(&all->timers, slots_max);
    return err;
}

void waiter_done(struct core *core)
{
    struct waiters *all = &core->waiters;
    table_done(&all->table);
    hash_index_done(&all->by_key);
    waiter_own_done(core);
    chains_done(&all->by_client);
    waiter_queue_done(core);
    waiter_wake_done(core);
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

static uint64_t key_hash(const struct core *core, const struct claim *claim, uint64_t len)
{
    uint64_t hash = hash_number(core->seed, (uint64_t)claim->owner << 32 | claim->file);
    return hash_number(hash_number(hash, claim->start), len);
}

uint32_t waiter_find(const struct core *core, const struct claim *claim, uint64_t len)
{
    const struct hash_index *by_key = &core->waiters.by_key;
    uint64_t hash = key_hash(core, claim, len);
    uint32_t slot = hash_index_first(by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(by_key, slot)) {
        const struct waiter *w = waiter_at(core, slot);
        if (w->claim.owner == claim->owner && w->claim.file == claim->file &&
            w->claim.start == claim->start && w->len == len)
            return slot;
    }
    return SLOT_NONE;
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
    if (waiter_at(core, slot)->phase != WAITER_QUEUED)
        return;
    waiter_wake_forget(core, slot);
    waiter_queue_remove(core, slot);
}

void waiter_offered(struct core *core, uint32_t slot, uint32_t lock)
{
    leave_queue(core, slot);
    grant_begin(core, slot, lock);
    mark_changed(core, slot);
}

/* ---- coming and going ---- */

void waiter_be_patient(struct core *core, uint32_t slot)
{
    waiter_at(core, slot)->heard_ns = core->now_ns;
    timers_set(&core->waiters.timers, slot, core->now_ns + WAITER_PATIENCE_NS);
}

void waiter_enter_queue(struct core *core, uint32_t slot)
{
    waiter_set_phase(core, slot, WAITER_QUEUED);
    waiter_queue_add(core, slot);
    waiter_be_patient(core, slot);
    waiter_wake_up(core, slot);
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
    list_init(&waiter_at(core, slot)->on_program);
    hash_index_add(&all->by_key, key_hash(core, &content->claim, content->len), slot);
    waiter_own_add(core, slot);
    chains_add(&all->by_client, client, slot);
    file_keep(core, content->claim.file);
    owner_at(core, content->claim.owner)->waiter_count++;
    client_at(core, client)->life.waiter_count++;
    quota_add(core, client_at(core, client)->quota, QUOTA_WAITER, 1);
    client_counts_changed(core, client);
}

/* One that is stored needs room like a lock (R-PER-8). */
static enum admission room_for(const struct core *core, uint32_t client)
{
    if (waiter_count(core) >= core->limits.waiters_max) {
        MARK("waiter_limit");
        return ADMIT_LIMIT;
    }
    if (!quota_admits(core, client_at(core, client)->quota, QUOTA_WAITER))
        return ADMIT_ADDRESS;
    if (core->limits.resume && !core->has_room) {
        MARK("waiter_no_room_in_the_store");
        return ADMIT_STORE;
    }
    return ADMIT_NEW;
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
        waiter_remove(core, table_slot(&all->table, oldest));
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
    if (admit_refuses(core, room_for(core, client), from, r->caller_name, QUOTA_WAITER))
        return LOCK_NO_RESOURCES;
    struct waiter fresh = {
        .order = all->next_order,
        .asked = ++core->locks.serial,
        .claim = *claim,
        .len = r->len,
        .queued_ns = core->wall_ns,
        .state = r->state != 0 ? r->state : client_at(core, client)->stored.state_seen,
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
    event_add_of_file(&core->feed, EVENT_BLOCKED, &from->address, r->caller_name,
                      client_at(core, client)->stored.id, r->fh);
    enqueue(core, slot);
    client_waits(core, client);
    return LOCK_BLOCKED;
}

void waiter_saw_state(struct core *core, uint32_t slot, uint32_t state)
{
    struct waiter *w = waiter_at(core, slot);
    uint32_t client = waiter_client(core, w);
    if (state == 0 || state == w->state)
        return;
    MARK("waiter_of_another_life");
    client_saw_state(core, client, state);
    w->state = client_stamp(client_at(core, client), state);
    w->asked = ++core->locks.serial;
    mark_changed(core, slot);
    if (waiter_is_offered(w))
        lock_offer_stamp(core, w->grant.offer, w->state, w->asked);
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
        if (admit_refuses(core, room_for(core, waiter_client(core, w)), from,
                          request->lock.caller_name, QUOTA_WAITER))
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

/* Those that waited on it look again without it. */
static void stand_aside(struct core *core, uint32_t slot)
{
    leave_queue(core, slot);
    leave_place(core, slot);
    grant_forget(core, slot);
    timers_clear(&core->waiters.timers, slot);
    waiter_wake_behind(core, slot);
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
    timers_set(&core->waiters.timers, slot, core->now_ns + WAITER_PATIENCE_NS);
    mark_changed(core, slot);
}

void waiter_remove(struct core *core, uint32_t slot)
{
    struct waiters *all = &core->waiters;
    stand_aside(core, slot);
    struct waiter w = *waiter_at(core, slot);
    CHECK(w.grant.offer == SLOT_NONE);
    uint32_t client = waiter_client(core, &w);
    hash_index_remove(&all->by_key, slot);
    waiter_own_remove(core, slot);
    chains_remove(&all->by_client, client, slot);
    table_remove(&all->table, slot);
    mark_gone(core, slot);
    release_references(core, &w);
    file_release(core, w.claim.file);
    owner_at(core, w.claim.owner)->waiter_count--;
    owner_release(core, w.claim.owner);
    client_at(core, client)->life.waiter_count--;
    quota_remove(core, client_at(core, client)->quota, QUOTA_WAITER, 1);
    client_counts_changed(core, client);
}

/* ---- invariants ---- */

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
        waiter_wake_check(core, slot);
        waiter_own_check(core, slot);
    }
    CHECK(places == all->place_count);
    grant_check(core);
}
