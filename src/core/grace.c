/*
 * grace.c -- see grace.h.
 *
 * Always true:
 *  (1) While grace is on, whatever is unsettled stays.
 *  (2) When it is over, a client with anything unsettled has a deadline in `drop`, or is held
 *      because it was not notified (R-GRACE-5).
 *
 * Nothing of this is stored but its end: the flag `incomplete` goes then (D16), and the flag
 * `settled` comes when nothing is unsettled any more, which a resume asks for (D12).
 */
#include "core/grace.h"

#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"
#include "core/state.h"

#define LATE_NS  (30 * SECOND_NS) /* D5 (5): L, unless half the grace is shorter */
#define QUIET_NS (5 * SECOND_NS)  /* R-GRACE-10 */

enum { DROPPED_PER_TURN = 2000 };

int grace_init(struct core *core, const uint32_t slots[])
{
    return timers_init(&core->grace.drop, slots[RECORD_CLIENT]);
}

void grace_done(struct core *core)
{
    timers_done(&core->grace.drop);
}

static uint32_t unsettled_total(const struct core *core)
{
    /* In a run that continues where the last one ended, an offer without its waiter is a lock like
     * the others: nobody has to confirm it. */
    uint32_t offers_left = core->is_resumed ? 0 : core->offers_left;
    return unsettled_count(core) + core->grace.unsettled_shares + offers_left;
}

bool grace_is_on(const struct core *core)
{
    return core->grace.phase != GRACE_OVER;
}

bool grace_trusts(const struct core *core)
{
    return core->grace.must_last || core->limits.trust_reclaim;
}

static void note_settled(struct core *core)
{
    if (grace_is_on(core) || unsettled_total(core) > 0 ||
        (core->server.flags & RECORD_SERVER_SETTLED))
        return;
    MARK("grace_all_settled");
    core->server.flags |= RECORD_SERVER_SETTLED;
    core->server_changed = true;
}

void grace_begin(struct core *core)
{
    struct grace *grace = &core->grace;
    grace->must_last = core->server.flags & RECORD_SERVER_INCOMPLETE;
    bool is_needed = unsettled_total(core) > 0 || grace->must_last;
    grace->phase = is_needed ? GRACE_WAITING : GRACE_OVER;
    grace->after_txn = core_gate_txn(core);
    if (is_needed && (core->server.flags & RECORD_SERVER_SETTLED)) {
        core->server.flags &= ~(uint32_t)RECORD_SERVER_SETTLED;
        core->server_changed = true;
    }
    note_settled(core);
}

void grace_begin_anew(struct core *core)
{
    core->is_resumed = false;
    grant_drop_all(core);
    recover_unsettle_all(core);
    uint32_t slot = table_next(&core->clients.table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&core->clients.table, slot)) {
        struct client *client = client_at(core, slot);
        client->recovery.reached_ns = client->recovery.told_ns = client->recovery.reclaimed_ns = 0;
        client->recovery.is_given_up = false;
        client->recovery.reclaimed_count = client->recovery.lost_count = 0;
        client->recovery.is_summed_up = false;
        timers_clear(&core->grace.drop, slot);
    }
    grace_begin(core);
}

/*
 * Answers from before a simulated crash may still wait for the store. What they grant is unsettled
 * by now, and must not be released before they have left: they leave with our new state at the
 * latest.
 */
void grace_stored(struct core *core)
{
    struct grace *grace = &core->grace;
    if (grace->phase != GRACE_WAITING || !grace->is_ready || core->durable_txn < grace->after_txn)
        return;
    grace->phase = GRACE_STANDING;
    grace->end_ns = core->now_ns + core->limits.grace_ns;
    notify_open_window(core);
}

void grace_ready(struct core *core)
{
    core->grace.is_ready = true;
    grace_stored(core);
}

/* L of D5 (5). */
static uint64_t late_ns(const struct core *core)
{
    uint64_t half_ns = core->limits.grace_ns / 2;
    return half_ns < LATE_NS ? half_ns : LATE_NS;
}

static bool has_unsettled(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    return client->recovery.unsettled_count > 0 || client->recovery.unsettled_shares > 0 ||
           (client->recovery.left_over_count > 0 && !core->is_resumed);
}

/* R-GRACE-5: as long as it may still be notified. That it calls does not mean that it knows, unless
 * it reclaims. */
static bool is_held(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    return core->limits.hold_unreachable && client->recovery.told_ns == 0 &&
           client->recovery.reclaimed_ns == 0 && !client->recovery.is_given_up &&
           !core->grace.is_cut_short;
}

/* Until when what this client has left unsettled stays, now that grace is over; UINT64_MAX: until
 * it is notified, or the notifier gives up. */
static uint64_t stays_until_ns(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    uint64_t over_ns = core->grace.last_end_ns, until_ns = over_ns;
    /* One that called before it was notified has its time from then on, when it knows. */
    uint64_t reached_ns = max_u64(client->recovery.reached_ns, client->recovery.told_ns);
    /* `hold` lets it be notified long after the end; it then has its time all the same. */
    uint64_t cap_ns = max_u64(over_ns, client->recovery.told_ns) + core->limits.grace_ns;
    if (core->grace.is_cut_short)
        return over_ns;
    if (is_held(core, slot))
        return UINT64_MAX;
    if (reached_ns != 0 && reached_ns + late_ns(core) > over_ns) {
        MARK("grace_judge_late");
        until_ns = reached_ns + late_ns(core);
    }
    if (client->recovery.reclaimed_ns != 0 && client->recovery.reclaimed_ns + QUIET_NS > until_ns) {
        MARK("grace_still_reclaiming");
        until_ns = client->recovery.reclaimed_ns + QUIET_NS;
    }
    return until_ns < cap_ns ? until_ns : cap_ns;
}

static void set_drop(struct core *core, uint32_t slot)
{
    uint64_t until_ns = stays_until_ns(core, slot);
    if (until_ns == UINT64_MAX)
        timers_clear(&core->grace.drop, slot);
    else
        timers_set(&core->grace.drop, slot, max_u64(until_ns, core->now_ns));
}

/* Once it has nothing left to reclaim: how much it has, and how much it lost. */
static void sum_up(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    uint64_t lost = client->recovery.lost_count, all = client->recovery.reclaimed_count + lost;
    bool is_over = all > 0 && !has_unsettled(core, slot) && list_is_empty(&client->life.draining);
    if (!is_over || client->recovery.is_summed_up)
        return;
    client->recovery.is_summed_up = true;
    struct address address = client_address(core, slot);
    event_add_part(&core->events, lost > 0 ? EVENT_CLIENT_LOST : EVENT_CLIENT_RECLAIMED, &address,
                   intern_bytes(&core->names, client->stored.name), all - lost, all);
}

static void end(struct core *core, bool by_operator)
{
    struct grace *grace = &core->grace;
    grace->phase = GRACE_OVER;
    grace->last_end_ns = core->now_ns;
    grace->must_last = false;
    grace->is_cut_short = by_operator;
    if (core->server.flags & RECORD_SERVER_INCOMPLETE) {
        core->server.flags &= ~(uint32_t)RECORD_SERVER_INCOMPLETE;
        core->server_changed = true;
    }
    uint32_t left = unsettled_total(core);
    event_add(&core->events, left > 0 ? EVENT_GRACE_OVER : EVENT_GRACE_SETTLED, NULL,
              (struct bytes){0}, left);
    const struct table *table = &core->clients.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        if (has_unsettled(core, slot))
            set_drop(core, slot);
        sum_up(core, slot); /* it may have unlocked its last one instead */
    }
    note_settled(core);
}

bool grace_is_unstored(const struct core *core)
{
    return grace_is_on(core) && core->durable_txn < core->grace.after_txn;
}

bool grace_end_now(struct core *core)
{
    if (!grace_is_on(core) && unsettled_total(core) == 0)
        return false;
    end(core, true);
    return true;
}

void grace_judge(struct core *core, uint32_t slot)
{
    if (!grace_is_on(core) && has_unsettled(core, slot))
        set_drop(core, slot);
}

void grace_told(struct core *core, uint32_t slot)
{
    client_at(core, slot)->recovery.told_ns = core->now_ns > 0 ? core->now_ns : 1;
    grace_judge(core, slot);
}

void grace_reclaimed(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    uint64_t now_ns = core->now_ns > 0 ? core->now_ns : 1;
    if (is_held(core, slot)) {
        MARK("grace_hold_ends_with_a_reclaim"); /* it knows, whatever became of its answer */
        client->recovery.told_ns = now_ns;
    }
    client->recovery.reclaimed_ns = now_ns;
    grace_judge(core, slot);
    if (!grace_is_on(core) || !grace_trusts(core)) /* else more may come than is stored */
        sum_up(core, slot);
}

void grace_given_up(struct core *core, uint32_t slot)
{
    client_at(core, slot)->recovery.is_given_up = true;
    grace_judge(core, slot);
}

/* Gives up what a client has left, as long as the batch takes it, with at most `*left` pieces and
 * locks looked at, and returns how many pieces. False: a rest of a lock finds no slot. */
static bool drop(struct core *core, uint32_t slot, uint32_t *left, uint32_t *ret_count)
{
    uint32_t count = 0;
    bool has_slots = true;
    struct claim claim;
    while (has_slots && !core_is_full(core) && unsettled_of_client(core, slot, left, &claim)) {
        has_slots = lock_give_up(core, &claim);
        count += has_slots ? 1 : 0;
    }
    uint32_t more = leftover_drop(core, slot, *left);
    more += share_drop_unsettled(core, slot, *left - more);
    *left -= more;
    *ret_count = count + more;
    return has_slots;
}

/* What had to be due by now to be released in this turn: calls that came in time may be unread. */
static uint64_t due_ns(const struct core *core)
{
    if (!core->must_listen)
        return core->now_ns;
    MARK("grace_listens_first");
    return core->now_ns > late_ns(core) ? core->now_ns - late_ns(core) : 0;
}

void grace_work(struct core *core)
{
    struct grace *grace = &core->grace;
    bool is_settled = unsettled_total(core) == 0 && !grace->must_last;
    if (grace->phase == GRACE_STANDING && (is_settled || due_ns(core) >= grace->end_ns))
        end(core, false);
    if (grace->phase == GRACE_WAITING && is_settled)
        end(core, false);
    uint32_t left = DROPPED_PER_TURN, slot;
    while (left > 0 && !core_is_full(core) &&
           (slot = timers_take(&grace->drop, due_ns(core))) != SLOT_NONE) {
        if (!has_unsettled(core, slot))
            continue;
        uint64_t until_ns = stays_until_ns(core, slot); /* it may have reclaimed since */
        if (until_ns > core->now_ns) {
            set_drop(core, slot);
            continue;
        }
        uint32_t count = 0;
        bool has_slots = drop(core, slot, &left, &count);
        grace->counters.dropped += count;
        client_at(core, slot)->recovery.lost_count += count;
        if (client_at(core, slot)->life.is_counted) /* it is not there, which is a crash (D5) */
            client_count_freed(core, slot, count);
        if (has_unsettled(core, slot))
            timers_set(&grace->drop, slot, core->now_ns + (has_slots ? 0 : SECOND_NS));
        sum_up(core, slot);
    }
    note_settled(core);
}

uint64_t grace_deadline_ns(const struct core *core)
{
    const struct grace *grace = &core->grace;
    if (grace->phase == GRACE_STANDING) {
        bool is_settled = unsettled_total(core) == 0 && !grace->must_last;
        return is_settled ? core->now_ns : grace->end_ns;
    }
    /* A full batch takes nothing more: what is due is done when it has been stored. */
    return core_is_full(core) ? UINT64_MAX : timers_next_ns(&grace->drop);
}

void grace_status(const struct core *core, struct grace_status *ret)
{
    const struct grace *grace = &core->grace;
    bool is_timed = grace->phase == GRACE_STANDING && grace->end_ns > core->now_ns;
    *ret = (struct grace_status){
        .is_on = grace_is_on(core),
        .remaining_ns = is_timed                        ? grace->end_ns - core->now_ns
                        : grace->phase == GRACE_WAITING ? core->limits.grace_ns
                                                        : 0,
        .unsettled = unsettled_total(core),
    };
}

void grace_check(const struct core *core)
{
    const struct table *clients = &core->clients.table;
    uint32_t shares = 0;
    timers_check(&core->grace.drop);
    uint32_t slot = table_next(clients, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(clients, slot)) {
        shares += client_at(core, slot)->recovery.unsettled_shares;
        bool is_timed = timers_is_set(&core->grace.drop, slot);
        CHECK(!has_unsettled(core, slot) || grace_is_on(core) || is_timed || is_held(core, slot));
    }
    CHECK(shares == core->grace.unsettled_shares);
}
