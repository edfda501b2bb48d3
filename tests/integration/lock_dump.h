/*
 * lock_dump.h -- the locks of a store that no server uses now, as store_dump prints them.
 */
#ifndef INTEGRATION_LOCK_DUMP_H
#define INTEGRATION_LOCK_DUMP_H

#include "harness.h"

struct lock_dump_lock {
    char address[64], name[128]; /* of its client */
    uint32_t svid, file;         /* see lock_call.h */
    uint64_t start, end;         /* inclusive */
    bool exclusive, is_offer, is_unmonitored;
    bool is_echo; /* an offer that is nobody's (decision 025) */
    bool
        is_alone; /* an offer without a waiter: its callback lingered, or its run was not resumed */
    uint32_t state;
    char oh[256];
};

struct lock_dump_waiter {
    uint32_t svid, file;
    bool is_offered;
};

struct lock_dump {
    uint64_t epoch; /* of the server record */
    uint32_t state;
    uint32_t clients, locks, offers, waiters, shares; /* records; locks counts offers too */
    uint32_t echoes;                                  /* of the offers */
};

typedef void (*lock_dump_fn)(void *context, const struct lock_dump_lock *lock);
/* False: the store could not be read, or has a lock without a client or of no file of ours. `visit`
 * may be NULL. */
bool lock_dump_read(const char *store, lock_dump_fn visit, void *context, struct lock_dump *ret);

typedef void (*lock_dump_waiter_fn)(void *context, const struct lock_dump_waiter *waiter);
/* The same with those who wait. */
bool lock_dump_read_all(const char *store, lock_dump_fn visit, lock_dump_waiter_fn visit_waiter,
                        void *context, struct lock_dump *ret);

#endif
