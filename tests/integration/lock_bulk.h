/*
 * lock_bulk.h -- many NLM calls of one address, as fast as the server answers.
 *
 * Over eight TCP connections with 32 calls in flight on each; calls start in the order of their
 * numbers.
 */
#ifndef INTEGRATION_LOCK_BULK_H
#define INTEGRATION_LOCK_BULK_H

#include "lock_call.h"

#define LOCK_BULK_STATUSES 10

/* The call with this number. */
typedef struct lock_call (*lock_bulk_fn)(uint32_t number);

struct lock_bulk {
    const char *what; /* in messages */
    uint32_t source;  /* host byte order */
    uint32_t first, count;
    lock_bulk_fn call;
    bool stop_at_refusal; /* nothing is posted after the first DENIED_NOLOCKS */

    /* Filled by it. */
    uint32_t answered, unreadable, by_status[LOCK_BULK_STATUSES];
    uint64_t elapsed_ns;
};

/* False, and said: connections failed, answers cannot be read, or not all came within 120 s. */
bool lock_bulk_run(const struct harness_server *server, struct lock_bulk *bulk);

#endif
