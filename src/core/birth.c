/*
 * birth.c -- everything a core will ever need, reserved at once; what may change later; and given
 * back.
 *
 * Tables are as large as the limits, or as what is stored when that is more: what was stored must
 * be loaded whatever the limits are now. The address space is reserved and touched on use, so large
 * limits cost nothing until they are needed.
 *
 * The table of locks has a reserve beyond --max-locks that only rests split off by UNLOCK and by a
 * change of mode may use: an UNLOCK has no way to fail (R-RNG-5). With a shared store there is as
 * much again as is stored: an offer of which an echo must stay is given to its owner beside it.
 */
#include "base/check.h"
#include "core/parts.h"
#include "core/state.h"

#include <stdlib.h>

enum {
    /* Arena cells per stored record, at most: an address costs 32 bytes, a name or oh 1,024. */
    REGISTRANT_BYTES_MAX = 32 + 3 * RECORD_NAME_MAX + 64 * RECORD_HOSTS_MAX,
    NOTICE_BYTES_MAX = 2 * RECORD_NAME_MAX,
    CLIENT_BYTES_MAX = 32 + 2 * RECORD_NAME_MAX,
    LOCK_BYTES_MAX = RECORD_FH_MAX + RECORD_NAME_MAX,
    WAITER_BYTES_MAX = RECORD_FH_MAX + 2 * RECORD_NAME_MAX,
    TRACKED_BYTES_MAX = 32 + RECORD_BYTES_MAX + RECORD_NAME_MAX,
    /* Each of the arena's eight cell sizes may leave one 64 KiB block nearly empty: what fits by
     * its bytes must fit also then, or a restart could not load what was stored. */
    SPARE_BYTES = 8 * 64 * 1024,
    SPLIT_RESERVE_MIN = 4096,
};

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static int reserve_batch(struct core *core, const uint32_t slots_max[RECORD_KIND_END])
{
    uint64_t puts_max = (uint64_t)core->limits.batch_puts_max + CORE_PUTS_PER_REQUEST_MAX;
    uint64_t len = puts_max * (RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD);
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        len += (uint64_t)slots_max[kind] * BATCH_CHANGE_OVERHEAD;
    core->batch_memory = calloc(1, len);
    core->batch_memory_len = len;
    return core->batch_memory == NULL ? -1 : 0;
}

static void size_tables(const struct core_limits *limits, uint32_t slots_max[RECORD_KIND_END])
{
    const uint32_t *used = limits->slots_used;
    uint32_t locks = max_u32(limits->locks_max, used[RECORD_LOCK]);
    slots_max[RECORD_REGISTRANT] = max_u32(limits->clients_max, used[RECORD_REGISTRANT]);
    slots_max[RECORD_NOTICE] = max_u32(slots_max[RECORD_REGISTRANT], used[RECORD_NOTICE]);
    if (limits->is_monitor)
        return; /* no other table has an element */
    slots_max[RECORD_CLIENT] = max_u32(limits->clients_max, used[RECORD_CLIENT]);
    slots_max[RECORD_LOCK] = locks + max_u32(locks / 4, SPLIT_RESERVE_MIN);
    if (lease_is_shared(limits->lease) &&
        slots_max[RECORD_LOCK] + used[RECORD_LOCK] <= RECORD_SLOT_MAX)
        slots_max[RECORD_LOCK] += used[RECORD_LOCK];
    slots_max[RECORD_WAITER] = max_u32(limits->waiters_max, used[RECORD_WAITER]);
    slots_max[RECORD_SHARE] = max_u32(limits->locks_max, used[RECORD_SHARE]);
    slots_max[RECORD_TRACKED] = max_u32(limits->clients_max, used[RECORD_TRACKED]);
}

static uint64_t stored_bytes(const uint32_t used[RECORD_KIND_END])
{
    return (uint64_t)used[RECORD_REGISTRANT] * REGISTRANT_BYTES_MAX +
           (uint64_t)used[RECORD_NOTICE] * NOTICE_BYTES_MAX +
           (uint64_t)used[RECORD_CLIENT] * CLIENT_BYTES_MAX +
           ((uint64_t)used[RECORD_LOCK] + used[RECORD_SHARE]) * LOCK_BYTES_MAX +
           (uint64_t)used[RECORD_WAITER] * WAITER_BYTES_MAX +
           (uint64_t)used[RECORD_TRACKED] * TRACKED_BYTES_MAX;
}

static int reserve(struct core *core, const uint32_t slots_max[RECORD_KIND_END])
{
    uint32_t registrants = slots_max[RECORD_REGISTRANT];
    uint32_t folds = registrants + slots_max[RECORD_NOTICE] + slots_max[RECORD_CLIENT];
    uint32_t names = folds + registrants + slots_max[RECORD_WAITER] + PROBE_MAX + HEARSAY_MAX;
    names += slots_max[RECORD_TRACKED];
    names += core->limits.has_callout ? 2 * CALLOUT_MAX : 0;
    int err = intern_init(&core->folds, core->arena, folds, core->seed);
    if (err == 0)
        err = intern_init(&core->names, core->arena, names, core->seed);
    if (err == 0)
        err = parts_init(core, slots_max);
    if (err == 0)
        err = dirty_init(&core->dirty, slots_max);
    return err == 0 ? reserve_batch(core, slots_max) : err;
}

struct core *core_new(const struct core_limits *limits, uint64_t seed)
{
    struct core *core = calloc(1, sizeof *core);
    if (core == NULL)
        return NULL;
    core->limits = *limits;
    core->seed = seed;
    core->has_room = true;
    for (enum asker asker = 0; asker < ASKER_END; asker++)
        list_init(&core->asks[asker]);
    /* What is added up above then fits into 32 bits, and a slot into 24 (core_call_id). */
    CHECK(limits->clients_max <= RECORD_SLOT_MAX && limits->waiters_max <= RECORD_SLOT_MAX);
    CHECK(limits->locks_max <= RECORD_SLOT_MAX);
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        CHECK(limits->slots_used[kind] <= RECORD_SLOT_MAX);
    CHECK(limits->file_set_count >= 1 && limits->file_set_count <= FILE_SETS_MAX);

    uint32_t slots_max[RECORD_KIND_END] = {0};
    size_tables(limits, slots_max);
    core->arena = arena_new(limits->bytes_max + stored_bytes(limits->slots_used) + SPARE_BYTES);
    if (core->arena == NULL || reserve(core, slots_max) != 0) {
        core_free(core);
        return NULL;
    }
    return core;
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    parts_done(core);
    intern_done(&core->names);
    intern_done(&core->folds);
    dirty_done(&core->dirty);
    arena_free(core->arena);
    free(core->batch_memory);
    free(core);
}

void core_change(struct core *core, const struct core_changes *changes)
{
    struct core_limits *limits = &core->limits;
    CHECK(changes->locks_per_client_max >= limits->locks_per_client_max);
    CHECK(changes->per_address_percent >= limits->per_address_percent);
    CHECK(changes->name_count <= CORE_NAMES_MAX);
    limits->locks_per_client_max = changes->locks_per_client_max;
    limits->per_address_percent = changes->per_address_percent;
    limits->server_name = changes->server_name;
    limits->names = changes->names;
    limits->name_count = changes->name_count;
    quota_grown(core);
}
