/*
 * operate.h -- what an operator may change.
 *
 * Five commands, and each can break a promise, which is why only a person gives them (P2 (4)):
 *
 *   END_GRACE   what nobody has reclaimed yet is given up now, and nobody gets more time
 *   RELEASE     a client's locks, shares and waits end, everywhere or on one file; those who wait
 *               for them is served. It is told by SM_NOTIFY, so that its kernel finds out. One
 *               that holds nothing is forgotten at once, whatever it is owed; a registrant too
 *   NOTIFY      it is told by SM_NOTIFY that it must reclaim: what it has stands
 *   MOVE        its record answers to another address from now on (D17), with all that it has;
 *               nothing is freed. If the host at the old address lives, two hosts rely on the same
 *               locks. It is told as by NOTIFY, at the new address: it reclaims what it has, and
 *               asks again for what it waits for. A record of its name that is there already gives
 *               way when it holds nothing
 *   RESTART_NOTICE   monitor: every watched host is told that our locks are lost, as after a
 *               reboot, so that it reclaims; where they are not lost, they are lost by that
 *
 * A status monitor acts on a state number that it does not know. Our number therefore goes up by
 * two, durably, before the client is notified; for everyone else nothing happened (see
 * restart_state in store/record.h), and the next start continues from there (R-PER-4).
 *
 * The reply to a command leaves when its effect is durable, like any other (P1).
 */
#ifndef CORE_OPERATE_H
#define CORE_OPERATE_H

#include "base/address.h"

struct core;

enum order_kind {
    ORDER_END_GRACE,
    ORDER_RELEASE,
    ORDER_NOTIFY,
    ORDER_MOVE,
    ORDER_RESTART_NOTICE,
};

struct order {
    enum order_kind kind;
    uint64_t client;   /* RELEASE, NOTIFY, MOVE: its id; RELEASE: or a registrant's */
    struct bytes fh;   /* RELEASE: only on this file; empty: everywhere */
    struct address to; /* MOVE: where it is now */
};

enum order_result {
    ORDER_DONE,
    ORDER_BEGUN,     /* RELEASE of very much: it is being freed, in pieces */
    ORDER_NO_CLIENT, /* there is none of that id */
    ORDER_NOTHING,   /* no grace period is active, it holds nothing there, it was never monitored,
                      * or it is at that address already */
    ORDER_LATER, /* ask again: the batch is full, says the driver; END_GRACE: answers from before
                      * a simulated crash have yet to leave, and may give what it would give up */
    ORDER_BAD_ADDRESS, /* MOVE: it names no host */
    ORDER_TAKEN,       /* MOVE: a client of its name is there and holds something */
    ORDER_NO_BYTES,    /* MOVE: --max-bytes leaves no room for the address */
};

enum order_result operate(struct core *core, const struct order *order);

#endif
