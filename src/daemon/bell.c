/*
 * bell.c -- see bell.h.
 *
 * Always true:
 *  (1) is_rung says that the loop has a ring to hear: it takes that back before on_ring, so that
 *      what comes later rings once more.
 */
#include "daemon/bell.h"

#include "base/check.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void hear(uv_poll_t *poll, int status, int events)
{
    struct bell *bell = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    (void)!read(bell->fd, &count, sizeof count);
    (void)atomic_exchange(&bell->is_rung, false);
    bell->on_ring(bell->context);
}

int bell_init(struct bell *bell, uv_loop_t *loop, bell_fn on_ring, void *context)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    *bell = (struct bell){.fd = fd, .on_ring = on_ring, .context = context};
    int code = uv_poll_init(loop, &bell->poll, fd);
    if (code != 0) {
        (void)close(fd);
        return code;
    }
    bell->poll.data = bell;
    CHECK(uv_poll_start(&bell->poll, UV_READABLE, hear) == 0);
    return 0;
}

void bell_ring(struct bell *bell)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&bell->is_rung, true))
        CHECK(write(bell->fd, &one, sizeof one) == sizeof one);
}

void bell_close(struct bell *bell)
{
    if (!uv_is_closing((uv_handle_t *)&bell->poll))
        uv_close((uv_handle_t *)&bell->poll, NULL);
}

void bell_done(struct bell *bell)
{
    (void)close(bell->fd);
}
