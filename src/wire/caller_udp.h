/*
 * caller_udp.h -- lookups and calls over UDP: one socket per address family, and one more for calls
 * from a privileged port.
 *
 * A socket is bound to no address; each datagram says which of ours it leaves from. Replies come
 * back to that address and thus to the same socket, however many addresses we have.
 */
#ifndef WIRE_CALLER_UDP_H
#define WIRE_CALLER_UDP_H

#include "wire/caller.h"

struct caller_udp;

/* A socket on a privileged port of IPv4, for who drops privileges before there is a caller. -1:
 * there is none for us. */
__attribute__((warn_unused_result)) int caller_udp_bind_privileged(void);

struct caller_udp *caller_udp_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                                  const struct caller_options *options);

/* Puts a CLIENT_DATAGRAM into the next sendmmsg. Only while not blocked. */
void caller_udp_send(struct caller_udp *udp, const struct client_action *action);
/* Sends what has accumulated, as far as the kernel takes it. */
void caller_udp_flush(struct caller_udp *udp);
/* The kernel's buffer is full; the loop is notified when it has room again. */
bool caller_udp_is_blocked(const struct caller_udp *udp);

void caller_udp_close(struct caller_udp *udp);
void caller_udp_free(struct caller_udp *udp);

#endif
