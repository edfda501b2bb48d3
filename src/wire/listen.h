/*
 * listen.h -- the listening sockets: one TCP and one UDP socket per address, all on one port.
 */
#ifndef WIRE_LISTEN_H
#define WIRE_LISTEN_H

#include "base/address.h"

#define LISTEN_MAX         64 /* addresses */
#define LISTEN_PORTS_MAX   4  /* locks, the status monitor, the portmapper, files */
#define LISTEN_SOCKETS_MAX (LISTEN_PORTS_MAX * LISTEN_MAX) /* of one transport */

struct listen_pair {
    struct address address;
    int tcp_fd, udp_fd; /* bound, non-blocking; the TCP socket does not listen yet */
};

struct listen_set {
    uint16_t port;
    uint32_t count;
    struct listen_pair at[LISTEN_MAX];
};

/* Why binding failed, for the operator. */
struct listen_failure {
    int error; /* errno */
    char text[256];
};

/*
 * Binds every address; none given: all of IPv4 and, where the kernel has it, all of IPv6. Port 0
 * picks one that is free for all of them. 0, or -1 with *ret_failure filled and nothing left open.
 */
__attribute__((warn_unused_result)) int listen_open(const struct address *addresses, uint32_t count,
                                                    uint16_t port, struct listen_set *ret,
                                                    struct listen_failure *ret_failure);
void listen_close(struct listen_set *set);

#endif
