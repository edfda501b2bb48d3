/*
 * toy.h -- a lock server of a few lines, to try the emulated clients on without the real one.
 *
 * It knows one range per owner, looks at nothing but overlap, forgets everything at the end, and
 * calls back over UDP at the port that the test tells it. It shares the thread of the hosts.
 */
#ifndef PEER_TOY_H
#define PEER_TOY_H

#include "peer/emu_host.h"

enum { TOY_LOCKS_MAX = 16, TOY_CLIENTS_MAX = 4 };

enum toy_state { TOY_FREE, TOY_HELD, TOY_WAITING, TOY_OFFERED };

struct toy_lock {
    enum toy_state state;
    uint32_t address, vers;
    struct peer_nlm_args args;
    uint64_t queued; /* when it began to wait */
};

struct toy {
    struct dial_endpoint at;
    uint64_t udp_socket;
    const struct emu_host *clients[TOY_CLIENTS_MAX]; /* whose NLM ports it knows */
    uint32_t callback;                               /* GRANTED or GRANTED_MSG */
    bool is_res_to_port; /* *_RES go to the NLM port and not to the socket that asked */
    bool is_deaf;        /* answers no *_MSG */
    bool is_silent;      /* grants without calling back */
    uint32_t calls, last_xid, repeated_xids;
    uint64_t clock;
    struct toy_lock locks[TOY_LOCKS_MAX];
};

/* Listens at 127.77.0.1; the same port for both transports. */
bool toy_open(struct toy *toy);

#endif
