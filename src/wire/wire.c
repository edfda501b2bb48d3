/*
 * wire.c -- joins TCP, UDP and the server's outbox; see wire.h.
 */
#include "wire/wire.h"

#include "base/check.h"
#include "wire/tcp.h"
#include "wire/udp.h"

#include <stdlib.h>

struct wire {
    struct rpc_server *server;
    struct clock *clock;
    struct tcp *tcp;
    struct udp *udp;
};

struct wire *wire_new(uv_loop_t *loop, struct rpc_server *server, struct clock *clock,
                      uint32_t connections_max)
{
    struct wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        return NULL;
    wire->server = server;
    wire->clock = clock;
    wire->udp = udp_new(loop, server, clock);
    if (wire->udp != NULL)
        wire->tcp = tcp_new(loop, server, clock, connections_max);
    if (wire->tcp == NULL) {
        wire_free(wire);
        return NULL;
    }
    return wire;
}

void wire_free(struct wire *wire)
{
    if (wire == NULL)
        return;
    tcp_free(wire->tcp);
    udp_free(wire->udp);
    free(wire);
}

int wire_listen(struct wire *wire, struct listen_set *set, bool has_files)
{
    while (set->count > 0) {
        struct listen_pair *pair = &set->at[set->count - 1];
        int err = udp_add(wire->udp, pair->udp_fd, &pair->address, has_files);
        int tcp_err = tcp_add(wire->tcp, pair->tcp_fd, has_files);
        set->count--;
        if (err == 0)
            err = tcp_err;
        if (err != 0) {
            listen_close(set);
            return err;
        }
    }
    return 0;
}

/* Replies that were made elsewhere. */
static void release_jobs(struct wire *wire)
{
    struct rpc_finished finished;
    while (rpc_server_next_job(wire->server, clock_now_ns(wire->clock), &finished)) {
        tcp_call_ended(wire->tcp, finished.taken_by, finished.weight);
        if (finished.to.peer.transport == TRANSPORT_UDP) {
            CHECK(finished.job->pipe.len == 0);
            udp_send(wire->udp, finished.to.route, &finished.to.peer,
                     (struct bytes){finished.message, finished.len});
            rpc_server_release_job(wire->server, finished.job);
        } else {
            tcp_send_job(wire->tcp, &finished);
        }
    }
}

static void release(struct wire *wire)
{
    struct rpc_reply reply;
    release_jobs(wire);
    while (rpc_server_next(wire->server, clock_now_ns(wire->clock), &reply)) {
        if (reply.transport == TRANSPORT_UDP)
            udp_send(wire->udp, reply.route, reply.peer, reply.message);
        else if (reply.message.len > 0)
            tcp_send(wire->tcp, reply.route, reply.message);
        tcp_call_ended(wire->tcp, reply.taken_by, 0);
    }
}

void wire_flush(struct wire *wire)
{
    release(wire);
    tcp_resume(wire->tcp);
    udp_resume(wire->udp);
    release(wire); /* what was admitted may need no new batch */
    udp_flush(wire->udp);
    tcp_flush(wire->tcp);
}

uint32_t wire_connections(const struct wire *wire, uint32_t *ret_max)
{
    *ret_max = wire->tcp->connections_max;
    return wire->tcp->connections.count;
}

bool wire_is_holding_back(const struct wire *wire)
{
    return !list_is_empty(&wire->tcp->paused) || udp_is_holding_back(wire->udp);
}

void wire_call(struct wire *wire, const struct client_action *action)
{
    udp_call(wire->udp, &action->local, &action->to, action->port, action->bytes);
}

void wire_flush_calls(struct wire *wire)
{
    udp_flush(wire->udp);
}

void wire_quiesce(struct wire *wire)
{
    udp_quiesce(wire->udp);
    tcp_quiesce(wire->tcp);
}

void wire_close(struct wire *wire)
{
    udp_close(wire->udp);
    tcp_close(wire->tcp);
}
