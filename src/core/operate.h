/*
 * operate.h -- what an operator may change.
 *
 * Three orders, and each can break a promise, which is why only a person gives them (P2 (4)):
 *
 *   END_GRACE   what nobody has reclaimed yet is given up now, and nobody gets more time
 *   RELEASE     a client's locks, shares and waits end, everywhere or on one file; whoever waits
 *               for them is served. It is told by SM_NOTIFY, so that its kernel finds out. Of one
 *               that holds nothing and is kept only because it was never told: it is forgotten
 *   NOTIFY      it is told by SM_NOTIFY that it must reclaim: what it has stands
 *
 * A status monitor acts on a state number that it does not know. Our number therefore goes up by
 * two, durably, before the client is told; for everybody else nothing happened (see restart_state
 * in store/record.h), and the next start goes on from there (R-PER-4).
 *
 * The answer to an order leaves when its effect is durable, like any other (P1).
 */
#ifndef CORE_OPERATE_H
#define CORE_OPERATE_H

#include "base/bytes.h"

#include <stdint.h>

struct core;

enum order_kind { ORDER_END_GRACE, ORDER_RELEASE, ORDER_NOTIFY };

struct order {
    enum order_kind kind;
    uint64_t client; /* RELEASE, NOTIFY: its id */
    struct bytes fh; /* RELEASE: only on this file; empty: everywhere */
};

enum order_result {
    ORDER_DONE,
    ORDER_BEGUN,     /* RELEASE of very much: it is being freed, in pieces */
    ORDER_NO_CLIENT, /* there is none of that id */
    ORDER_NOTHING,   /* no grace stands, it holds nothing there, or it was never monitored */
    ORDER_LATER,     /* the batch is full, says the driver: ask again */
};

enum order_result operate(struct core *core, const struct order *order);

#endif
