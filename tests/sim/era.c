/*
 * era.c -- what outlives a restart, and until when; see era.h.
 *
 * What the server knows of a client is known here only as far as it can be seen from outside: when
 * it was first heard of may be any time from the first answer or call on. The earliest time that
 * the server may give something up is what counts.
 */
#include "era.h"

#include "claim.h"
#include "still.h"

#define LATE_NS       (30 * SECOND)
#define QUIET_NS      (5 * SECOND)
#define LATE_GRACE_NS (10 * MILLISECOND) /* how late grace may end: one turn of the loop */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_monitored(const struct locker *locker)
{
    return locker->kind != LOCKER_PCNFS; /* its shares are, its locks are not (R-NM-1) */
}

static bool is_reserved(const struct reservation *reservation)
{
    return reservation->mode != 0 || reservation->access != 0;
}

/* What this process relies on and nobody has confirmed in this era. */
static uint16_t open_cells(const struct process *process, uint32_t file)
{
    if (!is_monitored(process->locker))
        return 0;
    return process->held[file].any & (uint16_t)~process->since.confirmed[file];
}

static bool is_open_share(const struct process *process, uint32_t file)
{
    return is_reserved(&process->reserved[file]) && !process->since.share_confirmed[file];
}

static bool relies(const struct locker *locker)
{
    for (uint32_t p = 0; p < locker->process_count; p++)
        for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
            const struct process *process = &locker->processes[p];
            if ((is_monitored(locker) && process->held[file].any != 0) ||
                is_reserved(&process->reserved[file]))
                return true;
        }
    return false;
}

/* ---- eras ---- */

/* The era that stands on the disk, in case that the next one is lost. */
static void keep(struct lockers *all)
{
    all->era_before = all->era;
    for (uint32_t i = 0; i < all->count; i++) {
        all->at[i].since_before = all->at[i].since;
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            all->at[i].processes[p].since_before = all->at[i].processes[p].since;
    }
}

void era_begin(struct world *world, uint32_t state, bool has_stored)
{
    struct lockers *all = world->lockers;
    if (all == NULL)
        return;
    struct record_server server = {0};
    era_expire(world); /* by the rules of the era before */
    if (disk_server(&world->disk, &server) && server.state >= all->era.state)
        keep(all);
    all->era = (struct era){.number = all->era.number + 1,
                            .start_ns = world->now_ns,
                            .state = state,
                            .has_stored = has_stored,
                            .holds = world->plan.holds,
                            .must_last = world->ledger.incomplete && !world->machine.has_lasted,
                            .died_ns = UINT64_MAX,
                            .ready_ns = UINT64_MAX};
    for (uint32_t i = 0; i < all->count; i++) {
        struct locker *locker = &all->at[i];
        locker->since = (struct locker_since){.is_owed = locker->since.is_owed || relies(locker)};
        for (uint32_t p = 0; p < locker->process_count; p++)
            locker->processes[p].since = (struct process_since){0};
    }
}

void era_crash(struct world *world)
{
    if (world->lockers != NULL)
        world->lockers->era.died_ns = still_lived_ns(world);
}

void era_resume(struct world *world, uint32_t state)
{
    struct lockers *all = world->lockers;
    if (all == NULL)
        return;
    if (state < all->era.state) {
        all->era = all->era_before;
        for (uint32_t i = 0; i < all->count; i++) {
            all->at[i].since = all->at[i].since_before;
            for (uint32_t p = 0; p < all->at[i].process_count; p++)
                all->at[i].processes[p].since = all->at[i].processes[p].since_before;
        }
    }
}

void era_goes_on(struct world *world)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
                struct process_since *since = &all->at[i].processes[p].since;
                since->confirmed[file] |= since->settled[file];
                since->share_confirmed[file] |= since->share_settled[file];
            }
    if (all != NULL)
        all->era.died_ns = UINT64_MAX;
}

void era_end(struct world *world)
{
    world->lockers->era.is_cut_short = true;
    era_expire(world);
}

void era_ready(struct world *world)
{
    struct lockers *all = world->lockers;
    struct record_server server = {0};
    if (all != NULL && all->era.ready_ns == UINT64_MAX && world->machine.is_ready &&
        disk_server(&world->disk, &server) && server.state >= all->era.state)
        all->era.ready_ns = still_lived_ns(world);
}

bool era_is_settled(struct world *world)
{
    const struct lockers *all = world->lockers;
    era_expire(world);
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
                const struct process *process = &all->at[i].processes[p];
                uint16_t cells =
                    open_cells(process, file) & (uint16_t)~process->since.settled[file];
                if (cells != 0 ||
                    (is_open_share(process, file) && !process->since.share_settled[file]))
                    return false;
            }
    return true;
}

/* ---- what is known of clients ---- */

static void may_be_reached(struct world *world, struct locker *locker)
{
    if (locker->since.reached_ns == 0)
        locker->since.reached_ns = still_lived_ns(world);
}

void era_called(struct world *world, const struct ask *ask)
{
    struct process *process = ask->process;
    uint32_t file = ask->extent.file;
    may_be_reached(world, process->locker);
    process->locker->since.has_reclaimed |= ask->reclaim;
    process->locker->since.is_reached |=
        ask->plain == PEER_NLM_LOCK || ask->plain == PEER_NLM_UNLOCK ||
        ask->plain == PEER_NLM_TEST || ask->plain == PEER_NLM_CANCEL;
    if (ask->plain == PEER_NLM_LOCK || ask->plain == PEER_NLM_UNLOCK ||
        ask->plain == PEER_NLM_CANCEL) /* which may be a reclaim */
        process->since.settled[file] |= locker_cells(ask->extent.offset, ask->extent.len);
    else if (ask->plain == PEER_NLM_SHARE || ask->plain == PEER_NLM_UNSHARE)
        process->since.share_settled[file] = true;
}

void era_noticed(struct world *world, struct locker *locker)
{
    may_be_reached(world, locker);
}

void era_reclaimed(struct locker *locker, uint64_t taken_ns)
{
    locker->since.reclaimed_ns = max_u64(locker->since.reclaimed_ns, taken_ns);
}

void era_called_back(struct world *world, const struct host *host, uint64_t sent_ns)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        if (all->at[i].host == host && sent_ns >= all->era.start_ns)
            may_be_reached(world, &all->at[i]);
}

void era_told(struct world *world, struct locker *locker, uint32_t state)
{
    if (locker->since.told_ns == 0 && state >= world->lockers->era.state)
        locker->since.told_ns = still_lived_ns(world);
    locker->told_state = state;
    locker->told_era = world->lockers->era.number;
    if (state >= world->lockers->era.state)
        locker->since.is_owed = false;
}

/* ---- until when ---- */

/* Before this moment the server must not give up what this locker has not confirmed. */
static uint64_t stays_until_ns(const struct world *world, const struct locker *locker)
{
    const struct plan *plan = &world->plan;
    const struct era *era = &world->lockers->era;
    uint64_t late_ns = min_u64(LATE_NS, plan->grace_ns / 2);
    if (era->is_cut_short)
        return 0;
    if (era->ready_ns == UINT64_MAX)
        return UINT64_MAX;
    uint64_t over_ns = era->ready_ns + plan->grace_ns;
    const struct locker_since *since = &locker->since;
    if (era->holds && since->told_ns == 0 && !since->has_reclaimed)
        return era->ready_ns + max_u64(plan->window_ns, plan->grace_ns) + plan->give_up_ns;
    /* `hold` ends when its answer arrives: not before it was told; or when it reclaims, as it may
     * before that, told of an earlier restart. */
    bool is_held = era->holds && !since->has_reclaimed;
    uint64_t told_ns = since->is_told || is_held ? since->told_ns : 0;
    uint64_t until_ns = over_ns, cap_ns = max_u64(over_ns, told_ns) + plan->grace_ns;
    uint64_t from_ns = max_u64(since->is_reached ? since->reached_ns : 0, told_ns);
    if (from_ns != 0) {
        until_ns = max_u64(over_ns, from_ns + late_ns);
        cap_ns = max_u64(cap_ns, from_ns + late_ns);
    }
    if (since->reclaimed_ns != 0)
        until_ns = max_u64(until_ns, since->reclaimed_ns + QUIET_NS);
    return min_u64(until_ns, cap_ns);
}

bool era_may_be_provisional(const struct world *world, const struct locker *locker)
{
    const struct era *era = &world->lockers->era;
    uint64_t until_ns = stays_until_ns(world, locker); /* at the earliest */
    return era->has_stored && (world_allows(world, WORLD_UNTOLD) || world->now_ns < until_ns);
}

static void expire_process(struct world *world, struct process *process)
{
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
        uint16_t cells = open_cells(process, file);
        bool is_share = is_open_share(process, file);
        if (cells == 0 && !is_share)
            continue;
        world_trace(world, "%s/%u has not reclaimed cells %04x of file %u in time",
                    process->locker->label, process->svid, cells, file);
        bool is_excluded = world_allows(world, WORLD_UNTOLD) || world->lockers->era.is_cut_short;
        if (!is_excluded && !world->is_unjudged)
            world_fail(world, "P2", "%s/%u was not told of a restart in time, or could not reclaim",
                       process->locker->label, process->svid);
        world->lockers->expired++;
        process->believed[file].any |= cells;
        process->believed[file].exclusive |= cells & process->held[file].exclusive;
        process->held[file].any &= (uint16_t)~cells;
        process->held[file].exclusive &= (uint16_t)~cells;
        if (is_share)
            process->reserved[file] = (struct reservation){0};
    }
}

void era_expire(struct world *world)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        uint64_t now_ns = min_u64(still_due_ns(world), all->era.died_ns);
        if (all->era.number == 0 || now_ns < stays_until_ns(world, &all->at[i]))
            continue;
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            expire_process(world, &all->at[i].processes[p]);
    }
}

/* ---- P4 ---- */

bool era_must_be_grace(struct world *world)
{
    const struct era *era = &world->lockers->era;
    bool is_in_time =
        era->ready_ns == UINT64_MAX || still_due_ns(world) < era->ready_ns + world->plan.grace_ns;
    return era->number > 0 && is_in_time && !era->is_cut_short &&
           (era->must_last || !era_is_settled(world));
}

bool era_may_be_grace(const struct world *world)
{
    const struct era *era = &world->lockers->era;
    return era->has_stored && !era->is_cut_short &&
           (era->ready_ns == UINT64_MAX ||
            still_lived_ns(world) <=
                era->ready_ns + world->plan.grace_ns + LATE_GRACE_NS + still_listens_ns(world));
}

/* ---- P3 ---- */

/* The client record of this locker on the disk. */
bool era_find_record(const struct world *world, const struct locker *locker,
                     struct record_client *ret)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_CLIENT);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_CLIENT, slot);
        if (value.len > 0 && record_get_client(value, slot, ret) == RECORD_GOOD &&
            address_equal(&ret->address, &locker->host->address) &&
            bytes_equal(ret->caller_name, bytes_of_text(locker->name)))
            return true;
    }
    return false;
}

static bool is_marked(const struct record_client *record, uint32_t state)
{
    return (record->flags & RECORD_CLIENT_MONITORED) && record->told_state < state;
}

/* P3: a full table may have forgotten one that holds nothing and was given up (R-SEC-12). */
static bool may_be_forgotten(const struct world *world, const struct locker *locker)
{
    const struct plan *plan = &world->plan;
    const struct era *era = &world->lockers->era;
    /* Strangers are clients, too; one that is new, and one that went in the same batch. */
    uint64_t clients = max_u64(world->lockers->count, disk_count(&world->disk, RECORD_CLIENT) + 1);
    bool is_small = world->machine.clients_max <= clients || plan->per_address_percent;
    return is_small && !relies(locker) && era->ready_ns != UINT64_MAX &&
           world->now_ns >=
               era->ready_ns + max_u64(plan->window_ns, plan->grace_ns) + plan->give_up_ns;
}

void era_audit(struct world *world)
{
    struct lockers *all = world->lockers;
    if (all == NULL || world->is_unjudged)
        return;
    for (uint32_t i = 0; i < all->count; i++) {
        struct record_client record;
        struct locker_since *since = &all->at[i].since;
        if (!since->is_reached && since->reached_ns != 0 &&
            era_find_record(world, &all->at[i], &record) && !is_marked(&record, all->era.state))
            since->is_reached = since->is_told = true; /* its answer has arrived */
        if (since->is_owed && may_be_forgotten(world, &all->at[i]) &&
            !era_find_record(world, &all->at[i], &record))
            since->is_owed = false;
        /* A store that has lost something may have lost that it was to be told (D16). */
        if (all->at[i].since.is_owed && !all->era.must_last &&
            (!era_find_record(world, &all->at[i], &record) || !is_marked(&record, all->era.state)))
            world_fail(world, "P3",
                       "%s relied on something, was not told of state %u, and has no "
                       "mark",
                       all->at[i].label, all->era.state);
    }
}

static bool can_be_told(const struct locker *locker)
{
    if (locker->kind == LOCKER_PCNFS)
        return false; /* it has no status monitor */
    return locker->host->kind == CALLEE_BOTH || locker->host->kind == CALLEE_UDP;
}

bool era_all_told(const struct world *world)
{
    const struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        struct record_client record;
        if (can_be_told(&all->at[i]) && era_find_record(world, &all->at[i], &record) &&
            is_marked(&record, all->era.state))
            return false;
    }
    return true;
}

uint32_t era_untellable_count(const struct world *world)
{
    const struct lockers *all = world->lockers;
    uint32_t count = 0;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        struct record_client record;
        count += !can_be_told(&all->at[i]) && era_find_record(world, &all->at[i], &record) &&
                 is_marked(&record, all->era.state);
    }
    return count;
}

/* Somebody relies on something that nobody has confirmed. */
static bool is_open(const struct lockers *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++)
                if (open_cells(&all->at[i].processes[p], file) != 0 ||
                    is_open_share(&all->at[i].processes[p], file))
                    return true;
    return false;
}

bool era_is_pressing(const struct world *world)
{
    const struct lockers *all = world->lockers;
    return all != NULL && !world_allows(world, WORLD_UNTOLD) && all->era.ready_ns != UINT64_MAX &&
           still_lived_ns(world) > all->era.ready_ns + world->plan.grace_ns / 3 && is_open(all);
}
