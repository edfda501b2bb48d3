/*
 * aside.h -- a thread aside from the pool, for work of one kind that may take long.
 *
 * Its mutex guards what it shares with those who ask. It waits for news while it holds that, and
 * ends when it is to stop.
 *
 *   aside_start --> runs --> waits <--> is woken --> aside_stop: is_stopping, joined
 */
#ifndef FILE_ASIDE_H
#define FILE_ASIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct aside {
    pthread_mutex_t mutex;
    pthread_cond_t news;
    pthread_t thread;
    atomic_bool is_stopping; /* set with the mutex held */
};

/* False: there is no thread to be had, and nothing to stop. */
bool aside_start(struct aside *aside, void *(*run)(void *), void *context);
void aside_stop(struct aside *aside);

void aside_lock(struct aside *aside);
void aside_unlock(struct aside *aside);

/* With the mutex held. */
void aside_wake(struct aside *aside);
void aside_wait(struct aside *aside);
/* Whatever the news; only a stop ends it early. */
void aside_pause(struct aside *aside, uint64_t ns);
bool aside_is_stopping(const struct aside *aside);

#endif
