/*
 * source_port.h -- the local ports of outgoing calls, taken from a range in turn.
 *
 * There are three ranges: any port (the kernel's choice), that of --source-ports, and the
 * privileged ports, for peers that trust no others (R-NOTIFY-3, and some rpcbinds).
 */
#ifndef WIRE_SOURCE_PORT_H
#define WIRE_SOURCE_PORT_H

#include "base/address.h"

struct source_ports {
    uint16_t low, high; /* both 0: any port */
    uint32_t next;      /* next position in the range */
};

/* 512 to 1023. */
struct source_ports source_ports_privileged(void);

static inline uint32_t source_ports_count(const struct source_ports *ports)
{
    return 1U + ports->high - ports->low;
}

/* The next port of the range, whether it is free or not; 0: any. */
uint16_t source_ports_next(struct source_ports *ports);

/*
 * Binds a socket to this address and the next port that is free. 0 or a negative errno: EACCES for
 * privileged ports we may not use, EADDRINUSE if none is free. The socket is then unbound.
 */
int source_ports_bind(struct source_ports *ports, int fd, const struct address *local);

#endif
