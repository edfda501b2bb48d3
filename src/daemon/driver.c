/*
 * driver.c -- one turn of the loop after another; see driver.h.
 *
 *   poll:  sockets are read, calls step the core       callbacks of src/wire
 *          a finished commit opens the gate            on_news
 *   check: turn(), everything that happens once per turn, in its order
 *
 *   RUNNING --SIGTERM--> DRAINING --all answered, or DRAIN_MS over--> ENDED
 *      |                    |
 *      +-- the store failed, or did not commit for --store-timeout --> ENDED with exit code 74
 */
#include "daemon/driver.h"

#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"
#include "daemon/bell.h"
#include "daemon/sd_notify.h"
#include "rpc/outcall.h"

#include <signal.h>
#include <stdlib.h>

enum {
    TICK_MS = 250,
    DRAIN_MS = 300, /* for replies in flight at a stop; a stop takes under 1 s */
    EXIT_REPLACED = 76,
};

struct driver {
    struct driver_parts parts;
    struct commits commits;
    struct clock *clock; /* of the parts; these three are used everywhere */
    struct core *core;
    struct rpc_server *server;
    struct outcall_asks asks;
    uv_prepare_t sleep;
    uv_check_t check;
    struct bell news; /* of the store thread */
    uv_signal_t term, interrupt;
    uv_timer_t tick, drain_end;
    uv_timer_t ready;     /* until clients are told */
    uv_timer_t next_turn; /* when the core has a call to make, or work to do */
    uint64_t stood_ns;    /* standstills that were reported */
    bool is_draining, is_ended;
    int exit_code;
};

static uint64_t now_of(const struct driver *driver)
{
    return clock_now_ns(driver->clock);
}

static uint64_t wall_of(const struct driver *driver)
{
    return clock_wall_ns(driver->clock);
}

/* ---- the end ---- */

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Closes what the driver and the wire own; the loop runs out when libuv is done with it. */
static void end(struct driver *driver, int exit_code)
{
    if (driver->is_ended)
        return;
    driver->is_ended = true;
    driver->exit_code = exit_code;
    wire_close(driver->parts.wire);
    caller_close(driver->parts.caller);
    registrar_close(driver->parts.registrar);
    close_handle((uv_handle_t *)&driver->sleep);
    close_handle((uv_handle_t *)&driver->check);
    bell_close(&driver->news);
    close_handle((uv_handle_t *)&driver->term);
    close_handle((uv_handle_t *)&driver->interrupt);
    close_handle((uv_handle_t *)&driver->tick);
    close_handle((uv_handle_t *)&driver->next_turn);
    close_handle((uv_handle_t *)&driver->drain_end);
    close_handle((uv_handle_t *)&driver->ready);
    uv_stop(driver->parts.loop);
}

/* The whole sentence: its end says what to do. */
static void fail(struct driver *driver, const struct store_failure *failure)
{
    char buffer[1024];
    struct text message;
    text_init(&message, buffer, sizeof buffer);
    text_add(
        &message,
        failure->exit_code == EXIT_REPLACED
            ? "replaced by another server, which now serves these clients: "
            : "store failure: no uncommitted change was visible to clients, a restart recovers: ");
    text_add(&message, failure->text);
    log_say(driver->parts.log, LOG_LEVEL_ERROR, wall_of(driver), LOG_MESSAGE(buffer));
    end(driver, failure->exit_code);
}

/* ---- a turn ---- */

static bool may_send(const struct driver *driver)
{
    return lease_may_send(driver->parts.store.lease, clock_boot_ns());
}

static void ask_for_calls(struct driver *driver)
{
    outcall_ask(&driver->asks, driver->core, driver->parts.client, may_send(driver));
}

/* With a shared store a call begins, and its time runs, only after a recent commit. True: there is
 * none, and one is asked for if there is anything to call about; its end begins another turn. */
static bool must_commit_first(struct driver *driver)
{
    struct rpc_client *client = driver->parts.client;
    if (may_send(driver))
        return false;
    if (outcall_deadline_ns(driver->core, client) <= now_of(driver) || rpc_client_count(client) > 0)
        (void)core_fence(driver->core);
    return true;
}

static void on_next_turn(uv_timer_t *timer);

/* Another turn when there is something to call about; a commit in progress wakes us by itself. */
static void set_next_turn(struct driver *driver, bool is_waiting)
{
    uint64_t now_ns = now_of(driver);
    uint64_t next_ns = outcall_deadline_ns(driver->core, driver->parts.client);
    if (is_waiting && next_ns <= now_ns)
        next_ns = UINT64_MAX;
    next_ns = min_u64(next_ns, resolving_deadline_ns(driver->parts.resolving));
    if (next_ns == UINT64_MAX) {
        (void)uv_timer_stop(&driver->next_turn);
        return;
    }
    uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / MS_NS + 1 : 1;
    CHECK(uv_timer_start(&driver->next_turn, on_next_turn, wait_ms, 0) == 0);
}

/* An operator should know, because a standstill of this process affects its clients. */
static void report_standstill(struct driver *driver)
{
    uint64_t stood_ns = clock_stood_still_ns(driver->clock);
    if (stood_ns == driver->stood_ns)
        return;
    const char *locks = "this process was not scheduled: the grace period and all other deadlines "
                        "are extended by that time, so nothing is released for calls it could not "
                        "receive";
    const char *hosts = "this process was not scheduled: all its deadlines are extended by that "
                        "time, so nobody is given up for answers it could not receive";
    log_say(driver->parts.log, LOG_LEVEL_WARNING, wall_of(driver),
            LOG_MESSAGE(driver->parts.log->is_monitor ? hosts : locks),
            LOG_NUMBER("ms", (stood_ns - driver->stood_ns) / MS_NS));
    driver->stood_ns = stood_ns;
}

static bool is_drained(const struct driver *driver)
{
    return driver->is_draining && !commits_is_busy(&driver->commits) &&
           rpc_server_waiting(driver->server) == 0 &&
           http_waiting(driver->parts.store.control) == 0 &&
           registrar_is_stopped(driver->parts.registrar);
}

static void turn(struct driver *driver)
{
    struct driver_parts *parts = &driver->parts;
    uint64_t now_ns = now_of(driver), wall_ns = wall_of(driver);
    /* What calls wait for joins the batch that goes now. */
    ask_for_calls(driver);
    /* The disk works while we write to sockets. */
    commits_hand(&driver->commits);
    /* Replies whose batch is durable leave; calls that were refused as busy are let in. */
    wire_flush(parts->wire);
    registrar_turn(parts->registrar);
    /* Who spoke in this turn, or could not, loses nothing in it. */
    if (clock_has_heard(driver->clock) || wire_is_holding_back(parts->wire))
        core_listen_first(driver->core);
    report_standstill(driver);
    bool is_waiting = false;
    if (!driver->is_draining) {
        /* Waiters are served, clients freed, in pieces. */
        rpc_server_work(driver->server, now_ns, wall_ns);
        /* Operator commands that wait for what they began look again. */
        http_turn(parts->store.control);
        /* Names that the core wants resolved, and those that are. */
        resolving_turn(parts->resolving, now_ns, wall_ns);
        /* Calls that are due begin, and the core hears of those that have ended. */
        is_waiting = must_commit_first(driver);
        if (!is_waiting)
            outcall_turn(driver->core, parts->client, driver->server, now_ns, wall_ns);
        ask_for_calls(driver);
        caller_turn(parts->caller);
    }
    /* What all this changed, if the store is still idle. */
    commits_hand(&driver->commits);
    if (!driver->is_draining)
        set_next_turn(driver, is_waiting);
    callout_runner_turn(parts->callout);
    events_turn(parts->events, core_events(driver->core), core_feed(driver->core));
    log_drain(parts->log, core_events(driver->core), now_ns, wall_ns);
    if (is_drained(driver))
        end(driver, 0);
}

static void on_check(uv_check_t *check)
{
    struct driver *driver = check->data;
    if (!driver->is_ended)
        turn(driver);
}

static void on_next_turn(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    if (driver->is_draining || driver->is_ended)
        return;
    core_listen_first(driver->core); /* timers come before the sockets are looked at */
    turn(driver);
}

/* ---- between turns ---- */

/* The loop is about to sleep: whatever wakes it happens at another time. */
static void on_sleep(uv_prepare_t *prepare)
{
    struct driver *driver = prepare->data;
    clock_sleep(driver->clock, TICK_MS * MS_NS);
}

static void on_news(void *context)
{
    struct driver *driver = context;
    struct store_failure failure;
    if (!driver->is_ended && !commits_take(&driver->commits, &failure))
        fail(driver, &failure);
}

/* On the store thread. */
static void wake(void *context)
{
    struct driver *driver = context;
    bell_ring(&driver->news);
}

static void on_tick(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    struct store_failure failure;
    log_tick(driver->parts.log, now_of(driver), wall_of(driver));
    if (!commits_tick(&driver->commits, driver->is_draining, &failure))
        fail(driver, &failure);
}

static void on_drain_end(uv_timer_t *timer)
{
    end(timer->data, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct driver *driver = handle->data;
    if (driver->is_draining)
        return;
    driver->is_draining = true;
    CHECK(uv_timer_start(&driver->drain_end, on_drain_end, DRAIN_MS, 0) == 0);
    log_say(driver->parts.log, LOG_LEVEL_INFO, wall_of(driver),
            LOG_MESSAGE(driver->parts.keeps_nothing
                            ? "stopping; memory: keeps nothing, so all locks end with this run"
                            : "stopping; the next start recovers from the store"));
    (void)sd_notify_stopping("stopping");
    registrar_stop(driver->parts.registrar); /* nobody is sent to a port that closes (10.1) */
    wire_quiesce(driver->parts.wire);
}

static void on_ready(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    struct core_input input = {
        .kind = CORE_READY, .now_ns = now_of(driver), .wall_ns = wall_of(driver)};
    rpc_server_step(driver->server, &input, NULL);
    turn(driver);
}

void driver_ready(struct driver *driver, uint64_t wait_ns)
{
    uint64_t wait_ms = wait_ns == 0 ? 0 : wait_ns / MS_NS + 1;
    CHECK(uv_timer_start(&driver->ready, on_ready, wait_ms, 0) == 0);
}

void driver_order(struct driver *driver, const struct order *order, struct core_answer *ret)
{
    struct core_input input = {
        .kind = CORE_ORDER, .now_ns = now_of(driver), .wall_ns = wall_of(driver), .order = order};
    if (core_is_full(driver->core) || driver->is_draining || driver->is_ended)
        *ret = (struct core_answer){.order_result = ORDER_LATER};
    else
        rpc_server_step(driver->server, &input, ret);
}

void driver_track(struct driver *driver, const struct tracking *tracking, struct core_answer *ret)
{
    struct core_input input = {.kind = CORE_TRACKING,
                               .now_ns = now_of(driver),
                               .wall_ns = wall_of(driver),
                               .tracking = tracking};
    if (core_is_full(driver->core) || driver->is_draining || driver->is_ended)
        *ret = (struct core_answer){.tracking.result = TRACKING_LATER};
    else
        rpc_server_step(driver->server, &input, ret);
}

bool driver_is_ready(struct driver *driver, struct text *ret_reason)
{
    if (driver->is_draining || driver->is_ended) {
        text_add(ret_reason, "stopping");
        return false;
    }
    uint64_t age_ns = commits_age_ns(&driver->commits);
    if (age_ns >= ADMIN_STALLED_NS) {
        text_add(ret_reason, "the store has been stalled in a commit for ");
        text_add_u64(ret_reason, age_ns / SECOND_NS);
        text_add(ret_reason, " s; replies wait for it");
        return false;
    }
    return registrar_is_ready(driver->parts.registrar, ret_reason);
}

bool driver_copy(struct driver *driver, struct copy *copy)
{
    return !driver->is_draining && !driver->is_ended && worker_copy(driver->commits.worker, copy);
}

void driver_copy_on(struct driver *driver)
{
    worker_copy_on(driver->commits.worker);
}

const struct commits *driver_commits(const struct driver *driver)
{
    return &driver->commits;
}

/* ---- life ---- */

struct driver *driver_new(const struct driver_parts *parts)
{
    struct driver *driver = calloc(1, sizeof *driver);
    if (driver == NULL)
        return NULL;
    driver->parts = *parts;
    driver->clock = parts->store.clock;
    driver->core = parts->store.core;
    driver->server = parts->store.server;
    commits_init(&driver->commits, &parts->store);
    CHECK(uv_prepare_init(parts->loop, &driver->sleep) == 0);
    CHECK(uv_check_init(parts->loop, &driver->check) == 0);
    CHECK(bell_init(&driver->news, parts->loop, on_news, driver) == 0);
    CHECK(uv_signal_init(parts->loop, &driver->term) == 0);
    CHECK(uv_signal_init(parts->loop, &driver->interrupt) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->tick) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->next_turn) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->drain_end) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->ready) == 0);
    driver->sleep.data = driver->check.data = driver;
    driver->term.data = driver->interrupt.data = driver->next_turn.data = driver;
    driver->tick.data = driver->drain_end.data = driver->ready.data = driver;
    return driver;
}

bool driver_start(struct driver *driver)
{
    if (!commits_start(&driver->commits, wake, driver))
        return false;
    CHECK(uv_prepare_start(&driver->sleep, on_sleep) == 0);
    CHECK(uv_check_start(&driver->check, on_check) == 0);
    CHECK(uv_signal_start(&driver->term, on_signal, SIGTERM) == 0);
    CHECK(uv_signal_start(&driver->interrupt, on_signal, SIGINT) == 0);
    CHECK(uv_timer_start(&driver->tick, on_tick, TICK_MS, TICK_MS) == 0);
    return true;
}

void driver_stop(struct driver *driver, int exit_code)
{
    end(driver, exit_code);
}

int driver_run(struct driver *driver)
{
    (void)uv_run(driver->parts.loop, UV_RUN_DEFAULT);
    struct log *log = driver->parts.log;
    const struct commits_totals *stored = &driver->commits.stored;
    log_drain(log, core_events(driver->core), now_of(driver), wall_of(driver));
    log_flush(log, now_of(driver), wall_of(driver));
    log_say(log, LOG_LEVEL_INFO, wall_of(driver), LOG_MESSAGE("committed in this run"),
            LOG_NUMBER("batches", stored->batches), LOG_NUMBER("records", stored->records),
            LOG_NUMBER("lock_changes", stored->lock_changes));
    commits_stop(&driver->commits, driver->exit_code);
    return driver->exit_code;
}

void driver_abandon(struct driver *driver, int exit_code)
{
    end(driver, exit_code);
    commits_stop(&driver->commits, driver->exit_code);
}

void driver_free(struct driver *driver)
{
    if (driver == NULL)
        return;
    bell_done(&driver->news);
    free(driver);
}
