/*
 * share.c -- the table of share reservations; see share.h.
 *
 * Always true; share_check() asserts (1), (3) and (4):
 *  (1) A live share is on exactly one chain of each index, the one its fields name, and no two have
 *      the same client, oh and file.
 *  (2) It holds one reference to its file and one to its oh.
 *  (3) A file's sums are how many of its shares deny and how many use reading, and writing.
 *  (4) No two shares of one file conflict, no matter whose they are.
 *  (5) Every change since the last batch is marked dirty.
 *
 * A conflict is a question about bits: is anything that the new one uses denied by another, or the
 * other way round? The sums answer it without a walk over the others (P7); what the same key holds
 * already is left out of them, because it would be replaced.
 *
 * A share of an earlier incarnation stays in the way until share_drain has freed it, as a lock
 * does, unless its own key is reserved again first: then it belongs to the present one. New shares
 * go to the front of their client's chain and the drain walks to its end, so it never meets one
 * that was added after it began; a share that is removed at the drain's position hands it on to the
 * next.
 */
#include "core/share.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/missed.h"
#include "core/state.h"

#include <errno.h>
#include <stdlib.h>

#define MODE_MAX 3u /* two bits: read, write */

enum { LOOKED_AT_MAX = 256 }; /* of one client in another one's request (P7) */

struct share *share_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->shares.table, slot);
}

int share_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_SHARE];
    struct shares *all = &core->shares;
    uint32_t files_max = core->files.handles.table.max;
    int err = table_init_linked(&all->table, slots_max, sizeof(struct share));
    if (err == 0)
        err = hash_index_init_in(&all->by_key, &all->table);
    if (err == 0)
        err = chains_init(&all->by_file, files_max, slots_max);
    if (err == 0)
        err = chains_init(&all->by_client, core->clients.table.max, slots_max);
    if (err != 0)
        return err;
    all->sums = calloc(files_max, sizeof *all->sums);
    return all->sums == NULL ? -ENOMEM : 0;
}

void share_done(struct core *core)
{
    struct shares *all = &core->shares;
    table_done(&all->table);
    hash_index_done(&all->by_key);
    chains_done(&all->by_file);
    chains_done(&all->by_client);
    free(all->sums);
    all->sums = NULL;
}

static uint64_t key_hash(const struct core *core, uint32_t client, uint32_t oh, uint32_t file)
{
    return hash_number(hash_number(core->seed, (uint64_t)client << 32 | file), oh);
}

static uint32_t find(const struct core *core, uint32_t client, struct bytes oh_bytes,
                     struct bytes fh)
{
    const struct shares *all = &core->shares;
    uint32_t file = file_find(core, fh);
    uint32_t oh = intern_find(&core->locks.ohs, oh_bytes);
    if (file == SLOT_NONE || oh == SLOT_NONE)
        return SLOT_NONE;
    uint64_t hash = key_hash(core, client, oh, file);
    uint32_t slot = hash_index_first(&all->by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&all->by_key, slot)) {
        const struct share *share = share_at(core, slot);
        if (share->client == client && share->oh == oh && share->file == file)
            return slot;
    }
    return SLOT_NONE;
}

/* ---- conflicts ---- */

static void count(struct share_sums *sums, const struct share *share, uint32_t by)
{
    for (uint32_t bit = 0; bit < 2; bit++) {
        sums->denied[bit] += share->mode >> bit & 1 ? by : 0;
        sums->used[bit] += share->access >> bit & 1 ? by : 0;
    }
}

/* `except` is a share of that file whose place would be taken, or NULL. */
static bool conflicts(const struct core *core, uint32_t file, uint32_t mode, uint32_t access,
                      const struct share *except)
{
    struct share_sums others = core->shares.sums[file];
    if (except != NULL)
        count(&others, except, UINT32_MAX); /* one less */
    for (uint32_t bit = 0; bit < 2; bit++)
        if ((access >> bit & 1 && others.denied[bit] > 0) ||
            (mode >> bit & 1 && others.used[bit] > 0))
            return true;
    return false;
}

/* ---- in and out ---- */

static void link_slot(struct core *core, uint32_t slot, const struct share *content)
{
    struct shares *all = &core->shares;
    *share_at(core, slot) = *content;
    hash_index_add(&all->by_key, key_hash(core, content->client, content->oh, content->file), slot);
    chains_add(&all->by_file, content->file, slot);
    chains_add(&all->by_client, content->client, slot);
    count(&all->sums[content->file], content, 1);
    struct client *client = client_at(core, content->client);
    client->life.share_count++;
    quota_add(core, client->quota, QUOTA_SHARE, 1);
    client->life.current_count += content->incarnation == client->stored.incarnation;
}

static void settle(struct core *core, uint32_t slot)
{
    struct share *share = share_at(core, slot);
    if (!share->is_unsettled)
        return;
    share->is_unsettled = false;
    struct client *client = client_at(core, share->client);
    missed_less(core, client, &client->recovery.unsettled_shares);
    core->grace.unsettled_shares--;
}

void share_unsettle(struct core *core, uint32_t slot)
{
    struct share *share = share_at(core, slot);
    if (share->is_unsettled)
        return;
    share->is_unsettled = true;
    struct client *client = client_at(core, share->client);
    missed_more(core, client, &client->recovery.unsettled_shares);
    core->grace.unsettled_shares++;
}

static void drop(struct core *core, uint32_t slot)
{
    struct shares *all = &core->shares;
    settle(core, slot);
    struct share share = *share_at(core, slot);
    struct client *client = client_at(core, share.client);
    if (client->life.share_drain_at == slot + 1) {
        uint32_t next = chains_next(&all->by_client, slot);
        client->life.share_drain_at = next == SLOT_NONE ? 0 : next + 1;
    }
    hash_index_remove(&all->by_key, slot);
    chains_remove(&all->by_file, share.file, slot);
    chains_remove(&all->by_client, share.client, slot);
    count(&all->sums[share.file], &share, UINT32_MAX);
    table_remove(&all->table, slot);
    dirty_delete(&core->dirty, RECORD_SHARE, slot);
    (void)intern_release(&core->locks.ohs, share.oh);
    file_release(core, share.file);
    CHECK(client->life.share_count > 0);
    client->life.share_count--;
    quota_remove(core, client->quota, QUOTA_SHARE, 1);
    client->life.current_count -= share.incarnation == client->stored.incarnation;
    client_counts_changed(core, share.client);
}

enum admission share_room(const struct core *core, uint32_t client)
{
    const struct client *of = client_at(core, client);
    if (core->shares.table.count >= core->limits.locks_max)
        return ADMIT_LIMIT;
    if (of->life.lock_count + of->life.share_count >= core->limits.locks_per_client_max)
        return ADMIT_CLIENT;
    if (!quota_admits(core, of->quota, QUOTA_SHARE))
        return ADMIT_ADDRESS;
    if (!core->has_room)
        return ADMIT_STORE;
    if (arena_used(core->arena) >= core->limits.bytes_max)
        return ADMIT_BYTES;
    return ADMIT_NEW;
}

static enum lock_status add(struct core *core, const struct lock_request *request,
                            struct share *fresh)
{
    if (share_room(core, fresh->client) != ADMIT_NEW) {
        MARK("share_limit");
        return LOCK_NO_RESOURCES;
    }
    fresh->file = file_add(core, request->fh);
    if (fresh->file == SLOT_NONE)
        return LOCK_NO_RESOURCES;
    fresh->oh = intern_add(&core->locks.ohs, request->oh);
    if (fresh->oh == SLOT_NONE) {
        file_release(core, fresh->file);
        return LOCK_NO_RESOURCES;
    }
    uint32_t slot = table_add(&core->shares.table);
    CHECK(slot != SLOT_NONE); /* the table has at least locks_max slots */
    link_slot(core, slot, fresh);
    dirty_put(&core->dirty, RECORD_SHARE, slot);
    client_counts_changed(core, fresh->client);
    return LOCK_GRANTED;
}

/* The reservation that is there becomes what is asked for now. */
static void replace(struct core *core, uint32_t slot, const struct share *fresh)
{
    settle(core, slot);
    struct share *share = share_at(core, slot);
    if (share->mode == fresh->mode && share->access == fresh->access &&
        share->state == fresh->state && share->incarnation == fresh->incarnation &&
        share->flags == fresh->flags)
        return;
    MARK("share_replaced");
    struct share_sums *sums = &core->shares.sums[share->file];
    count(sums, share, UINT32_MAX);
    share->granted_ns = fresh->granted_ns;
    share->mode = fresh->mode;
    share->access = fresh->access;
    share->state = fresh->state;
    struct client *client = client_at(core, share->client);
    client->life.current_count -= share->incarnation == client->stored.incarnation;
    client->life.current_count += fresh->incarnation == client->stored.incarnation;
    share->incarnation = fresh->incarnation;
    share->flags = fresh->flags;
    count(sums, share, 1);
    dirty_put(&core->dirty, RECORD_SHARE, slot);
}

bool share_is_denied(const struct core *core, uint32_t client, const struct lock_request *request)
{
    uint32_t file = file_find(core, request->fh);
    uint32_t slot = client == SLOT_NONE ? SLOT_NONE : find(core, client, request->oh, request->fh);
    return file != SLOT_NONE && conflicts(core, file, request->mode, request->access,
                                          slot == SLOT_NONE ? NULL : share_at(core, slot));
}

bool share_is_denied_by(const struct core *core, uint32_t client,
                        const struct lock_request *request)
{
    const struct chains *by_client = &core->shares.by_client;
    uint32_t file = file_find(core, request->fh), left = LOOKED_AT_MAX;
    uint32_t slot = file == SLOT_NONE ? SLOT_NONE : chains_first(by_client, client);
    for (; slot != SLOT_NONE && left-- > 0; slot = chains_next(by_client, slot)) {
        const struct share *share = share_at(core, slot);
        if (share->file == file && !share_is_over(core, share) &&
            ((share->mode & request->access) != 0 || (share->access & request->mode) != 0))
            return true;
    }
    return false;
}

enum lock_status share_take(struct core *core, uint32_t client, const struct lock_request *request,
                            uint64_t wall_ns)
{
    CHECK(request->mode <= MODE_MAX);
    CHECK(request->access <= MODE_MAX);
    const struct client *of = client_at(core, client);
    struct share fresh = {
        .granted_ns = wall_ns,
        .client = client,
        .mode = request->mode,
        .access = request->access,
        .state = client_stamp(of, request->state != 0 ? request->state : of->stored.state_seen),
        .incarnation = of->stored.incarnation,
        .flags = request->is_unmonitored ? RECORD_LOCK_UNMONITORED : 0,
    };
    if (share_is_denied(core, client, request))
        return LOCK_DENIED;
    uint32_t slot = find(core, client, request->oh, request->fh);
    if (slot == SLOT_NONE)
        return add(core, request, &fresh);
    replace(core, slot, &fresh);
    return LOCK_GRANTED;
}

bool share_is_over(const struct core *core, const struct share *share)
{
    return client_is_over(client_at(core, share->client), share->incarnation, share->state);
}

void share_release(struct core *core, uint32_t client, const struct lock_request *request)
{
    uint32_t slot = find(core, client, request->oh, request->fh);
    if (slot != SLOT_NONE)
        drop(core, slot);
}

bool share_matches(const struct core *core, uint32_t client, const struct lock_request *request)
{
    uint32_t slot = find(core, client, request->oh, request->fh);
    if (slot == SLOT_NONE)
        return false;
    const struct share *share = share_at(core, slot);
    return !share_is_over(core, share) && (request->mode & ~share->mode) == 0 &&
           (request->access & ~share->access) == 0;
}

uint32_t share_drop_unsettled(struct core *core, uint32_t client, uint32_t max)
{
    uint32_t next, dropped = 0;
    if (client_at(core, client)->recovery.unsettled_shares == 0)
        return 0;
    for (uint32_t slot = chains_first(&core->shares.by_client, client);
         slot != SLOT_NONE && dropped < max; slot = next) {
        next = chains_next(&core->shares.by_client, slot);
        if (!share_at(core, slot)->is_unsettled)
            continue;
        drop(core, slot);
        dropped++;
    }
    return dropped;
}

uint32_t share_free_file(struct core *core, uint32_t client, uint32_t file)
{
    uint32_t next, count = 0;
    uint32_t slot = chains_first(&core->shares.by_client, client);
    for (; slot != SLOT_NONE; slot = next) {
        next = chains_next(&core->shares.by_client, slot);
        if (share_at(core, slot)->file != file)
            continue;
        drop(core, slot);
        count++;
    }
    return count;
}

uint32_t share_free_all(struct core *core, uint32_t file, uint32_t max)
{
    uint32_t slot, count = 0;
    while (count < max && (slot = chains_first(&core->shares.by_file, file)) != SLOT_NONE) {
        drop(core, slot);
        count++;
    }
    return count;
}

void share_free_doomed(struct core *core, uint32_t file, uint32_t max)
{
    uint32_t next, count = 0;
    uint32_t slot = chains_first(&core->shares.by_file, file);
    for (; slot != SLOT_NONE && count < max; slot = next, count++) {
        const struct share *share = share_at(core, slot);
        next = chains_next(&core->shares.by_file, slot);
        if (!share_is_over(core, share))
            continue;
        client_at(core, share->client)->life.drained_count++;
        drop(core, slot);
    }
}

uint32_t share_drain(struct core *core, uint32_t client, uint32_t max, uint32_t *ret_freed)
{
    struct client *of = client_at(core, client);
    uint32_t looked_at = 0, freed = 0;
    for (; of->life.share_drain_at != 0 && looked_at < max; looked_at++) {
        uint32_t slot = of->life.share_drain_at - 1;
        uint32_t next = chains_next(&core->shares.by_client, slot);
        of->life.share_drain_at = next == SLOT_NONE ? 0 : next + 1;
        if (!share_is_over(core, share_at(core, slot)))
            continue;
        drop(core, slot);
        freed++;
    }
    *ret_freed = freed;
    return looked_at;
}

/* ---- the store ---- */

bool share_load(struct core *core, uint32_t slot, const struct record_share *record)
{
    const struct record_of *of = &record->of;
    if (!table_is_live(&core->clients.table, of->client))
        return false;
    const struct client *client = client_at(core, of->client);
    if (client->stored.id != of->client_id || of->incarnation > client->stored.incarnation ||
        find(core, of->client, record->oh, record->fh) != SLOT_NONE)
        return false;
    uint32_t file = file_find(core, record->fh);
    if (file != SLOT_NONE && conflicts(core, file, record->mode, record->access, NULL))
        return false;
    if (!table_add_at(&core->shares.table, slot))
        return false;
    struct share loaded = {
        .granted_ns = record->granted_ns,
        .client = of->client,
        .file = file_add(core, record->fh),
        .oh = intern_add(&core->locks.ohs, record->oh),
        .mode = record->mode,
        .access = record->access,
        .state = of->state,
        .incarnation = of->incarnation,
        .flags = record->flags,
    };
    CHECK(loaded.file != SLOT_NONE); /* core_new reserved room for all that is stored */
    CHECK(loaded.oh != SLOT_NONE);
    link_slot(core, slot, &loaded);
    return true;
}

uint32_t share_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct share *share = share_at(core, slot);
    struct record_share record = {
        .of =
            {
                .client_id = client_at(core, share->client)->stored.id,
                .client = share->client,
                .incarnation = share->incarnation,
                .state = share->state,
            },
        .granted_ns = share->granted_ns,
        .mode = share->mode,
        .access = share->access,
        .flags = share->flags,
        .fh = file_handle(core, share->file),
        .oh = intern_bytes(&core->locks.ohs, share->oh),
    };
    return record_put_share(buffer, slot, &record);
}

/* ---- what must be true ---- */

/* From the shares themselves: the sums, and that nobody uses what another denies. */
static void check_file(const struct core *core, uint32_t file)
{
    const struct chains *by_file = &core->shares.by_file;
    struct share_sums sums = {0};
    for (uint32_t at = chains_first(by_file, file); at != SLOT_NONE; at = chains_next(by_file, at))
        count(&sums, share_at(core, at), 1);
    CHECK(memcmp(&sums, &core->shares.sums[file], sizeof sums) == 0);
    for (uint32_t at = chains_first(by_file, file); at != SLOT_NONE;
         at = chains_next(by_file, at)) {
        const struct share *share = share_at(core, at);
        CHECK(!conflicts(core, file, share->mode, share->access, share));
    }
}

void share_check(const struct core *core)
{
    const struct shares *all = &core->shares;
    table_check(&all->table);
    for (uint32_t slot = table_next(&all->table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(&all->table, slot)) {
        const struct share *share = share_at(core, slot);
        struct bytes oh = intern_bytes(&core->locks.ohs, share->oh);
        CHECK(share->mode <= MODE_MAX);
        CHECK(share->access <= MODE_MAX);
        CHECK(share->incarnation <= client_at(core, share->client)->stored.incarnation);
        CHECK(find(core, share->client, oh, file_handle(core, share->file)) == slot);
        CHECK(chains_has(&all->by_file, share->file, slot));
        CHECK(chains_has(&all->by_client, share->client, slot));
        if (chains_first(&all->by_file, share->file) == slot)
            check_file(core, share->file);
    }
}
