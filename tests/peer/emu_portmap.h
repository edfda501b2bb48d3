/*
 * emu_portmap.h -- the portmapper of an emulated host, and how a host asks another's.
 *
 * Port mapper version 2 (GETPORT) and rpcbind versions 3 and 4 (GETADDR); RFC 1833.
 */
#ifndef PEER_EMU_PORTMAP_H
#define PEER_EMU_PORTMAP_H

#include "peer/emu_host.h"

enum { EMU_PORTMAP_PORT = 111 };

/* One call, its arguments left in the reader; the lock is held. True: *reply goes back. */
bool emu_portmap_serve(struct emu_host *host, const struct emu_net_message *message,
                       const struct packet_call *call, struct packet_reader *reader,
                       struct packet *reply);

/* What is looked for, and how. */
struct emu_portmap_query {
    enum emu_lookup lookup;
    bool is_asked_over_udp;
    uint32_t prog, vers;
    bool is_udp;
};

/* The port, 0 when nothing is registered, or negative errno when nobody answers sensibly. */
int emu_portmap_find(const struct dial_route *route, const struct emu_portmap_query *query,
                     uint32_t timeout_ms);

#endif
