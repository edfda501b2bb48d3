/*
 * rpcbind.c -- one connection to rpcbind at a time; see rpcbind.h.
 *
 *   begin --> connection open? --yes--> TALKING --outcome--> on_end, the connection rests
 *                  | no                    |
 *                  v                       | closed: once more on a new connection if this one had
 *             try each place --none--+     | rested before, else SILENT
 *                                    v     v
 *                                  on_end: ABSENT, SILENT
 *
 * A connection is a struct link of its own on the heap, because libuv needs its memory until it has
 * closed the handle, and the next connection may be open before that.
 *
 * A unix socket connects at once or not at all. Connecting over loopback takes a turn of the loop.
 */
#include "wire/rpcbind.h"

#include "base/check.h"
#include "codec/record_mark.h"
#include "wire/sockaddr.h"
#include "wire/source_port.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ANSWER_MAX = 256 * 1024, /* a listing of several thousand entries */
    READ_MAX = 16 * 1024,
};

static const char *const unix_places[] = {"/run/rpcbind.sock", "/var/run/rpcbind.sock"};
static const char loopback_place[] = "127.0.0.1 port 111";

struct link {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    };
    uv_connect_t connect;
    uv_write_t write;
    struct rpcbind *rpcbind; /* NULL: closing, results are ignored */
    struct record_reader reader;
    bool has_rested; /* a pass ended on it */
    uint8_t in[READ_MAX];
    uint8_t out[RECORD_MARK_LEN + REGISTRATION_CALL_MAX];
};

struct rpcbind {
    uv_loop_t *loop;
    struct registration *registration;
    struct rpcbind_hooks hooks;
    struct link *link; /* NULL: none */
    uv_timer_t deadline;
    enum registration_goal goal;
    bool is_busy; /* a pass is in progress */
    const char *place;
};

static void connect_anew(struct rpcbind *rpcbind);

struct rpcbind *rpcbind_new(uv_loop_t *loop, struct registration *registration,
                            const struct rpcbind_hooks *hooks)
{
    struct rpcbind *rpcbind = calloc(1, sizeof *rpcbind);
    if (rpcbind == NULL)
        return NULL;
    *rpcbind =
        (struct rpcbind){.loop = loop, .registration = registration, .hooks = *hooks, .place = ""};
    CHECK(uv_timer_init(loop, &rpcbind->deadline) == 0);
    rpcbind->deadline.data = rpcbind;
    return rpcbind;
}

void rpcbind_free(struct rpcbind *rpcbind)
{
    free(rpcbind);
}

const char *rpcbind_place(const struct rpcbind *rpcbind)
{
    return rpcbind->place;
}

static void on_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    free(link->reader.buffer);
    free(link);
}

void rpcbind_disconnect(struct rpcbind *rpcbind)
{
    struct link *link = rpcbind->link;
    if (link == NULL)
        return;
    rpcbind->link = NULL;
    link->rpcbind = NULL;
    uv_close(&link->handle, on_closed);
}

static void end(struct rpcbind *rpcbind, enum rpcbind_result result)
{
    CHECK(rpcbind->is_busy);
    rpcbind->is_busy = false;
    (void)uv_timer_stop(&rpcbind->deadline);
    if (result != RPCBIND_DONE && result != RPCBIND_FOREIGN && result != RPCBIND_REFUSED)
        rpcbind_disconnect(rpcbind);
    if (rpcbind->link != NULL)
        rpcbind->link->has_rested = true;
    rpcbind->hooks.on_end(rpcbind->hooks.context, rpcbind->goal, result);
}

static void on_deadline(uv_timer_t *timer)
{
    end(timer->data, RPCBIND_SILENT);
}

/* The peer is gone. */
static void lose(struct rpcbind *rpcbind)
{
    bool has_rested = rpcbind->link->has_rested;
    rpcbind_disconnect(rpcbind);
    if (!rpcbind->is_busy)
        rpcbind->hooks.on_lost(rpcbind->hooks.context);
    else if (has_rested)
        connect_anew(rpcbind);
    else
        end(rpcbind, RPCBIND_SILENT);
}

static void on_written(uv_write_t *write, int status)
{
    struct link *link = write->data;
    if (status != 0 && link->rpcbind != NULL)
        lose(link->rpcbind);
}

/* Sends the next call of the pass, or ends it. */
static void go_on(struct rpcbind *rpcbind)
{
    struct link *link = rpcbind->link;
    switch (registration_outcome(rpcbind->registration)) {
    case REGISTRATION_UNDER_WAY:
        break;
    case REGISTRATION_DONE:
        end(rpcbind, RPCBIND_DONE);
        return;
    case REGISTRATION_FOREIGN:
        end(rpcbind, RPCBIND_FOREIGN);
        return;
    case REGISTRATION_REFUSED:
        end(rpcbind, RPCBIND_REFUSED);
        return;
    case REGISTRATION_GARBLED:
        end(rpcbind, RPCBIND_GARBLED);
        return;
    }
    struct xdr_out call = xdr_out_of(link->out + RECORD_MARK_LEN, REGISTRATION_CALL_MAX);
    if (!registration_next_call(rpcbind->registration, &call))
        return;
    uint32_t len = xdr_out_len(&call);
    store_be32(link->out, RECORD_MARK_LAST | len);
    uv_buf_t buf = uv_buf_init((char *)link->out, RECORD_MARK_LEN + len);
    link->write.data = link;
    if (uv_write(&link->write, &link->stream, &buf, 1, on_written) != 0)
        lose(rpcbind);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct link *link = handle->data;
    *ret = uv_buf_init((char *)link->in, READ_MAX);
}

/* False: the stream is lost. */
static bool consume(struct link *link, struct bytes input)
{
    struct bytes record;
    while (link->rpcbind != NULL) {
        switch (record_reader_next(&link->reader, &input, &record)) {
        case RECORD_READ_MORE:
            return true;
        case RECORD_READ_NEED_BUFFER:
            link->reader.buffer = malloc(ANSWER_MAX);
            link->reader.buffer_len = ANSWER_MAX;
            if (link->reader.buffer == NULL)
                return false;
            break;
        case RECORD_READ_TOO_LONG:
            return false;
        case RECORD_READ_WHOLE:
            if (!link->rpcbind->is_busy)
                return false; /* unsolicited */
            registration_answer(link->rpcbind->registration, record);
            go_on(link->rpcbind);
            break;
        }
    }
    return true;
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct link *link = stream->data;
    if (nread == 0 || link->rpcbind == NULL)
        return;
    if (nread < 0 || !consume(link, (struct bytes){(const uint8_t *)buf->base, (uint32_t)nread}))
        if (link->rpcbind != NULL)
            lose(link->rpcbind);
}

static void start_talking(struct rpcbind *rpcbind)
{
    registration_begin(rpcbind->registration, rpcbind->goal);
    go_on(rpcbind);
}

/* The connection is established. */
static void opened(struct link *link, const char *place)
{
    struct rpcbind *rpcbind = link->rpcbind;
    rpcbind->place = place;
    if (uv_read_start(&link->stream, on_alloc, on_read) != 0) {
        end(rpcbind, RPCBIND_SILENT);
        return;
    }
    start_talking(rpcbind);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct link *link = connect->data;
    if (link->rpcbind == NULL)
        return;
    if (status != 0)
        end(link->rpcbind, RPCBIND_ABSENT);
    else
        opened(link, loopback_place);
}

/* A connected socket, or -1. */
static int connect_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof at.sun_path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static const struct address loopback = {.family = 4, .bytes = {127, 0, 0, 1}};

/* A socket bound to a privileged port, or to none if not permitted or all are taken; or -1. */
static int loopback_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct source_ports ports = source_ports_privileged();
    if (fd >= 0)
        (void)source_ports_bind(&ports, fd, &loopback); /* otherwise the kernel picks one */
    return fd;
}

static struct link *link_new(struct rpcbind *rpcbind)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->rpcbind = rpcbind;
    link->connect.data = link;
    record_reader_init(&link->reader, ANSWER_MAX);
    return link;
}

static bool open_unix(struct rpcbind *rpcbind, const char *path)
{
    int fd = connect_unix(path);
    if (fd < 0)
        return false;
    struct link *link = link_new(rpcbind);
    if (link == NULL || uv_pipe_init(rpcbind->loop, &link->pipe, 0) != 0) {
        free(link);
        (void)close(fd);
        return false;
    }
    link->handle.data = link;
    rpcbind->link = link;
    if (uv_pipe_open(&link->pipe, fd) != 0) {
        (void)close(fd);
        rpcbind_disconnect(rpcbind);
        return false;
    }
    opened(link, path);
    return true;
}

static bool open_loopback(struct rpcbind *rpcbind)
{
    int fd = loopback_socket();
    if (fd < 0)
        return false;
    struct link *link = link_new(rpcbind);
    if (link == NULL || uv_tcp_init(rpcbind->loop, &link->tcp) != 0) {
        free(link);
        (void)close(fd);
        return false;
    }
    link->handle.data = link;
    rpcbind->link = link;
    struct sockaddr_storage at;
    (void)sockaddr_of(&loopback, PORTMAP_PORT, &at);
    int err = uv_tcp_open(&link->tcp, fd);
    if (err != 0)
        (void)close(fd);
    else
        err =
            uv_tcp_connect(&link->connect, &link->tcp, (const struct sockaddr *)&at, on_connected);
    if (err != 0)
        rpcbind_disconnect(rpcbind);
    return err == 0;
}

static void connect_anew(struct rpcbind *rpcbind)
{
    for (size_t i = 0; i < sizeof unix_places / sizeof unix_places[0]; i++)
        if (open_unix(rpcbind, unix_places[i]))
            return;
    if (!open_loopback(rpcbind))
        end(rpcbind, RPCBIND_ABSENT);
}

void rpcbind_begin(struct rpcbind *rpcbind, enum registration_goal goal, uint32_t timeout_ms)
{
    if (rpcbind->is_busy)
        rpcbind_disconnect(rpcbind); /* a reply to the old pass may be in flight */
    rpcbind->goal = goal;
    rpcbind->is_busy = true;
    uv_update_time(rpcbind->loop); /* the start may have blocked the loop for long */
    CHECK(uv_timer_start(&rpcbind->deadline, on_deadline, timeout_ms, 0) == 0);
    if (rpcbind->link != NULL)
        start_talking(rpcbind);
    else
        connect_anew(rpcbind);
}

void rpcbind_close(struct rpcbind *rpcbind)
{
    rpcbind->is_busy = false;
    rpcbind_disconnect(rpcbind);
    if (!uv_is_closing((uv_handle_t *)&rpcbind->deadline))
        uv_close((uv_handle_t *)&rpcbind->deadline, NULL);
}
