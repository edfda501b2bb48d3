/*
 * tcp.h -- all TCP connections: listening, the limit on their number, and idle ones.
 */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include "base/list.h"
#include "base/table.h"
#include "wire/buffers.h"
#include "wire/connection.h"
#include "wire/listen.h"

struct tcp {
    uv_loop_t *loop;
    struct rpc_server *server;
    struct clock *clock;
    struct table connections; /* of struct connection *; the handle is the route of its replies */
    struct list by_activity;  /* least recently heard first */
    struct list idle;         /* of these, who has no call in flight, longest idle first */
    struct list waiting_for_peer, unflushed, paused;
    uv_tcp_t listeners[LISTEN_SOCKETS_MAX];
    bool listener_has_files[LISTEN_SOCKETS_MAX];
    uint32_t listener_count;
    uv_timer_t sweep;
    uint8_t *read_buffer;   /* shared: input is handled before the next read */
    struct buffers buffers; /* for records that are gathered */
    uint32_t connections_max;
    uint32_t turn;            /* counts */
    struct connection *spare; /* to reject a connection with when out of memory */
    bool is_quiet;            /* no longer reading */
};

/* NULL: no memory. The rest is borrowed. */
struct tcp *tcp_new(uv_loop_t *loop, struct rpc_server *server, struct clock *clock,
                    uint32_t connections_max);
/* Takes the socket over and listens on it, for files too if asked. 0 or a negative libuv error. */
__attribute__((warn_unused_result)) int tcp_add(struct tcp *tcp, int fd, bool has_files);

void tcp_send(struct tcp *tcp, uint64_t route, struct bytes message);
/* The reply of a job, which is released when it was written, or cannot be. */
void tcp_send_job(struct tcp *tcp, const struct rpc_finished *finished);
/* One call less in flight on this route, and so much less weight. Routes of UDP sockets resolve to
 * no connection. */
void tcp_call_ended(struct tcp *tcp, uint64_t route, uint32_t weight);
/* End of a turn: resumes paused connections, writes what has accumulated. */
void tcp_resume(struct tcp *tcp);
void tcp_flush(struct tcp *tcp);

/* A connection is about to be closed: gracefully if the kernel has delivered everything, otherwise
 * with a reset if the store is shared. */
struct connection;
void tcp_part(const struct connection *c);

/* Takes no new connections and no new calls; replies still leave. */
void tcp_quiesce(struct tcp *tcp);
/* Closes everything; the memory goes with tcp_free, after the loop has closed the handles. */
void tcp_close(struct tcp *tcp);
void tcp_free(struct tcp *tcp);

#endif
