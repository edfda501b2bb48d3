/*
 * admit.h -- is there room for one more of something? Where there is not, operators learn which
 * limit it was (R-SEC-6, R-SEC-12, R-PER-8).
 *
 * Each table says by itself whether it has room (client_add, registrant_add, lock_room,
 * share_room), all in the words of one enum; a refusal is reported here.
 */
#ifndef CORE_ADMIT_H
#define CORE_ADMIT_H

#include "core/message.h"
#include "core/quota.h"

struct core;

enum admission {
    ADMIT_NEW,     /* there is room for it; of x_add: it was added */
    ADMIT_FOUND,   /* it is there already, which needs no room */
    ADMIT_LIMIT,   /* over the limit of all: --max-clients, --max-locks, --max-waiters */
    ADMIT_CLIENT,  /* over the limit of its client: --max-locks-per-client */
    ADMIT_ADDRESS, /* over the share of its address */
    ADMIT_BYTES,   /* over --max-bytes */
    ADMIT_STORE,   /* the store has no space */
};

/* True: it may not be had, which is reported. `name` is the caller's or the one it monitors, `kind`
 * what it asked for. */
bool admit_refuses(struct core *core, enum admission admission, const struct peer *from,
                   struct bytes name, enum quota_kind kind);

/* The client that asks, recorded if it was not (SLOT_NONE). SLOT_NONE: it cannot be, which is
 * reported. */
uint32_t admit_client(struct core *core, const struct peer *from, const struct lock_request *r,
                      uint32_t client);
/* The file that it asks about, with a reference, recorded if it was not (SLOT_NONE). SLOT_NONE: it
 * cannot be, which is reported. */
uint32_t admit_file(struct core *core, const struct peer *from, const struct lock_request *r,
                    uint32_t file);
/* May it have one more lock? `client` is SLOT_NONE where it is not known: its address has a share
 * all the same. False: it is reported why. */
bool admit_lock(struct core *core, const struct peer *from, const struct lock_request *r,
                uint32_t client);

/* Reports which limit kept a lock from being cut, or its owner's name from being kept. */
void admit_report_slots(struct core *core, const struct peer *from, const struct lock_request *r,
                        uint32_t client);

#endif
