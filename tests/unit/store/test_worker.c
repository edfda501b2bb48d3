/*
 * test_worker.c -- shows the hand-off between the server thread and the store thread.
 *
 * worker.c is linked with a store made here, whose operations wait until the test lets them go on,
 * so that every order of events is produced on purpose and nothing depends on time. The suite is
 * meant to run under the thread sanitizer as well.
 */
#include "store/worker.h"

#include "base/units.h"
#include "store/backend.h"
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#define PATIENCE_NS UINT64_C(60000000000)

/* The store that the worker gets. Everything is guarded by the mutex; any change signals. */
struct store {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_gated;     /* commits wait for permits */
    uint64_t work_ns;  /* a commit takes so much of the processor */
    int permits;       /* commits that may go on */
    int tends_left;    /* how often store_tend says that there is more */
    int tend_count;    /* calls of store_tend */
    int commit_count;  /* commits that ended */
    int running;       /* operations inside the store: never more than one */
    uint64_t last_txn; /* of the last commit that ended */
    uint64_t checked_ns;
    bool fails, has_room, is_closed;
    bool was_tended_after_failure, took_signals;
    bool is_shared; /* cannot be walked */
    uint32_t locks; /* what it holds */
    int walk_count; /* calls of store_walk */
    int wake_count;
    bool is_slow; /* a walk over locks takes WALK_NS; how copies rest is seen: */
    uint64_t committed_ns, walked_ns; /* the end of the last commit, and of such a walk */
    bool must_rest;                   /* that walk began soon after a commit */
    int rests, rests_missed;
};

#define WALK_NS (2 * MS_NS)
#define SOON_NS (50 * MS_NS)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    assert_int_equal(clock_gettime(clock, &now), 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void change(struct store *store)
{
    assert_int_equal(pthread_cond_broadcast(&store->changed), 0);
}

/* The thread that tests run in never appears here. */
static void enter(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->running++;
    if (store->running != 1)
        store->commit_count = -1000; /* seen by every test */
    pthread_cond_broadcast(&store->changed);
}

static void leave(struct store *store)
{
    store->running--;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
}

int store_commit(struct store *store, const struct store_batch *batch,
                 struct store_failure *ret_failure)
{
    sigset_t blocked;
    enter(store);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGXFSZ) ||
        sigismember(&blocked, SIGSEGV))
        store->took_signals = true;
    for (uint64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + store->work_ns;
         clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns;)
        continue;
    while (store->is_gated && store->permits == 0)
        pthread_cond_wait(&store->changed, &store->mutex);
    if (store->is_gated)
        store->permits--;
    int code = store->fails ? -EIO : 0;
    if (store->fails)
        *ret_failure = (struct store_failure){.exit_code = 74, .text = "the disk is gone"};
    store->last_txn = batch->txn;
    store->commit_count++;
    store->committed_ns = clock_ns(CLOCK_MONOTONIC);
    leave(store);
    return code;
}

bool store_tend(struct store *store)
{
    enter(store);
    store->tend_count++;
    if (store->fails && store->commit_count > 0)
        store->was_tended_after_failure = true;
    bool has_more = store->tends_left > 0;
    if (has_more)
        store->tends_left--;
    leave(store);
    return has_more;
}

bool store_can_walk(const struct store *store)
{
    return !store->is_shared;
}

/* Entered and left with the mutex. */
static void take_time(struct store *store)
{
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    if (store->must_rest)
        *(begin_ns - store->walked_ns >= 3 * WALK_NS ? &store->rests : &store->rests_missed) += 1;
    store->must_rest = store->committed_ns != 0 && begin_ns - store->committed_ns < SOON_NS;
    while ((store->walked_ns = clock_ns(CLOCK_MONOTONIC)) - begin_ns < WALK_NS)
        continue;
}

/* A walk of the store thread over locks that are all alike. */
int store_fold(struct store *store, struct store_failure *ret_failure)
{
    (void)store;
    (void)ret_failure;
    return 0;
}

int store_walk(struct store *store, struct store_slots slots, store_visit_fn visit, void *context,
               struct store_failure *ret_failure)
{
    (void)ret_failure;
    const uint8_t value[100] = {1};
    int stop = 0;
    enter(store);
    store->walk_count++;
    uint32_t count = slots.kind == RECORD_LOCK ? store->locks : 0;
    if (store->is_slow && slots.kind == RECORD_LOCK && slots.from < count)
        take_time(store);
    leave(store);
    for (uint32_t slot = slots.from; stop == 0 && slot < count && slot < slots.end; slot++)
        stop = visit(context, slots.kind, slot, (struct bytes){value, sizeof value});
    return stop;
}

void store_fail(struct store_failure *failure, int exit_code, const char *format, ...)
{
    (void)format;
    *failure = (struct store_failure){.exit_code = exit_code};
}

uint64_t store_checked_ns(const struct store *store)
{
    return store->checked_ns;
}

bool store_has_room(const struct store *store)
{
    struct store *mutable = (struct store *)(uintptr_t)store;
    pthread_mutex_lock(&mutable->mutex);
    bool has_room = store->has_room;
    pthread_mutex_unlock(&mutable->mutex);
    return has_room;
}

void store_close(struct store *store)
{
    enter(store);
    store->is_closed = true;
    leave(store);
}

static void wake(void *context)
{
    struct store *store = context;
    pthread_mutex_lock(&store->mutex);
    store->wake_count++;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
}

static struct store fake;

TEST_FIXTURE(set_up)
{
    fake = (struct store){.has_room = true};
    assert_int_equal(pthread_mutex_init(&fake.mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&fake.changed, NULL), 0);
}

TEST_FIXTURE(tear_down)
{
    assert_int_equal(pthread_cond_destroy(&fake.changed), 0);
    assert_int_equal(pthread_mutex_destroy(&fake.mutex), 0);
}

/* Waits until a counter of the fake store reaches a value. */
static void wait_for(const int *counter, int value)
{
    pthread_mutex_lock(&fake.mutex);
    while (*counter < value)
        pthread_cond_wait(&fake.changed, &fake.mutex);
    pthread_mutex_unlock(&fake.mutex);
}

static int look(const int *counter)
{
    pthread_mutex_lock(&fake.mutex);
    int value = *counter;
    pthread_mutex_unlock(&fake.mutex);
    return value;
}

static void permit(int count)
{
    pthread_mutex_lock(&fake.mutex);
    fake.permits += count;
    change(&fake);
    pthread_mutex_unlock(&fake.mutex);
}

static void set_room(bool has_room)
{
    pthread_mutex_lock(&fake.mutex);
    fake.has_room = has_room;
    pthread_mutex_unlock(&fake.mutex);
}

TEST(test_worker__hands_over_and_back)
{
    struct worker_report report;
    fake.is_gated = true;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    assert_false(worker_is_busy(worker));
    worker_poll(worker, &report);
    assert_int_equal(report.news, WORKER_NOTHING);
    assert_true(report.has_room);

    for (uint64_t txn = 1; txn <= 100; txn++) {
        int wakes = look(&fake.wake_count);
        struct store_batch batch = {.txn = txn};
        worker_commit(worker, &batch);
        batch.txn = 0; /* only the bytes behind the batch are borrowed */
        assert_true(worker_is_busy(worker));
        wait_for(&fake.running, 1);
        worker_poll(worker, &report);
        assert_int_equal(report.news, WORKER_NOTHING); /* not durable, so no news */
        assert_true(worker_is_busy(worker));
        permit(1);
        wait_for(&fake.wake_count, wakes + 1);
        worker_poll(worker, &report);
        assert_int_equal(report.news, WORKER_COMMITTED);
        assert_int_equal(report.txn, txn);
        assert_true(report.has_room);
        assert_false(worker_is_busy(worker));
        worker_poll(worker, &report);
        assert_int_equal(report.news, WORKER_NOTHING); /* news are told once */
    }
    assert_true(worker_free(worker, PATIENCE_NS));
    assert_true(fake.is_closed);
    assert_int_equal(fake.commit_count, 100);
    assert_int_equal(fake.wake_count, 100);
    assert_false(fake.took_signals);
}

TEST(test_worker__tells_running_from_waiting)
{
    struct worker_report report;
    fake.is_gated = true;
    fake.work_ns = 2 * MS_NS;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    worker_commit(worker, &(struct store_batch){.txn = 1});
    wait_for(&fake.running, 1);
    uint64_t stuck_ns = clock_ns(CLOCK_MONOTONIC); /* from here on it runs no more than work_ns */
    while (clock_ns(CLOCK_MONOTONIC) < stuck_ns + 10 * fake.work_ns)
        (void)sched_yield();
    permit(1);
    wait_for(&fake.wake_count, 1);
    worker_poll(worker, &report);
    assert_int_equal(report.news, WORKER_COMMITTED);
    assert_true(report.write_ns >= fake.work_ns);
    assert_true(report.write_ns < report.sync_ns);
    assert_true(report.write_ns + report.sync_ns >= 10 * fake.work_ns);
    assert_true(worker_free(worker, PATIENCE_NS));
}

TEST(test_worker__reports_a_failure_and_touches_nothing_more)
{
    struct worker_report report;
    fake.fails = true;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    worker_commit(worker, &(struct store_batch){.txn = 7});
    wait_for(&fake.wake_count, 1);
    worker_poll(worker, &report);
    assert_int_equal(report.news, WORKER_FAILED);
    assert_int_equal(report.txn, 7);
    assert_int_equal(report.failure.exit_code, 74);
    assert_string_equal(report.failure.text, "the disk is gone");
    assert_true(worker_free(worker, PATIENCE_NS));
    assert_true(fake.is_closed);
    assert_false(fake.was_tended_after_failure);
}

TEST(test_worker__tends_while_there_is_nothing_else)
{
    struct worker_report report;
    fake.tends_left = 10;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    wait_for(&fake.tend_count, 11); /* until it says that there is no more */
    worker_commit(worker, &(struct store_batch){.txn = 1});
    wait_for(&fake.tend_count, 12); /* a commit may have made new work */
    wait_for(&fake.wake_count, 1);
    worker_poll(worker, &report);
    assert_int_equal(report.news, WORKER_COMMITTED);
    assert_true(worker_free(worker, PATIENCE_NS));
    assert_int_equal(fake.tend_count, 12); /* content means content: it does not spin */
}

TEST(test_worker__says_when_room_goes_and_comes)
{
    struct worker_report report;
    fake.tends_left = 1000000;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    set_room(false);
    wait_for(&fake.wake_count, 1);
    worker_poll(worker, &report);
    assert_int_equal(report.news, WORKER_NOTHING);
    assert_false(report.has_room);
    /* Without room and with nothing to tend it looks again by itself. */
    pthread_mutex_lock(&fake.mutex);
    fake.tends_left = 0;
    int tends = fake.tend_count;
    pthread_mutex_unlock(&fake.mutex);
    wait_for(&fake.tend_count, tends + 2);
    set_room(true);
    wait_for(&fake.wake_count, 2);
    worker_poll(worker, &report);
    assert_true(report.has_room);
    assert_true(worker_free(worker, PATIENCE_NS));
}

TEST(test_worker__starts_without_room)
{
    struct worker_report report;
    fake.has_room = false;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    worker_poll(worker, &report);
    assert_false(report.has_room);
    worker_commit(worker, &(struct store_batch){.txn = 1});
    wait_for(&fake.wake_count, 1);
    worker_poll(worker, &report);
    assert_int_equal(report.news, WORKER_COMMITTED);
    assert_false(report.has_room);
    assert_true(worker_free(worker, PATIENCE_NS));
}

TEST(test_worker__ends_only_after_the_batch_that_is_out)
{
    fake.is_gated = true;
    fake.permits = 1;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    worker_commit(worker, &(struct store_batch){.txn = 3});
    assert_true(worker_free(worker, PATIENCE_NS));
    assert_int_equal(fake.commit_count, 1);
    assert_int_equal(fake.last_txn, 3);
    assert_true(fake.is_closed);
}

TEST(test_worker__gives_up_on_a_stuck_commit)
{
    fake.is_gated = true;
    struct worker *worker = worker_new(&fake, wake, &fake);
    assert_non_null(worker);
    worker_commit(worker, &(struct store_batch){.txn = 3});
    wait_for(&fake.running, 1);
    assert_false(worker_free(worker, 0));
    assert_false(worker_free(worker, 1000000));
    assert_int_equal(look(&fake.commit_count), 0);
    permit(1); /* the disk answers after all */
    assert_true(worker_free(worker, UINT64_MAX));
    assert_int_equal(fake.commit_count, 1);
    assert_true(fake.is_closed);
}

/* ---- copies ---- */

/* Reads to the end as the server's loop does: takes, and waits for a report when there is nothing.
 * How it ended. */
static ssize_t read_copy(struct worker *worker, struct copy *copy, uint32_t *lines)
{
    static char piece[64 * 1024];
    for (;;) {
        int wakes = look(&fake.wake_count);
        ssize_t len = copy_take(copy, piece, sizeof piece);
        for (ssize_t i = 0; i < len; i++)
            *lines += piece[i] == '\n';
        if (len < 0)
            return len;
        if (copy_is_wanting(copy))
            worker_copy_on(worker);
        struct worker_report report;
        worker_poll(worker, &report);
        if (len == 0 && !report.has_copied)
            wait_for(&fake.wake_count, wakes + 1);
    }
}

TEST(test_worker__copies_while_there_is_nothing_else)
{
    fake.locks = 30000;
    uint32_t lines = 0;
    struct worker *worker = worker_new(&fake, wake, &fake);
    struct copy *copy = copy_new(), *other = copy_new();
    assert_true(worker_copy(worker, copy));
    assert_int_equal(read_copy(worker, copy, &lines), COPY_WHOLE);
    assert_int_equal(lines, fake.locks + 1);
    assert_false(copy_cancel(copy));
    while (!worker_copy(worker, other)) /* as soon as the thread is done with the first */
        continue;
    assert_true(worker_free(worker, PATIENCE_NS));
    assert_false(copy_cancel(other));
    assert_int_equal(fake.commit_count, 0);
}

/* Batch after batch, until the copy has come to its end. */
static void copy_under_load(void)
{
    uint32_t lines = 0;
    struct worker_report report;
    char piece[64 * 1024];
    ssize_t len = 0;
    struct worker *worker = worker_new(&fake, wake, &fake);
    struct copy *copy = copy_new();
    assert_true(worker_copy(worker, copy));
    for (uint64_t txn = 1; len >= 0; txn++) {
        int commits = look(&fake.commit_count);
        worker_commit(worker, &(struct store_batch){.txn = txn});
        wait_for(&fake.commit_count, commits + 1); /* no batch is kept waiting by the copy, */
        do
            worker_poll(worker, &report);
        while (report.news == WORKER_NOTHING);
        assert_int_equal(report.news, WORKER_COMMITTED);
        while ((len = copy_take(copy, piece, sizeof piece)) > 0)
            for (ssize_t i = 0; i < len; i++)
                lines += piece[i] == '\n';
        if (copy_is_wanting(copy))
            worker_copy_on(worker);
    }
    assert_int_equal(len, COPY_WHOLE); /* and it comes to its end */
    assert_int_equal(lines, fake.locks + 1);
    assert_false(copy_cancel(copy));
    assert_true(worker_free(worker, PATIENCE_NS));
}

TEST(test_worker__copies_under_load)
{
    fake.locks = 30000;
    copy_under_load();
}

/* A step of the copy is followed by a rest, three times as long. */
TEST(test_worker__copies_rest_under_load)
{
    fake.locks = 1000;
    fake.is_slow = true;
    copy_under_load();
    assert_int_equal(fake.rests_missed, 0);
    assert_true(fake.rests > 0);
}

/* A copy that has broken off costs the batch no more reads. */
TEST(test_copy__reads_no_more_when_it_has_broken_off)
{
    enum { CHANGES = 400000 }; /* some 270,000 lines are 64 MiB */
    struct batch_writer writer = {.max = (uint64_t)CHANGES * BATCH_CHANGE_OVERHEAD};
    char why[COPY_WHY_MAX];
    writer.start = malloc(writer.max);
    assert_non_null(writer.start);
    for (uint32_t slot = 0; slot < CHANGES; slot++)
        store_batch_delete(&writer, RECORD_LOCK, slot);
    struct store_batch batch = {
        .txn = 1, .count = writer.count, .changes = {writer.start, writer.len}};
    fake.locks = CHANGES;
    struct copy *copy = copy_new();
    copy_hold(copy);
    assert_false(copy_step(copy, &fake));
    copy_keep(copy, &fake, &batch);
    int walks = fake.walk_count;
    assert_in_range(walks, 200000, 300000);
    assert_true(copy_step(copy, &fake));
    assert_int_equal(fake.walk_count, walks);
    copy_get_why(copy, why);
    assert_non_null(strstr(why, "too many records changed"));
    (void)copy_leave(copy, NULL);
    assert_false(copy_cancel(copy));
    free(writer.start);
}

TEST(test_worker__makes_one_copy_at_a_time)
{
    fake.locks = 30000; /* more than fits into its queue */
    struct worker *worker = worker_new(&fake, wake, &fake);
    struct copy *copy = copy_new(), *other = copy_new();
    assert_true(worker_copy(worker, copy));
    assert_false(worker_copy(worker, other));
    assert_true(copy_cancel(copy)); /* the reader leaves in the middle */
    worker_copy_on(worker);
    while (!worker_copy(worker, other))
        continue;
    /* A stop waits for no reader, */
    assert_true(worker_free(worker, PATIENCE_NS));
    uint32_t lines = 0;
    char piece[4096];
    ssize_t len;
    while ((len = copy_take(other, piece, sizeof piece)) > 0)
        lines++;
    assert_int_equal(len, COPY_CUT); /* and the reader hears of it */
    assert_false(copy_cancel(other));
}

TEST(test_worker__copies_nothing_of_a_store_that_failed)
{
    fake.fails = true;
    fake.locks = 30000;
    char piece[4096];
    ssize_t len;
    struct worker *worker = worker_new(&fake, wake, &fake);
    struct copy *copy = copy_new(), *other = copy_new();
    assert_true(worker_copy(worker, copy));
    worker_commit(worker, &(struct store_batch){.txn = 1});
    wait_for(&fake.commit_count, 1);
    while ((len = copy_take(copy, piece, sizeof piece)) >= 0)
        continue;
    assert_int_equal(len, COPY_CUT);
    assert_false(worker_copy(worker, other));
    assert_false(copy_cancel(copy));
    assert_false(copy_cancel(other));
    assert_true(worker_free(worker, PATIENCE_NS));
}

TEST(test_worker__copies_no_shared_store)
{
    fake.is_shared = true;
    struct worker *worker = worker_new(&fake, wake, &fake);
    struct copy *copy = copy_new();
    assert_false(worker_copy(worker, copy));
    assert_false(copy_cancel(copy));
    assert_true(worker_free(worker, PATIENCE_NS));
}

TEST(test_worker__freeing_nothing_is_fine)
{
    assert_true(worker_free(NULL, 0));
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
