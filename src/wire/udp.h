/*
 * udp.h -- datagrams in and out, many per system call.
 *
 * A reply leaves from the address the call came to: clients connect their sockets or compare, and a
 * host with several addresses would otherwise reply from whichever routing prefers. A call that
 * cannot be taken now is kept for a few seconds (held.h), if there is room.
 *
 * Outgoing calls that must come from the listening socket leave here too (R-BLK-3), and their
 * replies arrive here: the server tells them from calls.
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
/* Takes the socket over, for programs executed elsewhere too if asked. 0 or a negative libuv
 * error. */
__attribute__((warn_unused_result)) int udp_add(struct udp *udp, int fd,
                                                const struct address *address, bool has_files);

/* Queues a reply for the next sendmmsg through the socket of this route; udp_flush sends it. One
 * that is too long for a datagram becomes SYSTEM_ERR. */
void udp_send(struct udp *udp, uint64_t route, const struct peer *to, struct bytes message);
/* The same for a call of at most UDP_CALL_MAX bytes, from the first socket added for this local
 * address. Without one it is lost, like any datagram. */
void udp_call(struct udp *udp, const struct address *local, const struct address *to, uint16_t port,
              struct bytes message);
void udp_flush(struct udp *udp);

/* Calls that could not be taken are offered once more. */
void udp_resume(struct udp *udp);
/* Are there any? */
bool udp_is_holding_back(const struct udp *udp);

/* Reads nothing more; replies still leave. */
void udp_quiesce(struct udp *udp);
/* Closes the sockets; the memory goes when the loop has closed the handles. */
void udp_close(struct udp *udp);
void udp_free(struct udp *udp);

#endif
