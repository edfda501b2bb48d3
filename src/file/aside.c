/*
 * aside.c -- see aside.h.
 */
#include "file/aside.h"

#include "base/check.h"
#include "base/units.h"
#include "file/pool.h"

#include <errno.h>
#include <time.h>

static void end(struct aside *aside)
{
    CHECK(pthread_cond_destroy(&aside->news) == 0);
    CHECK(pthread_mutex_destroy(&aside->mutex) == 0);
}

bool aside_start(struct aside *aside, void *(*run)(void *), void *context)
{
    pthread_condattr_t monotonic;
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&aside->news, &monotonic) == 0);
    CHECK(pthread_condattr_destroy(&monotonic) == 0);
    CHECK(pthread_mutex_init(&aside->mutex, NULL) == 0);
    atomic_init(&aside->is_stopping, false);
    if (pool_start_thread(run, context, &aside->thread))
        return true;
    end(aside);
    return false;
}

void aside_stop(struct aside *aside)
{
    aside_lock(aside);
    atomic_store(&aside->is_stopping, true);
    aside_wake(aside);
    aside_unlock(aside);
    CHECK(pthread_join(aside->thread, NULL) == 0);
    end(aside);
}

void aside_lock(struct aside *aside)
{
    CHECK(pthread_mutex_lock(&aside->mutex) == 0);
}

void aside_unlock(struct aside *aside)
{
    CHECK(pthread_mutex_unlock(&aside->mutex) == 0);
}

void aside_wake(struct aside *aside)
{
    CHECK(pthread_cond_signal(&aside->news) == 0);
}

void aside_wait(struct aside *aside)
{
    CHECK(pthread_cond_wait(&aside->news, &aside->mutex) == 0);
}

void aside_pause(struct aside *aside, uint64_t ns)
{
    struct timespec until;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / SECOND_NS);
    until.tv_nsec = (long)(ns % SECOND_NS);
    int code = 0;
    while (code == 0 && !aside_is_stopping(aside))
        code = pthread_cond_timedwait(&aside->news, &aside->mutex, &until);
    CHECK(code == 0 || code == ETIMEDOUT);
}

bool aside_is_stopping(const struct aside *aside)
{
    return atomic_load(&aside->is_stopping);
}
