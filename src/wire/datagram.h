/*
 * datagram.h -- one datagram of a recvmmsg or sendmmsg, with the address of ours that it came to or
 * leaves from.
 *
 * A socket bound to no address must say for each datagram which of our addresses it leaves from;
 * otherwise routing decides, and the peer hears from a stranger.
 */
#ifndef WIRE_DATAGRAM_H
#define WIRE_DATAGRAM_H

#include "base/address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h> /* needs time.h before it */

/* Room for the control messages we ask for: our own address, and an ICMP error. */
#define DATAGRAM_CONTROL_LEN                                                                       \
    CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6) +                    \
               sizeof(struct in6_pktinfo))

struct datagram {
    struct sockaddr_storage peer;
    struct iovec content;
    _Alignas(struct cmsghdr) uint8_t control[DATAGRAM_CONTROL_LEN];
};

/* Ties a message header to its control data and receive buffer. */
void datagram_prepare(struct mmsghdr *message, struct datagram *datagram, uint8_t *bytes,
                      size_t len);

/* A prepared one is sent to (to, port) from one of our addresses; family 0: from any. */
void datagram_send_to(struct mmsghdr *message, struct datagram *datagram, const struct address *to,
                      uint16_t port, const struct address *local);

/* The address that a received one was sent to; family 0 if the kernel does not say. */
struct address datagram_asked(const struct mmsghdr *message);

#endif
