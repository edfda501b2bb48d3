/*
 * recover.c -- from stored records to a running core: load, then start.
 *
 *   core_new ---> core_load (every record) ---> core_loaded ---> core_start ---> core_step ...
 *
 * The next state number and epoch are part of the first batch (R-PER-4, D6). The gate holds every
 * answer until that batch is durable, so nobody can have seen a number that a crash takes back.
 *
 * A record that cannot be read is reported, removed with the first batch, and marks the store
 * incomplete (R-PER-5, D16): something a client relies on may be missing. The state of an
 * incomplete store also jumps past the wall clock, because the lost part may have held a larger
 * one; where the server record itself is lost it begins above every state ever given out.
 */
#include "base/check.h"
#include "base/units.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

#define STATE_MAX       UINT32_C(0x7fffffff) /* the protocol's state is a signed number */
#define STATE_STRIDE    (UINT32_C(1) << 20)  /* half a million starts */
#define COUNTER_MAX     UINT64_C(0x7fffffffffffffff)
#define OFFERS_AGAIN_NS SECOND_NS

enum { OFFERS_PER_TURN = 2000 };

uint32_t core_next_state(uint32_t state)
{
    uint32_t next = (state + 2) | 1;
    return next > STATE_MAX ? 1 : next;
}

/* No counter of ours gets that far. One that seems to have is damage, and would end in zero. */
static bool is_countable(uint64_t number)
{
    return number <= COUNTER_MAX;
}

static enum record_result load_server(struct core *core, struct bytes value)
{
    struct record_server server;
    enum record_result result = record_get_server(value, &server);
    if (result != RECORD_GOOD)
        return result;
    if (!is_countable(server.txn) || !is_countable(server.epoch) || !is_countable(server.next_id) ||
        server.state > STATE_MAX || server.restart_state > STATE_MAX)
        return RECORD_CORRUPT;
    core->server = server;
    core->server_loaded = true;
    core->durable_txn = server.txn;
    return RECORD_GOOD;
}

/* Ids, epochs and state numbers are never used again, also when the server record that counted them
 * is lost. */
static void note_seen(struct core *core, uint64_t id, uint64_t epoch, uint32_t told_state)
{
    if (id > core->id_seen_max)
        core->id_seen_max = id;
    if (epoch > core->epoch_seen_max)
        core->epoch_seen_max = epoch;
    if (told_state <= STATE_MAX && told_state > core->state_seen_max)
        core->state_seen_max = told_state;
}

static enum record_result load_registrant(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_registrant record;
    enum record_result result = record_get_registrant(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    if (!is_countable(record.id) || !is_countable(record.server_epoch) ||
        !registrant_load(core, slot, &record))
        return RECORD_CORRUPT;
    note_seen(core, record.id, record.server_epoch, record.told_state);
    return RECORD_GOOD;
}

static enum record_result load_notice(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_notice record;
    enum record_result result = record_get_notice(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    return notice_load(core, slot, &record) ? RECORD_GOOD : RECORD_CORRUPT;
}

static enum record_result load_client(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_client record;
    enum record_result result = record_get_client(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    if (!is_countable(record.id) || !is_countable(record.server_epoch) ||
        !client_load(core, slot, &record))
        return RECORD_CORRUPT;
    note_seen(core, record.id, record.server_epoch, record.told_state);
    return RECORD_GOOD;
}

static enum record_result load_lock(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_lock record;
    enum record_result result = record_get_lock(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    return lock_load(core, slot, &record) ? RECORD_GOOD : RECORD_CORRUPT;
}

/* Waiters outlive a run only if it is resumed (D12); else their clients ask again (R-BLK-14). */
static enum record_result load_waiter(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_waiter record;
    enum record_result result = record_get_waiter(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    if (!core->limits.resume) {
        dirty_delete(&core->dirty, RECORD_WAITER, slot);
        return RECORD_GOOD;
    }
    return is_countable(record.order) && waiter_load(core, slot, &record) ? RECORD_GOOD
                                                                          : RECORD_CORRUPT;
}

static enum record_result load_share(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_share record;
    enum record_result result = record_get_share(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    return share_load(core, slot, &record) ? RECORD_GOOD : RECORD_CORRUPT;
}

static enum record_result load_tracked(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_tracked record;
    enum record_result result = record_get_tracked(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    if (!is_countable(record.id) || !is_countable(record.server_epoch) ||
        !tracker_load(core, slot, &record))
        return RECORD_CORRUPT;
    note_seen(core, record.id, record.server_epoch, 0);
    return RECORD_GOOD;
}

void recover_refuse(struct core *core, enum record_kind kind, uint32_t slot)
{
    core->corrupt_found = true;
    event_add(&core->events, EVENT_CORRUPT_RECORD, NULL, bytes_of_text(record_kind_name(kind)),
              slot);
    if (kind != RECORD_SERVER && slot < core->dirty.of[kind].max)
        dirty_delete(&core->dirty, kind, slot);
}

enum record_result core_load(struct core *core, enum record_kind kind, uint32_t slot,
                             struct bytes value)
{
    CHECK(!core->started);
    if (kind > RECORD_LOCK)
        (void)core_loaded(core); /* of locks these are all, and waiters refer to them */
    enum record_result result = RECORD_CORRUPT;
    switch (kind) {
    case RECORD_SERVER:
        result = slot == 0 ? load_server(core, value) : RECORD_CORRUPT;
        break;
    case RECORD_REGISTRANT:
        result = load_registrant(core, slot, value);
        break;
    case RECORD_NOTICE:
        result = load_notice(core, slot, value);
        break;
    case RECORD_CLIENT:
        result = load_client(core, slot, value);
        break;
    case RECORD_LOCK:
        result = load_lock(core, slot, value);
        break;
    case RECORD_WAITER:
        result = load_waiter(core, slot, value);
        break;
    case RECORD_SHARE:
        result = load_share(core, slot, value);
        break;
    case RECORD_TRACKED:
        result = load_tracked(core, slot, value);
        break;
    case RECORD_KIND_END:
        break;
    }
    if (result == RECORD_GOOD)
        core->records_loaded++;
    if (result == RECORD_CORRUPT)
        recover_refuse(core, kind, slot);
    return result;
}

uint32_t core_loaded(struct core *core)
{
    lock_build(core);
    return core->locks.refused_count;
}

/* Without its server record a store has lost its counters: go on from beyond what they can be. */
static void replace_lost_server(struct core *core, uint64_t wall_seconds)
{
    struct record_server *server = &core->server;
    *server = (struct record_server){0};
    server->epoch = core->epoch_seen_max > wall_seconds ? core->epoch_seen_max : wall_seconds;
    server->next_id = core->id_seen_max > wall_seconds ? core->id_seen_max : wall_seconds;
    server->next_id++;
    /* That one was given out; the clock may say less (D16). Each start raised it by two at least,
     * and records are behind: every answer to SM_STAT carries the state, and a client that was
     * notified under one name of several knows a state that its record does not. */
    server->state = core->state_seen_max;
    if (server->state <= STATE_MAX - STATE_STRIDE)
        server->state += STATE_STRIDE;
    if (server->epoch < server->state)
        server->epoch = server->state;
}

/* Nor is anything used again that a record knows and the counters do not, whatever the reason.
 * State numbers go round in a circle, so only a lost one is made up for. */
static void pass_what_is_loaded(struct core *core)
{
    struct record_server *server = &core->server;
    if (server->next_id <= core->id_seen_max)
        server->next_id = core->id_seen_max + 1;
    if (server->epoch < core->epoch_seen_max)
        server->epoch = core->epoch_seen_max;
}

/* What a client that was monitored holds must be confirmed by it; an unmonitored one cannot, and
 * holds what it holds (R-NM-1). What is being freed is nobody's any more. */
static void unsettle_lock(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    uint32_t left_out = RECORD_LOCK_UNMONITORED | RECORD_LOCK_OFFER;
    if ((lock->flags & left_out) == 0 && !lock_element_is_doomed(core, lock))
        unsettled_add_lock(core, slot);
}

static void unsettle_share(struct core *core, uint32_t slot)
{
    const struct share *share = share_at(core, slot);
    if ((share->flags & RECORD_LOCK_UNMONITORED) == 0 && !share_is_over(core, share))
        share_unsettle(core, slot);
}

static bool is_left_over(const struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    return (lock->flags & RECORD_LOCK_OFFER) && lock_waiter(lock) == SLOT_NONE &&
           !lock->is_lingering && !echo_is(core, slot) &&
           !lock_element_is_doomed(core, lock); /* that is nobody's: its drain takes it along */
}

/*
 * An offer outlives a run as a lock of its owner (R-BLK-19): its client may have taken it, and its
 * waiter is gone. One that finds no room for its pieces, in the table or in the open batch, stays
 * as it is, which excludes others just as well; its owner may reclaim it all the same (leftover.h),
 * and it is tried again (recover_work). So does one of which an echo may be due, until that time is
 * over: it needs its slot for itself.
 */
static void restore_offers(struct core *core)
{
    const struct table *locks = &core->locks.table;
    core->offer_at = SLOT_NONE;
    core->offer_next_ns = core->echoes.until_ns;
    uint32_t slot = table_next(locks, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(locks, slot)) {
        if (!is_left_over(core, slot))
            continue;
        if (echo_is_due(core, slot) || !lock_offer_restore(core, slot)) {
            MARK("start_offer_stays");
            leftover_add(core, slot);
        }
    }
}

/* The bytes of an offer that its owner does not hold; at most as many as an offer that can be
 * accepted may have. */
static uint32_t find_gaps(const struct core *core, const struct lock *offer,
                          struct claim ret[static LOCK_ACCEPT_PUTS_MAX])
{
    struct claim gap = offer->claim;
    uint32_t count = 0, slot = lock_range_first_own(core, &gap);
    for (; slot != SLOT_NONE && count < LOCK_ACCEPT_PUTS_MAX;
         slot = lock_range_next_own(core, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->claim.start > offer->claim.end)
            break;
        if (lock->claim.start > gap.start) {
            ret[count] = gap;
            ret[count++].end = lock->claim.start - 1;
        }
        if (lock->claim.end >= gap.end)
            return count;
        gap.start = lock->claim.end + 1;
    }
    if (count < LOCK_ACCEPT_PUTS_MAX)
        ret[count++] = gap;
    return count;
}

/*
 * What the owner held before is settled or not as it was; only the bytes that the offer adds are
 * its to confirm, and none in a run that is resumed. One that has more gaps than are counted stays
 * what it is.
 */
static void settle_offer(struct core *core, uint32_t slot)
{
    struct lock offer = *lock_at(core, slot);
    struct claim gaps[LOCK_ACCEPT_PUTS_MAX];
    bool is_confirmed = core->is_resumed || (offer.flags & RECORD_LOCK_UNMONITORED) != 0;
    uint32_t count = is_confirmed ? 0 : find_gaps(core, &offer, gaps);
    if (count == LOCK_ACCEPT_PUTS_MAX || !unsettled_has_room(core, count) ||
        !lock_offer_restore(core, slot))
        return;
    MARK("start_offer_restored_later");
    for (uint32_t i = 0; i < count; i++)
        unsettled_add(core, &gaps[i]);
}

/* After grace what is left of them goes; a run that is resumed has no such end. */
static bool may_restore(const struct core *core)
{
    return core->offers_left > 0 && (grace_is_on(core) || core->is_resumed) && !core_is_full(core);
}

void recover_work(struct core *core)
{
    for (uint32_t i = 0;
         i < OFFERS_PER_TURN && may_restore(core) && core->now_ns >= core->offer_next_ns; i++) {
        core->offer_at = table_next(&core->locks.table, core->offer_at);
        if (core->offer_at == SLOT_NONE) /* once through all of them */
            core->offer_next_ns = core->now_ns + OFFERS_AGAIN_NS;
        else if (lock_at(core, core->offer_at)->is_left_over)
            settle_offer(core, core->offer_at);
    }
}

uint64_t recover_deadline_ns(const struct core *core)
{
    return may_restore(core) ? core->offer_next_ns : UINT64_MAX;
}

void recover_unsettle_all(struct core *core)
{
    const struct table *locks = &core->locks.table, *shares = &core->shares.table;
    unsettled_clear(core); /* there may be many pieces of few locks, and no room beside them */
    restore_offers(core);
    uint32_t slot = table_next(locks, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(locks, slot))
        unsettle_lock(core, slot);
    for (slot = table_next(shares, SLOT_NONE); slot != SLOT_NONE; slot = table_next(shares, slot))
        unsettle_share(core, slot);
}

/* A run in reclaim mode stores no waiters: their clients would be neither notified nor called. */
static bool has_lost_waiters(const struct core *core)
{
    const struct table *table = &core->clients.table;
    if (core->server.flags & RECORD_SERVER_WAITERS)
        return false;
    uint32_t slot = table_next(table, SLOT_NONE);
    while (slot != SLOT_NONE && !(client_at(core, slot)->stored.flags & RECORD_CLIENT_WAITS))
        slot = table_next(table, slot);
    return slot != SLOT_NONE || core->locks.offer_count > 0;
}

/*
 * D12: everything that was granted is stored, so a restarted server knows all of it. It continues
 * as if nothing had happened, with the same state number, unless the last run left something in
 * doubt: locks that nobody had confirmed, requests that waited and are not stored, or a store that
 * may have lost something.
 */
static bool may_resume(struct core *core)
{
    const struct record_server *server = &core->server;
    const char *because = NULL;
    if (!core->limits.resume || !core->server_loaded)
        return false;
    if (server->flags & RECORD_SERVER_INCOMPLETE)
        because = "the store may have lost records";
    else if (!(server->flags & RECORD_SERVER_SETTLED))
        because = "the last run ended before every stored lock was reclaimed or released";
    else if (has_lost_waiters(core))
        because = "the last run did not use resume, and requests were waiting";
    if (because == NULL)
        return true;
    MARK("start_cannot_resume");
    event_add(&core->events, EVENT_NOT_RESUMED, NULL, bytes_of_text(because), 0);
    return false;
}

bool core_is_of_role(const struct core *core)
{
    bool is_monitor = core->server.flags & RECORD_SERVER_MONITOR;
    return !core->server_loaded || is_monitor == core->limits.is_monitor;
}

/* The same boot of the machine, and the same network: a monitor's clients have lost nothing, and
 * everything continues. */
static bool is_same_boot(const struct core *core, const struct core_boot *boot)
{
    const struct record_server *server = &core->server;
    return core->server_loaded && server->boot_epoch != 0 &&
           memcmp(server->boot, boot->boot, RECORD_BOOT_LEN) == 0 && server->netns == boot->netns;
}

/* Which boot the state is of, in the record of the state: a crash between the two would notify
 * everybody twice, or nobody at all. */
static void note_boot(struct core *core, const struct core_boot *boot)
{
    struct record_server *server = &core->server;
    server->flags |= RECORD_SERVER_MONITOR;
    memcpy(server->boot, boot->boot, RECORD_BOOT_LEN);
    server->netns = boot->netns;
    if (!core->is_resumed)
        server->boot_epoch = server->epoch;
}

/* Is this the run before, continued? If not, we have a new state; and one past the clock where the
 * store may have lost the last one. */
static void choose_state(struct core *core, const struct core_boot *boot)
{
    struct record_server *server = &core->server;
    bool is_monitor = core->limits.is_monitor;
    core->is_resumed = is_monitor ? is_same_boot(core, boot) : may_resume(core);
    if (is_monitor && core->is_resumed) /* a new state cannot make up for hosts that are lost */
        server->flags &= ~(uint32_t)RECORD_SERVER_INCOMPLETE;
    if (!core->is_resumed)
        server->state = core_next_state(server->state);
    if (server->flags & RECORD_SERVER_INCOMPLETE) {
        uint32_t clock_state = (uint32_t)(boot->wall_ns / SECOND_NS & STATE_MAX) | 1;
        if (clock_state > server->state)
            server->state = clock_state;
    }
    if (!core->is_resumed)
        server->restart_state = server->state;
}

void core_start(struct core *core, const struct core_boot *boot)
{
    CHECK(!core->started);
    core->now_ns = boot->now_ns;
    core->wall_ns = boot->wall_ns;
    (void)core_loaded(core);
    struct record_server *server = &core->server;
    bool server_lost = !core->server_loaded && (core->records_loaded > 0 || core->corrupt_found);
    if (server_lost) {
        MARK("start_without_server_record");
        replace_lost_server(core, boot->wall_ns / SECOND_NS);
    }
    if (server->next_id == 0)
        server->next_id = 1;
    pass_what_is_loaded(core);
    if (server_lost || core->corrupt_found || boot->may_have_lost)
        server->flags |= RECORD_SERVER_INCOMPLETE;

    struct record_server before = *server;
    choose_state(core, boot);
    server->flags &= ~(uint32_t)RECORD_SERVER_WAITERS;
    server->flags |= core->limits.resume ? RECORD_SERVER_WAITERS : 0U;
    server->epoch++;
    if (core->limits.is_monitor)
        note_boot(core, boot);
    core->server_changed = true;
    core->state_txn = core_gate_txn(core);
    core->sync_wanted = true;
    notice_sweep(core);
    core->started = true;
    client_start(core);
    tracker_start(core);
    echo_begin(core, boot->echo_until_ns);
    if (core->is_resumed) {
        MARK("start_resumes");
        restore_offers(core); /* without a waiter: of a run before the last */
        waiter_start(core);
        probe_begin_all(core); /* one that rebooted while we were away could not tell us */
    } else {
        grant_drop_all(core); /* waiters that were loaded in the hope of a resume */
        recover_unsettle_all(core);
    }
    grace_begin(core);
    watched_count_owed(core);
    notify_restarted(core, &before);
}
