/*
 * claim_disk.c -- lock, share and client records on the disk, held against the claims.
 *
 * A record whose incarnation is older than that of its client, or whose stamp is (R-SEC-3), is
 * being freed; nobody relies on it, and it counts for nobody.
 */
#include "claim_disk.h"

#include "core/callback.h"
#include "era.h"
#include "machine.h"
#include "still.h"
#include "stranger.h"

#define LATE_NS (10 * MILLISECOND) /* one turn of the loop */

/* One record of a lock or a share, with whose it is; process NULL: being freed, or an echo. */
struct found {
    struct process *process;
    struct process *named; /* a lock's: whose it is or was */
    uint32_t file;
    struct cells cells;
    bool is_offer, is_echo, is_strange;
    struct reservation reservation;
};

static uint32_t file_of(struct world *world, struct bytes fh)
{
    for (uint32_t file = 0; file < world->lockers->plan.files; file++) {
        struct peer_nlm_bytes handle = locker_handle(file);
        if (handle.len == fh.len && memcmp(handle.at, fh.at, fh.len) == 0)
            return file;
    }
    world_fail(world, "L4", "the disk holds a record of a file that nobody knows");
}

/* NULL: a stranger. */
static struct locker *locker_of(struct world *world, const struct record_client *record)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count; i++) {
        struct locker *locker = &all->at[i];
        if (address_equal(&locker->host->address, &record->address) &&
            bytes_equal(bytes_of_text(locker->name), record->caller_name))
            return locker;
    }
    if (stranger_is_at(world, &record->address))
        return NULL;
    world_fail(world, "L4", "the disk holds a client that nobody knows");
}

/* R-SEC-3, as the header of the record says. */
static bool is_over(const struct record_client *client, const struct record_of *of)
{
    if (of->incarnation != client->incarnation)
        return true;
    if (client->free_below == 0 || of->state == 0)
        return false;
    if (client->flags & RECORD_CLIENT_RECOUNTED)
        return of->state != client->free_below;
    return (int32_t)(of->state - client->free_below) < 0;
}

/* The client that a record names, NULL for a stranger; false: of an older life. */
static bool find_client(struct world *world, const struct record_of *of, struct locker **ret)
{
    struct record_client client;
    struct bytes value = disk_at(&world->disk, RECORD_CLIENT, of->client);
    if (value.len == 0 || record_get_client(value, of->client, &client) != RECORD_GOOD ||
        client.id != of->client_id)
        world_fail(world, "L4", "the disk holds a record of a client that is not stored");
    *ret = locker_of(world, &client);
    return !is_over(&client, of);
}

static struct cells cells_of(struct world *world, const struct record_lock *record)
{
    uint64_t last = LOCKER_CELLS - 1;
    if (record->start > last || record->end < record->start ||
        (record->end >= last && record->end != UINT64_MAX))
        world_fail(world, "L4", "the disk holds a lock of bytes that nobody asked for");
    uint64_t len = record->end == UINT64_MAX ? 0 : record->end - record->start + 1;
    uint16_t cells = locker_cells(record->start, len);
    return (struct cells){cells, record->flags & RECORD_LOCK_EXCLUSIVE ? cells : 0};
}

/* The file of lockers with this handle; LOCKER_FILES_MAX: none. */
static uint32_t strange_file(struct bytes fh)
{
    uint32_t file = 0;
    for (; file < LOCKER_FILES_MAX; file++) {
        struct peer_nlm_bytes handle = locker_handle(file);
        if (handle.len == fh.len && memcmp(handle.at, fh.at, handle.len) == 0)
            break;
    }
    return file;
}

/* In a file of lockers, it has asked for that. */
static struct found read_strange_lock(struct world *world, const struct record_lock *record,
                                      bool is_current)
{
    struct found found = {.file = strange_file(record->fh)};
    if (found.file == LOCKER_FILES_MAX || !is_current || (record->flags & RECORD_LOCK_LINGERS))
        return found;
    found.cells = cells_of(world, record);
    found.is_strange = true;
    const struct cells *asked = &world->strangers->asked[found.file];
    if ((found.cells.any & ~asked->any) != 0 || (found.cells.exclusive & ~asked->exclusive) != 0)
        world_fail(world, "L4", "the disk holds a lock of a stranger that it never asked for");
    return found;
}

static struct found read_lock(struct world *world, uint32_t slot, struct bytes value)
{
    struct record_lock record;
    struct locker *locker;
    if (record_get_lock(value, slot, &record) != RECORD_GOOD)
        world_fail(world, "L3", "the lock in slot %u cannot be read", slot);
    bool is_current = find_client(world, &record.of, &locker);
    if (locker == NULL)
        return read_strange_lock(world, &record, is_current);
    struct found found = {.file = file_of(world, record.fh),
                          .cells = cells_of(world, &record),
                          .is_offer = record.flags & RECORD_LOCK_OFFER,
                          .is_echo = record.flags & RECORD_LOCK_LINGERS};
    for (uint32_t p = 0; p < locker->process_count; p++)
        if (locker->processes[p].svid == record.svid)
            found.named = &locker->processes[p];
    if (found.named == NULL)
        world_fail(world, "L4", "the disk holds a lock of process %u, which is nobody",
                   record.svid);
    if (is_current && !found.is_echo) /* which is nobody's lock (025) */
        found.process = found.named;
    return found;
}

static struct found read_share(struct world *world, uint32_t slot, struct bytes value)
{
    struct record_share record;
    struct locker *locker;
    if (record_get_share(value, slot, &record) != RECORD_GOOD)
        world_fail(world, "L3", "the share in slot %u cannot be read", slot);
    bool is_current = find_client(world, &record.of, &locker);
    if (locker == NULL)
        return (struct found){.file = strange_file(record.fh),
                              .is_strange = is_current,
                              .reservation = {record.mode, record.access}};
    struct found found = {.file = file_of(world, record.fh),
                          .reservation = {record.mode, record.access}};
    for (uint32_t p = 0; p < locker->process_count && is_current; p++) {
        struct peer_nlm_bytes oh = locker_oh(&locker->processes[p]);
        if (oh.len == record.oh.len && memcmp(oh.at, record.oh.at, oh.len) == 0)
            found.process = &locker->processes[p];
    }
    if (is_current && found.process == NULL)
        world_fail(world, "L4", "the disk holds a share of nobody");
    return found;
}

/* ---- single questions ---- */

struct cells claim_disk_cells(const struct world *world, const struct process *process,
                              uint32_t file, bool held_only)
{
    struct world *self = (struct world *)(uintptr_t)world; /* only to be able to fail */
    struct cells cells = {0};
    uint32_t used = disk_slots_used(&world->disk, RECORD_LOCK);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
        if (value.len == 0)
            continue;
        struct found found = read_lock(self, slot, value);
        if (found.process != process || found.file != file || (held_only && found.is_offer))
            continue;
        cells.any |= found.cells.any;
        cells.exclusive |= found.cells.exclusive;
    }
    return cells;
}

/* For 5 s after the server freed what its host had, if it has lived that long in one run. */
static bool may_linger(const struct world *world, const struct locker *locker, uint64_t lived_ns)
{
    return locker->freed_run == world->machine.run &&
           lived_ns < locker->freed_ns + CALLBACK_LINGER_NS + LATE_NS;
}

static bool may_be_echo(const struct world *world, uint64_t lived_ns)
{
    return world->plan.has_echo && lived_ns < world->machine.boot_ns + ECHO_NS + LATE_NS;
}

struct cells claim_disk_lingering(const struct world *world, const struct process *process,
                                  uint32_t file, uint64_t lived_ns)
{
    struct world *self = (struct world *)(uintptr_t)world;
    struct cells cells = {0};
    bool has_echo = may_be_echo(world, lived_ns);
    bool is_needed =
        (has_echo || may_linger(world, process->locker, lived_ns)) && !world->is_unjudged;
    uint32_t used = is_needed ? disk_slots_used(&world->disk, RECORD_LOCK) : 0;
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
        if (value.len == 0)
            continue;
        struct found found = read_lock(self, slot, value);
        if (found.named != process || found.process != NULL || found.file != file)
            continue;
        if (!found.is_offer || (found.is_echo && !has_echo))
            continue;
        cells.any |= found.cells.any;
        cells.exclusive |= found.cells.exclusive;
    }
    return cells;
}

struct reservation claim_disk_reservation(const struct world *world, const struct process *process,
                                          uint32_t file, bool *ret_found)
{
    struct world *self = (struct world *)(uintptr_t)world;
    uint32_t used = disk_slots_used(&world->disk, RECORD_SHARE);
    *ret_found = false;
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_SHARE, slot);
        if (value.len == 0)
            continue;
        struct found found = read_share(self, slot, value);
        if (found.process != process || found.file != file)
            continue;
        *ret_found = true;
        return found.reservation;
    }
    return (struct reservation){0};
}

void claim_disk_trace(const struct world *world)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_LOCK);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct record_lock lock;
        struct record_client client;
        struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
        if (value.len == 0 || record_get_lock(value, slot, &lock) != RECORD_GOOD)
            continue;
        struct bytes owner = disk_at(&world->disk, RECORD_CLIENT, lock.of.client);
        char address[ADDRESS_TEXT_MAX] = "?";
        if (owner.len > 0 && record_get_client(owner, lock.of.client, &client) == RECORD_GOOD)
            address_text(&client.address, address);
        world_trace(world, "disk: lock %u of %s process %u, file %u, %llu to %llu, flags %u", slot,
                    address, lock.svid, lock.fh.at[31], (unsigned long long)lock.start,
                    (unsigned long long)lock.end, lock.flags);
    }
}

/* ---- everything at once ---- */

/* What the disk holds, by locker, process and file. */
struct image {
    struct cells cells[LOCKER_MAX][LOCKER_PROCESSES_MAX][LOCKER_FILES_MAX];
    struct reservation reserved[LOCKER_MAX][LOCKER_PROCESSES_MAX][LOCKER_FILES_MAX];
    struct cells strange[LOCKER_FILES_MAX]; /* of strangers */
    struct reservation strange_reserved[LOCKER_FILES_MAX];
};

static void check_asked_for(struct world *world, const struct found *found)
{
    const struct process *process = found->process;
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++) {
        bool any = (found->cells.any >> cell & 1) != 0;
        bool exclusive = (found->cells.exclusive >> cell & 1) != 0;
        if ((any && process->shared_number[found->file][cell] == 0) ||
            (exclusive && process->exclusive_number[found->file][cell] == 0))
            world_fail(world, "L4", "the disk holds byte %u of file %u for %s/%u, who gave it back",
                       cell, found->file, process->locker->label, process->svid);
    }
}

/* It is there, whatever was answered since. */
static void accept(const struct found *found)
{
    struct process *process = found->process;
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++) {
        if ((found->cells.any >> cell & 1) != 0 && process->shared_number[found->file][cell] == 0)
            process->shared_number[found->file][cell] = process->number;
        if ((found->cells.exclusive >> cell & 1) != 0 &&
            process->exclusive_number[found->file][cell] == 0)
            process->exclusive_number[found->file][cell] = process->number;
    }
}

/* Exactly what its process wishes: another offer is of an earlier wish, and was called for then. */
static bool is_wish(const struct found *found)
{
    const struct extent *wish = &found->process->wish;
    return found->file == wish->file && found->cells.any == locker_cells(wish->offset, wish->len);
}

static void read_image(struct world *world, struct image *image, bool is_loss)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_LOCK);
    memset(image, 0, sizeof *image);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
        if (value.len == 0)
            continue;
        struct found found = read_lock(world, slot, value);
        if (found.is_strange) {
            image->strange[found.file].any |= found.cells.any;
            image->strange[found.file].exclusive |= found.cells.exclusive;
        }
        if (found.process == NULL)
            continue;
        found.process->has_offer |= found.is_offer && is_wish(&found);
        if (is_loss)
            accept(&found);
        check_asked_for(world, &found);
        struct cells *cells =
            &image->cells[found.process->locker->index][found.process->index][found.file];
        cells->any |= found.cells.any;
        cells->exclusive |= found.cells.exclusive;
    }
    used = disk_slots_used(&world->disk, RECORD_SHARE);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_SHARE, slot);
        if (value.len == 0)
            continue;
        struct found found = read_share(world, slot, value);
        if (found.is_strange && found.file < LOCKER_FILES_MAX) {
            image->strange_reserved[found.file].mode |= found.reservation.mode;
            image->strange_reserved[found.file].access |= found.reservation.access;
        }
        if (found.process == NULL)
            continue;
        if (is_loss && found.process->reserved_number[found.file] == 0)
            found.process->reserved_number[found.file] = found.process->number;
        if (found.process->reserved_number[found.file] == 0)
            world_fail(world, "L4", "the disk holds a share that %s has given back",
                       found.process->locker->label);
        image->reserved[found.process->locker->index][found.process->index][found.file] =
            found.reservation;
    }
}

static void check_relied(struct world *world, const struct process *process,
                         const struct image *image)
{
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
        const struct cells *held = &process->held[file];
        const struct cells *stored = &image->cells[process->locker->index][process->index][file];
        const struct reservation *reserved = &process->reserved[file];
        const struct reservation *kept =
            &image->reserved[process->locker->index][process->index][file];
        if ((held->any & ~stored->any) != 0 || (held->exclusive & ~stored->exclusive) != 0)
            world_fail(world, "L3", "%s/%u relies on a lock in file %u that is not on the disk",
                       process->locker->label, process->svid, file);
        if ((reserved->mode & ~kept->mode) != 0 || (reserved->access & ~kept->access) != 0)
            world_fail(world, "L3", "%s/%u relies on a share of file %u that is not on the disk",
                       process->locker->label, process->svid, file);
    }
}

static void check_conflicts(struct world *world, const struct image *image, uint32_t file)
{
    struct cells all = image->strange[file];
    for (uint32_t i = 0; i < world->lockers->count; i++)
        for (uint32_t p = 0; p < world->lockers->at[i].process_count; p++) {
            const struct cells *cells = &image->cells[i][p][file];
            const struct reservation *reserved = &image->reserved[i][p][file];
            if ((reserved->mode & image->strange_reserved[file].access) != 0 ||
                (reserved->access & image->strange_reserved[file].mode) != 0)
                world_fail(world, "L4", "the disk holds conflicting shares of file %u", file);
            if ((cells->exclusive & all.any) != 0 || (cells->any & all.exclusive) != 0)
                world_fail(world, "L4", "the disk holds conflicting locks in file %u", file);
            all.any |= cells->any;
            all.exclusive |= cells->exclusive;
        }
}

void claim_disk_audit(struct world *world)
{
    static struct image image;
    struct lockers *all = world->lockers;
    if (all == NULL || world->is_unjudged)
        return;
    era_audit(world);
    era_expire(world);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            all->at[i].processes[p].has_offer = false;
    read_image(world, &image, false);
    stranger_check_calls(world);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            check_relied(world, &all->at[i].processes[p], &image);
    for (uint32_t file = 0; file < all->plan.files; file++)
        check_conflicts(world, &image, file);
}

/* The store knows the state that it is in. Else it has lost that it rebooted, and will take its
 * next call for the sign of that. */
static bool is_state_stored(const struct world *world, const struct locker *locker)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_CLIENT);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct record_client record;
        struct bytes value = disk_at(&world->disk, RECORD_CLIENT, slot);
        if (value.len > 0 && record_get_client(value, slot, &record) == RECORD_GOOD &&
            address_equal(&record.address, &locker->host->address) &&
            bytes_equal(record.caller_name, bytes_of_text(locker->name)))
            return record.state_seen == locker->state;
    }
    return false;
}

static bool is_known(const struct world *world, const struct locker *locker)
{
    return locker->kind == LOCKER_PCNFS || is_state_stored(world, locker);
}

static void give_up_cells(struct world *world, struct process *process, uint32_t file,
                          const struct cells *stored)
{
    struct cells *held = &process->held[file];
    uint16_t lost =
        (held->any & (uint16_t)~stored->any) | (held->exclusive & (uint16_t)~stored->exclusive);
    lost |= is_known(world, process->locker) ? 0 : held->any;
    if (lost != 0)
        world_trace(world, "%s/%u has lost cells %04x of file %u with the power",
                    process->locker->label, process->svid, lost, file);
    process->believed[file].any |= held->any & lost;
    process->believed[file].exclusive |= held->exclusive & lost;
    held->any &= (uint16_t)~lost;
    held->exclusive &= (uint16_t)~lost;
}

static void give_up_lost(struct world *world, struct process *process, const struct image *image)
{
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
        const struct reservation *kept =
            &image->reserved[process->locker->index][process->index][file];
        struct reservation *reserved = &process->reserved[file];
        give_up_cells(world, process, file,
                      &image->cells[process->locker->index][process->index][file]);
        if (!is_known(world, process->locker) || (reserved->mode & ~kept->mode) != 0 ||
            (reserved->access & ~kept->access) != 0)
            *reserved = (struct reservation){0};
    }
}

void claim_disk_accept_loss(struct world *world)
{
    static struct image image;
    struct lockers *all = world->lockers;
    if (all == NULL || world->is_unjudged)
        return;
    read_image(world, &image, true);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            give_up_lost(world, &all->at[i].processes[p], &image);
}

void claim_disk_accept_late(struct world *world, struct process *process, uint32_t file)
{
    if (!world->lockers->era.must_last || world->is_unjudged)
        return;
    struct cells stored = claim_disk_cells(world, process, file, false);
    give_up_cells(world, process, file, &stored);
}

void claim_disk_empty(struct world *world)
{
    struct core_status status;
    if (world->lockers == NULL)
        return;
    core_status(world->machine.core, &status);
    if (status.locks != 0 || status.offers != 0 || status.waiters != 0 || status.shares != 0)
        world_fail(world, "L6",
                   "all is given back, but %u locks, %u offers, %u waiters, %u shares are left",
                   status.locks, status.offers, status.waiters, status.shares);
    if (status.grace.is_on || status.grace.unsettled != 0)
        world_fail(world, "P4", "all is given back, and grace still stands");
    if (disk_count(&world->disk, RECORD_LOCK) != 0 || disk_count(&world->disk, RECORD_SHARE) != 0)
        world_fail(world, "L6", "all is given back, but the disk still holds records");
}
