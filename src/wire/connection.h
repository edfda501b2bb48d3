/*
 * connection.h -- one TCP connection: bytes to records, replies to bytes, and its limits.
 *
 * Calls are taken in order, many at a time; their replies leave in any order, all of a turn's
 * replies for one connection in one write. The cost of a connection is fixed: one read buffer
 * shared by all, at most one partial record, one stretch of unread input while it is paused, and
 * two output buffers; where files are served, also the calls and replies that CONNECTION_WEIGHT_MAX
 * allows.
 */
#ifndef WIRE_CONNECTION_H
#define WIRE_CONNECTION_H

#include "base/list.h"
#include "codec/record_mark.h"
#include "rpc/server.h"
#include "wire/clock.h"
#include "wire/replies.h"

#include <uv.h>

struct tcp;

enum {
    CONNECTION_READ_MAX = 32 * 1024,        /* per read */
    CONNECTION_READ_MAX_FILES = 128 * 1024, /* the same where files are served */
    /* Behind a long record another one is expected, most of which is to be read into its place. */
    CONNECTION_READ_HEAD = 4 * 1024,
    /* Of a record that is being gathered, at least so much is missing: it is read straight into
     * its place, and what follows it by another call. */
    CONNECTION_PLACED_MIN = 16 * 1024,
    CONNECTION_IN_FLIGHT_MAX = 512, /* calls waiting for the store, or elsewhere */
    /* Of calls elsewhere and their replies, in bytes; one call more may begin below it. Where
     * memory is short it is a part of what is left, so that no one connection takes all of it. */
    CONNECTION_WEIGHT_MAX = 8 * 1024 * 1024,
    CONNECTION_ROOM_PART = 4,
    /* Where files are served: input of one connection in one turn. Others, who may want a lock,
     * have theirs before it continues. */
    CONNECTION_TURN_MAX = 256 * 1024,
    /* Of a long record, at least so much is missing, and nobody need look at it: it goes into a
     * pipe. */
    CONNECTION_INLET_MIN = 96 * 1024,
    /* Where that failed, so many long records are read into memory before it is tried again. */
    CONNECTION_INLET_PAUSE = 64,
    /* Of a pipe that the socket does not take: so much of it libuv writes, to wait for room. */
    CONNECTION_BRIDGE_LEN = 64,
};

struct connection {
    uv_tcp_t handle;
    uv_write_t write; /* for what the socket did not take */
    struct tcp *tcp;
    struct rpc_source source;
    struct list by_activity; /* tcp->connections, least recently heard first */
    struct list by_idle;     /* tcp->idle: no call is in flight */
    struct list by_wait;     /* tcp->waiting_for_peer: mid-record or not reading its replies */
    struct list by_flush;    /* tcp->unflushed: has replies to write in this turn */
    struct list by_pause;    /* tcp->paused: has input that could not be taken */
    uint64_t heard_ns, waiting_since_ns;

    struct record_reader reader;
    uint8_t *stash;       /* copy of input that could not be taken yet */
    struct bytes held;    /* a record that was refused as busy */
    struct bytes pending; /* input behind it */

    struct replies replies;
    size_t handed_len;      /* of these, to libuv, which has not written all of it yet */
    uint64_t unwritten_len; /* of the lot, when that was last looked at */
    uint8_t bridge[CONNECTION_BRIDGE_LEN];
    struct job_inlet *inlet; /* which the end of its record lies in; NULL: none */
    uint32_t inlet_at;       /* it belongs behind so many bytes of the reader's buffer */
    uint32_t inlet_pause;    /* so many long records have none */
    uint32_t head_len;       /* to be read behind a long record */
    uint64_t weight;         /* of its calls that are executed elsewhere */
    uint32_t in_flight;
    uint32_t turn, taken; /* input that was taken in that turn of tcp, in bytes */
    bool is_reading, is_closing;
    bool was_long;     /* the last record was */
    bool is_out_gated; /* some of it waited for a commit */
    bool at_end;       /* the peer sends nothing more, but may still read its replies */
};

/* Starts to read. The connection belongs to tcp until it is closed. */
void connection_start(struct connection *connection);
/* A reply whose commit is done. */
void connection_send(struct connection *connection, struct bytes message);
/* The reply of a job, which is released when it was written, or cannot be. */
void connection_send_job(struct connection *connection, const struct rpc_finished *finished);
/* One call less in flight; a connection paused for that resumes. */
void connection_call_ended(struct connection *connection, uint32_t weight);
/* True: the peer has read something of a long write since this was last asked. */
bool connection_is_being_read(struct connection *connection);
/* Retries what was refused as busy. */
void connection_resume(struct connection *connection);
/* What of its record lies in a pipe is read into memory, and continues there. */
void connection_leave_inlet(struct connection *connection);
/* Reads nothing more. */
void connection_quiesce(struct connection *connection);
/* Writes what has gathered. */
void connection_flush(struct connection *connection);
/* Its route is gone at once; the memory is freed when libuv has closed the handle. */
void connection_close(struct connection *connection);

#endif
