/*
 * lock_offer.h -- offers: elements of the lock table that block other owners on behalf of a waiter
 * that has not acknowledged them (R-BLK-19), and how they become locks of their owner.
 */
#ifndef CORE_LOCK_OFFER_H
#define CORE_LOCK_OFFER_H

#include "core/lock.h"

/* Takes the claim for a waiter; SLOT_NONE: no room. Nobody else may be in the way. */
uint32_t lock_offer_make(struct core *core, const struct lock_want *want, uint32_t waiter);

/* Its owner has asked for it in this state since. */
void lock_offer_stamp(struct core *core, uint32_t slot, uint32_t state, uint64_t asked);

/*
 * An offer that a run before this one made (R-BLK-19): it is its owner's lock now. The store's
 * record says as much and is not written again, unless it meets what the owner holds. False: it
 * stays an offer.
 */
__attribute__((warn_unused_result)) bool lock_offer_restore(struct core *core, uint32_t slot);
/*
 * The client said that it has the lock: the offer replaces what its owner held there before, like
 * any lock that is taken (5.2). What the owner took exclusively since the offer was made stays so.
 * `stays`: as the owner's lock and as an offer, which callback.c or echo.c keeps.
 */
__attribute__((warn_unused_result)) bool lock_offer_confirm(struct core *core, uint32_t slot,
                                                            bool stays);
/*
 * The client may have the lock: the offer becomes its owner's. Bytes that it holds exclusively stay
 * so, because a doubt never weakens anything. False, and the offer stays: no slots for the pieces,
 * too many of them (perhaps only for the batch that is open), or its client rebooted since.
 */
__attribute__((warn_unused_result)) bool lock_offer_accept(struct core *core, uint32_t slot,
                                                           bool stays);
/* The offer goes, or is kept from others as an echo (echo.h). */
void lock_offer_withdraw(struct core *core, uint32_t slot);

/* Does the owner hold exactly this range in this mode, and is that in doubt? */
bool lock_offer_is_doubtful(const struct core *core, const struct claim *claim);

#endif
