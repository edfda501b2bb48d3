/*
 * connection_inlet.c -- the end of a long call, which goes from the socket into a pipe instead of
 * memory, and from there into a file (decision 047).
 *
 *              open              fill: it is whole           the server takes it
 *   (none) ----------> arriving ------------------> whole ----------------------> (none)
 *                         |  fill: nothing moves      |   it is answered at once: drop
 *                         +---------------------------+   the peer is slow: leave
 *                                                     +---------------------------> (none)
 *
 * While a record arrives this way libuv must not read: asked for memory it is given none, and says
 * so (UV_ENOBUFS) whenever there is something to read.
 *
 * Whatever does not work here is no error: what is in the pipe is read into its place in the
 * reader's buffer, which is there, and the record continues as any other. That a socket is at its
 * end or broken is said to who reads it then. The usual reason is that segments are so short that
 * the pipe has no place for more of them: it has 256, whatever lies in each.
 *
 * Always true:
 *  (1) What is in the pipe are the last bytes of what the reader has gathered, or has handed out
 *      and the connection holds; inlet_at says where they belong in the reader's buffer.
 *  (2) Only the last fragment of a record goes there, and never more than is missing of it: no
 *      record mark is in a pipe.
 *  (3) Nobody waits: neither end of the pipe does, and the socket is only asked for what it has.
 */
#include "base/check.h"
#include "base/minmax.h"
#include "wire/connection_parts.h"
#include "wire/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool connection_open_inlet(struct connection *c)
{
    struct bytes start;
    uint32_t left, data_at;
    if (c->inlet != NULL)
        return true;
    if (c->inlet_pause > 0 || !record_reader_start(&c->reader, &start, &left) ||
        left < CONNECTION_INLET_MIN || start.len + left < BUFFERS_LONG_MIN)
        return false;
    c->inlet = rpc_server_open_inlet(c->tcp->server, &c->source, start, start.len + left, &data_at);
    if (c->inlet == NULL)
        return false;
    c->inlet_at = start.len;
    /* The next one probably looks the same: then all of its data goes into the pipe. */
    c->head_len = min_u32(RECORD_MARK_LEN + data_at, CONNECTION_READ_HEAD);
    return true;
}

uint32_t connection_fill_inlet(struct connection *c)
{
    struct bytes start;
    uint32_t left;
    uv_os_fd_t fd = -1;
    CHECK(uv_fileno((const uv_handle_t *)&c->handle, &fd) == 0);
    CHECK(record_reader_start(&c->reader, &start, &left));
    CHECK(c->inlet_at + c->inlet->len == start.len);
    ssize_t count = splice(fd, NULL, c->inlet->write_fd, NULL, min_u32(left, CONNECTION_TURN_MAX),
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count > 0) {
        c->inlet->len += (uint32_t)count;
        return (uint32_t)count;
    }
    MARK("connection_inlet_fails");
    c->inlet_pause = CONNECTION_INLET_PAUSE;
    connection_leave_inlet(c);
    return 0;
}

void connection_drop_inlet(struct connection *c)
{
    if (c->inlet != NULL)
        rpc_server_close_inlet(c->tcp->server, c->inlet);
    c->inlet = NULL;
}

void connection_leave_inlet(struct connection *c)
{
    struct job_inlet *inlet = c->inlet;
    if (inlet == NULL)
        return;
    CHECK(c->inlet_at + inlet->len <= c->reader.buffer_len);
    c->inlet_pause = max_u32(c->inlet_pause, 1); /* the rest of this record goes there, too */
    uint8_t *at = c->reader.buffer + c->inlet_at;
    while (inlet->len > 0) {
        ssize_t count = read(inlet->read_fd, at, inlet->len);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            connection_close(c);
            return;
        }
        at += count;
        inlet->len -= (uint32_t)count;
    }
    connection_drop_inlet(c);
}
