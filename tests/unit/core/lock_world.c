/*
 * lock_world.c -- see lock_world.h.
 */
#include "lock_world.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct lock_world_log lock_world_log;

const struct core_limits lock_world_limits = {
    .locks_max = 1000000,
    .locks_per_client_max = 1000000,
    .bytes_max = 1024 * 1024,
    .batch_puts_max = 1000000,
    .file_set_count = 1,
};

void lock_world_forget(void)
{
    lock_world_log = (struct lock_world_log){0};
}

bool lock_world_was_changed(uint32_t slot)
{
    CHECK(lock_world_log.changed_count <= 1024);
    for (uint32_t i = 0; i < lock_world_log.changed_count; i++)
        if (lock_world_log.changed[i] == slot)
            return true;
    return false;
}

bool lock_world_was_lost(uint32_t waiter)
{
    for (uint32_t i = 0; i < lock_world_log.lost_count; i++)
        if (lock_world_log.lost[i] == waiter)
            return true;
    return false;
}

/* ---- what the lock table calls ---- */

struct client *client_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->clients.table, slot);
}

void client_counts_changed(struct core *core, uint32_t slot)
{
    CHECK(table_is_live(&core->clients.table, slot));
    lock_world_log.settled_count++;
}

bool client_is_newer_state(uint32_t state, uint32_t than)
{
    return state != 0 && (than == 0 || (int32_t)(state - than) > 0);
}

void waiter_wake_lock_changed(struct core *core, uint32_t lock)
{
    CHECK(table_is_live(&core->locks.table, lock)); /* the promise of lock_element.c */
    if (lock_world_log.changed_count < 1024)
        lock_world_log.changed[lock_world_log.changed_count] = lock;
    lock_world_log.changed_count++;
}

void waiter_wake_owner_holds(struct core *core, uint32_t owner)
{
    CHECK(owner_at(core, owner)->lock_count == 1);
    if (lock_world_log.holds_count < 64)
        lock_world_log.holds[lock_world_log.holds_count] = owner;
    lock_world_log.holds_count++;
}

/* No program locks anything. */
void mirror_open(struct core *core, uint32_t file)
{
    (void)core;
    (void)file;
}

void mirror_close(struct core *core, uint32_t file)
{
    (void)core;
    (void)file;
}

void mirror_loosen(struct core *core, const struct claim *claim)
{
    (void)core;
    (void)claim;
}

void grant_lost(struct core *core, uint32_t waiter)
{
    (void)core;
    CHECK(lock_world_log.lost_count < LOCK_WORLD_LOST_MAX);
    lock_world_log.lost[lock_world_log.lost_count++] = waiter;
}

void recover_refuse(struct core *core, enum record_kind kind, uint32_t slot)
{
    (void)core;
    CHECK(kind == RECORD_LOCK);
    CHECK(lock_world_log.refused_count < LOCK_WORLD_LOST_MAX);
    lock_world_log.refused[lock_world_log.refused_count++] = slot;
}

bool core_is_full(const struct core *core)
{
    (void)core;
    return false;
}

/* ---- the world ---- */

struct core *lock_world_new(uint32_t clients, uint32_t slots_max, const struct core_limits *limits)
{
    struct core *core = calloc(1, sizeof *core);
    CHECK(core != NULL);
    core->limits = *limits;
    core->seed = 42;
    core->has_room = true;
    core->arena = arena_new(limits->bytes_max);
    CHECK(core->arena != NULL);
    CHECK(table_init(&core->clients.table, clients, sizeof(struct client)) == 0);
    const uint32_t slots[RECORD_KIND_END] = {
        [RECORD_CLIENT] = clients, [RECORD_LOCK] = slots_max, [RECORD_WAITER] = 1};
    CHECK(quota_init(core, slots) == 0);
    CHECK(dirty_init(&core->dirty, slots) == 0);
    CHECK(owner_init(core, slots) == 0);
    CHECK(file_init(core, slots) == 0);
    CHECK(lock_init(core, slots) == 0);
    for (uint32_t i = 0; i < clients; i++) {
        uint32_t slot = table_add(&core->clients.table);
        CHECK(slot == i);
        client_at(core, slot)->stored.id = 1000 + i;
        client_at(core, slot)->stored.incarnation = 1;
        client_at(core, slot)->quota = quota_keep(core, &(struct address){0});
    }
    lock_world_forget();
    return core;
}

void lock_world_free(struct core *core)
{
    quota_done(core);
    lock_done(core);
    file_done(core);
    owner_done(core);
    dirty_done(&core->dirty);
    table_done(&core->clients.table);
    arena_free(core->arena);
    free(core);
}

struct bytes lock_world_handle(uint32_t file)
{
    static const char *const handles[LOCK_WORLD_FILES_MAX] = {"file-0", "file-1", "file-2",
                                                              "file-3"};
    CHECK(file < LOCK_WORLD_FILES_MAX);
    return bytes_of_text(handles[file]);
}

uint32_t lock_world_owner(const struct core *core, struct who who)
{
    return owner_find(core, who.client, who.svid);
}

uint32_t lock_world_file(const struct core *core, uint32_t file)
{
    return file_find(core, lock_world_handle(file));
}

struct claim lock_world_claim(const struct core *core, struct who who, uint64_t start, uint64_t end,
                              bool exclusive)
{
    return (struct claim){.start = start,
                          .end = end,
                          .owner = lock_world_owner(core, who),
                          .file = lock_world_file(core, who.file),
                          .exclusive = exclusive};
}

struct lock_want lock_world_want(uint64_t start, uint64_t end, bool exclusive)
{
    return (struct lock_want){
        .claim = {.start = start, .end = end, .exclusive = exclusive},
        .len = end == UINT64_MAX ? 0 : end - start + 1,
        .state = 1,
        .oh = bytes_of_text("oh"),
        .wall_ns = 1,
    };
}

static void prepare(struct core *core, struct who who, struct lock_want *want)
{
    want->claim.owner = owner_add(core, who.client, who.svid);
    want->claim.file = file_add(core, lock_world_handle(who.file));
    CHECK(want->claim.file != SLOT_NONE);
    want->asked = ++core->locks.serial;
}

static void put_away(struct core *core, const struct lock_want *want)
{
    owner_release(core, want->claim.owner);
    file_release(core, want->claim.file);
}

bool lock_world_carry_out(struct core *core, struct who who, struct lock_want *want)
{
    prepare(core, who, want);
    bool is_taken = lock_take(core, want);
    put_away(core, want);
    return is_taken;
}

bool lock_world_take(struct core *core, struct who who, uint64_t start, uint64_t end,
                     bool exclusive)
{
    struct lock_want want = lock_world_want(start, end, exclusive);
    return lock_world_carry_out(core, who, &want);
}

uint32_t lock_world_offer(struct core *core, struct who who, struct lock_want *want,
                          uint32_t waiter)
{
    prepare(core, who, want);
    uint32_t slot = lock_offer_make(core, want, waiter);
    put_away(core, want);
    return slot;
}

bool lock_world_release(struct core *core, struct who who, uint64_t start, uint64_t end)
{
    struct claim claim = lock_world_claim(core, who, start, end, false);
    return claim.owner == SLOT_NONE || claim.file == SLOT_NONE || lock_release(core, &claim);
}

uint32_t lock_world_obstacle(const struct core *core, struct who who, uint64_t start, uint64_t end,
                             bool exclusive)
{
    struct claim claim = lock_world_claim(core, who, start, end, exclusive);
    return claim.file == SLOT_NONE ? SLOT_NONE : lock_find_conflict(core, &claim);
}

const char *lock_world_held(const struct core *core, struct who who)
{
    static char text[1024];
    size_t len = 0;
    text[0] = '\0';
    uint32_t file = lock_world_file(core, who.file), owner = lock_world_owner(core, who);
    if (file == SLOT_NONE || owner == SLOT_NONE)
        return text;
    const struct spans *spans = &core->locks.by_start;
    for (uint32_t slot = span_first(spans, file_at(core, file)->locks); slot != SLOT_NONE;
         slot = span_next(spans, file_at(core, file)->locks, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->claim.owner != owner || (lock->flags & RECORD_LOCK_OFFER))
            continue;
        char end[24] = "end";
        if (lock->claim.end != UINT64_MAX)
            (void)snprintf(end, sizeof end, "%" PRIu64, lock->claim.end);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%c %" PRIu64 "-%s",
                                len == 0 ? "" : ", ", lock->claim.exclusive ? 'x' : 's',
                                lock->claim.start, end);
        CHECK(len < sizeof text);
    }
    return text;
}

void lock_world_check(const struct core *core)
{
    lock_check(core);
    owner_check(core);
    file_check(core);
}
