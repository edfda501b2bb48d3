/*
 * notify.c -- the schedule of calls to registrants; see notify.h.
 *
 * Always true once we are ready, and asserted by notify_check():
 *  (1) A registrant that is owed something is WAITING, CALLING or GIVEN UP; one that is owed
 *      nothing is IDLE, or CALLING with a call that is out of date. Nobody is forgotten (P3).
 *  (2) A WAITING job has a timer or waits at the gate; no other job has either.
 *  (3) A call says only what is durable: its after_txn was reached before it left (P1).
 *  (4) The members of a round are WAITING or CALLING and owed our state: a round always ends.
 *
 * A mark is cleared by an answer and by nothing else. What the answer proves is what the call said:
 * a state number that changed while the call was under way leaves the registrant owed the new one.
 */
#include "core/notify.h"

#include "base/check.h"
#include "base/text.h"
#include "core/state.h"

#include <stdlib.h>

#define SECOND_NS       UINT64_C(1000000000)
#define MS_NS           UINT64_C(1000000)
#define WINDOW_RETRY_NS (5 * SECOND_NS) /* D5 (4): at least this often while the window stands */
#define JITTER_NS       (SECOND_NS / 2)
#define LADDER_FIRST_NS (2 * SECOND_NS) /* R-NOTIFY-4 */
#define LADDER_LAST_NS  (120 * SECOND_NS)
#define RELAY_GAP_NS    (SECOND_NS / 100) /* D7 */

enum { DEFAULT_PORT = 12049 }; /* D3: where a registrant listens that tells us nothing better */

static struct registrant *registrant_of(const struct core *core, uint32_t slot)
{
    return table_at(&core->registrants.table, slot);
}

static struct notify_job *job_of(const struct core *core, uint32_t slot)
{
    return &core->notify.jobs[slot];
}

int notify_init(struct core *core, uint32_t slots_max)
{
    struct notify *notify = &core->notify;
    list_init(&notify->gated);
    notify->prng.state = core->seed;
    notify->jobs = calloc(slots_max > 0 ? slots_max : 1, sizeof *notify->jobs);
    return notify->jobs == NULL ? -1 : timers_init(&notify->timers, slots_max);
}

void notify_done(struct core *core)
{
    free(core->notify.jobs);
    timers_done(&core->notify.timers);
}

static bool owes_restart(const struct core *core, const struct registrant *r)
{
    return r->told_state != core->server.state;
}

static uint32_t owed_notice(const struct core *core, const struct registrant *r)
{
    uint32_t state = notice_state(core, r->mon_fold);
    return state != r->relayed_state ? state : 0;
}

static bool is_owed(const struct core *core, uint32_t slot)
{
    const struct registrant *r = registrant_of(core, slot);
    return owes_restart(core, r) || owed_notice(core, r) != 0;
}

static bool is_phase_owed(enum notify_phase phase)
{
    return phase != NOTIFY_IDLE;
}

static void set_phase(struct core *core, uint32_t slot, enum notify_phase phase)
{
    struct notify_job *job = job_of(core, slot);
    struct notify_counters *counters = &core->notify.counters;
    counters->owed += is_phase_owed(phase) && !is_phase_owed(job->phase);
    counters->owed -= !is_phase_owed(phase) && is_phase_owed(job->phase);
    job->phase = phase;
}

/* What it is told next must be durable first, and is tried for as long as anything new. */
static void renew(struct core *core, uint32_t slot)
{
    struct notify_job *job = job_of(core, slot);
    uint64_t window_end_ns = core->notify.window_end_ns;
    uint64_t from_ns = window_end_ns > core->now_ns ? window_end_ns : core->now_ns;
    job->after_txn = core_gate_txn(core);
    job->give_up_ns = from_ns + core->limits.give_up_ns;
    job->ladder_step = 0;
}

/* Something new is owed: tried at this time, as if for the first time. */
static void schedule(struct core *core, uint32_t slot, uint64_t time_ns)
{
    struct notify_job *job = job_of(core, slot);
    renew(core, slot);
    if (job->phase == NOTIFY_CALLING || !core->notify.is_ready)
        return; /* whether it is still owed something is asked when the call ends, or at ready */
    if (job->phase == NOTIFY_WAITING && !timers_is_set(&core->notify.timers, slot))
        return; /* at the gate already */
    if (job->phase != NOTIFY_WAITING) {
        job->attempt_count = 0;
        list_init(&job->by_gate);
        set_phase(core, slot, NOTIFY_WAITING);
    }
    job->has_turn = false;
    timers_set(&core->notify.timers, slot, time_ns);
}

/* Everybody was tried once: what an operator waits for after a restart. */
static void report_round(struct core *core)
{
    const struct notify_round *round = &core->notify.round;
    char buffer[EVENT_NAME_MAX];
    struct text text;
    MARK("notify_round_over");
    text_init(&text, buffer, sizeof buffer);
    text_add_count(&text, round->reached);
    text_add(&text, " of ");
    text_add_count(&text, round->count);
    text_add(&text, " reached, ");
    text_add_count(&text, round->failed);
    text_add(&text, " failed");
    event_add_summary(&core->events, EVENT_ROUND_OVER, bytes_of_text(buffer),
                      (core->now_ns - round->start_ns) / MS_NS);
}

static void leave_round(struct core *core, uint32_t slot)
{
    job_of(core, slot)->is_in_round = false;
    if (--core->notify.round.left == 0)
        report_round(core);
}

/* An attempt has ended. One that began before our state changed said nothing of it. */
static void end_first_attempt(struct core *core, uint32_t slot, bool is_reached)
{
    const struct notify_job *job = job_of(core, slot);
    if (!job->is_in_round || job->sent_state != core->server.state)
        return;
    *(is_reached ? &core->notify.round.reached : &core->notify.round.failed) += 1;
    leave_round(core, slot);
}

static void begin_round(struct core *core)
{
    struct notify_round *round = &core->notify.round;
    const struct table *table = &core->registrants.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    if (round->left > 0)
        MARK("notify_round_begins_anew");
    *round = (struct notify_round){.start_ns = core->now_ns};
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        bool is_member = owes_restart(core, registrant_of(core, slot));
        job_of(core, slot)->is_in_round = is_member;
        round->count += is_member;
    }
    round->left = round->count;
}

static void schedule_all_owed(struct core *core)
{
    const struct table *table = &core->registrants.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        if (is_owed(core, slot))
            schedule(core, slot, core->now_ns);
}

void notify_ready(struct core *core)
{
    CHECK(!core->notify.is_ready);
    core->notify.is_ready = true;
    core->notify.window_end_ns = core->now_ns + core->limits.window_ns;
    begin_round(core);
    schedule_all_owed(core);
}

void notify_restarted(struct core *core)
{
    if (!core->notify.is_ready)
        return;
    core->notify.window_end_ns = core->now_ns + core->limits.window_ns;
    begin_round(core);
    schedule_all_owed(core);
}

void notify_relay(struct core *core, uint32_t fold)
{
    const struct chains *by_name = &core->registrants.by_name;
    for (uint32_t slot = chains_first(by_name, fold); slot != SLOT_NONE;
         slot = chains_next(by_name, slot)) {
        if (job_of(core, slot)->phase == NOTIFY_WAITING)
            renew(core, slot); /* it is told when its time comes */
        else if (is_owed(core, slot))
            schedule(core, slot, core->now_ns);
    }
}

void notify_heard(struct core *core, uint32_t slot)
{
    struct notify_job *job = job_of(core, slot);
    renew(core, slot); /* its priv may be a new one */
    bool is_waiting = job->phase == NOTIFY_WAITING && timers_is_set(&core->notify.timers, slot);
    if (job->phase != NOTIFY_GIVEN_UP && !is_waiting)
        return;
    MARK("notify_heard_of_again");
    schedule(core, slot, core->now_ns);
}

void notify_forget(struct core *core, uint32_t slot)
{
    struct notify_job *job = job_of(core, slot);
    timers_clear(&core->notify.timers, slot);
    if (job->phase == NOTIFY_WAITING)
        list_remove(&job->by_gate);
    if (job->phase == NOTIFY_CALLING && job->attempt_count == 0)
        core->notify.counters.failed++; /* not reached, as far as we will ever know */
    if (job->is_in_round)
        leave_round(core, slot);
    set_phase(core, slot, NOTIFY_IDLE);
    *job = (struct notify_job){0};
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

/* D3: the port in a my_name of the form name:port, else the default. */
static uint16_t port_hint(struct bytes my_name)
{
    uint32_t port = 0, at = my_name.len;
    for (uint32_t scale = 1; at > 0 && my_name.at[at - 1] != ':'; at--, scale *= 10) {
        uint8_t c = my_name.at[at - 1];
        if (c < '0' || c > '9' || scale > 10000)
            return DEFAULT_PORT;
        port += scale * (uint32_t)(c - '0');
    }
    bool is_port = at > 1 && at < my_name.len && port > 0 && port <= UINT16_MAX;
    return is_port ? (uint16_t)port : DEFAULT_PORT;
}

static void put_status(struct core_call *call, struct bytes mon_name, uint32_t state)
{
    call->status[call->status_count++] = (struct core_call_status){mon_name, state};
}

/* The call to a registrant that is owed something. */
static void begin_call(struct core *core, uint32_t slot, struct core_call *ret)
{
    struct notify_job *job = job_of(core, slot);
    const struct registrant *r = registrant_of(core, slot);
    struct bytes my_name = intern_bytes(&core->names, r->my_name);
    *ret = (struct core_call){
        .id = core_call_id(CALL_OF_NOTIFY, table_handle(&core->registrants.table, slot)),
        .local = r->local,
        .prog = r->my_prog,
        .vers = r->my_vers,
        .proc = r->my_proc,
        .port_hint = port_hint(my_name),
        .deadline_ns = core->now_ns + core->limits.notify_timeout_ns,
        .priv = {r->priv, RECORD_PRIV_LEN},
    };
    memcpy(&ret->to, intern_bytes(&core->registrants.addresses, r->address).at, sizeof ret->to);
    job->sent_state = owes_restart(core, r) ? core->server.state : 0;
    job->sent_notice = owed_notice(core, r);
    if (job->sent_state != 0)
        put_status(ret, core->limits.server_name, job->sent_state);
    if (job->sent_notice != 0)
        put_status(ret, intern_bytes(&core->names, r->mon_name), job->sent_notice);
    job->has_turn = false;
    job->started_ns = core->now_ns;
    if (job->attempt_count == 0)
        core->notify.counters.started++;
    set_phase(core, slot, NOTIFY_CALLING);
}

/*
 * At most 100 relays per second (D7): false when this one must wait for its turn, which is then
 * its next deadline. A call that also says that we restarted is made anyway and needs no turn.
 */
static bool take_turn(struct core *core, uint32_t slot)
{
    struct notify *notify = &core->notify;
    struct notify_job *job = job_of(core, slot);
    if (job->has_turn || owes_restart(core, registrant_of(core, slot)))
        return true;
    uint64_t turn_ns = core->now_ns;
    if (notify->relay_next_ns > turn_ns)
        turn_ns = notify->relay_next_ns;
    notify->relay_next_ns = turn_ns + RELAY_GAP_NS;
    if (turn_ns == core->now_ns)
        return true;
    MARK("notify_relay_waits_its_turn");
    job->has_turn = true;
    timers_set(&notify->timers, slot, turn_ns);
    return false;
}

bool notify_next_call(struct core *core, struct core_call *ret)
{
    uint32_t slot;
    while ((slot = timers_take(&core->notify.timers, core->now_ns)) != SLOT_NONE) {
        struct notify_job *job = job_of(core, slot);
        CHECK(job->phase == NOTIFY_WAITING);
        if (!is_owed(core, slot)) {
            set_phase(core, slot, NOTIFY_IDLE);
        } else if (job->after_txn > core->durable_txn) {
            MARK("notify_waits_for_the_store");
            job->has_turn = false;
            list_append(&core->notify.gated, &job->by_gate);
        } else if (take_turn(core, slot)) {
            begin_call(core, slot, ret);
            return true;
        }
    }
    return false;
}

static void report(struct core *core, enum event_kind kind, uint32_t slot, uint32_t state)
{
    const struct registrant *r = registrant_of(core, slot);
    struct address address;
    memcpy(&address, intern_bytes(&core->registrants.addresses, r->address).at, sizeof address);
    event_add(&core->events, kind, &address, intern_bytes(&core->names, r->my_name), state);
}

static uint64_t jitter_ns(struct core *core)
{
    return prng_below(&core->notify.prng, JITTER_NS);
}

/* Not reached: when is it tried again? */
static void retry(struct core *core, uint32_t slot)
{
    struct notify *notify = &core->notify;
    struct notify_job *job = job_of(core, slot);
    uint64_t next_ns;
    if (core->now_ns < notify->window_end_ns) {
        next_ns = job->started_ns + WINDOW_RETRY_NS - jitter_ns(core);
        if (next_ns < core->now_ns)
            next_ns = core->now_ns;
    } else if (core->now_ns < job->give_up_ns) {
        uint64_t delay_ns = LADDER_FIRST_NS << (job->ladder_step < 6 ? job->ladder_step : 6);
        job->ladder_step++;
        MARK("notify_ladder");
        next_ns = core->now_ns + (delay_ns < LADDER_LAST_NS ? delay_ns : LADDER_LAST_NS);
        if (next_ns > job->give_up_ns)
            next_ns = job->give_up_ns; /* once more at the end */
    } else {
        MARK("notify_given_up");
        notify->counters.given_up++;
        report(core, EVENT_GIVEN_UP, slot, core->server.state);
        if (job->is_in_round) { /* our state changed during its last attempt */
            notify->round.failed++;
            leave_round(core, slot);
        }
        set_phase(core, slot, NOTIFY_GIVEN_UP);
        return;
    }
    list_init(&job->by_gate);
    set_phase(core, slot, NOTIFY_WAITING);
    timers_set(&notify->timers, slot, next_ns);
}

/* What the answers prove is written down: the mark is cleared (P3). */
static void clear_marks(struct core *core, uint32_t slot, uint32_t answered_count)
{
    struct notify_job *job = job_of(core, slot);
    struct registrant *r = registrant_of(core, slot);
    if (job->sent_state != 0 && answered_count > 0) {
        r->told_state = job->sent_state;
        answered_count--;
        dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
    } else if (job->sent_state != 0) {
        return;
    }
    if (job->sent_notice != 0 && answered_count > 0) {
        r->relayed_state = job->sent_notice;
        dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
    }
}

void notify_call_done(struct core *core, uint64_t id, bool is_answered, uint32_t answered_count)
{
    uint32_t slot = table_find(&core->registrants.table, id);
    if (slot == SLOT_NONE || job_of(core, slot)->phase != NOTIFY_CALLING) {
        MARK("notify_answer_for_nobody");
        return;
    }
    struct notify_job *job = job_of(core, slot);
    struct notify_counters *counters = &core->notify.counters;
    bool is_first = job->attempt_count++ == 0;
    *(is_answered ? (is_first ? &counters->succeeded : &counters->retries_succeeded)
                  : (is_first ? &counters->failed : &counters->retries_failed)) += 1;
    uint32_t said = job->sent_state != 0 ? job->sent_state : job->sent_notice;
    if (is_answered)
        report(core, EVENT_TOLD, slot, said);
    else if (is_first)
        report(core, EVENT_NOT_REACHED, slot, said);
    end_first_attempt(core, slot, is_answered || answered_count > 0);
    clear_marks(core, slot, answered_count);
    job->sent_state = job->sent_notice = 0;
    if (!is_owed(core, slot)) {
        set_phase(core, slot, NOTIFY_IDLE);
    } else if (is_answered) {
        MARK("notify_news_during_call");
        set_phase(core, slot, NOTIFY_IDLE);
        schedule(core, slot, core->now_ns);
    } else {
        retry(core, slot);
    }
}

uint64_t notify_deadline_ns(const struct core *core)
{
    return timers_next_ns(&core->notify.timers);
}

void notify_check(const struct core *core)
{
    const struct notify *notify = &core->notify;
    timers_check(&notify->timers);
    if (!notify->is_ready)
        return;
    const struct table *table = &core->registrants.table;
    uint32_t slot = table_next(table, SLOT_NONE), owed = 0, members = 0;
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        const struct notify_job *job = job_of(core, slot);
        bool is_timed = timers_is_set(&notify->timers, slot);
        bool is_gated = job->phase == NOTIFY_WAITING && !list_is_empty(&job->by_gate);
        CHECK(job->phase != NOTIFY_IDLE || !is_owed(core, slot));
        CHECK((job->phase == NOTIFY_WAITING) == (is_timed != is_gated));
        CHECK(!job->is_in_round ||
              (owes_restart(core, registrant_of(core, slot)) &&
               (job->phase == NOTIFY_WAITING || job->phase == NOTIFY_CALLING)));
        owed += job->phase != NOTIFY_IDLE;
        members += job->is_in_round;
    }
    CHECK(owed == notify->counters.owed);
    CHECK(members == notify->round.left);
}
