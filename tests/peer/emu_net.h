/*
 * emu_net.h -- the sockets of emulated client hosts, all served by one thread.
 *
 * Whatever a test is waiting for, the hosts answer: one epoll in one thread. One lock covers
 * everything the hosts know. The thread holds it while it serves; a test takes it to look, or asks
 * emu_net_wait for a condition, which is looked at again after every message.
 *
 * A socket is a listener for services, or one that a host calls from and on which answers, and
 * calls in the other direction, may arrive. Sockets are named by a number that is never used again,
 * so an answer that is given late finds its socket or nothing.
 */
#ifndef PEER_EMU_NET_H
#define PEER_EMU_NET_H

#include "peer/dial.h"

/* One message, a call or a reply, as it came in. */
struct emu_net_message {
    void *host;
    uint32_t service;
    bool is_udp;
    uint64_t socket;
    struct dial_endpoint from;
    const uint8_t *bytes;
    uint32_t len;
};

/* True: *reply, which is empty before, goes back the way the message came. The lock is held. */
typedef bool (*emu_net_serve_fn)(const struct emu_net_message *message, struct packet *reply);

/* Whose socket it is. The first two are handed back in every message. */
struct emu_net_owner {
    void *host;
    uint32_t service;
    emu_net_serve_fn serve;
};

/* False: no thread. Once per process at a time. */
bool emu_net_start(void);
/* Closes what is still open. */
void emu_net_stop(void);

/* May be nested. */
void emu_net_lock(void);
void emu_net_unlock(void);
/* One statement under the lock: EMU_NET_LOCKED(host->is_in_grace = true); */
#define EMU_NET_LOCKED(...)                                                                        \
    do {                                                                                           \
        emu_net_lock();                                                                            \
        __VA_ARGS__;                                                                               \
        emu_net_unlock();                                                                          \
    } while (0)

/* Waits until is_so(context), judged with the lock held. False: it did not come true in time. */
typedef bool (*emu_net_condition_fn)(void *context);
bool emu_net_wait(emu_net_condition_fn is_so, void *context, uint32_t timeout_ms);

/* Listens at an address; port 0 takes a free one. The port, or negative errno. `ret_socket` may be
   NULL. */
int emu_net_listen(const struct emu_net_owner *owner, const struct dial_endpoint *at, bool is_udp,
                   uint64_t *ret_socket);
/* A connected socket whose incoming messages the thread serves from now on. 0: no memory; the
   socket is closed. */
uint64_t emu_net_adopt(const struct emu_net_owner *owner, int fd, bool is_udp);
/* One message out of a socket. `to` is for a UDP listener. False: the socket is gone. */
bool emu_net_send(uint64_t socket, const struct dial_endpoint *to, const struct packet *message);
bool emu_net_is_open(uint64_t socket);
void emu_net_close(uint64_t socket);
/* Every socket of a host. */
void emu_net_close_host(const void *host);

/* A new network namespace with a loopback, where port 111 of every 127.x.y.z is free. Before any
   thread. False: that is not allowed here. */
bool emu_net_enter(void);

#endif
