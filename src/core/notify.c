/*
 * notify.c -- the schedule of calls that tell of restarts and reboots; see notify.h.
 *
 * Always true once we are ready, and asserted by notify_check():
 *  (1) A target that is owed something is WAITING, CALLING or GIVEN UP; one that is owed nothing is
 *      IDLE, or CALLING with a call that is out of date. Nobody is forgotten (P3).
 *  (2) A WAITING job has a timer or waits at the gate; no other job has either.
 *  (3) A call says only what is durable: its after_txn was reached before it left (P1).
 *  (4) The members of a round are WAITING or CALLING and owed our state: a round always ends.
 *
 * A mark is cleared by an answer and by nothing else. What the answer proves is what the call said:
 * a state number that changed while the call was in flight leaves the target owed the new one.
 *
 * First attempts are all due at once, those that were active last first (R-NOTIFY-5): a deadline in
 * the past is as good as now, so the age of what we know of a target is its place in the queue.
 */
#include "core/notify.h"

#include "base/check.h"
#include "base/fetch.h"
#include "base/units.h"
#include "core/state.h"

#include <stdlib.h>

#define WINDOW_RETRY_NS (5 * SECOND_NS)  /* D5 (4): at least this often within the window */
#define LAST_CALL_NS    (10 * SECOND_NS) /* D5 (4): and once more so long before grace ends */
#define JITTER_NS       (SECOND_NS / 2)
#define LADDER_FIRST_NS (2 * SECOND_NS) /* R-NOTIFY-4 */
#define LADDER_LAST_NS  (120 * SECOND_NS)
#define RELAY_GAP_NS    (SECOND_NS / 100) /* D7 */

struct notify_job *notify_job(const struct core *core, uint32_t target)
{
    return &core->notify.jobs[target];
}

void notify_fetch(const struct core *core, uint32_t target)
{
    fetch_line(notify_job(core, target));
}

int notify_init(struct core *core, const uint32_t slots[])
{
    struct notify *notify = &core->notify;
    uint32_t targets_max = target_max(core, slots);
    list_init(&notify->gated);
    list_init(&notify->given_up);
    notify->prng.state = core->seed;
    notify->spare_at = SLOT_NONE;
    histogram_init(&notify->durations, &histogram_durations);
    notify->jobs = calloc(targets_max > 0 ? targets_max : 1, sizeof *notify->jobs);
    if (notify->jobs == NULL || unreached_init(core, slots[RECORD_CLIENT]) != 0)
        return -1;
    return timers_init(&notify->timers, targets_max);
}

void notify_done(struct core *core)
{
    free(core->notify.jobs);
    unreached_done(core);
    timers_done(&core->notify.timers);
}

static bool is_owed(const struct core *core, uint32_t target)
{
    struct target_news owed = target_owed(core, target);
    return owed.state != 0 || owed.notice != 0;
}

/* A monitor counts upcalls to its lock manager apart from notifications of hosts. */
static struct notify_counters *counters_of(struct core *core, uint32_t target)
{
    bool is_upcall = core->limits.is_monitor && target_kind(core, target) == TARGET_REGISTRANT;
    return is_upcall ? &core->notify.upcalls : &core->notify.counters;
}

static bool is_tried(const struct notify_job *job)
{
    return job->phase != NOTIFY_IDLE && job->attempt_count > 0;
}

static void set_attempts(struct core *core, uint32_t target, uint32_t count)
{
    struct notify_job *job = notify_job(core, target);
    struct notify_counters *counters = counters_of(core, target);
    counters->tried -= is_tried(job);
    job->attempt_count = count;
    counters->tried += is_tried(job);
}

static void set_phase(struct core *core, uint32_t target, enum notify_phase phase)
{
    struct notify_job *job = notify_job(core, target);
    struct notify_counters *counters = counters_of(core, target);
    bool was_given_up = job->phase == NOTIFY_GIVEN_UP, is_given_up = phase == NOTIFY_GIVEN_UP;
    if (was_given_up != is_given_up && target_kind(core, target) == TARGET_REGISTRANT) {
        if (is_given_up)
            list_append(&core->notify.given_up, &job->by_age);
        else
            list_remove(&job->by_age);
    }
    counters->owed += phase != NOTIFY_IDLE;
    counters->owed -= job->phase != NOTIFY_IDLE;
    counters->tried -= is_tried(job);
    job->phase = phase;
    counters->tried += is_tried(job);
}

/* What it is notified of next must be durable first, and is tried for as long as anything new. */
static void renew(struct core *core, uint32_t target)
{
    struct notify_job *job = notify_job(core, target);
    job->after_txn = core_gate_txn(core);
    job->news_ns = core->now_ns;
    job->ladder_step = 0;
}

/* Something new is owed: tried at this time, as if for the first time. */
static void schedule(struct core *core, uint32_t target, uint64_t time_ns)
{
    struct notify_job *job = notify_job(core, target);
    renew(core, target);
    if (job->phase == NOTIFY_CALLING || !core->notify.is_ready)
        return; /* whether it is still owed something is asked when the call ends, or at ready */
    if (job->phase == NOTIFY_WAITING && !timers_is_set(&core->notify.timers, target))
        return; /* at the gate already */
    if (job->phase != NOTIFY_WAITING) {
        set_attempts(core, target, 0);
        list_init(&job->by_gate);
        set_phase(core, target, NOTIFY_WAITING);
    }
    job->has_turn = false;
    timers_set(&core->notify.timers, target, time_ns);
}

/* ---- restarts ---- */

/* The place of a first attempt among all others: before those of whom less was heard recently. */
static uint64_t place_ns(const struct core *core, uint32_t target)
{
    uint64_t seen_ns = target_seen_ns(core, target);
    uint64_t age_ms = core->wall_ns > seen_ns ? (core->wall_ns - seen_ns) / MS_NS : 0;
    return age_ms < core->now_ns ? age_ms : core->now_ns;
}

void notify_open_window(struct core *core)
{
    uint64_t window_ns = core->limits.window_ns;
    if (core->limits.grace_ns > window_ns)
        window_ns = core->limits.grace_ns;
    core->notify.window_end_ns = core->now_ns + window_ns;
}

void notify_begin(struct core *core)
{
    notify_open_window(core);
    notify_round_begin(core);
    uint32_t target = target_next(core, SLOT_NONE);
    for (; target != SLOT_NONE; target = target_next(core, target))
        if (is_owed(core, target))
            schedule(core, target, place_ns(core, target));
}

void notify_ready(struct core *core)
{
    CHECK(!core->notify.is_ready);
    core->notify.is_ready = true;
    notify_begin(core);
}

void notify_restarted(struct core *core, const struct record_server *before)
{
    notify_spare_idle(core, before);
    notify_write_spared(core);
    if (core->notify.is_ready)
        notify_begin(core);
}

/* ---- news, and signs of life ---- */

void notify_relay(struct core *core, uint32_t fold)
{
    const struct chains *by_name = &core->registrants.index.by_name;
    for (uint32_t slot = chains_first(by_name, fold); slot != SLOT_NONE;
         slot = chains_next(by_name, slot)) {
        uint32_t target = target_of_registrant(slot);
        if (notify_job(core, target)->phase == NOTIFY_WAITING)
            renew(core, target); /* it is notified when its time comes */
        else if (is_owed(core, target))
            schedule(core, target, core->now_ns);
    }
}

void notify_news(struct core *core, uint32_t target)
{
    schedule(core, target, core->now_ns);
}

void notify_heard(struct core *core, uint32_t target)
{
    struct notify_job *job = notify_job(core, target);
    renew(core, target); /* its priv may be a new one */
    bool is_waiting = job->phase == NOTIFY_WAITING && timers_is_set(&core->notify.timers, target);
    if (job->phase != NOTIFY_GIVEN_UP && !is_waiting)
        return;
    MARK("notify_heard_of_again");
    schedule(core, target, core->now_ns);
}

void notify_forget(struct core *core, uint32_t target)
{
    struct notify_job *job = notify_job(core, target);
    timers_clear(&core->notify.timers, target);
    if (job->phase == NOTIFY_WAITING)
        list_remove(&job->by_gate);
    if (job->phase == NOTIFY_CALLING && job->attempt_count == 0)
        counters_of(core, target)->failed++; /* not reached, as far as we will ever know */
    if (target_kind(core, target) == TARGET_REGISTRANT) {
        /* somebody at its address has called for that */
        struct address address = target_address(core, target);
        unreached_heard(core, &address);
    }
    if (job->is_in_round)
        notify_round_leave(core, target, true);
    set_phase(core, target, NOTIFY_IDLE);
    *job = (struct notify_job){0};
}

void notify_dismiss(struct core *core, uint32_t target)
{
    struct notify_job *job = notify_job(core, target);
    if (job->phase == NOTIFY_CALLING)
        job->sent = (struct target_news){0}; /* let go when it ends, and its answer says nothing */
    if (job->phase == NOTIFY_IDLE || job->phase == NOTIFY_CALLING || is_owed(core, target))
        return;
    timers_clear(&core->notify.timers, target);
    if (job->phase == NOTIFY_WAITING)
        list_remove(&job->by_gate);
    set_phase(core, target, NOTIFY_IDLE);
}

void notify_stored(struct core *core)
{
    struct list *next;
    for (struct list *at = core->notify.gated.next; at != &core->notify.gated; at = next) {
        next = at->next;
        struct notify_job *job = LIST_ELEMENT(at, struct notify_job, by_gate);
        if (job->after_txn > core->durable_txn)
            continue;
        list_remove(at);
        timers_set(&core->notify.timers, (uint32_t)(job - core->notify.jobs), core->now_ns);
    }
}

/* ---- calls ---- */

/* Within the window a later attempt is over when the next one is due (D5 (4)). */
static uint64_t budget_ns(const struct core *core, uint32_t target)
{
    uint64_t timeout_ns = core->limits.notify_timeout_ns;
    bool is_first = notify_job(core, target)->attempt_count == 0;
    if (is_first || core->now_ns >= core->notify.window_end_ns || timeout_ns < WINDOW_RETRY_NS)
        return timeout_ns;
    return WINDOW_RETRY_NS;
}

/* The call to a target that is owed something. */
static void begin_call(struct core *core, uint32_t target, struct core_call *ret)
{
    struct notify_job *job = notify_job(core, target);
    job->sent = target_owed(core, target);
    target_put_call(core, target, job->sent, ret);
    ret->deadline_ns = core->now_ns + budget_ns(core, target);
    job->has_turn = false;
    job->started_ns = core->now_ns;
    if (job->attempt_count == 0)
        counters_of(core, target)->started++;
    set_phase(core, target, NOTIFY_CALLING);
}

/*
 * At most 100 relays per second (D7): false when this one must wait for its turn, which is then
 * its next deadline. A call that also says that we restarted is made anyway and needs no turn.
 */
static bool take_turn(struct core *core, uint32_t target)
{
    struct notify *notify = &core->notify;
    struct notify_job *job = notify_job(core, target);
    if (job->has_turn || target_owed(core, target).state != 0 || core->limits.is_monitor)
        return true; /* whom a monitor relays to is its own machine: no stranger is flooded */
    uint64_t turn_ns = core->now_ns;
    if (notify->relay_next_ns > turn_ns)
        turn_ns = notify->relay_next_ns;
    notify->relay_next_ns = turn_ns + RELAY_GAP_NS;
    if (turn_ns == core->now_ns)
        return true;
    MARK("notify_relay_waits_its_turn");
    job->has_turn = true;
    timers_set(&notify->timers, target, turn_ns);
    return false;
}

/* Is what it would be notified of now not durable yet? That is also so when our state number was
 * raised for somebody else's sake. */
static bool is_gated(const struct core *core, uint32_t target)
{
    struct notify_job *job = notify_job(core, target);
    if (target_owed(core, target).state != 0 && job->after_txn < core->state_txn)
        job->after_txn = core->state_txn;
    return job->after_txn > core->durable_txn;
}

bool notify_next_call(struct core *core, struct core_call *ret)
{
    uint32_t target;
    while ((target = timers_take(&core->notify.timers, core->now_ns)) != SLOT_NONE) {
        struct notify_job *job = notify_job(core, target);
        CHECK(job->phase == NOTIFY_WAITING);
        if (!is_owed(core, target)) {
            set_phase(core, target, NOTIFY_IDLE);
        } else if (is_gated(core, target)) {
            MARK("notify_waits_for_the_store");
            job->has_turn = false;
            list_append(&core->notify.gated, &job->by_gate);
        } else if (take_turn(core, target)) {
            begin_call(core, target, ret);
            return true;
        }
    }
    return false;
}

static uint64_t jitter_ns(struct core *core)
{
    return prng_below(&core->notify.prng, JITTER_NS);
}

/* Within the window: within 5 s of the last attempt, and 10 s before grace ends (D5 (4)). */
static uint64_t next_in_window_ns(struct core *core, const struct notify_job *job)
{
    const struct grace *grace = &core->grace;
    uint64_t next_ns = job->started_ns + WINDOW_RETRY_NS - jitter_ns(core);
    if (next_ns < core->now_ns)
        next_ns = core->now_ns;
    if (grace->phase != GRACE_STANDING || grace->end_ns < LAST_CALL_NS)
        return next_ns;
    uint64_t last_ns = grace->end_ns - LAST_CALL_NS;
    return core->now_ns < last_ns && next_ns > last_ns ? last_ns : next_ns;
}

static void give_up(struct core *core, uint32_t target)
{
    struct notify *notify = &core->notify;
    if (notify_job(core, target)->is_in_round) { /* our state changed during its last attempt */
        notify->round.failed++;
        notify_round_leave(core, target, false);
    }
    set_phase(core, target, NOTIFY_GIVEN_UP);
    target_given_up(core, target);
    if (!is_owed(core, target)) {
        notify_dismiss(core, target);
        (void)target_clear_debt(core, target);
        return;
    }
    MARK("notify_given_up");
    counters_of(core, target)->given_up++;
    target_report(core, EVENT_GIVEN_UP, target, core->server.state);
}

/* No attempt begins after that. */
static uint64_t give_up_at_ns(const struct core *core, const struct notify_job *job)
{
    uint64_t window_end_ns = core->notify.window_end_ns;
    uint64_t from_ns = window_end_ns > job->news_ns ? window_end_ns : job->news_ns;
    return from_ns + core->limits.give_up_ns;
}

/* Not reached: when is it tried again? */
static void retry(struct core *core, uint32_t target)
{
    struct notify *notify = &core->notify;
    struct notify_job *job = notify_job(core, target);
    uint64_t give_up_ns = give_up_at_ns(core, job);
    uint64_t next_ns;
    if (core->now_ns < notify->window_end_ns) {
        next_ns = next_in_window_ns(core, job);
    } else if (core->now_ns < give_up_ns) {
        uint64_t delay_ns = LADDER_FIRST_NS << (job->ladder_step < 6 ? job->ladder_step : 6);
        job->ladder_step++;
        MARK("notify_ladder");
        next_ns = core->now_ns + (delay_ns < LADDER_LAST_NS ? delay_ns : LADDER_LAST_NS);
        if (next_ns > give_up_ns)
            next_ns = give_up_ns; /* once more at the end */
    } else {
        give_up(core, target);
        return;
    }
    list_init(&job->by_gate);
    set_phase(core, target, NOTIFY_WAITING);
    timers_set(&notify->timers, target, next_ns);
}

void notify_call_done(struct core *core, uint32_t target, bool is_answered, uint32_t answered_count)
{
    if (target == SLOT_NONE || notify_job(core, target)->phase != NOTIFY_CALLING) {
        MARK("notify_answer_for_nobody");
        return;
    }
    struct notify_job *job = notify_job(core, target);
    struct notify_counters *counters = counters_of(core, target);
    bool is_first = job->attempt_count == 0;
    set_attempts(core, target, job->attempt_count + 1);
    *(is_answered ? (is_first ? &counters->succeeded : &counters->retries_succeeded)
                  : (is_first ? &counters->failed : &counters->retries_failed)) += 1;
    if (is_first && counters == &core->notify.counters)
        histogram_add(&core->notify.durations, core->now_ns - job->started_ns);
    uint32_t said = job->sent.state != 0 ? job->sent.state : job->sent.notice;
    if (is_answered && said != 0)
        target_report(core, EVENT_TOLD, target, said);
    else if (is_first && said != 0)
        target_report(core, EVENT_NOT_REACHED, target, said);
    target_answered(core, target, job->sent, is_answered, answered_count);
    notify_round_tried(core, target, is_answered || answered_count > 0);
    job->sent = (struct target_news){0};
    if (!is_owed(core, target)) {
        set_phase(core, target, NOTIFY_IDLE);
        (void)target_clear_debt(core, target);
    } else if (is_answered || target_has_other_way(core, target)) {
        MARK("notify_news_during_call");
        set_phase(core, target, NOTIFY_IDLE);
        schedule(core, target, core->now_ns);
    } else {
        retry(core, target);
    }
    notify_work(core);
}

void notify_work(struct core *core)
{
    notify_write_spared(core);
    unreached_work(core);
}

uint64_t notify_deadline_ns(const struct core *core)
{
    bool has_work = unreached_has_work(core) || core->notify.spare_at != SLOT_NONE;
    if (has_work && !core_is_full(core))
        return core->now_ns;
    return timers_next_ns(&core->notify.timers);
}

bool notify_is_given_up(const struct core *core, uint32_t target)
{
    return notify_job(core, target)->phase == NOTIFY_GIVEN_UP;
}

uint32_t notify_first_given_up(const struct core *core)
{
    const struct list *given_up = &core->notify.given_up;
    if (list_is_empty(given_up))
        return SLOT_NONE;
    const struct notify_job *job = LIST_ELEMENT(given_up->next, struct notify_job, by_age);
    return (uint32_t)(job - core->notify.jobs);
}

void notify_check(const struct core *core)
{
    const struct notify *notify = &core->notify;
    timers_check(&notify->timers);
    unreached_check(core);
    if (!notify->is_ready)
        return;
    uint32_t target = target_next(core, SLOT_NONE), owed = 0, tried = 0, members = 0;
    for (; target != SLOT_NONE; target = target_next(core, target)) {
        const struct notify_job *job = notify_job(core, target);
        bool is_timed = timers_is_set(&notify->timers, target);
        bool is_gated = job->phase == NOTIFY_WAITING && !list_is_empty(&job->by_gate);
        CHECK(job->phase != NOTIFY_IDLE || !is_owed(core, target));
        CHECK((job->phase == NOTIFY_WAITING) == (is_timed != is_gated));
        CHECK(!job->is_in_round ||
              (target_owed(core, target).state != 0 &&
               (job->phase == NOTIFY_WAITING || job->phase == NOTIFY_CALLING)));
        owed += job->phase != NOTIFY_IDLE;
        tried += is_tried(job);
        members += job->is_in_round;
    }
    CHECK(owed == notify->counters.owed + notify->upcalls.owed);
    CHECK(tried == notify->counters.tried + notify->upcalls.tried);
    CHECK(members == notify->round.left);
}
