/*
 * admit.h -- is there room for what a request asks for? Where there is not, operators learn which
 * limit it was (R-SEC-6, R-SEC-12, R-PER-8).
 */
#ifndef CORE_ADMIT_H
#define CORE_ADMIT_H

#include "core/message.h"

struct core;

/* The client that asks, recorded if it was not (SLOT_NONE). SLOT_NONE: it cannot be, which is
 * reported. */
uint32_t admit_client(struct core *core, const struct peer *from, const struct lock_request *r,
                      uint32_t client);
/* May it have one more lock? `client` is SLOT_NONE where it is not known: its address has a share
 * all the same. False: it is reported why. */
bool admit_lock(struct core *core, const struct peer *from, const struct lock_request *r,
                uint32_t client);

/* May it wait for one more? A waiter that is stored needs room like a lock. False: it is reported
 * why. */
bool admit_waiter(struct core *core, const struct peer *from, const struct lock_request *r,
                  uint32_t client);

/* Reports why one more share was refused; */
void admit_report_share(struct core *core, const struct peer *from, const struct lock_request *r,
                        uint32_t client);
/* that there were no bytes for a name or a handle; */
void admit_report_bytes(struct core *core, const struct peer *from, const struct lock_request *r);
/* which limit kept a lock from being cut, or its owner's name from being kept. */
void admit_report_slots(struct core *core, const struct peer *from, const struct lock_request *r,
                        uint32_t client);

#endif
