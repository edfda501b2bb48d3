/*
 * caller_tcp.h -- the TCP connections of outgoing calls, one per attempt.
 */
#ifndef WIRE_CALLER_TCP_H
#define WIRE_CALLER_TCP_H

#include "wire/caller.h"

struct caller_tcp;

struct caller_tcp *caller_tcp_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                                  const struct caller_options *options);

/*
 * The actions CLIENT_CONNECT, CLIENT_WRITE and CLIENT_DISCONNECT. An immediate failure is reported
 * immediately. A connection reported as lost is gone here too.
 */
void caller_tcp_connect(struct caller_tcp *tcp, const struct client_action *action);
void caller_tcp_write(struct caller_tcp *tcp, const struct client_action *action);
void caller_tcp_disconnect(struct caller_tcp *tcp, const struct client_action *action);

void caller_tcp_close(struct caller_tcp *tcp);
void caller_tcp_free(struct caller_tcp *tcp);

#endif
