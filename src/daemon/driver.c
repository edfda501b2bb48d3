/*
 * driver.c -- one turn after another; see driver.h.
 *
 *   poll: sockets are read, calls step the core        callbacks of src/wire
 *         a finished commit opens the gate             on_news, rpc_server_stored
 *   check: on_turn
 *     1. an idle store gets the open batch             core_take_batch, worker_commit
 *     2. answers whose batch is durable leave          wire_flush
 *     3. waiters are served, clients freed, in pieces  core_work
 *        names that others claim are asked for         resolving_turn
 *        calls of our own are made and have ended      outcall_turn, caller_turn
 *     4. events become log lines                       log_drain
 *
 * Step 1 comes before 2 so that the disk works while we write to sockets, and is repeated after it
 * because 2 lets calls in that had been refused as busy.
 *
 *   RUNNING --SIGTERM--> DRAINING --all answered, or DRAIN_MS over--> ENDED
 *      |                    |
 *      +-- the store failed, or did not commit for --store-timeout --> ENDED with exit code 74
 *
 * A commit that hangs cannot be interrupted. The process then ends with _exit: nothing that waits
 * for that commit was answered, and the next start finds out whether it landed (D9).
 */
#include "daemon/driver.h"

#include "base/check.h"
#include "base/units.h"
#include "daemon/notify_ready.h"
#include "rpc/outcall.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_NS  (SECOND_NS / 4) /* for the store thread to end after that */
#define BEAT_NS      SECOND_NS       /* between the commits of an idle server on a shared store */
#define BACKSTOP_NS  (5 * SECOND_NS) /* beyond the time that a shared store takes for itself */
#define NOT_READY_NS (5 * SECOND_NS) /* a commit this old makes us not ready */
#define STALL_NS     (2 * SECOND_NS) /* between two ticks: this process was not scheduled */

enum {
    TICK_MS = 250,
    DRAIN_MS = 300, /* for replies in flight at a stop; a stop takes under 1 s */
    EXIT_STORE = 74,
    EXIT_REPLACED = 76,
};

/* What a run left in the store, for the line at its end. */
struct totals {
    uint64_t batches, records, lock_changes;
};

/* What calls are due needs a commit that began later (rpc_client_ask). */
struct ask {
    uint64_t txn; /* 0: none */
    uint64_t ticket;
};

struct driver {
    struct driver_parts parts;
    struct worker *worker;
    uv_prepare_t sleep;
    uv_check_t turn;
    uv_async_t news;
    uv_signal_t term, interrupt;
    uv_timer_t tick, drain_end;
    uv_timer_t ready;     /* until clients are told */
    uv_timer_t next_call; /* when the core has a call to make, or work to do */
    uint64_t durable_txn;
    uint64_t commit_since_ns; /* when the last batch was handed over */
    uint64_t ticked_ns;       /* 0: not yet */
    bool has_forgiven;        /* a standstill, since then */
    uint64_t stood_ns;        /* standstills that were reported */
    struct totals out;        /* of that batch */
    struct ask asks[2];       /* of batches that are not durable yet, the older one first */
    struct totals stored;     /* of all batches that are durable */
    struct driver_meter meter;
    bool is_draining, is_ended;
    int exit_code;
};

/* The whole sentence: its end says what to do. */
static void say_error(struct driver *driver, int exit_code, const char *cause)
{
    char buffer[1024];
    struct text message;
    text_init(&message, buffer, sizeof buffer);
    text_add(
        &message,
        exit_code == EXIT_REPLACED
            ? "replaced by another server, which now serves these clients: "
            : "store failure: no uncommitted change was visible to clients, a restart recovers: ");
    text_add(&message, cause);
    log_say(driver->parts.log, LOG_LEVEL_ERROR, clock_wall_ns(driver->parts.clock),
            LOG_MESSAGE(buffer));
}

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
    close_handle((uv_handle_t *)&driver->turn);
    close_handle((uv_handle_t *)&driver->news);
    close_handle((uv_handle_t *)&driver->term);
    close_handle((uv_handle_t *)&driver->interrupt);
    close_handle((uv_handle_t *)&driver->tick);
    close_handle((uv_handle_t *)&driver->next_call);
    close_handle((uv_handle_t *)&driver->drain_end);
    close_handle((uv_handle_t *)&driver->ready);
    uv_stop(driver->parts.loop);
}

static void take_news(struct driver *driver)
{
    struct driver_parts *parts = &driver->parts;
    struct worker_report report;
    worker_poll(driver->worker, &report);
    switch (report.news) {
    case WORKER_FAILED:
        say_error(driver, report.failure.exit_code, report.failure.text);
        end(driver, report.failure.exit_code);
        return;
    case WORKER_COMMITTED:
        driver->durable_txn = report.txn;
        if (parts->is_metered) {
            histogram_add(&driver->meter.commit_durations,
                          clock_raw_ns(parts->clock) - driver->commit_since_ns);
            histogram_add(&driver->meter.batch_records, driver->out.records);
        }
        if (parts->is_shared)
            clock_allow_sends(parts->clock, report.checked_ns);
        driver->stored.batches += driver->out.batches;
        driver->stored.records += driver->out.records;
        driver->stored.lock_changes += driver->out.lock_changes;
        break;
    case WORKER_NOTHING:
        break;
    }
    rpc_server_stored(parts->server, driver->durable_txn, report.has_room,
                      clock_now_ns(parts->clock), clock_wall_ns(parts->clock));
    http_stored(parts->control, driver->durable_txn);
}

static void hand_batch(struct driver *driver)
{
    struct store_batch batch;
    if (worker_is_busy(driver->worker) || !core_take_batch(driver->parts.core, &batch))
        return;
    driver->commit_since_ns = clock_raw_ns(driver->parts.clock);
    driver->has_forgiven = false;
    driver->out = (struct totals){1, batch.count, batch.lock_change_count};
    worker_commit(driver->worker, &batch);
}

/* What the core does of its own accord; calls that we make: started, carried, and told to the core
 * when they have ended. */
static void call_out(struct driver *driver);

static void on_next_call(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    if (driver->is_draining || driver->is_ended)
        return;
    core_listen_first(driver->parts.core); /* timers come before the sockets are looked at */
    call_out(driver);
}

/*
 * With a shared store whatever a call of ours has to send, a repeat too, needs a commit that began
 * after it was due, and that is of just now: a server that stood still may have been replaced
 * meanwhile. There are at most two such batches, one under way and the open one.
 */
static void ask_for_calls(struct driver *driver)
{
    struct driver_parts *parts = &driver->parts;
    struct ask *asks = driver->asks;
    bool is_stale = false;
    while (asks[0].txn != 0 && asks[0].txn <= driver->durable_txn) {
        is_stale = !clock_may_send(parts->clock);
        if (!is_stale)
            rpc_client_release(parts->client, asks[0].ticket);
        asks[0] = asks[1];
        asks[1] = (struct ask){0};
    }
    if (!is_stale && !rpc_client_is_due(parts->client))
        return;
    uint64_t txn = core_fence(parts->core);
    bool is_first = asks[0].txn == 0 || asks[0].txn == txn;
    CHECK(is_first || asks[1].txn == 0 || asks[1].txn == txn);
    asks[is_first ? 0 : 1] = (struct ask){txn, rpc_client_ask(parts->client)};
}

/*
 * The same for the beginning of a call, whose time then runs. True: there is no commit of just now,
 * and one is under way if there is anything to call about; its end comes back here.
 */
static bool must_ask_first(struct driver *driver, uint64_t now_ns)
{
    struct driver_parts *parts = &driver->parts;
    if (clock_may_send(parts->clock))
        return false;
    if (outcall_deadline_ns(parts->core, parts->client) <= now_ns ||
        rpc_client_count(parts->client) > 0)
        (void)core_fence(parts->core);
    hand_batch(driver);
    return true;
}

/* Wakes up when there is something to call about; a commit under way wakes us by itself. */
static void set_next_call(struct driver *driver, uint64_t now_ns, bool is_waiting)
{
    uint64_t next_ns = outcall_deadline_ns(driver->parts.core, driver->parts.client);
    uint64_t resolving_ns = resolving_deadline_ns(driver->parts.resolving);
    if (is_waiting && next_ns <= now_ns)
        next_ns = UINT64_MAX;
    next_ns = resolving_ns < next_ns ? resolving_ns : next_ns;
    if (next_ns == UINT64_MAX) {
        (void)uv_timer_stop(&driver->next_call);
        return;
    }
    uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / MS_NS + 1 : 1;
    CHECK(uv_timer_start(&driver->next_call, on_next_call, wait_ms, 0) == 0);
}

static void call_out(struct driver *driver)
{
    struct driver_parts *parts = &driver->parts;
    uint64_t now_ns = clock_now_ns(parts->clock);
    rpc_server_work(parts->server, now_ns, clock_wall_ns(parts->clock));
    http_turn(parts->control); /* orders that wait for what they began */
    resolving_turn(parts->resolving, now_ns, clock_wall_ns(parts->clock));
    bool is_waiting = must_ask_first(driver, now_ns);
    if (!is_waiting)
        outcall_turn(parts->core, parts->client, parts->server, now_ns,
                     clock_wall_ns(parts->clock));
    ask_for_calls(driver);
    caller_turn(parts->caller);
    hand_batch(driver);
    set_next_call(driver, now_ns, is_waiting);
}

/* An operator should know, because a standstill of this process affects its clients. */
static void report_standstill(struct driver *driver)
{
    struct driver_parts *parts = &driver->parts;
    uint64_t stood_ns = clock_stood_still_ns(parts->clock);
    if (stood_ns == driver->stood_ns)
        return;
    log_say(
        parts->log, LOG_LEVEL_WARNING, clock_wall_ns(parts->clock),
        LOG_MESSAGE("this process was not scheduled: the grace period and all other deadlines are "
                    "extended by that time, so nothing is released for calls it could not receive"),
        LOG_NUMBER("ms", (stood_ns - driver->stood_ns) / MS_NS));
    driver->stood_ns = stood_ns;
}

static void on_turn(uv_check_t *check)
{
    struct driver *driver = check->data;
    struct driver_parts *parts = &driver->parts;
    if (driver->is_ended)
        return;
    ask_for_calls(driver); /* before the batch goes that others may have opened */
    hand_batch(driver);
    wire_flush(parts->wire);
    registrar_turn(parts->registrar);
    if (clock_has_heard(parts->clock) || wire_is_holding_back(parts->wire))
        core_listen_first(parts->core);
    report_standstill(driver);
    if (!driver->is_draining)
        call_out(driver);
    hand_batch(driver);
    events_turn(parts->events, core_events(parts->core), core_feed(parts->core));
    log_drain(parts->log, core_events(parts->core), clock_now_ns(parts->clock),
              clock_wall_ns(parts->clock));
    bool is_idle = !worker_is_busy(driver->worker) && rpc_server_waiting(parts->server) == 0 &&
                   http_waiting(parts->control) == 0 && registrar_is_stopped(parts->registrar);
    if (driver->is_draining && is_idle)
        end(driver, 0);
}

/* The loop is about to sleep: whatever wakes it happens at another time. */
static void on_sleep(uv_prepare_t *prepare)
{
    struct driver *driver = prepare->data;
    clock_sleep(driver->parts.clock, TICK_MS * MS_NS);
}

static void on_drain_end(uv_timer_t *timer)
{
    end(timer->data, 0);
}

static void on_news(uv_async_t *async)
{
    struct driver *driver = async->data;
    if (!driver->is_ended)
        take_news(driver);
}

/* On the store thread. */
static void wake(void *context)
{
    struct driver *driver = context;
    (void)uv_async_send(&driver->news);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct driver *driver = handle->data;
    if (driver->is_draining)
        return;
    driver->is_draining = true;
    CHECK(uv_timer_start(&driver->drain_end, on_drain_end, DRAIN_MS, 0) == 0);
    log_say(driver->parts.log, LOG_LEVEL_INFO, clock_wall_ns(driver->parts.clock),
            LOG_MESSAGE("stopping; the next start recovers from the store"));
    (void)notify_ready_stopping("stopping");
    registrar_stop(driver->parts.registrar); /* nobody is sent to a port that closes (10.1) */
    wire_quiesce(driver->parts.wire);
}

uint64_t driver_commit_age_ns(struct driver *driver)
{
    if (driver->worker == NULL || !worker_is_busy(driver->worker))
        return 0;
    return clock_raw_ns(driver->parts.clock) - driver->commit_since_ns;
}

/*
 * An idle server commits now and then: it notices that it was replaced, and one whose connection
 * was cut takes the lock again before a standby believes that it is gone.
 */
static void beat(struct driver *driver)
{
    struct driver_parts *parts = &driver->parts;
    if (!parts->is_shared || driver->is_draining || worker_is_busy(driver->worker) ||
        clock_raw_ns(parts->clock) - driver->commit_since_ns < BEAT_NS)
        return;
    (void)core_fence(parts->core);
    hand_batch(driver);
}

/* Time in which this process stood still (SIGSTOP) is not the store's: its thread stood still too,
 * and is about to say how it went, which may be that we were replaced. Once for each batch: a disk
 * that hangs may make this thread stand still again and again (its log is there too), and that must
 * come to an end. */
static void forgive_stall(struct driver *driver)
{
    uint64_t now_ns = clock_raw_ns(driver->parts.clock);
    uint64_t stalled_ns = driver->ticked_ns == 0 ? 0 : now_ns - driver->ticked_ns;
    driver->ticked_ns = now_ns;
    if (stalled_ns < STALL_NS || driver->has_forgiven)
        return;
    driver->has_forgiven = true;
    uint64_t age_ns = now_ns - driver->commit_since_ns;
    driver->commit_since_ns = now_ns - (age_ns > stalled_ns ? age_ns - stalled_ns : 0);
}

static void on_tick(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    struct driver_parts *parts = &driver->parts;
    forgive_stall(driver);
    beat(driver);
    log_tick(parts->log, clock_now_ns(parts->clock), clock_wall_ns(parts->clock));
    /* A shared store keeps the time itself, and knows more about the cause. */
    uint64_t timeout_ns = parts->store_timeout_ns + (parts->is_shared ? BACKSTOP_NS : 0);
    if (driver_commit_age_ns(driver) > timeout_ns) {
        say_error(driver, EXIT_STORE,
                  parts->is_shared
                      ? "a commit did not finish within --store-timeout; check PostgreSQL and the "
                        "resolver that finds its address"
                      : "a commit did not finish within --store-timeout; check the disk");
        end(driver, EXIT_STORE);
    }
}

struct driver *driver_new(const struct driver_parts *parts)
{
    struct driver *driver = calloc(1, sizeof *driver);
    if (driver == NULL)
        return NULL;
    driver->parts = *parts;
    histogram_init(&driver->meter.commit_durations, &histogram_durations);
    histogram_init(&driver->meter.batch_records, &histogram_counts);
    struct core_status status;
    core_status(parts->core, &status);
    driver->durable_txn = status.durable_txn;
    http_stored(parts->control, driver->durable_txn);
    CHECK(uv_prepare_init(parts->loop, &driver->sleep) == 0);
    CHECK(uv_check_init(parts->loop, &driver->turn) == 0);
    CHECK(uv_async_init(parts->loop, &driver->news, on_news) == 0);
    CHECK(uv_signal_init(parts->loop, &driver->term) == 0);
    CHECK(uv_signal_init(parts->loop, &driver->interrupt) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->tick) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->next_call) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->drain_end) == 0);
    CHECK(uv_timer_init(parts->loop, &driver->ready) == 0);
    driver->sleep.data = driver->turn.data = driver->news.data = driver;
    driver->term.data = driver->interrupt.data = driver->next_call.data = driver;
    driver->tick.data = driver->drain_end.data = driver->ready.data = driver;
    return driver;
}

bool driver_start(struct driver *driver)
{
    driver->worker = worker_new(driver->parts.store, wake, driver);
    if (driver->worker == NULL) {
        store_close(driver->parts.store);
        return false;
    }
    CHECK(uv_prepare_start(&driver->sleep, on_sleep) == 0);
    CHECK(uv_check_start(&driver->turn, on_turn) == 0);
    CHECK(uv_signal_start(&driver->term, on_signal, SIGTERM) == 0);
    CHECK(uv_signal_start(&driver->interrupt, on_signal, SIGINT) == 0);
    CHECK(uv_timer_start(&driver->tick, on_tick, TICK_MS, TICK_MS) == 0);
    return true;
}

bool driver_is_ready(struct driver *driver, struct text *ret_reason)
{
    if (driver->is_draining || driver->is_ended) {
        text_add(ret_reason, "stopping");
        return false;
    }
    uint64_t age_ns = driver_commit_age_ns(driver);
    if (age_ns > NOT_READY_NS) {
        text_add(ret_reason, "the store has been stalled in a commit for ");
        text_add_u64(ret_reason, age_ns / SECOND_NS);
        text_add(ret_reason, " s; replies wait for it");
        return false;
    }
    return registrar_is_ready(driver->parts.registrar, ret_reason);
}

static void stop_worker(struct driver *driver)
{
    if (!worker_free(driver->worker, PATIENCE_NS))
        _exit(driver->exit_code);
    driver->worker = NULL;
}

static void on_ready(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    struct driver_parts *parts = &driver->parts;
    struct core_input input = {.kind = CORE_READY,
                               .now_ns = clock_now_ns(parts->clock),
                               .wall_ns = clock_wall_ns(parts->clock)};
    rpc_server_step(parts->server, &input, NULL);
    if (!driver->is_draining)
        call_out(driver);
}

void driver_ready(struct driver *driver, uint64_t wait_ns)
{
    if (wait_ns == 0)
        on_ready(&driver->ready);
    else
        CHECK(uv_timer_start(&driver->ready, on_ready, wait_ns / MS_NS + 1, 0) == 0);
}

const struct driver_meter *driver_meter(const struct driver *driver)
{
    return &driver->meter;
}

void driver_order(struct driver *driver, const struct order *order, struct core_answer *ret)
{
    struct driver_parts *parts = &driver->parts;
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = clock_now_ns(parts->clock),
                               .wall_ns = clock_wall_ns(parts->clock),
                               .order = order};
    if (core_is_full(parts->core) || driver->is_draining || driver->is_ended)
        *ret = (struct core_answer){.order_result = ORDER_LATER};
    else
        rpc_server_step(parts->server, &input, ret);
}

void driver_stop(struct driver *driver, int exit_code)
{
    end(driver, exit_code);
}

int driver_run(struct driver *driver)
{
    (void)uv_run(driver->parts.loop, UV_RUN_DEFAULT);
    struct driver_parts *parts = &driver->parts;
    log_drain(parts->log, core_events(parts->core), clock_now_ns(parts->clock),
              clock_wall_ns(parts->clock));
    log_flush(parts->log, clock_now_ns(parts->clock), clock_wall_ns(parts->clock));
    log_say(parts->log, LOG_LEVEL_INFO, clock_wall_ns(parts->clock),
            LOG_MESSAGE("committed in this run"), LOG_NUMBER("batches", driver->stored.batches),
            LOG_NUMBER("records", driver->stored.records),
            LOG_NUMBER("lock_changes", driver->stored.lock_changes));
    stop_worker(driver);
    return driver->exit_code;
}

void driver_abandon(struct driver *driver, int exit_code)
{
    end(driver, exit_code);
    stop_worker(driver);
}

void driver_free(struct driver *driver)
{
    free(driver);
}
