/*
 * pool.h -- threads that execute calls, first come, first served.
 */
#ifndef FILE_POOL_H
#define FILE_POOL_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct pool;

/* `run` executes one element of the queue, on a thread of the pool; `begin` is its first act. NULL:
 * no memory or no thread. */
struct pool *pool_new(uint32_t threads, void (*begin)(void *context),
                      void (*run)(void *context, struct list *work), void *context);
/* Executes what is queued, then ends the threads. */
void pool_free(struct pool *pool);

void pool_add(struct pool *pool, struct list *work);
/* Queued, and not taken by a thread yet. */
uint32_t pool_waiting(struct pool *pool);

/* A thread of our own, without the process's signals. False: there is none. */
bool pool_start_thread(void *(*run)(void *), void *context, unsigned long *ret_thread);

#endif
