/*
 * operator.h -- the operator of the server, who gives orders (core/operate.h).
 *
 * NOTIFY breaks nothing: a client is told, reclaims outside of grace, and must be granted what it
 * relies on. END_GRACE and RELEASE are exclusion (4) of P2, and only worlds that allow it have
 * them; MOVE is left to stories. A client is released when it waits for no answer there: what it
 * has is certain then, and it only believes in it from there on.
 */
#ifndef SIM_OPERATOR_H
#define SIM_OPERATOR_H

#include "core/operate.h"
#include "locker.h"

/* For this locker, in the file of this extent only (NULL: everywhere). */
enum order_result operator_order(struct world *world, enum order_kind kind, struct locker *locker,
                                 const struct extent *extent);
/* Its record answers to this address from now on (D17). */
enum order_result operator_move(struct world *world, struct locker *locker,
                                const struct address *to);
/* Any order that this world allows. */
void operator_act(struct world *world);
/* The same at times of its own, in worlds that allow all of them. */
void operator_init(struct world *world);
void operator_give(struct world *world, uint64_t ticket);
/* Grace has begun: it may be ended early. */
void operator_grace(struct world *world);

#endif
