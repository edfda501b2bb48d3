/*
 * udp.h -- datagrams in and out, many per system call.
 *
 * An answer leaves from the address that was asked: clients connect their sockets or compare, and a
 * host with several addresses would otherwise answer from whichever the routing prefers. A call
 * that cannot be taken now is dropped, which is what UDP callers are prepared for.
 *
 * Calls of ours that must come from where we listen leave here too (R-BLK-3), and the replies to
 * them arrive here: the server knows them from calls.
 */
#ifndef WIRE_UDP_H
#define WIRE_UDP_H

#include "rpc/server.h"
#include "wire/clock.h"

#include <uv.h>

struct udp;

#define UDP_CALL_MAX (CLIENT_ARGS_MAX + 128)

/* NULL: no memory, or libuv refused a socket. The rest is borrowed. */
struct udp *udp_new(uv_loop_t *loop, struct rpc_server *server, struct clock *clock);
/* Takes the socket over. 0 or a negative libuv error. */
__attribute__((warn_unused_result)) int udp_add(struct udp *udp, int fd,
                                                const struct address *address);

/* Puts an answer into the next sendmmsg; udp_flush sends what has gathered. */
void udp_send(struct udp *udp, const struct rpc_source *to, struct bytes message);
/* The same for a call of at most UDP_CALL_MAX bytes, from the first socket that was added for this
 * address of ours. Without one it is lost, like any datagram. */
void udp_call(struct udp *udp, const struct address *local, const struct address *to, uint16_t port,
              struct bytes message);
void udp_flush(struct udp *udp);

/* Reads nothing more; answers still leave. */
void udp_quiesce(struct udp *udp);
/* Closes the sockets; the memory goes when the loop has closed the handles. */
void udp_close(struct udp *udp);
void udp_free(struct udp *udp);

#endif
