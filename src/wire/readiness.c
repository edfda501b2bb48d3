/*
 * readiness.c -- an epoll set inside the loop's own; see readiness.h.
 *
 * One read takes BATCH events at most: others of the loop have their turn, and what is left makes
 * the set readable again.
 */
#include "wire/readiness.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BATCH = 256 };

void readiness_init(struct readiness *set, readiness_fn on_ready, void *context)
{
    *set = (struct readiness){.fd = -1, .on_ready = on_ready, .context = context};
}

static void on_event(uv_poll_t *poll, int status, int ignored)
{
    struct readiness *set = poll->data;
    struct epoll_event events[BATCH];
    (void)status; /* an epoll set has no errors of its own */
    (void)ignored;
    int count = epoll_wait(set->fd, events, BATCH, 0);
    for (int i = 0; i < count && set->fd >= 0; i++) {
        uint32_t seen = events[i].events;
        set->on_ready(set->context, events[i].data.u64,
                      (struct readiness_events){
                          .is_readable = (seen & (uint32_t)(EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0,
                          .is_ended = (seen & EPOLLRDHUP) != 0,
                          .is_writable = (seen & EPOLLOUT) != 0,
                          .has_failed = (seen & (uint32_t)(EPOLLERR | EPOLLHUP)) != 0,
                      });
    }
}

static int open_set(struct readiness *set, uv_loop_t *loop)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = uv_poll_init(loop, &set->poll, fd);
    if (err != 0) {
        (void)close(fd);
        return err;
    }
    set->poll.data = set;
    set->fd = fd;
    (void)uv_poll_start(&set->poll, UV_READABLE, on_event); /* cannot fail: it was tried */
    return 0;
}

static int control(const struct readiness *set, int operation, int fd, uint64_t id)
{
    struct epoll_event event = {.events = (uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET),
                                .data.u64 = id};
    return epoll_ctl(set->fd, operation, fd, &event) == 0 ? 0 : -errno;
}

int readiness_add(struct readiness *set, uv_loop_t *loop, int fd, uint64_t id)
{
    int err = set->fd >= 0 ? 0 : open_set(set, loop);
    return err != 0 ? err : control(set, EPOLL_CTL_ADD, fd, id);
}

int readiness_again(const struct readiness *set, int fd, uint64_t id)
{
    return control(set, EPOLL_CTL_MOD, fd, id);
}

void readiness_close(struct readiness *set)
{
    if (set->fd < 0)
        return;
    uv_close((uv_handle_t *)&set->poll, NULL);
    (void)close(set->fd);
    set->fd = -1;
}
