/*
 * dial.h -- sockets of a fake client, used one call at a time and always with a deadline.
 *
 * Sockets are non-blocking inside; every function here waits, but never longer than it is told.
 * Failures are negative errno values: -ETIMEDOUT when the time was over, -ECONNRESET when the
 * server closed the connection, cleanly or not.
 */
#ifndef PEER_DIAL_H
#define PEER_DIAL_H

#include "peer/packet.h"

#include <sys/socket.h>

/* An address and a port; len 0 means "none given". */
struct dial_endpoint {
    struct sockaddr_storage at;
    socklen_t len;
};

/* How calls travel: from where (optional) to where. */
struct dial_route {
    bool is_udp;
    struct dial_endpoint server, source;
};

uint64_t dial_now_ns(void);

/* A literal IPv4 or IPv6 address. False: it is neither. */
bool dial_endpoint_parse(const char *address, uint16_t port, struct dial_endpoint *ret);
/* "PORT", which is on the IPv4 loopback, or "ADDRESS:PORT" with an IPv4 address. */
bool dial_endpoint_read(const char *text, struct dial_endpoint *ret);
/* An IPv4 address in host byte order, such as 0x7f000001. */
struct dial_endpoint dial_endpoint_v4(uint32_t address, uint16_t port);
uint16_t dial_endpoint_port(const struct dial_endpoint *endpoint);
/* "127.0.0.1:2049", "[::1]:2049"; valid until the next call. */
const char *dial_endpoint_text(const struct dial_endpoint *endpoint);
bool dial_endpoint_equal(const struct dial_endpoint *a, const struct dial_endpoint *b);

/* A connected socket. UDP sockets are connected as well: they hear the server's address only. */
int dial_open(const struct dial_route *route, uint32_t timeout_ms);
/* A UDP socket bound to `source` that hears everybody. */
int dial_open_unconnected(const struct dial_endpoint *source);
/* The same as dial_open, not yet connected when it returns; the load engine waits itself. */
int dial_start(const struct dial_route *route);

/* Raw bytes. 0 or negative errno. */
int dial_send(int fd, const void *bytes, size_t len, uint32_t timeout_ms);
/* One record mark and the packet behind it. */
int dial_send_record(int fd, const void *bytes, uint32_t len, uint32_t timeout_ms);
/* At least one byte, a datagram, or a failure. */
int dial_receive(int fd, void *buffer, size_t size, uint32_t timeout_ms);
int dial_receive_from(int fd, void *buffer, size_t size, uint32_t timeout_ms,
                      struct dial_endpoint *ret_from);
/* One whole record; its length is returned. */
int dial_receive_record(int fd, struct packet *ret, uint32_t timeout_ms);

/*
 * One call and its answer on an open socket. Answers to other xids are skipped. Over UDP the call
 * is sent again every 500 ms. 0 with *ret pointing into *answer, -EBADMSG for an answer that cannot
 * be read, or another negative errno.
 */
int dial_exchange(int fd, bool is_udp, const struct packet *call, uint32_t timeout_ms,
                  struct packet *answer, struct packet_reply *ret);
/* The same on a socket of its own. */
int dial_call(const struct dial_route *route, const struct packet *call, uint32_t timeout_ms,
              struct packet *answer, struct packet_reply *ret);

#endif
