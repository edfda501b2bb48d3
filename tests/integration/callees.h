/*
 * callees.h -- lock clients' hosts as the server sees them: a portmapper, a status monitor and a
 * lock manager each, served in the thread of the test.
 *
 * All three are on port 111 of the host's own address: over UDP, and with every second host over
 * TCP too. What a host answers to GRANTED is the test's decision, which it makes when the call
 * arrives; the answer may leave later, so that a test knows how many hand-overs are under way. The
 * decision stands from the first moment: only the server does not know it yet.
 *
 * They need a network namespace of their own: port 111 of this machine may be taken.
 */
#ifndef INTEGRATION_CALLEES_H
#define INTEGRATION_CALLEES_H

#include "peer/peer_nlm.h"

struct callees;

struct callees_user {
    void *context;
    /* A GRANTED: the status to answer, and after how long. */
    uint32_t (*granted)(void *context, uint32_t host, const struct peer_nlm_args *args,
                        uint64_t *ret_delay_ns);
    /* An SM_NOTIFY, under whatever name. */
    void (*notified)(void *context, uint32_t host, uint32_t state);
};

struct callees_config {
    uint32_t first_address; /* host byte order; the others follow */
    uint32_t count;
    uint32_t nsm_state; /* what their status monitors answer to SM_STAT */
    struct callees_user user;
};

/* NULL with errno: no memory, or one of the sockets could not be had. */
struct callees *callees_new(const struct callees_config *config);
void callees_free(struct callees *callees);

/* Answers what has arrived and sends what is due, without waiting. How many calls there were, those
   of portmappers included. */
uint32_t callees_turn(struct callees *callees);
/* The server is dead: connections end, answers that were kept back are lost. */
void callees_forget_server(struct callees *callees);

/* GRANTED answered with GRANTED, and that answer still here. */
uint32_t callees_held(const struct callees *callees);
/* SM_STAT so far. */
uint32_t callees_stats(const struct callees *callees);
/* Calls that no server should make. */
uint32_t callees_strange(const struct callees *callees);

#endif
