/*
 * hosts.h -- hosts that the server calls: each has an address, a portmapper and one service.
 *
 * A host has only the sockets that hosts_listen gave it; where there is none, the kernel refuses as
 * that of a real host does. A thread serves them, whatever the test is waiting for; every call of
 * the service is remembered.
 *
 * They need a network namespace of their own: port 111 of this machine may be taken.
 */
#ifndef INTEGRATION_HOSTS_H
#define INTEGRATION_HOSTS_H

#include "peer/packet.h"
#include "peer/peer_nsm.h"

#define HOSTS_PORTMAP 111
#define HOSTS_PROG    200100
#define HOSTS_VERS    3
#define HOSTS_PROC    7

struct hosts_host {
    uint32_t address;            /* host byte order, as everywhere here */
    uint16_t tcp_port, udp_port; /* what the portmapper knows of the service; 0: nothing */
    bool is_silent;              /* its portmapper hears UDP and does not answer */
    uint32_t refusals;           /* calls to refuse before the first success */
    enum packet_accept refusal;  /* how */
};

/* One call of a service. A datagram that was repeated is one call. */
struct hosts_call {
    uint32_t host; /* index */
    uint32_t from; /* address */
    uint32_t xid, prog, vers, proc;
    bool is_udp, is_readable, is_refused;
    uint64_t at_ns;
    uint32_t state;
    char name[64];
    uint8_t priv[PEER_NSM_PRIV_LEN];
};

/* False: no memory, no thread. */
bool hosts_start(void);
void hosts_stop(void);

/* Its index, counted from 0, or -1. */
int hosts_add(const struct hosts_host *host);
/* Port 111 is the portmapper, every other port the service. */
bool hosts_listen(uint32_t host, uint16_t port, bool is_udp);

/* Waits until everything that was sent to them is served; for when the server is dead. False: a
   minute was not enough. */
bool hosts_settle(void);
/* Forgets the calls up to now. */
void hosts_forget_calls(void);
/* Every call since then, in order of arrival; the hosts stand still meanwhile. */
typedef void (*hosts_call_fn)(void *context, const struct hosts_call *call);
void hosts_each_call(hosts_call_fn visit, void *context);

#endif
