/*
 * commits.c -- see commits.h.
 */
#include "daemon/commits.h"

#include "base/units.h"

#include <unistd.h>

#define PATIENCE_NS (SECOND_NS / 4) /* for the store thread to end */
#define BACKSTOP_NS (5 * SECOND_NS) /* beyond the time that a shared store takes for itself */
#define STALL_NS    (2 * SECOND_NS) /* between two ticks: this process was not scheduled */

enum { EXIT_STORE = 74 };

void commits_init(struct commits *commits, const struct commits_parts *parts)
{
    *commits = (struct commits){.parts = *parts};
    histogram_init(&commits->meter.durations, &histogram_durations);
    histogram_init(&commits->meter.writes, &histogram_durations);
    histogram_init(&commits->meter.syncs, &histogram_durations);
    histogram_init(&commits->meter.batch_records, &histogram_counts);
}

bool commits_start(struct commits *commits, worker_wake_fn wake, void *context)
{
    commits->worker = worker_new(commits->parts.store, wake, context);
    if (commits->worker == NULL)
        store_close(commits->parts.store);
    return commits->worker != NULL;
}

void commits_stop(struct commits *commits, int exit_code)
{
    if (!worker_free(commits->worker, PATIENCE_NS))
        _exit(exit_code);
    commits->worker = NULL;
}

bool commits_is_busy(const struct commits *commits)
{
    return worker_is_busy(commits->worker);
}

uint64_t commits_age_ns(const struct commits *commits)
{
    if (commits->worker == NULL || !worker_is_busy(commits->worker))
        return 0;
    return clock_raw_ns(commits->parts.clock) - commits->since_ns;
}

void commits_hand(struct commits *commits)
{
    struct store_batch batch;
    if (worker_is_busy(commits->worker) || !core_take_batch(commits->parts.core, &batch))
        return;
    commits->since_ns = clock_raw_ns(commits->parts.clock);
    commits->has_forgiven = false;
    commits->out = (struct commits_totals){1, batch.count, batch.lock_change_count};
    worker_commit(commits->worker, &batch);
}

/* The batch that was out is durable. */
static void count(struct commits *commits, const struct worker_report *report)
{
    if (commits->parts.is_metered) {
        uint64_t now_ns = clock_raw_ns(commits->parts.clock);
        histogram_add(&commits->meter.durations, now_ns - commits->since_ns);
        histogram_add(&commits->meter.writes, report->write_ns);
        histogram_add(&commits->meter.syncs, report->sync_ns);
        histogram_add(&commits->meter.batch_records, commits->out.records);
    }
    commits->stored.batches += commits->out.batches;
    commits->stored.records += commits->out.records;
    commits->stored.lock_changes += commits->out.lock_changes;
}

bool commits_take(struct commits *commits, struct store_failure *ret_failure)
{
    const struct commits_parts *parts = &commits->parts;
    struct worker_report report;
    worker_poll(commits->worker, &report);
    uint64_t txn = core_durable_txn(parts->core);
    switch (report.news) {
    case WORKER_FAILED:
        *ret_failure = report.failure;
        return false;
    case WORKER_COMMITTED:
        txn = report.txn;
        lease_renew(parts->lease, report.checked_ns);
        count(commits, &report);
        break;
    case WORKER_NOTHING:
        break;
    }
    rpc_server_stored(parts->server, txn, report.has_room, clock_now_ns(parts->clock),
                      clock_wall_ns(parts->clock));
    http_stored(parts->control);
    if (report.has_copied)
        http_wake_all(parts->control);
    return true;
}

/*
 * An idle server on a shared store commits now and then: it notices that it was replaced, and one
 * whose connection was cut takes the lock again before a standby believes that it is gone.
 */
static void beat(struct commits *commits)
{
    if (!lease_is_shared(commits->parts.lease) || worker_is_busy(commits->worker) ||
        clock_raw_ns(commits->parts.clock) - commits->since_ns < LEASE_BEAT_MS * MS_NS)
        return;
    (void)core_fence(commits->parts.core);
    commits_hand(commits);
}

/*
 * Time in which this process stood still (SIGSTOP) is not the store's: its thread stood still too,
 * and is about to say how it went, which may be that we were replaced. Once for each batch: a disk
 * that hangs may make this thread stand still again and again (its log is there too), and that must
 * come to an end.
 */
static void forgive_stall(struct commits *commits)
{
    uint64_t now_ns = clock_raw_ns(commits->parts.clock);
    uint64_t stalled_ns = commits->ticked_ns == 0 ? 0 : now_ns - commits->ticked_ns;
    commits->ticked_ns = now_ns;
    if (stalled_ns < STALL_NS || commits->has_forgiven)
        return;
    commits->has_forgiven = true;
    uint64_t age_ns = now_ns - commits->since_ns;
    commits->since_ns = now_ns - (age_ns > stalled_ns ? age_ns - stalled_ns : 0);
}

bool commits_tick(struct commits *commits, bool is_draining, struct store_failure *ret_failure)
{
    forgive_stall(commits);
    if (!is_draining)
        beat(commits);
    /* A shared store keeps the time itself, and knows more about the cause. */
    bool is_shared = lease_is_shared(commits->parts.lease);
    if (commits_age_ns(commits) <= commits->parts.timeout_ns + (is_shared ? BACKSTOP_NS : 0))
        return true;
    *ret_failure = is_shared
                       ? (struct store_failure){.exit_code = EXIT_STORE,
                                                .text = "a commit did not finish within "
                                                        "--store-timeout; check PostgreSQL and the "
                                                        "resolver that finds its address"}
                       : (struct store_failure){.exit_code = EXIT_STORE,
                                                .text = "a commit did not finish within "
                                                        "--store-timeout; check the disk"};
    return false;
}
