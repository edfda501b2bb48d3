/*
 * connection_write.c -- how the replies of a connection leave; see connection.h and replies.h.
 *
 *                  all of it is in the socket
 *   a lot ---+------------------------------------------> the next lot
 *            |                                                ^
 *            +---> the socket is full: libuv writes a piece --+ (written: the rest of the lot)
 *
 * Bytes in memory are sent, pages in a pipe are spliced (decision 046), in the order of the lot. To
 * wait for a full socket is libuv's: it gets what is left of the part in memory, or, of a pipe, a
 * few bytes that are read out of it. Nobody else watches the socket, and when these are written it
 * has room again, for far more than them.
 *
 * Always true:
 *  (1) While libuv has a piece, nothing else is written to the socket.
 *  (2) What libuv has are the next bytes of the lot.
 */
#include "wire/connection.h"

#include "base/check.h"
#include "base/minmax.h"
#include "wire/connection_parts.h"
#include "wire/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum lot_state { LOT_WRITTEN, LOT_BLOCKED, LOT_BROKEN };

/* How many bytes the socket took; 0: it is full; -1: it is broken. */
static ssize_t judge(ssize_t count)
{
    if (count >= 0)
        return count;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

/* What follows comes at once: the kernel need not send a header in a segment of its own. */
static ssize_t send_memory(int fd, struct replies_part *part)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(void *)part->bufs,
                             .msg_iovlen = part->count};
    return judge(
        sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL | (part->pipe != NULL ? MSG_MORE : 0)));
}

static ssize_t send_pipe(int fd, const struct replies_part *part)
{
    return judge(splice(part->pipe->fd, NULL, fd, NULL, part->pipe->len,
                        SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (part->is_last ? 0 : SPLICE_F_MORE)));
}

/* All that the socket takes; what it takes only a part of has filled it. LOT_BLOCKED: *part is what
 * comes next. */
static enum lot_state write_some(struct connection *c, struct replies_part *part)
{
    uv_os_fd_t fd = -1;
    CHECK(uv_fileno((const uv_handle_t *)&c->handle, &fd) == 0);
    bool is_full = false;
    while (replies_get_part(&c->replies, part)) {
        if (is_full)
            return LOT_BLOCKED;
        size_t len = part->count > 0 ? part->len : part->pipe->len;
        ssize_t count = part->count > 0 ? send_memory(fd, part) : send_pipe(fd, part);
        if (count < 0)
            return LOT_BROKEN;
        if (count > 0)
            connection_note_progress(c);
        replies_advance(&c->replies, (size_t)count);
        is_full = (size_t)count < len;
    }
    return LOT_WRITTEN;
}

static void on_written(uv_write_t *write, int status);

/* Leaves the next piece to libuv. False: that cannot be. */
static bool hand_over(struct connection *c, struct replies_part *part)
{
    MARK("connection_write_incomplete");
    if (part->count == 0) {
        MARK("connection_pipe_waits");
        ssize_t len =
            read(part->pipe->fd, c->bridge, min_u32(part->pipe->len, CONNECTION_BRIDGE_LEN));
        if (len <= 0)
            return false;
        part->bufs[part->count++] = uv_buf_init((char *)c->bridge, (unsigned)len);
        part->len = (size_t)len;
    }
    c->write.data = c;
    c->handed_len = part->len;
    return uv_write(&c->write, (uv_stream_t *)&c->handle, part->bufs, part->count, on_written) == 0;
}

/* Bytes of the lot that are in no socket. */
static uint64_t unwritten(const struct connection *c)
{
    return replies_unwritten_len(&c->replies) - c->handed_len +
           uv_stream_get_write_queue_size((const uv_stream_t *)&c->handle);
}

bool connection_is_being_read(struct connection *c)
{
    uint64_t left = unwritten(c);
    bool is_read = c->replies.is_writing && left < c->unwritten_len;
    c->unwritten_len = left;
    return is_read;
}

/* The lot that was taken. False: it is not all in the socket, or the connection is closed. */
static bool write_lot(struct connection *c, bool is_gated)
{
    struct replies_part part;
    enum lot_state state = write_some(c, &part);
    if (state == LOT_WRITTEN) {
        /* Without more calls nothing more is expected soon, and the buffer goes. */
        replies_written(&c->replies, c->is_reading && c->in_flight > 0);
        return true;
    }
    /* What waits for room leaves whenever the peer reads, which may be too late. */
    bool is_late = is_gated && lease_is_shared(rpc_server_lease(c->tcp->server));
    if (state == LOT_BROKEN || is_late || !hand_over(c, &part)) {
        replies_written(&c->replies, false);
        connection_close(c);
        return false;
    }
    c->unwritten_len = unwritten(c);
    connection_note_waiting(c);
    return false;
}

static void on_written(uv_write_t *write, int status)
{
    struct connection *c = write->data;
    if (c->is_closing)
        return;
    size_t len = c->handed_len;
    c->handed_len = 0;
    if (status != 0) {
        connection_close(c);
        return;
    }
    replies_advance(&c->replies, len);
    connection_note_progress(c);
    if (!write_lot(c, false))
        return;
    connection_flush(c);
    if (!c->is_closing)
        connection_note_waiting(c);
    connection_finish(c);
}

void connection_flush(struct connection *c)
{
    list_remove(&c->by_flush);
    if (c->is_closing || c->replies.is_writing || replies_is_empty(&c->replies))
        return;
    bool is_gated = c->is_out_gated;
    c->is_out_gated = false;
    if (is_gated && !lease_may_send(rpc_server_lease(c->tcp->server), clock_boot_ns())) {
        MARK("connection_answers_too_late");
        connection_close(c);
        return;
    }
    while (replies_take(&c->replies))
        if (!write_lot(c, is_gated))
            return;
    connection_note_waiting(c);
    connection_finish(c);
}
