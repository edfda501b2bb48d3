/*
 * operator.h -- the operator of the server, who gives orders (core/operate.h).
 *
 * NOTIFY breaks nothing: a client is told, reclaims outside of grace, and must be granted what it
 * relies on. END_GRACE is exclusion (4) of P2, and only worlds that allow it have it; RELEASE and
 * MOVE are left to stories.
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

#endif
