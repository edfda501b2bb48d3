/*
 * wire.h -- the network as one thing: calls come in by themselves, wire_flush lets replies out.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "rpc/server.h"
#include "wire/clock.h"
#include "wire/listen.h"

#include <uv.h>

struct wire;

/* NULL: no memory. Nothing is read before wire_listen. */
struct wire *wire_new(uv_loop_t *loop, struct rpc_server *server, struct clock *clock,
                      uint32_t connections_max);

/* Takes the bound sockets over and starts to serve, on LISTEN_PORTS_MAX ports at most; `has_files`:
 * also programs that are executed elsewhere. Outgoing calls leave from the first. 0 or a negative
 * libuv error. */
__attribute__((warn_unused_result)) int wire_listen(struct wire *wire, struct listen_set *set,
                                                    bool has_files);

/*
 * The end of a turn: sends every reply whose batch is durable, admits calls that had to wait, and
 * writes what has accumulated, once per connection.
 */
void wire_flush(struct wire *wire);

/* Connections that are open, and how many may be. */
uint32_t wire_connections(const struct wire *wire, uint32_t *ret_max);

/* True: calls were read that there was no room for yet, or more may be unread behind them. */
bool wire_is_holding_back(const struct wire *wire);

/* Sends a datagram of the client from the socket that listens at its local address (R-BLK-3), with
 * the next wire_flush_calls. */
void wire_call(struct wire *wire, const struct client_action *action);
void wire_flush_calls(struct wire *wire);

/* Takes no new calls; replies to those taken still leave. */
void wire_quiesce(struct wire *wire);
/* Closes all sockets. Free the memory when the loop has closed their handles. */
void wire_close(struct wire *wire);
void wire_free(struct wire *wire);

#endif
