/*
 * hosts_net.h -- the sockets of hosts that the server calls, and what every portmapper answers.
 *
 * A host listens over UDP and TCP at its own address, so an answer leaves from there and a call
 * that was meant for another host cannot be mistaken. Who answers sees whole messages and sends
 * the answer when it likes.
 *
 * Either a thread serves them, whatever the test is waiting for (hosts_net_start); it holds the
 * lock meanwhile, and a test takes it to look. Or the test has them served when it has time
 * (hosts_net_turn), and needs no lock.
 *
 * They need a network namespace of their own: port 111 of this machine may be taken.
 */
#ifndef INTEGRATION_HOSTS_NET_H
#define INTEGRATION_HOSTS_NET_H

#include "peer/dial.h"

#define HOSTS_NET_PORTMAP         111
#define HOSTS_NET_PORTMAP_PROGRAM 100000

struct hosts_net;
struct hosts_net_socket;

/* One message, as it came in. */
struct hosts_net_message {
    struct hosts_net_socket *socket; /* the way back */
    struct dial_endpoint from;
    uint32_t host; /* what was given to hosts_net_listen */
    uint16_t port;
    bool is_udp;
    const uint8_t *bytes;
    uint32_t len;
};

struct hosts_net_user {
    void *context;
    /* False: the connection that it came over ends. */
    bool (*served)(void *context, const struct hosts_net_message *message);
    /* A socket is no longer there, so nothing can be sent by it. May be NULL. */
    void (*gone)(void *context, const struct hosts_net_socket *socket);
};

/* NULL with errno: no memory, or no descriptor. */
struct hosts_net *hosts_net_new(const struct hosts_net_user *user);
/* Ends the thread, if there is one, and closes everything. */
void hosts_net_free(struct hosts_net *net);

/* False: no thread. */
bool hosts_net_start(struct hosts_net *net);
void hosts_net_lock(struct hosts_net *net);
void hosts_net_unlock(struct hosts_net *net);
/* How often the thread has found nothing at all to serve; the lock is held. */
uint64_t hosts_net_idle_count(const struct hosts_net *net);

/* Serves what has arrived, without waiting. */
void hosts_net_turn(struct hosts_net *net);

/* The socket, which stays open until the end, or -1 with errno; the lock is held. */
int hosts_net_listen(struct hosts_net *net, uint32_t host, const struct dial_endpoint *at,
                     bool is_udp);
/* False: it did not leave. */
bool hosts_net_send(const struct hosts_net_socket *socket, const struct dial_endpoint *to,
                    const void *bytes, uint32_t len);
/* Ends every connection; not while a message is served. */
void hosts_net_hang_up(struct hosts_net *net);

/* Answers a call of the port mapper, version 2. The port of a service, or 0. */
typedef uint16_t (*hosts_net_port_fn)(const void *host, uint32_t prog, uint32_t vers,
                                      uint32_t prot);
void hosts_net_portmap(const struct packet_call *call, struct packet_reader *arguments,
                       hosts_net_port_fn find, const void *host, struct packet *reply);

#endif
