/*
 * sim.c -- tells stories in the simulated world: bytes over a network, rpc/ and core/ under a disk.
 *
 * The clients are the lockers of tests/sim, of the kind of Linux (macOS for messages, PC-NFS for
 * the unmonitored), and what they rely on is judged by the oracle as always. They do nothing by
 * themselves; what they reclaim the story says. A file has 16 bytes here, of which the last stands
 * for the rest, and a process has one call under way.
 */
#include "stories/sim.h"

#include "sim/ask.h"
#include "sim/callee.h"
#include "sim/claim.h"
#include "sim/machine.h"
#include "sim/story.h"
#include "stories/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;
static bool is_verbose;
static struct extent wishes[SCRIPT_CLIENTS][SCRIPT_PROCESSES];
static uint32_t callbacks_told;
static bool expects[SCRIPT_CLIENTS][SCRIPT_PROCESSES];

static const char *cannot(const struct script *script, const struct script_step *step)
{
    uint64_t moved = step->by * (step->times - 1);
    bool has_range = step->verb <= SCRIPT_TEST;
    if (script_option(script, "trust-reclaim", 0))
        return "its oracle knows no --trust-reclaim";
    if (script->as_one_client && step->client >= LOCKER_PROCESSES_MAX)
        return "a client has three processes there";
    if (has_range && (step->range.offset + step->range.len + moved >= LOCKER_CELLS ||
                      step->range.offset + moved >= LOCKER_CELLS))
        return "its files have 15 bytes";
    if (step->verb == SCRIPT_IS && step->mood == SCRIPT_SLOW)
        return "an answer arrives there or is lost, but is not kept back";
    if (step->has_status && step->verb <= SCRIPT_UNSHARE && step->value >= SCRIPT_STALE)
        return "its clients have good handles and ranges";
    return NULL;
}

static void fail(const char *message)
{
    world_fail(world, "its story", "\n%s", message);
}

static struct process *process_of(const struct script_step *step)
{
    return &world->lockers->at[step->client].processes[step->process];
}

static struct extent extent_of(const struct script_step *step)
{
    return (struct extent){.file = step->file,
                           .offset = step->range.offset,
                           .len = step->range.len,
                           .exclusive = step->range.exclusive};
}

/* ---- calls ---- */

static struct ask_what what_of(const struct script_step *step, const struct process *process)
{
    static const enum peer_nlm_procedure procedures[] = {
        [SCRIPT_LOCK] = PEER_NLM_LOCK,     [SCRIPT_UNLOCK] = PEER_NLM_UNLOCK,
        [SCRIPT_CANCEL] = PEER_NLM_CANCEL, [SCRIPT_TEST] = PEER_NLM_TEST,
        [SCRIPT_SHARE] = PEER_NLM_SHARE,   [SCRIPT_UNSHARE] = PEER_NLM_UNSHARE,
    };
    struct ask_what what = {.procedure = procedures[step->verb],
                            .extent = extent_of(step),
                            .block = step->wait || step->verb == SCRIPT_CANCEL,
                            .reservation = {step->mode, step->access},
                            .reclaim = step->reclaim};
    if (process->locker->kind == LOCKER_PCNFS && step->verb == SCRIPT_LOCK)
        what.procedure = PEER_NLM_NM_LOCK;
    return what;
}

static void see_holder(const struct peer_nlm_res *res, struct script_seen *ret)
{
    ret->has_holder = res->status == PEER_NLM_IS_DENIED;
    ret->svid = res->svid;
    ret->held = (struct script_range){res->offset, res->len, res->exclusive};
}

static void ask(const struct script_step *step, struct script_seen *ret)
{
    struct process *process = process_of(step);
    struct locker *locker = process->locker;
    uint32_t state = locker->state;
    bool says_state = locker->says_state;
    struct ask_what what = what_of(step, process);
    if (step->has_state) {
        locker->state = step->state;
        locker->says_state = true;
    }
    if (step->verb == SCRIPT_LOCK && step->wait && !step->reclaim) {
        process->wish = what.extent;
        process->is_waiting = locker->kind != LOCKER_PCNFS;
    }
    process->is_cancelling = step->verb == SCRIPT_CANCEL;
    process->locks_again = false;
    (void)ask_begin(world, process, &what);
    locker->state = step->has_state && step->state > state ? step->state : state;
    locker->says_state = says_state;
    for (int i = 0; i < 300 && process->ask != NULL; i++)
        story_wait_ms(world, 20);
    if (process->ask != NULL)
        snprintf(ret->why, sizeof ret->why, "no answer came");
    ret->value = world->lockers->answered;
    expects[step->client][step->process] = step->wait && ret->value == SCRIPT_BLOCKED
                                               ? true
                                               : step->verb != SCRIPT_CANCEL &&
                                                     expects[step->client][step->process] &&
                                                     !(step->verb == SCRIPT_LOCK && step->wait);
    if (expects[step->client][step->process] && step->wait)
        wishes[step->client][step->process] = what.extent;
    if (step->verb == SCRIPT_TEST)
        see_holder(&world->lockers->heard, ret);
}

static void free_everything(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    struct locker *locker = &world->lockers->at[step->client];
    for (uint32_t p = 0; p < locker->process_count; p++) {
        struct process *process = &locker->processes[p];
        claim_vanishes(process);
        ask_drop(process);
        process->is_waiting = process->is_blocked = process->is_cancelling = false;
        process->void_before = process->number + 1;
        expects[step->client][p] = false;
    }
    if (step->has_state)
        locker->state = step->state;
    (void)ask_begin(world, &locker->processes[0],
                    &(struct ask_what){.procedure = PEER_NLM_FREE_ALL});
    story_wait_ms(world, 200);
}

/* ---- everything else ---- */

static void send_notice(const struct script_step *step, struct script_seen *ret)
{
    const struct locker *locker = &world->lockers->at[step->client];
    char from[ADDRESS_TEXT_MAX];
    (void)ret;
    address_text(&locker->host->address, from);
    story_notice(world, from, step->word[0] ? step->word : locker->name, step->state);
}

static void reboot(const struct script_step *step, struct script_seen *ret)
{
    struct script_step notice = *step;
    struct locker *locker = &world->lockers->at[step->client];
    memset(expects[step->client], 0, sizeof expects[0]);
    locker_reboot(world, locker);
    if (step->has_state)
        locker->state = locker->host->nsm_state = step->state;
    notice.state = locker->state;
    if (step->value)
        send_notice(&notice, ret);
}

static void have_state(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    world->lockers->at[step->client].host->nsm_state = step->state;
}

static void be(const struct script_step *step, struct script_seen *ret)
{
    struct host *host = world->lockers->at[step->client].host;
    (void)ret;
    host->mood = step->mood == SCRIPT_SILENT ? CALLEE_DEAF : CALLEE_WELL;
    host->kind = step->mood == SCRIPT_UNREACHABLE ? CALLEE_HINT : CALLEE_BOTH;
    if (step->mood == SCRIPT_MUTE)
        world->lockers->is_mute = true; /* everybody is; only this one is called meanwhile */
    else if (step->mood == SCRIPT_WELL)
        world->lockers->is_mute = false;
}

static void stop_waiting(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    process_of(step)->is_waiting = false;
    expects[step->client][step->process] = false;
}

static void let_pass(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    story_wait_ms(world, step->ms);
}

static void restart_server(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    (void)ret;
    story_restart(world);
}

static void simulate_crash(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    (void)ret;
    story_simulate_crash(world);
}

/* Somebody is; in a story it is clear who. */
static void expect_call(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    for (int i = 0; i < 100 && world->lockers->callbacks == callbacks_told; i++)
        story_wait_ms(world, 100);
    if (world->lockers->callbacks == callbacks_told)
        snprintf(ret->why, sizeof ret->why, "it is not called");
    callbacks_told = world->lockers->callbacks;
}

static bool is_granted(const struct script_step *step)
{
    const struct process *process = process_of(step);
    const struct extent *wish = &wishes[step->client][step->process];
    const struct cells *held = &process->held[wish->file];
    uint16_t cells = locker_cells(wish->offset, wish->len);
    return expects[step->client][step->process] && !process->is_waiting &&
           (cells & ~(wish->exclusive ? held->exclusive : held->any)) == 0;
}

static void expect_grant(const struct script_step *step, struct script_seen *ret)
{
    const struct extent *wish = &wishes[step->client][step->process];
    bool is_hoped = step->verb == SCRIPT_IS_GRANTED;
    for (uint64_t ms = 0; ms <= 1000 + step->ms && !(is_hoped && is_granted(step)); ms += 100)
        story_wait_ms(world, 100);
    ret->value = is_granted(step);
    if (is_hoped && ret->value == 1) {
        expects[step->client][step->process] = false;
        callbacks_told = world->lockers->callbacks;
    }
    if (ret->value == 1 && step->has_range &&
        (wish->offset != step->range.offset || wish->len != step->range.len ||
         wish->exclusive != step->range.exclusive))
        snprintf(ret->why, sizeof ret->why, "the callback is about another lock");
}

static void see_notified(const struct script_step *step, struct script_seen *ret)
{
    enum who who = (enum who)step->client;
    bool is_hoped = step->value == 1;
    for (uint64_t ms = 0; is_hoped && ms <= 1000 + step->ms && !story_is_told(world, who);
         ms += 100)
        story_wait_ms(world, 100);
    ret->value = story_is_told(world, who);
}

static void see_grace(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    story_wait_ms(world, 200); /* an answer may be on its way */
    ret->value = story_status(world).grace.is_on;
}

static void count(const struct script_step *step, struct script_seen *ret)
{
    story_wait_ms(world, 200);
    struct core_status status = story_status(world);
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
    enum order_result result = story_order(world, kinds[step->verb], (enum who)step->client, NULL);
    if (result != ORDER_DONE)
        snprintf(ret->why, sizeof ret->why, "the order ends with %d", (int)result);
}

static void settle(const struct script_step *step)
{
    if (step->verb > SCRIPT_UNSHARE && step->verb != SCRIPT_PASS)
        story_wait_ms(world, 100);
}

/* ---- the beginning and the end ---- */

static void init_locker(const struct script *script, const struct script_way *way, uint32_t index)
{
    struct locker *locker = &world->lockers->at[index];
    const struct script_client *client = &script->clients[index];
    locker->kind = client->sends_messages   ? LOCKER_MACOS
                   : client->is_unmonitored ? LOCKER_PCNFS
                                            : LOCKER_LINUX;
    locker->says_state = false;
    locker->host = &world->hosts[client->behind];
    locker->version = way->version;
    locker->is_tcp = !way->is_udp;
    locker->state = 3;
    locker->host->nsm_state = 3;
    locker->process_count = LOCKER_PROCESSES_MAX;
    (void)snprintf(locker->name, sizeof locker->name, "%s", client->name);
    (void)snprintf(locker->label, sizeof locker->label, "%c", (char)('A' + index));
    for (uint32_t p = 0; p < LOCKER_PROCESSES_MAX; p++) {
        locker->processes[p].locker = locker;
        locker->processes[p].index = p;
        locker->processes[p].svid = p + 1;
    }
}

static uint32_t allowed_in(const struct script *script)
{
    uint32_t allows = 0;
    for (uint32_t i = 0; i < script->step_count; i++) {
        enum script_verb verb = script->steps[i].verb;
        if ((verb == SCRIPT_RESTARTS || verb == SCRIPT_SIMULATES) && !script->is_told_in_time)
            allows |= WORLD_UNTOLD;
        if (verb == SCRIPT_RELEASES || verb == SCRIPT_ENDS_GRACE)
            allows |= WORLD_OVERRIDE | WORLD_UNTOLD;
    }
    return allows;
}

static void configure(const struct script *script)
{
    if (world == NULL)
        return; /* begin() does it */
    struct plan *plan = &world->plan;
    plan->grace_ns = script_option(script, "grace", 90) * SECOND;
    plan->holds = script_option(script, "hold", 0);
    plan->resumes = script_option(script, "resume", 0);
    plan->verifies = script_option(script, "verify-notify", 0);
    plan->distrusts = script_option(script, "distrust-state", 0);
    plan->locks_max = script_option(script, "max-locks", plan->locks_max);
    plan->locks_per_client_max =
        script_option(script, "max-locks-per-client", plan->locks_per_client_max);
    plan->waiters_max = script_option(script, "max-waiters", plan->waiters_max);
    plan->clients_max = script_option(script, "max-clients", plan->clients_max);
    plan->give_up_ns = script_option(script, "give-up", 900) * SECOND;
    plan->per_address_percent = script_option(script, "max-per-address", 0);
    world->lockers->plan.is_limited = script_option(script, "max-locks", 0) ||
                                      script_option(script, "max-waiters", 0) ||
                                      script_option(script, "max-clients", 0);
}

static void begin(const struct script *script, const struct script_way *way)
{
    world = story_new(script->slug, allowed_in(script), is_verbose);
    configure(script);
    world->lockers->plan.files = SCRIPT_FILES;
    world->lockers->holds_reclaims = true;
    memset(expects, 0, sizeof expects);
    callbacks_told = 0;
    for (uint32_t i = 0; i < world->lockers->count; i++)
        init_locker(script, way, i);
    story_boot(world);
    if (script_option(script, "max-clients", 0) != 0) { /* exactly so many */
        world->machine.clients_max = world->plan.clients_max;
        story_restart(world);
    }
}

static void end(void)
{
    story_end(world);
    world = NULL;
}

const struct script_driver sim_driver = {
    .name = "sim",
    .number = 1,
    .has_ways = true,
    .jobs = 1,
    .configure = configure,
    .cannot = cannot,
    .begin = begin,
    .act = {SCRIPT_CALLS(ask), [SCRIPT_FREE_ALL] = free_everything, [SCRIPT_REBOOTS] = reboot,
            [SCRIPT_NOTIFIES] = send_notice, [SCRIPT_HAS_STATE] = have_state, [SCRIPT_IS] = be,
            [SCRIPT_STOPS_WAITING] = stop_waiting, [SCRIPT_IS_CALLED] = expect_call,
            [SCRIPT_IS_GRANTED] = expect_grant, [SCRIPT_IS_NOT_GRANTED] = expect_grant,
            [SCRIPT_IS_NOTIFIED] = see_notified, [SCRIPT_PASS] = let_pass,
            [SCRIPT_RESTARTS] = restart_server, [SCRIPT_SIMULATES] = simulate_crash,
            [SCRIPT_GRACE_IS] = see_grace, [SCRIPT_THERE_ARE] = count, [SCRIPT_RELEASES] = order,
            [SCRIPT_TELLS] = order, [SCRIPT_ENDS_GRACE] = order},
    .settle = settle,
    .end = end,
    .fail = fail,
};

bool sim_tell(const char *directory, const char *only, bool verbose, sim_name_fn name)
{
    struct script_book book;
    bool found = false;
    is_verbose = verbose;
    script_read(directory, &book);
    for (uint32_t i = 0; i < book.count; i++) {
        const struct script *script = &book.at[i];
        if ((only != NULL && strcmp(only, script->slug) != 0) ||
            script_refusal(&sim_driver, script) != NULL)
            continue;
        found = true;
        name(script->slug);
        script_play_ways(&sim_driver, script);
        printf("story %s: ok\n", script->slug);
    }
    script_free(&book);
    return found;
}
