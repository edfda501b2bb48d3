/*
 * pool.c -- see pool.h.
 *
 * One mutex and one condition. A thread that finds work takes it without being woken, so under load
 * nobody sleeps and nobody is called. One thread at a time is on its way from its sleep; when it is
 * there and more work waits, it calls the next. A burst of short calls is thus done by few threads,
 * and a long one holds nobody up.
 *
 *   a lane:   NO WORK --add--> READY --a thread takes of it, the next lane is next--+
 *                ^               ^ |                                                |
 *                |               | +---<--- more work, and it may have more threads +
 *                |               +--- one of its threads is done -- HELD <----------+
 *                +------------------------------ no more work <---------------------+
 */
#include "file/pool.h"

#include "base/check.h"

#include <signal.h>
#include <stdlib.h>

enum { THREADS_MAX = 256 };

struct pool {
    void (*begin)(void *context);
    void (*run)(void *context, struct pool_lane *lane, struct list *work);
    void *context;
    uint32_t lane_max; /* threads of one lane */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work_there;
    uint32_t thread_count;
    pthread_t threads[THREADS_MAX];
    struct list ready, held; /* lanes that have work, and may have one more thread, or not */
    uint32_t waiting, busy, idle;
    bool is_waking, is_stopping;
};

static void lock(struct pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->mutex) == 0);
}

static void unlock(struct pool *pool)
{
    CHECK(pthread_mutex_unlock(&pool->mutex) == 0);
}

/* ---- lanes; the mutex is held ---- */

void pool_lane_init(struct pool_lane *lane)
{
    *lane = (struct pool_lane){0};
    list_init(&lane->link);
    for (uint32_t i = 0; i < POOL_CALLERS; i++)
        list_init(&lane->queues[i]);
}

static bool may_run(const struct pool *pool, const struct pool_lane *lane)
{
    return lane->running < pool->lane_max && lane->running < THREADS_MAX - pool->busy;
}

/* Among the lanes that it belongs to now. */
static void place(struct pool *pool, struct pool_lane *lane)
{
    list_remove(&lane->link);
    if (lane->waiting > 0)
        list_append(may_run(pool, lane) ? &pool->ready : &pool->held, &lane->link);
}

/* There is some. */
static struct list *take_next(struct pool *pool, struct pool_lane *lane)
{
    while (list_is_empty(&lane->queues[lane->turn]))
        lane->turn = (lane->turn + 1) % POOL_CALLERS;
    struct list *work = lane->queues[lane->turn].next;
    lane->turn = (lane->turn + 1) % POOL_CALLERS;
    list_remove(work);
    lane->waiting--;
    pool->waiting--;
    return work;
}

static struct list *take(struct pool *pool, struct pool_lane *lane)
{
    struct list *work = take_next(pool, lane);
    lane->running++;
    pool->busy++;
    place(pool, lane);
    return work;
}

static void put_back(struct pool *pool, struct pool_lane *lane)
{
    bool was_scarce = pool->busy + pool->lane_max >= THREADS_MAX;
    lane->running--;
    lane->done++;
    pool->busy--;
    if (!list_is_empty(&lane->link))
        place(pool, lane);
    if (!was_scarce)
        return;
    struct list others;
    list_init(&others);
    while (!list_is_empty(&pool->held)) {
        struct list *link = pool->held.next;
        list_remove(link);
        list_append(&others, link);
    }
    while (!list_is_empty(&others))
        place(pool, LIST_ELEMENT(others.next, struct pool_lane, link));
}

bool pool_is_stuck(struct pool *pool, struct pool_lane *lane, uint32_t looks_max,
                   struct list *ret_queue)
{
    lock(pool);
    bool is_busy = lane->running >= pool->lane_max || (lane->waiting > 0 && !may_run(pool, lane));
    lane->looks = is_busy && lane->done == lane->done_before ? lane->looks + 1 : 0;
    lane->done_before = lane->done;
    bool is_stuck = lane->looks >= looks_max;
    while (is_stuck && ret_queue != NULL && lane->waiting > 0)
        list_append(ret_queue, take_next(pool, lane));
    place(pool, lane);
    unlock(pool);
    return is_stuck;
}

/* ---- threads ---- */

/* Is a thread to be called? The mutex is held; it is called when it is not, or it would wake up
 * only to wait for that. */
static bool must_call(struct pool *pool)
{
    if (pool->idle == 0 || pool->is_waking || list_is_empty(&pool->ready))
        return false;
    return pool->is_waking = true;
}

static void unlock_and_call(struct pool *pool, bool must)
{
    unlock(pool);
    if (must)
        CHECK(pthread_cond_signal(&pool->work_there) == 0);
}

static bool start_one(struct pool *pool);

/* Who has a thread keeps it for as long as its file system wants. If there is none more to be had,
 * the work waits for one of those that there are. */
static void reinforce(struct pool *pool)
{
    if (pool->idle == 0 && pool->busy == pool->thread_count && !list_is_empty(&pool->ready))
        (void)start_one(pool);
}

static void *run(void *argument)
{
    struct pool *pool = argument;
    pool->begin(pool->context);
    lock(pool);
    for (;;) {
        if (!list_is_empty(&pool->ready)) {
            struct pool_lane *lane = LIST_ELEMENT(pool->ready.next, struct pool_lane, link);
            struct list *work = take(pool, lane);
            reinforce(pool);
            unlock_and_call(pool, must_call(pool));
            pool->run(pool->context, lane, work);
            lock(pool);
            put_back(pool, lane);
        } else if (pool->is_stopping && pool->waiting == 0) {
            break;
        } else {
            pool->idle++;
            CHECK(pthread_cond_wait(&pool->work_there, &pool->mutex) == 0);
            pool->idle--;
            pool->is_waking = false;
        }
    }
    /* What was held until now is done, too: the others may leave. */
    CHECK(pthread_cond_broadcast(&pool->work_there) == 0);
    unlock(pool);
    return NULL;
}

/* Signals are the server's; a write beyond a limit of size fails instead of ending the process. */
bool pool_start_thread(void *(*start)(void *), void *context, pthread_t *ret_thread)
{
    sigset_t blocked, before;
    CHECK(sigfillset(&blocked) == 0);
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        CHECK(sigdelset(&blocked, own[i]) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0);
    int code = pthread_create(ret_thread, NULL, start, context);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return code == 0;
}

/* The mutex is held, or nobody else has the pool yet. */
static bool start_one(struct pool *pool)
{
    if (pool->thread_count == THREADS_MAX ||
        !pool_start_thread(run, pool, &pool->threads[pool->thread_count]))
        return false;
    pool->thread_count++;
    return true;
}

struct pool *pool_new(uint32_t threads, void (*begin)(void *context),
                      void (*run_one)(void *context, struct pool_lane *lane, struct list *work),
                      void *context)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->begin = begin;
    pool->run = run_one;
    pool->context = context;
    pool->lane_max = threads < THREADS_MAX / 2 ? threads : THREADS_MAX / 2;
    list_init(&pool->ready);
    list_init(&pool->held);
    CHECK(pthread_mutex_init(&pool->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&pool->work_there, NULL) == 0);
    lock(pool);
    bool is_good = true;
    while (is_good && pool->thread_count < pool->lane_max)
        is_good = start_one(pool);
    unlock(pool);
    if (is_good)
        return pool;
    pool_free(pool);
    return NULL;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    lock(pool);
    pool->is_stopping = true;
    CHECK(pthread_cond_broadcast(&pool->work_there) == 0);
    unlock(pool);
    for (uint32_t i = 0; i < pool->thread_count; i++)
        CHECK(pthread_join(pool->threads[i], NULL) == 0);
    CHECK(pthread_cond_destroy(&pool->work_there) == 0);
    CHECK(pthread_mutex_destroy(&pool->mutex) == 0);
    free(pool);
}

void pool_add(struct pool *pool, struct pool_lane *lane, uint32_t caller, struct list *work)
{
    lock(pool);
    list_append(&lane->queues[caller], work);
    pool->waiting++;
    if (++lane->waiting == 1)
        place(pool, lane);
    reinforce(pool);
    unlock_and_call(pool, must_call(pool));
}

uint32_t pool_waiting(struct pool *pool)
{
    lock(pool);
    uint32_t waiting = pool->waiting;
    unlock(pool);
    return waiting;
}
