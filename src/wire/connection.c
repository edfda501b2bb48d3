/*
 * connection.c -- one TCP connection; see connection.h.
 *
 *                      a record was refused, or enough is in flight, or it does not read replies,
 *                      or it had its share of this turn
 *   ---> READING -------------------------------------------------------------> PAUSED
 *           ^                                                                      |
 *           +----------------------------------------------------------------------+
 *             the outbox, its own calls, and its output have room again: connection_resume
 *
 * PAUSED means that we do not read from the socket: TCP itself holds the caller back, and no memory
 * grows. A stash keeps the rest of the last read meanwhile. NULL and refusals need no room, so a
 * connection with only those is never paused because of the store.
 *
 * Always true:
 *  (1) Once control returns to the loop, held and pending point into the stash or into the reader's
 *      buffer, never into the shared read buffer. The end of held may lie in a pipe
 *      (connection_inlet.c).
 *  (2) A connection does not read while it is paused, closing, or at its end.
 *  (3) While a lot of replies is being written, nothing else is: the next one collects
 *      (connection_write.c).
 */
#include "wire/connection.h"

#include "base/check.h"
#include "base/minmax.h"
#include "wire/connection_parts.h"
#include "wire/tcp.h"

#include <stdlib.h>

static bool is_paused(const struct connection *c)
{
    return !list_is_empty(&c->by_pause);
}

void connection_finish(struct connection *c)
{
    if (c->at_end && c->in_flight == 0 && replies_is_empty(&c->replies) && !is_paused(c))
        connection_close(c);
}

void connection_note_waiting(struct connection *c)
{
    bool waits = !record_reader_is_empty(&c->reader) || c->replies.is_writing || c->at_end;
    if (waits && list_is_empty(&c->by_wait)) {
        c->waiting_since_ns = clock_now_ns(c->tcp->clock);
        list_append(&c->tcp->waiting_for_peer, &c->by_wait);
    } else if (!waits) {
        list_remove(&c->by_wait);
    }
}

void connection_note_progress(struct connection *c)
{
    list_remove(&c->by_wait);
}

/* Room for one reply of the largest size, or NULL: the peer does not read its replies. */
static uint8_t *reserve(struct connection *c, uint32_t len)
{
    uint8_t *at = replies_reserve(&c->replies, len);
    if (at != NULL)
        return at;
    connection_flush(c);
    return c->is_closing ? NULL : replies_reserve(&c->replies, len);
}

/* There is something to write in this turn. */
static void note_unflushed(struct connection *c)
{
    if (list_is_empty(&c->by_flush))
        list_append(&c->tcp->unflushed, &c->by_flush);
}

static void commit(struct connection *c, uint32_t len)
{
    replies_commit(&c->replies, len);
    note_unflushed(c);
}

static void begin_call(struct connection *c)
{
    c->in_flight++;
    list_remove(&c->by_idle);
}

/* Has it calls elsewhere for as much memory as it may have? */
static bool is_heavy(const struct connection *c)
{
    uint64_t weight = c->weight + replies_large_len(&c->replies);
    return weight >= CONNECTION_WEIGHT_MAX ||
           (weight > 0 && weight >= rpc_server_room(c->tcp->server) / CONNECTION_ROOM_PART);
}

static enum rpc_verdict receive(struct connection *c, struct bytes record, struct xdr_out *reply)
{
    struct tcp *tcp = c->tcp;
    return rpc_server_receive(tcp->server, &c->source, record, clock_now_ns(tcp->clock),
                              clock_wall_ns(tcp->clock), reply);
}

/* A long record lies in memory of its own, which a call may keep: the reader then has another. */
static enum rpc_verdict receive_long(struct connection *c, struct bytes record,
                                     struct xdr_out *reply)
{
    struct job_memory lent = {c->reader.buffer, c->reader.buffer_len, c->inlet};
    rpc_server_lend(c->tcp->server, &lent);
    enum rpc_verdict verdict = receive(c, record, reply);
    c->reader.buffer = lent.at;
    c->reader.buffer_len = lent.len;
    c->inlet = lent.inlet;
    if (verdict == RPC_BUSY)
        return verdict;
    connection_drop_inlet(c);
    c->inlet_pause -= c->inlet_pause > 0;
    return verdict;
}

/* One record to the server. False: it cannot be taken now. */
static bool deliver(struct connection *c, struct bytes record)
{
    struct tcp *tcp = c->tcp;
    uint32_t reply_max = rpc_server_reply_max(tcp->server);
    if (c->in_flight >= CONNECTION_IN_FLIGHT_MAX || is_heavy(c))
        return false;
    uint8_t *at = reserve(c, reply_max);
    if (at == NULL)
        return false;
    struct xdr_out reply = xdr_out_of(at, reply_max);
    c->was_long = record.len >= BUFFERS_LONG_MIN && record.at == c->reader.buffer;
    CHECK(c->inlet == NULL || c->was_long);
    switch (c->was_long ? receive_long(c, record, &reply) : receive(c, record, &reply)) {
    case RPC_ANSWERED:
        commit(c, xdr_out_len(&reply));
        return true;
    case RPC_ACKNOWLEDGED:
        commit(c, xdr_out_len(&reply));
        begin_call(c);
        return true;
    case RPC_WAITING:
        begin_call(c);
        c->weight += rpc_server_weight(tcp->server);
        return true;
    case RPC_NO_ANSWER:
        return true;
    case RPC_BUSY:
        return false;
    }
    UNREACHABLE();
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf);

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct connection *c = handle->data;
    uint32_t len = 0;
    uint8_t *place = record_reader_place(&c->reader, &len);
    if (place != NULL && connection_open_inlet(c)) {
        *ret = uv_buf_init(NULL, 0); /* not into memory */
        return;
    }
    if (place != NULL && len >= CONNECTION_PLACED_MIN) {
        *ret = uv_buf_init((char *)place, min_u32(len, CONNECTION_TURN_MAX));
        return;
    }
    *ret =
        uv_buf_init((char *)c->tcp->read_buffer, c->was_long           ? c->head_len
                                                 : c->source.has_files ? CONNECTION_READ_MAX_FILES
                                                                       : CONNECTION_READ_MAX);
    c->was_long = false;
}

/* Keeps a refused record and the input behind it until connection_resume. */
static void hold(struct connection *c, struct bytes record, struct bytes rest)
{
    c->held = record;
    c->pending = rest;
    bool in_stash = c->stash != NULL;
    if (!in_stash) {
        bool record_in_reader = record.at == c->reader.buffer;
        uint32_t record_len = record_in_reader ? 0 : record.len;
        c->stash = malloc((size_t)record_len + rest.len + 1);
        if (c->stash == NULL) {
            connection_close(c);
            return;
        }
        if (!record_in_reader) {
            memcpy(c->stash, record.at, record.len);
            c->held.at = c->stash;
        }
        if (rest.len > 0)
            memcpy(c->stash + record_len, rest.at, rest.len);
        c->pending.at = c->stash + record_len;
    }
    if (c->is_reading) {
        (void)uv_read_stop((uv_stream_t *)&c->handle);
        c->is_reading = false;
    }
    if (list_is_empty(&c->by_pause))
        list_append(&c->tcp->paused, &c->by_pause);
}

/* Takes records from the input until it is empty or one is refused. False: paused or closed. */
static bool consume(struct connection *c, struct bytes input)
{
    struct bytes record;
    while (!c->is_closing) {
        switch (record_reader_next(&c->reader, &input, &record)) {
        case RECORD_READ_MORE:
            if (record_reader_is_empty(&c->reader))
                buffers_take_back(&c->tcp->buffers, &c->reader);
            return true;
        case RECORD_READ_NEED_BUFFER:
            if (!buffers_lend(&c->tcp->buffers, &c->reader))
                connection_close(c);
            break;
        case RECORD_READ_TOO_LONG:
            rpc_server_report(c->tcp->server, EVENT_TOO_LONG, &c->source.peer.address);
            connection_close(c);
            break;
        case RECORD_READ_WHOLE:
            connection_note_progress(c);
            if (!deliver(c, record)) {
                if (!c->is_closing)
                    hold(c, record, input);
                return false;
            }
            break;
        }
    }
    return false;
}

static void start_reading(struct connection *c)
{
    if (c->is_reading || c->is_closing || c->at_end)
        return;
    c->is_reading = true;
    if (uv_read_start((uv_stream_t *)&c->handle, on_alloc, on_read) != 0)
        connection_close(c);
}

/* A peer that sends at full speed has its share of a turn, and continues in the next. */
static void take_turn(struct connection *c, uint32_t len)
{
    c->taken = c->turn == c->tcp->turn ? c->taken + len : len;
    c->turn = c->tcp->turn;
    if (!c->source.has_files || c->taken < CONNECTION_TURN_MAX || !c->is_reading)
        return;
    (void)uv_read_stop((uv_stream_t *)&c->handle);
    c->is_reading = false;
    list_append(&c->tcp->paused, &c->by_pause);
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    if (nread == UV_ENOBUFS && c->inlet != NULL)
        nread = connection_fill_inlet(c);
    if (nread == UV_EOF) {
        (void)uv_read_stop(stream);
        c->is_reading = false;
        c->at_end = true;
        connection_note_waiting(c);
        connection_finish(c);
        return;
    }
    if (nread < 0) {
        connection_close(c);
        return;
    }
    if (nread == 0 || c->is_closing)
        return;
    clock_heard(c->tcp->clock);
    c->heard_ns = clock_now_ns(c->tcp->clock);
    list_remove(&c->by_activity);
    list_append(&c->tcp->by_activity, &c->by_activity);
    if (c->in_flight == 0) {
        list_remove(&c->by_idle);
        list_append(&c->tcp->idle, &c->by_idle);
    }
    struct bytes input = {(const uint8_t *)buf->base, (uint32_t)nread};
    if (input.at != c->tcp->read_buffer) { /* it is where it belongs */
        record_reader_placed(&c->reader, input.len);
        input = (struct bytes){0};
    }
    if (consume(c, input))
        take_turn(c, (uint32_t)nread);
    if (!c->is_closing)
        connection_note_waiting(c);
}

void connection_start(struct connection *c)
{
    list_init(&c->by_wait);
    list_init(&c->by_flush);
    list_init(&c->by_pause);
    replies_init(&c->replies, c->tcp->server);
    record_reader_init(&c->reader, rpc_server_record_max(c->tcp->server, c->source.has_files));
    c->handle.data = c;
    c->head_len = CONNECTION_READ_HEAD;
    start_reading(c);
}

void connection_resume(struct connection *c)
{
    if (c->is_closing || !is_paused(c))
        return;
    if (c->held.at != NULL) {
        if (!deliver(c, c->held))
            return;
        c->held = (struct bytes){0};
    }
    if (c->is_closing)
        return;
    list_remove(&c->by_pause);
    struct bytes pending = c->pending;
    c->pending = (struct bytes){0};
    if (!consume(c, pending))
        return;
    free(c->stash);
    c->stash = NULL;
    start_reading(c);
    if (!c->is_closing)
        connection_note_waiting(c);
}

void connection_quiesce(struct connection *c)
{
    if (!c->is_reading)
        return;
    (void)uv_read_stop((uv_stream_t *)&c->handle);
    c->is_reading = false;
}

void connection_call_ended(struct connection *c, uint32_t weight)
{
    CHECK(c->in_flight > 0);
    CHECK(c->weight >= weight);
    c->weight -= weight;
    if (--c->in_flight == 0 && !c->is_closing)
        list_append(&c->tcp->idle, &c->by_idle);
}

void connection_send(struct connection *c, struct bytes message)
{
    if (c->is_closing)
        return;
    uint8_t *at = reserve(c, message.len);
    if (at == NULL) {
        /* It keeps calling and never reads: the replies are durable, it may reconnect and call
         * again.
         * */
        connection_close(c);
        return;
    }
    memcpy(at, message.at, message.len);
    c->is_out_gated = true;
    commit(c, message.len);
}

void connection_send_job(struct connection *c, const struct rpc_finished *finished)
{
    if (c->is_closing) {
        rpc_server_release_job(c->tcp->server, finished->job);
        return;
    }
    if (!replies_add_job(&c->replies, finished)) {
        connection_close(c);
        return;
    }
    note_unflushed(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    buffers_take_back(&c->tcp->buffers, &c->reader);
    free(c->stash);
    replies_done(&c->replies);
    free(c);
}

void connection_close(struct connection *c)
{
    if (c->is_closing)
        return;
    c->is_closing = true;
    c->is_reading = false;
    connection_drop_inlet(c);
    list_remove(&c->by_activity);
    list_remove(&c->by_idle);
    list_remove(&c->by_wait);
    list_remove(&c->by_flush);
    list_remove(&c->by_pause);
    table_remove(&c->tcp->connections, (uint32_t)c->source.route);
    tcp_part(c);
    uv_close((uv_handle_t *)&c->handle, on_closed);
}
