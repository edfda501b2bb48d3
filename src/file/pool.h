/*
 * pool.h -- threads that execute calls: in each lane callers take turns, and of one caller the
 * first comes first.
 *
 * Somebody with many calls that take long thus delays others by one of them, not by all. Callers
 * are told apart by a number, which several may share; POOL_OWN is our own.
 *
 * Work is queued in lanes, one for each file system. A lane has as many threads as the pool began
 * with, and no more: a file system that hangs keeps its own, and for the others more are started.
 * When the pool has as many as it may have, a lane has no more of them than are left for the
 * others.
 */
#ifndef FILE_POOL_H
#define FILE_POOL_H

#include "base/list.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { POOL_OWN, POOL_CALLERS = 64 };

struct pool;

/* The pool's, under its mutex. */
struct pool_lane {
    struct list link; /* among those that have work */
    struct list queues[POOL_CALLERS];
    uint32_t turn; /* whose queue is looked at first */
    uint32_t waiting, running;
    uint32_t done, done_before; /* pieces of work; the second at the last look */
    uint32_t looks;             /* since something was done, while all its threads were busy */
};

/* `run` executes one element of a queue, on a thread of the pool; `begin` is its first act. NULL:
 * no memory or no thread. */
struct pool *pool_new(uint32_t threads, void (*begin)(void *context),
                      void (*run)(void *context, struct pool_lane *lane, struct list *work),
                      void *context);
/* Executes what is queued, then ends the threads. */
void pool_free(struct pool *pool);

void pool_lane_init(struct pool_lane *lane);

/* `caller` is less than POOL_CALLERS. */
void pool_add(struct pool *pool, struct pool_lane *lane, uint32_t caller, struct list *work);
/* Queued, and not taken by a thread yet. */
uint32_t pool_waiting(struct pool *pool);
/* Looks at a lane, at regular times. True: all threads that it may have were busy at the last
 * `looks_max` looks, and nothing was done meanwhile; what is queued goes to *ret_queue, unless that
 * is NULL. */
bool pool_is_stuck(struct pool *pool, struct pool_lane *lane, uint32_t looks_max,
                   struct list *ret_queue);

/* A thread of our own, without the process's signals. False: there is none. */
bool pool_start_thread(void *(*run)(void *), void *context, pthread_t *ret_thread);

#endif
