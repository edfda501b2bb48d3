/*
 * pool.c -- see pool.h.
 *
 * One mutex, one queue, one condition. A thread that finds work takes it without being woken, so
 * under load nobody sleeps and nobody is called. One thread at a time is on its way from its sleep;
 * when it is there and more work waits, it calls the next. A burst of short calls is thus done by
 * few threads, and a long one holds nobody up.
 */
#include "file/pool.h"

#include "base/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct pool {
    void (*begin)(void *context);
    void (*run)(void *context, struct list *work);
    void *context;
    uint32_t thread_count;
    unsigned long *threads;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work_there;
    struct list queue;
    uint32_t waiting, idle;
    bool is_waking, is_stopping;
};

/* Is a thread to be called? The mutex is held; it is called when it is not, or it would wake up
 * only to wait for that. */
static bool must_call(struct pool *pool)
{
    if (pool->idle == 0 || pool->is_waking || list_is_empty(&pool->queue))
        return false;
    return pool->is_waking = true;
}

static void unlock_and_call(struct pool *pool, bool must)
{
    CHECK(pthread_mutex_unlock(&pool->mutex) == 0);
    if (must)
        CHECK(pthread_cond_signal(&pool->work_there) == 0);
}

static void *run(void *argument)
{
    struct pool *pool = argument;
    pool->begin(pool->context);
    CHECK(pthread_mutex_lock(&pool->mutex) == 0);
    for (;;) {
        if (!list_is_empty(&pool->queue)) {
            struct list *work = pool->queue.next;
            list_remove(work);
            pool->waiting--;
            unlock_and_call(pool, must_call(pool));
            pool->run(pool->context, work);
            CHECK(pthread_mutex_lock(&pool->mutex) == 0);
        } else if (pool->is_stopping) {
            break;
        } else {
            pool->idle++;
            CHECK(pthread_cond_wait(&pool->work_there, &pool->mutex) == 0);
            pool->idle--;
            pool->is_waking = false;
        }
    }
    CHECK(pthread_mutex_unlock(&pool->mutex) == 0);
    return NULL;
}

/* Signals are the server's; a write beyond a limit of size fails instead of ending the process. */
bool pool_start_thread(void *(*start)(void *), void *context, unsigned long *ret_thread)
{
    sigset_t blocked, before;
    pthread_t thread;
    CHECK(sigfillset(&blocked) == 0);
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        CHECK(sigdelset(&blocked, own[i]) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0);
    int code = pthread_create(&thread, NULL, start, context);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (code == 0)
        *ret_thread = thread;
    return code == 0;
}

struct pool *pool_new(uint32_t threads, void (*begin)(void *context),
                      void (*run_one)(void *context, struct list *work), void *context)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->begin = begin;
    pool->run = run_one;
    pool->context = context;
    list_init(&pool->queue);
    CHECK(pthread_mutex_init(&pool->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&pool->work_there, NULL) == 0);
    pool->threads = calloc(threads, sizeof pool->threads[0]);
    bool is_good = pool->threads != NULL;
    while (is_good && pool->thread_count < threads) {
        is_good = pool_start_thread(run, pool, &pool->threads[pool->thread_count]);
        pool->thread_count += is_good;
    }
    if (is_good)
        return pool;
    pool_free(pool);
    return NULL;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    CHECK(pthread_mutex_lock(&pool->mutex) == 0);
    pool->is_stopping = true;
    CHECK(pthread_cond_broadcast(&pool->work_there) == 0);
    CHECK(pthread_mutex_unlock(&pool->mutex) == 0);
    for (uint32_t i = 0; i < pool->thread_count; i++)
        CHECK(pthread_join(pool->threads[i], NULL) == 0);
    CHECK(pthread_cond_destroy(&pool->work_there) == 0);
    CHECK(pthread_mutex_destroy(&pool->mutex) == 0);
    free(pool->threads);
    free(pool);
}

void pool_add(struct pool *pool, struct list *work)
{
    CHECK(pthread_mutex_lock(&pool->mutex) == 0);
    list_append(&pool->queue, work);
    pool->waiting++;
    unlock_and_call(pool, must_call(pool));
}

uint32_t pool_waiting(struct pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->mutex) == 0);
    uint32_t waiting = pool->waiting;
    CHECK(pthread_mutex_unlock(&pool->mutex) == 0);
    return waiting;
}
