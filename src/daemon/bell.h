/*
 * bell.h -- how another thread wakes the loop.
 *
 * Rings that come before the loop has heard the first one are one ring. uv_async_t does the same,
 * but in libuv before 1.45 the loop that it woke spins until the thread that rang has returned
 * from its system call; where both share a processor, that is until the scheduler says so.
 */
#ifndef DAEMON_BELL_H
#define DAEMON_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

typedef void (*bell_fn)(void *context);

/* Only bell.c touches the fields. */
struct bell {
    uv_poll_t poll;
    int fd;
    atomic_bool is_rung;
    bell_fn on_ring;
    void *context;
};

/* 0 or -errno: there is no descriptor left. on_ring runs on the loop. */
int bell_init(struct bell *bell, uv_loop_t *loop, bell_fn on_ring, void *context);
/* Any thread, until bell_done. What it did before is seen by on_ring, and behind it. */
void bell_ring(struct bell *bell);
/* Nothing more is heard; the loop closes the handle. */
void bell_close(struct bell *bell);
/* Nobody rings any more. */
void bell_done(struct bell *bell);

#endif
