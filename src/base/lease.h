/*
 * lease.h -- how long a server may act on what a shared store last confirmed.
 *
 * Another server can take a shared store over while this one is not scheduled, so each commit only
 * shows that this server was active at one moment. What depends on it may happen for a limited time
 * after that moment, and a successor waits that time out (docs/decisions/018, 025):
 *
 *   epoch raised                                   the predecessor's
 *   by a successor      its replies and calls      kernel keeps them
 *        |--------- LEASE_SEND_MS ---------|--------- LEASE_KEPT_MS ---------|
 *        |         nobody is notified      |    offers are kept from others  |
 *
 * The daemon owns the one lease. A commit renews it; a sender looks at it right before each
 * send; the pure layers only ask whether there is one. All times are of CLOCK_BOOTTIME, which
 * includes sleep, and are arguments.
 */
#ifndef BASE_LEASE_H
#define BASE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEASE_SEND_MS = 2000,  /* after a commit, replies and calls that depend on it may leave */
    LEASE_KEPT_MS = 10000, /* the kernel may keep them, unacknowledged (TCP_USER_TIMEOUT) */
    LEASE_HOOK_MS = 8000,  /* a takeover hook may move an address; PostgreSQL ends a session after
                              11 s */
    LEASE_BEAT_MS = 1000,  /* an idle server commits this often */
};

/* Zeroed: the store is this server's alone, and nothing expires. */
struct lease {
    bool is_shared;        /* other machines can use the store */
    uint64_t raised_ns;    /* when its epoch became ours */
    uint64_t confirmed_ns; /* when the store last found this server active */
};

/* NULL is a store of our own, here and below. */
bool lease_is_shared(const struct lease *lease);
void lease_renew(struct lease *lease, uint64_t confirmed_ns);

/* A reply or a call whose commit is done may leave now. */
bool lease_may_send(const struct lease *lease, uint64_t boot_ns);
/* A takeover hook may still move an address. */
bool lease_may_move(const struct lease *lease, uint64_t boot_ns);

/* How long the kernel may keep what left, unacknowledged (TCP_USER_TIMEOUT). */
uint32_t lease_kept_ms(void);

/* How much longer a server that this one replaced may send, and its kernel may; 0: not any more. */
uint64_t lease_sends_left_ns(const struct lease *lease, uint64_t boot_ns);
uint64_t lease_echoes_left_ns(const struct lease *lease, uint64_t boot_ns);

#endif
