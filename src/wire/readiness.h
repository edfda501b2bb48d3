/*
 * readiness.h -- which of thousands of short-lived sockets are ready, behind one handle of a loop.
 *
 * libuv tries every socket before it watches it and sets it up again for each change of what is
 * awaited: seven epoll_ctl and an ioctl for a connection that carries one call. Here a socket costs
 * one system call: it is added once, for everything that can happen to it, and leaves when it is
 * closed.
 *
 * What happened is told once, when it happens (edge-triggered): who is told reads and writes until
 * the kernel has no more, or no more room. A socket is known by a number that is never used again,
 * so what is told of one that was closed meanwhile finds nobody.
 */
#ifndef WIRE_READINESS_H
#define WIRE_READINESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct readiness_events {
    bool is_readable; /* its end is read, too */
    bool is_ended;    /* by the other side: nothing is to come beyond what can be read */
    bool is_writable; /* or connected */
    bool has_failed;  /* reset, or never connected */
};

/* `id` is the socket's, `context` that of the set. It may add sockets and close any. */
typedef void (*readiness_fn)(void *context, uint64_t id, struct readiness_events events);

struct readiness {
    uv_poll_t poll;
    int fd; /* -1: not open */
    readiness_fn on_ready;
    void *context;
};

/* Nothing is opened yet: most servers call nobody for days. */
void readiness_init(struct readiness *set, readiness_fn on_ready, void *context);

/* Watches a socket until it is closed. 0 or a negative errno. */
__attribute__((warn_unused_result)) int readiness_add(struct readiness *set, uv_loop_t *loop,
                                                      int fd, uint64_t id);

/* Whatever is so of this socket is told once more, in another turn. 0 or a negative errno. */
__attribute__((warn_unused_result)) int readiness_again(const struct readiness *set, int fd,
                                                        uint64_t id);

/* Nothing more is told. The memory is the loop's until it has closed its handles. */
void readiness_close(struct readiness *set);

#endif
