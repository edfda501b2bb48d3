/*
 * core.c -- tells stories to the core alone: pure, virtual time, core_check after each step.
 *
 * Calls of the core are taken by clients that do what the story has them do. What is durable is
 * what lock_fixture.c stored; a restart has nothing else. An attempt to call a client that hears
 * nothing ends at once, one to a client that cannot be reached after five seconds.
 */
#include "base/check.h"
#include "stories/script.h"
#include "unit/core/lock_fixture.h"
#include "unit/core/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND FIXTURE_SECOND

enum { PENDING_MAX = 32, WAITS_MAX = 8, DELAY_S = 5 };

struct wait {
    bool is_open;
    uint32_t process, file;
    struct script_range range;
};

struct actor {
    struct locker who;
    const struct script_client *kind;
    enum script_mood mood;
    uint32_t state, says;
    uint32_t told_state; /* the last of ours that it was notified of */
    struct wait waits[WAITS_MAX];
    uint32_t granted[SCRIPT_PROCESSES]; /* callbacks that it took and the story has not told yet */
    struct script_range last[SCRIPT_PROCESSES];
    uint32_t called;
};

/* A call that has not ended. */
struct pending {
    struct core_call call;
    struct actor *of;
    enum lock_status decided;
    uint64_t due_ns; /* UINT64_MAX: when the story says so */
};

static struct core_limits limits;
static struct actor actors[SCRIPT_CLIENTS];
static struct pending pending[PENDING_MAX];
static uint32_t pending_count;

static const char *const file_names[SCRIPT_FILES] = {"f", "g", "h"};

static const char *cannot(const struct script *of, const struct script_step *step)
{
    if (!of->has_version[4])
        return "older versions are the codec's";
    if (step->has_status && step->value >= SCRIPT_STALE)
        return "the codec says that";
    if (step->range.len > UINT64_MAX / 2 || step->range.offset > INT64_MAX)
        return "ranges that are cut are the codec's";
    return NULL;
}

static void fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

/* ---- the clients ---- */

static struct locker locker_of(const struct actor *actor, uint32_t process)
{
    struct locker who = actor->who;
    who.svid = process + 1;
    return who;
}

static struct actor *actor_of(const struct core_call *call)
{
    bool is_grant = call->kind == CALL_GRANTED || call->kind == CALL_GRANTED_MSG;
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++) {
        struct address at = fixture_address(actors[i].who.address);
        if (address_equal(&at, &call->to) &&
            (!is_grant || bytes_equal(call->caller_name, bytes_of_text(actors[i].who.name))))
            return &actors[i];
    }
    fail("somebody is called whom the story does not know");
    return NULL;
}

static void ended(const struct core_call *call, enum core_call_outcome outcome, uint32_t status)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .call = call->id,
                               .outcome = outcome};
    if (call->kind == CALL_STAT)
        input.state = status;
    else if (call->kind == CALL_NOTIFY)
        input.answered_count = outcome == CALL_ANSWERED ? call->our_name_count : 0;
    else
        input.status = status;
    core_step(the_core, &input, NULL);
    core_check(the_core);
    settle();
}

static struct wait *wait_of(struct actor *actor, uint32_t process, uint32_t file,
                            const struct script_range *range)
{
    for (uint32_t i = 0; i < WAITS_MAX; i++) {
        struct wait *wait = &actor->waits[i];
        if (wait->is_open && wait->process == process && wait->file == file &&
            wait->range.offset == range->offset && wait->range.len == range->len)
            return wait;
    }
    return NULL;
}

/* It takes what it waits for, and nothing else. */
static enum lock_status decide(struct actor *actor, const struct core_call *call)
{
    struct script_range range = {call->offset, call->len, call->exclusive};
    uint32_t file = 0, process = call->svid - 1;
    while (file < SCRIPT_FILES && !bytes_equal(call->fh, bytes_of_text(file_names[file])))
        file++;
    struct wait *wait = wait_of(actor, process, file, &range);
    if (wait == NULL)
        return LOCK_DENIED;
    wait->is_open = false;
    actor->granted[process]++;
    actor->last[process] = range;
    return LOCK_GRANTED;
}

static void keep(struct actor *actor, const struct core_call *call, enum lock_status decided,
                 uint64_t due_ns)
{
    CHECK(pending_count < PENDING_MAX);
    pending[pending_count++] = (struct pending){*call, actor, decided, due_ns};
}

static void answer(struct actor *actor, const struct core_call *call, enum lock_status decided)
{
    uint64_t cookie = call->cookie;
    bool is_message = call->kind == CALL_GRANTED_MSG;
    ended(call, CALL_ANSWERED, is_message ? LOCK_STATUS_NONE : decided);
    if (is_message)
        granted_res(locker_of(actor, 0), cookie, decided);
}

static void called(struct actor *actor, const struct core_call *call)
{
    actor->called++;
    switch (actor->mood) {
    case SCRIPT_WELL:
        answer(actor, call, decide(actor, call));
        break;
    case SCRIPT_SILENT:
        ended(call, CALL_UNKNOWN, LOCK_STATUS_NONE);
        break;
    case SCRIPT_UNREACHABLE:
        keep(actor, call, LOCK_STATUS_NONE, fixture_now_ns() + DELAY_S * SECOND);
        break;
    case SCRIPT_MUTE:
        (void)decide(actor, call);
        ended(call, CALL_UNKNOWN, LOCK_STATUS_NONE);
        break;
    case SCRIPT_SLOW:
        keep(actor, call, decide(actor, call), UINT64_MAX);
        break;
    }
}

/* SM_NOTIFY, SM_STAT, or whether anybody is there. */
static void asked_for(struct actor *actor, const struct core_call *call)
{
    bool hears = actor->mood == SCRIPT_WELL || actor->mood == SCRIPT_SLOW;
    if (call->kind == CALL_STAT)
        ended(call, hears && actor->says > 0 ? CALL_ANSWERED : CALL_UNKNOWN,
              hears ? actor->says : 0);
    else if (hears) {
        actor->told_state = call->kind == CALL_NOTIFY ? call->our_state : actor->told_state;
        ended(call, CALL_ANSWERED, 0);
    } else if (actor->mood == SCRIPT_UNREACHABLE)
        keep(actor, call, LOCK_STATUS_NONE, fixture_now_ns() + DELAY_S * SECOND);
    else
        ended(call, CALL_UNKNOWN, 0);
}

static void end_pending(uint32_t index, enum core_call_outcome outcome, enum lock_status status)
{
    struct pending one = pending[index];
    pending[index] = pending[--pending_count];
    if (outcome == CALL_ANSWERED)
        answer(one.of, &one.call, status);
    else
        ended(&one.call, outcome, LOCK_STATUS_NONE);
}

/* Whatever is due now happens. */
static void live(void)
{
    struct core_call call;
    settle();
    for (uint32_t i = 0; i < pending_count;)
        if (pending[i].due_ns <= fixture_now_ns()) {
            end_pending(i, CALL_UNDELIVERED, LOCK_STATUS_NONE);
            i = 0;
        } else {
            i++;
        }
    while (fixture_next_call(the_core, &call)) {
        struct actor *actor = actor_of(&call);
        if (call.kind == CALL_GRANTED || call.kind == CALL_GRANTED_MSG)
            called(actor, &call);
        else
            asked_for(actor, &call);
        settle();
    }
}

static void pass(uint64_t ms)
{
    while (ms > 0) {
        uint64_t piece = ms < 1000 ? ms : 1000;
        fixture_wait(piece * (SECOND / 1000));
        ms -= piece;
        live();
    }
}

/* ---- what they do ---- */

static struct request request_of(const struct script_step *step, enum request_kind kind)
{
    struct actor *actor = &actors[step->client];
    int how = (step->range.exclusive ? X : S) | (step->wait ? BLOCK : 0) |
              (step->reclaim ? RECLAIM : 0) | (actor->kind->is_unmonitored ? UNMONITORED : 0) |
              (actor->kind->sends_messages ? MESSAGE : 0);
    struct request request = locker_request(kind, locker_of(actor, step->process),
                                            step->range.offset, step->range.len, how);
    request.lock.fh = bytes_of_text(file_names[step->file]);
    request.lock.mode = step->mode;
    request.lock.access = step->access;
    request.lock.state = actor->kind->is_unmonitored ? 0 : actor->state;
    if (step->has_state)
        request.lock.state = step->state;
    else if (step->reclaim)
        request.lock.state = 0; /* as Linux does */
    return request;
}

/* It is on its list before the request leaves, and stays there if it is told to wait. */
static struct wait *begin_wait(const struct script_step *step)
{
    struct actor *actor = &actors[step->client];
    struct wait *wait = wait_of(actor, step->process, step->file, &step->range);
    for (uint32_t i = 0; wait == NULL && i < WAITS_MAX; i++)
        if (!actor->waits[i].is_open)
            wait = &actor->waits[i];
    CHECK(wait != NULL);
    *wait = (struct wait){true, step->process, step->file, step->range};
    return wait;
}

static void ask(const struct script_step *step, struct script_seen *ret)
{
    static const enum request_kind kinds[] = {
        [SCRIPT_LOCK] = REQUEST_NLM_LOCK,     [SCRIPT_UNLOCK] = REQUEST_NLM_UNLOCK,
        [SCRIPT_CANCEL] = REQUEST_NLM_CANCEL, [SCRIPT_TEST] = REQUEST_NLM_TEST,
        [SCRIPT_SHARE] = REQUEST_NLM_SHARE,   [SCRIPT_UNSHARE] = REQUEST_NLM_UNSHARE,
    };
    struct actor *actor = &actors[step->client];
    struct request request = request_of(step, kinds[step->verb]);
    struct wait *wait = step->wait ? begin_wait(step) : NULL;
    struct wait *cancelled = step->verb == SCRIPT_CANCEL
                                 ? wait_of(actor, step->process, step->file, &step->range)
                                 : NULL;
    if (cancelled != NULL && cancelled->range.exclusive == step->range.exclusive)
        cancelled->is_open = false;
    struct response response = locker_step(locker_of(actor, step->process), &request);
    ret->value = response.status;
    if (wait != NULL && response.status != LOCK_BLOCKED && response.status != LOCK_GRACE)
        wait->is_open = false;
    if (step->verb == SCRIPT_TEST && response.status == LOCK_DENIED) {
        const struct lock_holder *holder = &response.holder;
        bool to_end = holder->end == UINT64_MAX;
        ret->has_holder = true;
        ret->svid = holder->svid;
        ret->held = (struct script_range){
            holder->start, to_end ? 0 : holder->end - holder->start + 1, holder->exclusive};
    }
}

static void free_everything(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    struct actor *actor = &actors[step->client];
    struct request request = {.kind = REQUEST_NLM_FREE_ALL,
                              .mon_name = bytes_of_text(actor->who.name),
                              .state = step->has_state ? step->state : 0};
    (void)locker_step(actor->who, &request);
}

static void reboot(const struct script_step *step, struct script_seen *ret)
{
    struct actor *actor = &actors[step->client];
    (void)ret;
    memset(actor->waits, 0, sizeof actor->waits);
    memset(actor->granted, 0, sizeof actor->granted);
    actor->state = step->has_state ? step->state : actor->state + 2;
    actor->says = actor->state;
    if (step->value)
        (void)notify(actor->who, actor->who.name, actor->state);
}

/* The first call that it kept back is answered. */
static void answer_late(const struct script_step *step, struct script_seen *ret)
{
    for (uint32_t i = 0; i < pending_count; i++)
        if (pending[i].of == &actors[step->client] && pending[i].due_ns == UINT64_MAX) {
            end_pending(i, CALL_ANSWERED,
                        step->has_status ? (enum lock_status)step->value : pending[i].decided);
            return;
        }
    snprintf(ret->why, sizeof ret->why, "it was not called");
}

static void expect_grant(const struct script_step *step, struct script_seen *ret)
{
    struct actor *actor = &actors[step->client];
    uint32_t *granted_count = &actor->granted[step->process];
    const struct script_range *last = &actor->last[step->process];
    for (uint64_t ms = 0; *granted_count == 0 && ms < step->ms; ms += 1000)
        pass(1000);
    ret->value = *granted_count > 0;
    if (step->verb == SCRIPT_IS_GRANTED && *granted_count > 0)
        --*granted_count;
    if (ret->value == 1 && step->has_range &&
        (last->offset != step->range.offset || last->len != step->range.len ||
         last->exclusive != step->range.exclusive))
        snprintf(ret->why, sizeof ret->why, "the callback is about another lock");
}

static void see_notified(const struct script_step *step, struct script_seen *ret)
{
    const struct actor *actor = &actors[step->client];
    uint32_t ours = fixture_status(the_core).state;
    for (uint64_t ms = 0; actor->told_state != ours && ms < step->ms; ms += 1000)
        pass(1000);
    ret->value = actor->told_state == ours;
}

/* ---- one function for each verb ---- */

static void send_notice(const struct script_step *step, struct script_seen *ret)
{
    const struct actor *actor = &actors[step->client];
    (void)ret;
    (void)notify(actor->who, step->word[0] ? step->word : actor->who.name, step->state);
}

static void have_state(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    actors[step->client].says = step->state;
}

static void be(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    actors[step->client].mood = step->mood;
}

static void stop_waiting(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    memset(actors[step->client].waits, 0, sizeof actors[0].waits);
}

static void expect_call(const struct script_step *step, struct script_seen *ret)
{
    if (actors[step->client].called == 0)
        snprintf(ret->why, sizeof ret->why, "it is not called");
    actors[step->client].called = 0;
}

static void let_pass(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    pass(step->ms);
}

static void restart_server(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    (void)ret;
    pending_count = 0; /* calls end with the process that made them */
    restart_with(&limits);
}

static void simulate_crash(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    (void)ret;
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700);
}

static void see_grace(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    ret->value = fixture_status(the_core).grace.is_on;
}

static void count(const struct script_step *step, struct script_seen *ret)
{
    struct core_status status = fixture_status(the_core);
    const uint32_t counts[] = {[SCRIPT_LOCKS] = status.locks,
                               [SCRIPT_WAITERS] = status.waiters,
                               [SCRIPT_OFFERS] = status.offers,
                               [SCRIPT_CLIENTS_KNOWN] = status.clients,
                               [SCRIPT_UNSETTLED] = status.grace.unsettled,
                               [SCRIPT_SHARES] = status.shares,
                               [SCRIPT_CRASHES] = (uint32_t)status.reboots.crashes_detected,
                               [SCRIPT_OWED] = status.notify.owed};
    ret->value = counts[step->noun];
}

static void order(const struct script_step *step, struct script_seen *ret)
{
    static const enum order_kind kinds[SCRIPT_VERBS] = {[SCRIPT_RELEASES] = ORDER_RELEASE,
                                                        [SCRIPT_TELLS] = ORDER_NOTIFY,
                                                        [SCRIPT_ENDS_GRACE] = ORDER_END_GRACE};
    struct order given = {.kind = kinds[step->verb]};
    if (given.kind != ORDER_END_GRACE)
        given.client = client_of(actors[step->client].who)->stored.id;
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .order = &given};
    struct core_answer answer = {0};
    core_step(the_core, &input, &answer);
    core_check(the_core);
    if (answer.order_result != ORDER_DONE)
        snprintf(ret->why, sizeof ret->why, "the order ends with %d", (int)answer.order_result);
}

static void live_on(const struct script_step *step)
{
    (void)step;
    live();
}

/* ---- the beginning and the end ---- */

static void configure(const struct script *of)
{
    limits = fixture_limits;
    limits.grace_ns = script_option(of, "grace", 90) * SECOND;
    limits.hold_unreachable = script_option(of, "hold", 0);
    limits.trust_reclaim = script_option(of, "trust-reclaim", 0);
    limits.resume = script_option(of, "resume", 0);
    limits.verify_notices = script_option(of, "verify-notify", 0);
    limits.distrust_state = script_option(of, "distrust-state", 0);
    limits.locks_max = script_option(of, "max-locks", limits.locks_max);
    limits.locks_per_client_max =
        script_option(of, "max-locks-per-client", limits.locks_per_client_max);
    limits.waiters_max = script_option(of, "max-waiters", limits.waiters_max);
    limits.clients_max = script_option(of, "max-clients", limits.clients_max);
    limits.give_up_ns = script_option(of, "give-up", 900) * SECOND;
    limits.per_address_percent = script_option(of, "max-per-address", 0);
}

static void begin(const struct script *of, const struct script_way *way)
{
    static const char *const addresses[] = {"10.0.0.2", "10.0.0.3", "10.0.0.4",
                                            "10.0.0.5", "10.0.0.6", "10.0.0.7"};
    (void)way;
    locker_new(&limits);
    are_calibrated = false; /* their status monitors are asked, as always */
    fixture_wait(SECOND);   /* wall clock 0 would be "never" */
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        actors[i] =
            (struct actor){.who = {addresses[of->clients[i].behind], of->clients[i].name, 1},
                           .kind = &of->clients[i],
                           .state = 3,
                           .says = 3};
}

static void end(void)
{
    locker_done();
}

static const struct script_driver driver = {
    .name = "core",
    .jobs = 1,
    .configure = configure,
    .cannot = cannot,
    .begin = begin,
    .act = {SCRIPT_CALLS(ask),
            [SCRIPT_FREE_ALL] = free_everything,
            [SCRIPT_REBOOTS] = reboot,
            [SCRIPT_NOTIFIES] = send_notice,
            [SCRIPT_HAS_STATE] = have_state,
            [SCRIPT_IS] = be,
            [SCRIPT_STOPS_WAITING] = stop_waiting,
            [SCRIPT_IS_CALLED] = expect_call,
            [SCRIPT_ANSWERS] = answer_late,
            [SCRIPT_IS_GRANTED] = expect_grant,
            [SCRIPT_IS_NOT_GRANTED] = expect_grant,
            [SCRIPT_IS_NOTIFIED] = see_notified,
            [SCRIPT_PASS] = let_pass,
            [SCRIPT_RESTARTS] = restart_server,
            [SCRIPT_SIMULATES] = simulate_crash,
            [SCRIPT_GRACE_IS] = see_grace,
            [SCRIPT_THERE_ARE] = count,
            [SCRIPT_RELEASES] = order,
            [SCRIPT_TELLS] = order,
            [SCRIPT_ENDS_GRACE] = order},
    .settle = live_on,
    .end = end,
    .fail = fail,
};

int main(int argument_count, char **values)
{
    return script_command(&driver, argument_count, values);
}
