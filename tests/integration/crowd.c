/*
 * crowd.c -- processes on many client hosts; see crowd.h.
 *
 * Always true of a process:
 *  (1) What it wants does not meet what it relies on.
 *  (2) It begins nothing new while one of its locks must be reclaimed: a reclaim and an UNLOCK of
 *      the same bytes could overtake each other, and clients keep them apart as well.
 *
 * Answers come through links, callbacks through sockets of the hosts: either may be first. The
 * GRANTED that a process has taken is known by its cookie: a copy of it is answered the same way
 * and means nothing new.
 */
#include "crowd.h"

#include "crowd_recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CROWDED_FILES 40 /* the first ones; the others are large */
#define CROWDED_CELLS 64
#define RANGE_MAX     16
#define KEPT_MAX      3 /* ranges of a taker, when it asks for another one */

#define THINK_NS (40 * CROWD_MS)   /* of takers, at most */
#define HOLD_NS  (20 * CROWD_MS)   /* by waiters, at most, and until a callback is answered */
#define DELAY_NS (50 * CROWD_MS)   /* of the answer to a callback, at most */
#define POLL_NS  (2000 * CROWD_MS) /* while waiting, at most */
#define AGAIN_NS (30 * CROWD_MS)   /* after "in grace", at most */

/* ---- who they are ---- */

static uint32_t host_of(uint32_t process)
{
    return process / CROWD_PER_HOST;
}

static bool is_waiter(uint32_t process)
{
    return process % CROWD_PER_HOST >= CROWD_TAKERS;
}

const char *crowd_name(uint32_t process)
{
    static char names[2][64]; /* a message may need two */
    static uint32_t turn;
    char *name = names[++turn % 2];
    snprintf(name, sizeof(names[0]), "host %u process %u", host_of(process),
             process % CROWD_PER_HOST + 1);
    return name;
}

struct lock_call crowd_call(uint32_t process, enum peer_nlm_procedure procedure,
                            const struct reliance_range *range)
{
    static char name[32];
    snprintf(name, sizeof(name), "client%u", host_of(process));
    return (struct lock_call){
        .procedure = procedure,
        .vers = host_of(process) % 5 == 4 ? 3 : 4,
        .name = name,
        .svid = process % CROWD_PER_HOST + 1,
        .file = range->file,
        .offset = range->first,
        .len = range->last - range->first + 1,
        .exclusive = range->exclusive,
        .block = is_waiter(process),
        .state = CROWD_NSM_STATE,
    };
}

static uint64_t random_below(struct crowd *crowd, uint64_t max)
{
    return (harness_random(&crowd->seed) >> 11) % max;
}

/* ---- what they do ---- */

static void post(struct crowd *crowd, uint32_t index, enum peer_nlm_procedure procedure,
                 const struct reliance_range *range)
{
    static struct packet packet;
    struct crowd_process *process = &crowd->processes[index];
    struct lock_call call = crowd_call(index, procedure, range);
    lock_call_put(&packet, &call);
    if (!load_post(crowd->load, host_of(index), index, &packet))
        return; /* the link is closed: the server is dying, or broken */
    process->pending = procedure;
    process->again = PEER_NLM_NULL;
    process->named = *range;
    process->posted_ns = dial_now_ns();
    if (procedure == PEER_NLM_UNLOCK)
        reliance_drop(crowd->reliance, index, range);
}

/* Another range, one that it has nothing of. */
static void want_something(struct crowd *crowd, uint32_t index)
{
    struct crowd_process *process = &crowd->processes[index];
    struct reliance_range *range = &process->wanted;
    uint32_t files = is_waiter(index) ? CROWDED_FILES : CROWD_FILES - CROWDED_FILES;
    uint32_t cells = is_waiter(index) ? CROWDED_CELLS : RELIANCE_CELLS;
    uint32_t len = 1 + (uint32_t)random_below(crowd, RANGE_MAX);
    range->file = (is_waiter(index) ? 0 : CROWDED_FILES) + (uint32_t)random_below(crowd, files);
    range->first = (uint32_t)random_below(crowd, cells - len);
    range->last = range->first + len - 1;
    range->exclusive = random_below(crowd, 10) < 7;
    if (reliance_meets(crowd->reliance, index, range))
        return; /* next time */
    process->want = CROWD_ASKS;
    post(crowd, index, PEER_NLM_LOCK, range);
}

/* One of the ranges that it has, or the inside of it, which leaves two. */
static void unlock_something(struct crowd *crowd, uint32_t index)
{
    uint32_t count = reliance_count(crowd->reliance, index);
    struct reliance_range range =
        reliance_at(crowd->reliance, index, (uint32_t)random_below(crowd, count))->range;
    if (range.last - range.first >= 2 && count < KEPT_MAX && random_below(crowd, 3) == 0) {
        range.first++;
        range.last--;
    }
    post(crowd, index, PEER_NLM_UNLOCK, &range);
}

static void stop_waiting(struct crowd *crowd, uint32_t index)
{
    struct crowd_process *process = &crowd->processes[index];
    bool is_unlocked = process->is_cancelled || random_below(crowd, 2) == 0;
    process->gives_up = true;
    post(crowd, index, is_unlocked ? PEER_NLM_UNLOCK : PEER_NLM_CANCEL, &process->wanted);
}

static void act(struct crowd *crowd, uint32_t index)
{
    struct crowd_process *process = &crowd->processes[index];
    uint32_t count = reliance_count(crowd->reliance, index);
    if (process->again != PEER_NLM_NULL) {
        struct reliance_range named = process->named;
        post(crowd, index, process->again, &named);
    } else if (reliance_has(crowd->reliance, index, RELIANCE_MUST_RECLAIM) ||
               reliance_has(crowd->reliance, index, RELIANCE_IS_ASKED)) {
        return;
    } else if (process->want != CROWD_WANTS_NOTHING) {
        bool is_tired = process->want == CROWD_WAITS && !process->has_waited &&
                        (crowd->is_leaving || random_below(crowd, 8) == 0);
        if (process->gives_up || is_tired)
            stop_waiting(crowd, index);
        else if (!process->is_patient)
            post(crowd, index, PEER_NLM_LOCK, &process->wanted);
    } else if (count > 0 && (crowd->is_leaving || is_waiter(index) || count >= KEPT_MAX ||
                             random_below(crowd, 3) == 0)) {
        unlock_something(crowd, index);
    } else if (!crowd->is_leaving) {
        want_something(crowd, index);
    }
}

static void act_all(struct crowd *crowd)
{
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < CROWD_PROCESSES && !crowd->is_over; i++)
        if (crowd->processes[i].pending == PEER_NLM_NULL && now_ns >= crowd->processes[i].due_ns)
            act(crowd, i);
}

/* ---- what they hear ---- */

static void pause_for(struct crowd *crowd, uint32_t index, uint64_t max_ns)
{
    crowd->processes[index].due_ns = dial_now_ns() + random_below(crowd, max_ns);
}

static void forget_want(struct crowd_process *process)
{
    process->want = CROWD_WANTS_NOTHING;
    process->gives_up = process->is_cancelled = process->has_waited = process->is_patient = false;
}

/* P2: what it wanted is its own from now on. */
static void now_relies(struct crowd *crowd, uint32_t index)
{
    struct crowd_process *process = &crowd->processes[index];
    struct reliance_range range = process->wanted;
    uint32_t other = reliance_take(crowd->reliance, index, &range);
    HARNESS_EXPECT(other == RELIANCE_NOBODY, "%s and %s rely on file %u bytes %u-%u",
                   crowd_name(index), crowd_name(other), range.file, range.first, range.last);
    forget_want(process);
    pause_for(crowd, index, is_waiter(index) ? HOLD_NS : THINK_NS);
    crowd->counts.grants++;
    crowd->granted(crowd->context);
}

static void answer_lock(struct crowd *crowd, uint32_t index, int status)
{
    struct crowd_process *process = &crowd->processes[index];
    bool is_right = status == PEER_NLM_IS_GRANTED || status == PEER_NLM_IS_GRACE ||
                    status == (is_waiter(index) ? PEER_NLM_IS_BLOCKED : PEER_NLM_IS_DENIED);
    HARNESS_EXPECT(is_right, "%s: LOCK answered %s", crowd_name(index), lock_call_text(status));
    crowd_recovery_lock_answered(crowd, index, status == PEER_NLM_IS_GRACE);
    if (process->want == CROWD_WANTS_NOTHING)
        return; /* a callback has overtaken this answer */
    if (status == PEER_NLM_IS_GRANTED) {
        crowd->counts.polls += process->want == CROWD_WAITS;
        now_relies(crowd, index);
    } else if (status == PEER_NLM_IS_BLOCKED) {
        process->want = CROWD_WAITS;
        pause_for(crowd, index, POLL_NS);
    } else if (status == PEER_NLM_IS_GRACE) {
        pause_for(crowd, index, AGAIN_NS);
    } else {
        forget_want(process);
        pause_for(crowd, index, THINK_NS);
    }
}

static void answer_process(struct crowd *crowd, uint32_t index, const struct packet_reply *reply)
{
    struct crowd_process *process = &crowd->processes[index];
    enum peer_nlm_procedure was = process->pending;
    struct lock_call call = crowd_call(index, was, &process->named);
    int status = lock_call_status(&call, reply, NULL);
    process->pending = PEER_NLM_NULL;
    if (was == PEER_NLM_LOCK) {
        answer_lock(crowd, index, status);
        return;
    }
    if (was == PEER_NLM_CANCEL && status == PEER_NLM_IS_DENIED) {
        process->is_cancelled = true;
        return;
    }
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "%s: %s answered %s", crowd_name(index),
                   peer_nlm_procedure_text(was), lock_call_text(status));
    crowd->counts.unlocks += was == PEER_NLM_UNLOCK;
    crowd->counts.gave_up += process->gives_up;
    if (process->gives_up)
        forget_want(process);
    pause_for(crowd, index, is_waiter(index) ? CROWD_MS : THINK_NS);
}

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    if (tag < CROWD_PROCESSES)
        answer_process(context, (uint32_t)tag, reply);
    else
        crowd_recovery_answered(context, link, reply);
}

static bool is_the_same(const struct crowd_process *process, const struct peer_nlm_bytes *cookie)
{
    return cookie->len > 0 && cookie->len == process->cookie_len &&
           memcmp(cookie->at, process->cookie, cookie->len) == 0;
}

/* Does it wait for exactly this? While it is giving up, it does not. */
static bool is_wanted(const struct crowd *crowd, uint32_t index, const struct peer_nlm_args *args)
{
    const struct crowd_process *process = &crowd->processes[index];
    struct lock_call call = crowd_call(index, PEER_NLM_LOCK, &process->wanted);
    bool is_giving_up = process->again != PEER_NLM_NULL ||
                        (process->pending != PEER_NLM_NULL && process->pending != PEER_NLM_LOCK);
    return process->want != CROWD_WANTS_NOTHING && !is_giving_up &&
           args->lock.offset == call.offset && args->lock.len == call.len &&
           args->exclusive == call.exclusive &&
           lock_call_file(args->lock.fh.at, args->lock.fh.len) == call.file;
}

static uint32_t on_granted(void *context, uint32_t host, const struct peer_nlm_args *args,
                           uint64_t *ret_delay_ns)
{
    struct crowd *crowd = context;
    uint32_t index = host * CROWD_PER_HOST + args->lock.svid - 1;
    struct lock_call call = crowd_call(index, PEER_NLM_LOCK, &(struct reliance_range){0});
    struct peer_nlm_bytes oh = peer_nlm_text(lock_call_oh(&call));
    bool is_ours = args->lock.svid - 1 < CROWD_PER_HOST && is_waiter(index) &&
                   peer_nlm_bytes_equal(&args->lock.oh, &oh) &&
                   args->cookie.len <= CROWD_COOKIE_MAX;
    if (!HARNESS_EXPECT(is_ours, "host %u was granted something of svid %u", host, args->lock.svid))
        return PEER_NLM_IS_DENIED;
    struct crowd_process *process = &crowd->processes[index];
    if (random_below(crowd, 4) != 0)
        *ret_delay_ns = random_below(crowd, DELAY_NS);
    if (is_the_same(process, &args->cookie))
        return PEER_NLM_IS_GRANTED;
    if (!is_wanted(crowd, index, args)) {
        /* After a resume it may be offered again what it took before the crash. */
        struct reliance_range range = {.file = lock_call_file(args->lock.fh.at, args->lock.fh.len),
                                       .first = (uint32_t)args->lock.offset};
        range.last = range.first + (uint32_t)args->lock.len - 1;
        return reliance_covers(crowd->reliance, index, &range) ? PEER_NLM_IS_GRANTED
                                                               : PEER_NLM_IS_DENIED;
    }
    process->cookie_len = args->cookie.len;
    memcpy(process->cookie, args->cookie.at, args->cookie.len);
    crowd->counts.callbacks++;
    now_relies(crowd, index);
    if (random_below(crowd, 16) != 0) /* else its UNLOCK may overtake this answer */
        process->due_ns += *ret_delay_ns;
    return PEER_NLM_IS_GRANTED;
}

/* ---- what the tests do ---- */

bool crowd_init(struct crowd *crowd, uint64_t seed)
{
    const struct callees_config config = {.first_address = CROWD_FIRST_ADDRESS,
                                          .count = CROWD_HOSTS,
                                          .nsm_state = CROWD_NSM_STATE,
                                          .user = {crowd, on_granted, crowd_recovery_notified}};
    crowd->seed = seed;
    crowd->reliance = reliance_new(CROWD_PROCESSES, CROWD_FILES);
    crowd->callees = callees_new(&config);
    return HARNESS_EXPECT(crowd->reliance && crowd->callees, "the hosts: %s", strerror(errno));
}

void crowd_done(struct crowd *crowd)
{
    crowd_disconnect(crowd);
    callees_free(crowd->callees);
    reliance_free(crowd->reliance);
}

bool crowd_connect(struct crowd *crowd, const struct harness_server *server)
{
    crowd->load = load_new(CROWD_HOSTS, on_answer, crowd);
    for (uint32_t i = 0; crowd->load && i < CROWD_HOSTS; i++) {
        struct dial_route route = harness_route(server, i % 6 == 5);
        route.source = dial_endpoint_v4(CROWD_FIRST_ADDRESS + i, 0);
        int link = load_open(crowd->load, &route);
        if (!HARNESS_EXPECT(link == (int)i, "link %u: %s", i, strerror(-link)))
            return false;
    }
    crowd->is_over = false;
    return crowd->load != NULL;
}

void crowd_disconnect(struct crowd *crowd)
{
    struct load_counts counts = {0};
    if (!crowd->load)
        return;
    load_count(crowd->load, &counts);
    HARNESS_EXPECT(counts.unreadable == 0, "%" PRIu64 " answers are no RPC replies",
                   counts.unreadable);
    load_free(crowd->load);
    crowd->load = NULL;
    callees_forget_server(crowd->callees);
}

uint32_t crowd_turn(struct crowd *crowd, uint32_t timeout_ms)
{
    if (!crowd->is_over) {
        crowd_recovery_turn(crowd);
        act_all(crowd);
    }
    uint32_t count = load_turn(crowd->load, timeout_ms);
    return count + callees_turn(crowd->callees);
}

void crowd_count_anew(struct crowd *crowd)
{
    crowd->counts = (struct crowd_counts){0};
}

uint32_t crowd_waiting(const struct crowd *crowd)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++)
        count += crowd->processes[i].want == CROWD_WAITS;
    return count;
}

uint32_t crowd_left_waiting(const struct crowd *crowd)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++)
        count += crowd->processes[i].has_waited;
    return count;
}

uint32_t crowd_patient(const struct crowd *crowd)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++)
        count += crowd->processes[i].is_patient;
    return count;
}

uint32_t crowd_relied(const struct crowd *crowd)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++)
        count += reliance_count(crowd->reliance, i);
    return count;
}

bool crowd_is_idle(const struct crowd *crowd)
{
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++) {
        const struct crowd_process *process = &crowd->processes[i];
        if (process->want != CROWD_WANTS_NOTHING || process->pending != PEER_NLM_NULL ||
            process->again != PEER_NLM_NULL || reliance_count(crowd->reliance, i) > 0)
            return false;
    }
    return true;
}
