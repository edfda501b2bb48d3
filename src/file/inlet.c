/*
 * inlet.c -- see inlet.h.
 */
#include "file/inlet.h"

#include "base/check.h"
#include "file/service.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct job_inlet *inlet_open(void *service)
{
    struct pipe *pipe = pipes_take(((struct file_service *)service)->pipes);
    if (pipe == NULL)
        return NULL;
    CHECK(pipe->inlet.len == 0);
    return &pipe->inlet;
}

void inlet_close(void *service, struct job_inlet *inlet)
{
    struct pipe *pipe = LIST_ELEMENT(inlet, struct pipe, inlet);
    pipes_give_back(((struct file_service *)service)->pipes, pipe, inlet->len == 0);
}

void inlet_take(struct call *call, struct job_inlet *inlet)
{
    CHECK(call->pipe == NULL);
    if (inlet == NULL)
        return;
    /* The data ends the arguments (proto/nfs.c). */
    CHECK(call->args.data.at + call->args.data.len == call->body.at + call->body.len);
    CHECK(inlet->len <= call->args.data.len);
    call->pipe = LIST_ELEMENT(inlet, struct pipe, inlet);
}

uint32_t inlet_len(const struct call *call)
{
    return call->pipe != NULL ? call->pipe->inlet.len : 0;
}

uint32_t inlet_write(struct call *call, int fd, uint64_t offset)
{
    struct job_inlet *inlet = &call->pipe->inlet;
    off_t at = (off_t)offset;
    ssize_t count = call_system(call)->splice(inlet->read_fd, NULL, fd, &at, inlet->len,
                                              SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count <= 0)
        return 0;
    CHECK((size_t)count <= inlet->len);
    inlet->len -= (uint32_t)count;
    return (uint32_t)count;
}

bool inlet_empty(struct call *call)
{
    struct job_inlet *inlet = &call->pipe->inlet;
    size_t end = (size_t)(call->body.at - call->record.at) + call->body.len;
    CHECK(end <= call->record.len);
    while (inlet->len > 0) {
        ssize_t count = read(inlet->read_fd, call->record.at + end - inlet->len, inlet->len);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        inlet->len -= (uint32_t)count;
    }
    return true;
}
