/*
 * served.h -- the real server and core under real sockets on loopback addresses, with a store and a
 * clock of the test's own: a batch becomes durable when the test says so, and until the first one
 * is, every STAT waits. Clients are plain blocking sockets with the tests' own XDR.
 */
#ifndef WIRE_SERVED_H
#define WIRE_SERVED_H

#include "peer/peer_nsm.h"
#include "rpc/server.h"
#include "wire/clock.h"
#include "wire/listen.h"

#include <uv.h>

struct served {
    uv_loop_t loop;
    struct clock clock;
    struct lease lease; /* of the core's store */
    struct core *core;
    struct rpc_server *server;
    struct listen_set set; /* bound sockets; whoever takes them over sets the count to 0 */
    uint16_t port;
};

/* Listens on every address of the machine. */
void served_open(struct served *served, const struct rpc_server_limits *limits);
/* The loop must have nothing open any more; all that is reserved is freed. */
void served_close(struct served *served);

/* What has changed becomes durable. */
void served_store(struct served *served);
/* True when an event of this kind was reported, from this address; all events are taken. */
bool served_was_reported(struct served *served, enum event_kind kind, const char *from);

struct address served_address(const char *text);

/* A socket of a client at this address; -1: the machine has no such address. */
int served_client(int type, const char *address);
/* To the server, at this address of it. */
void served_send(const struct served *served, int fd, const char *to, const struct packet *call);

/* A datagram that has come, if one has: where it came from, and what it says. */
bool served_take_datagram(int fd, struct address *ret_from, uint16_t *ret_port,
                          struct packet_reply *ret);

#endif
