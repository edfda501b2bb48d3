/*
 * worker.c -- the store thread and its hand-off; see worker.h.
 *
 *            worker_commit           commit returned
 *   NO BATCH --------------> QUEUED, -----------------> OUTCOME
 *      ^                     RUNNING                     READY
 *      +-------------------- worker_poll ------------------+
 *
 * One mutex guards everything that both threads touch, and it is never held over a call of the back
 * end or of the wake function. Whether a batch is out is known to the server thread alone, which
 * sets and clears it.
 *
 * Always true:
 *  (1) The outcome is published before the wake function runs, so that the woken thread finds it.
 *  (2) After a failed commit the store is not touched again except to be closed (D9).
 *  (3) The store is opened before this thread starts and closed by it: one thread at a time.
 *  (4) A copy hears of every batch before the store does. Under any load it makes steps: it comes
 *      to an end, and a batch waits for one step at most, and for the copy of what it changes.
 *  (5) While there are batches a copy rests after each step, COPY_REST times as long as that took:
 *      not only this thread is what it costs, but also the server thread that passes the lines on,
 *      and who takes them. On a machine that is so busy that a step takes long, it rests for
 *      REST_MAX_NS: who reads the copy is not to be taken for one who has stopped.
 */
#include "store/worker.h"

#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* How often space is looked for while there is none. */
#define ROOM_RETRY_NS SECOND_NS
/* So long after a batch another one is expected. */
#define IN_USE_NS   (100 * MS_NS)
#define REST_MAX_NS (20 * MS_NS)

enum { COPY_REST = 3 };

struct worker {
    pthread_t thread;
    struct store *store; /* owned; used by the thread only */
    worker_wake_fn wake;
    void *context;
    bool is_batch_out; /* the server thread's own */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t to_thread, from_thread;
    struct store_batch batch;
    bool is_queued;              /* the batch waits for the thread */
    struct worker_report report; /* news that were not polled yet */
    bool is_stopping, has_ended, has_failed;
    struct copy *copy;    /* being made; NULL: none. Only the thread ends it */
    bool is_turn_of_copy; /* there was a batch, or upkeep, since its last step */
    /* The thread's own. */
    uint64_t committed_ns; /* the end of the last batch; 0: none yet */
    uint64_t rest_end_ns;  /* of the copy */
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* Waits for a signal of the condition until a time. False: the time has come. */
static bool wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / SECOND_NS),
        .tv_nsec = (long)(deadline_ns % SECOND_NS),
    };
    int code = pthread_cond_timedwait(condition, mutex, &deadline);
    CHECK(code == 0 || code == ETIMEDOUT);
    return code == 0;
}

static void lock(struct worker *worker)
{
    CHECK(pthread_mutex_lock(&worker->mutex) == 0);
}

static void unlock(struct worker *worker)
{
    CHECK(pthread_mutex_unlock(&worker->mutex) == 0);
}

/* ---- the store thread; each of these is entered and left with the mutex held ---- */

/* Who waits for bytes of the copy, or for its end, is told. */
static void report_copied(struct worker *worker)
{
    worker->report.has_copied = true;
    unlock(worker);
    worker->wake(worker->context);
    lock(worker);
}

/* It is over, or ends here and says why. */
static void end_copy(struct worker *worker, const char *why)
{
    struct copy *copy = worker->copy;
    worker->copy = NULL;
    if (copy != NULL && copy_leave(copy, why))
        report_copied(worker);
}

static void run_copy(struct worker *worker)
{
    struct copy *copy = worker->copy;
    worker->is_turn_of_copy = false;
    unlock(worker);
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    bool is_over = copy_step(copy, worker->store);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    bool is_in_use = worker->committed_ns != 0 && begin_ns - worker->committed_ns < IN_USE_NS;
    uint64_t rest_ns = min_u64(COPY_REST * (end_ns - begin_ns), REST_MAX_NS);
    worker->rest_end_ns = is_in_use ? end_ns + rest_ns : 0;
    lock(worker);
    if (is_over)
        end_copy(worker, NULL);
    else if (copy_has_news(copy))
        report_copied(worker);
}

static void run_commit(struct worker *worker)
{
    const struct store_batch batch = worker->batch;
    struct copy *copy = worker->copy;
    worker->is_queued = false;
    worker->is_turn_of_copy = true;
    unlock(worker);

    uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t ran_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (copy != NULL)
        copy_keep(copy, worker->store, &batch);
    struct worker_report report = {.txn = batch.txn};
    int code = store_commit(worker->store, &batch, &report.failure);
    worker->committed_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t took_ns = worker->committed_ns - began_ns;
    report.write_ns = min_u64(clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran_ns, took_ns);
    report.sync_ns = took_ns - report.write_ns;
    report.news = code == 0 ? WORKER_COMMITTED : WORKER_FAILED;
    report.has_room = store_has_room(worker->store);
    report.checked_ns = store_checked_ns(worker->store);

    lock(worker);
    report.has_copied = worker->report.has_copied;
    worker->report = report;
    worker->has_failed = code != 0;
    unlock(worker);
    worker->wake(worker->context);
    lock(worker);
}

/* True when there is more to tend. */
static bool run_tend(struct worker *worker)
{
    worker->is_turn_of_copy = true;
    unlock(worker);
    bool has_more = store_tend(worker->store);
    bool has_room = store_has_room(worker->store);
    lock(worker);
    if (has_room != worker->report.has_room) {
        worker->report.has_room = has_room;
        unlock(worker);
        worker->wake(worker->context);
        lock(worker);
    }
    return has_more;
}

/* Waits for work. True when it is time to look for room again. */
static bool wait_for_work(struct worker *worker, bool is_copying)
{
    if (is_copying) { /* it rests */
        (void)wait_until(&worker->to_thread, &worker->mutex, worker->rest_end_ns);
        return false;
    }
    if (worker->has_failed || worker->report.has_room) {
        CHECK(pthread_cond_wait(&worker->to_thread, &worker->mutex) == 0);
        return false;
    }
    return !wait_until(&worker->to_thread, &worker->mutex,
                       clock_ns(CLOCK_MONOTONIC) + ROOM_RETRY_NS);
}

static bool may_copy(struct worker *worker)
{
    return worker->copy != NULL && !worker->is_stopping && copy_is_wanting(worker->copy);
}

static bool is_resting(const struct worker *worker)
{
    return worker->rest_end_ns != 0 && clock_ns(CLOCK_MONOTONIC) < worker->rest_end_ns;
}

static void *run(void *argument)
{
    struct worker *worker = argument;
    bool may_tend = true;

    lock(worker);
    for (;;) {
        if (worker->has_failed)
            end_copy(worker, "the store failed");
        bool is_copying = may_copy(worker);
        if (is_copying && !is_resting(worker) &&
            (worker->is_turn_of_copy || (!worker->is_queued && !may_tend))) {
            run_copy(worker);
        } else if (worker->is_queued) {
            run_commit(worker);
            may_tend = !worker->has_failed;
        } else if (worker->is_stopping) {
            break;
        } else if (may_tend) {
            may_tend = run_tend(worker);
        } else {
            may_tend = wait_for_work(worker, is_copying);
        }
    }
    end_copy(worker, "the server is stopping");
    unlock(worker);
    store_close(worker->store);
    lock(worker);
    worker->has_ended = true;
    CHECK(pthread_cond_signal(&worker->from_thread) == 0);
    unlock(worker);
    return NULL;
}

/* ---- the server thread ---- */

/*
 * The thread takes no signals: they are the server's, which waits for them in its loop. The ones
 * that a thread causes itself stay open, so that a crash is reported where it happens. A write
 * beyond RLIMIT_FSIZE then fails with EFBIG instead of ending the process by SIGXFSZ.
 */
static bool start_thread(struct worker *worker)
{
    sigset_t blocked, before;
    CHECK(sigfillset(&blocked) == 0);
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        CHECK(sigdelset(&blocked, own[i]) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0);
    int code = pthread_create(&worker->thread, NULL, run, worker);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return code == 0;
}

static void destroy(struct worker *worker)
{
    CHECK(pthread_cond_destroy(&worker->from_thread) == 0);
    CHECK(pthread_cond_destroy(&worker->to_thread) == 0);
    CHECK(pthread_mutex_destroy(&worker->mutex) == 0);
    free(worker);
}

struct worker *worker_new(struct store *store, worker_wake_fn wake, void *context)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->store = store;
    worker->wake = wake;
    worker->context = context;
    worker->report.has_room = store_has_room(store);

    pthread_condattr_t monotonic;
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&worker->to_thread, &monotonic) == 0);
    CHECK(pthread_cond_init(&worker->from_thread, &monotonic) == 0);
    CHECK(pthread_condattr_destroy(&monotonic) == 0);
    CHECK(pthread_mutex_init(&worker->mutex, NULL) == 0);
    if (!start_thread(worker)) {
        destroy(worker);
        return NULL;
    }
    return worker;
}

bool worker_is_busy(const struct worker *worker)
{
    return worker->is_batch_out;
}

void worker_commit(struct worker *worker, const struct store_batch *batch)
{
    CHECK(!worker->is_batch_out);
    worker->is_batch_out = true;
    lock(worker);
    CHECK(!worker->has_failed);
    CHECK(!worker->is_stopping);
    worker->batch = *batch;
    worker->is_queued = true;
    unlock(worker);
    /* Not before: the thread would wake up, and wait for the mutex. */
    CHECK(pthread_cond_signal(&worker->to_thread) == 0);
}

void worker_poll(struct worker *worker, struct worker_report *ret)
{
    lock(worker);
    *ret = worker->report;
    worker->report.news = WORKER_NOTHING;
    worker->report.has_copied = false;
    unlock(worker);
    if (ret->news != WORKER_NOTHING)
        worker->is_batch_out = false;
}

bool worker_copy(struct worker *worker, struct copy *copy)
{
    lock(worker);
    bool is_taken = worker->copy == NULL && !worker->has_failed && !worker->is_stopping &&
                    store_can_walk(worker->store);
    if (is_taken) {
        copy_hold(copy);
        worker->copy = copy;
        CHECK(pthread_cond_signal(&worker->to_thread) == 0);
    }
    unlock(worker);
    return is_taken;
}

void worker_copy_on(struct worker *worker)
{
    lock(worker);
    CHECK(pthread_cond_signal(&worker->to_thread) == 0);
    unlock(worker);
}

bool worker_free(struct worker *worker, uint64_t patience_ns)
{
    if (worker == NULL)
        return true;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t deadline_ns = patience_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + patience_ns;
    lock(worker);
    worker->is_stopping = true;
    CHECK(pthread_cond_signal(&worker->to_thread) == 0);
    while (!worker->has_ended && wait_until(&worker->from_thread, &worker->mutex, deadline_ns))
        continue;
    bool has_ended = worker->has_ended;
    unlock(worker);
    if (!has_ended)
        return false;
    CHECK(pthread_join(worker->thread, NULL) == 0);
    destroy(worker);
    return true;
}
