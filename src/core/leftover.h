/*
 * leftover.h -- offers that outlived their run and could not become locks of their owner.
 *
 * An offer that a run before this one made is its owner's lock now: its client may have taken it
 * (R-BLK-19). Made a lock, it becomes as many as there are stretches of what the owner holds there
 * already; where those are too many for one batch, or find no slots, it stays as it is. So it does
 * while a server that we replaced may still call about it (echo.h). For others it is in the way
 * like a lock. For its owner it is one that nobody has confirmed yet:
 *
 *  - a reclaim of any of its bytes is granted, as if they were held (leftover_covers);
 *  - bytes that the owner takes or gives up are cut out of it (leftover_cut);
 *  - what is left of it goes when the rest of its client's goes, at the end of grace or of what
 *    that client has beyond it (leftover_drop).
 *
 * So it counts as unsettled, and needs no slot, until it is cut.
 */
#ifndef CORE_LEFTOVER_H
#define CORE_LEFTOVER_H

#include "core/claim.h"

struct core;

__attribute__((warn_unused_result)) int leftover_init(struct core *core, uint32_t slots_max);
void leftover_done(struct core *core);

/* This offer without a waiter is one. */
void leftover_add(struct core *core, uint32_t slot);

/* Are the bytes of this claim all its owner's, as locks that it holds or as left-over offers, in
 * its mode or a stronger one? */
bool leftover_covers(const struct core *core, const struct claim *claim);

/* Does one of the owner's overlap this, in whatever mode? */
bool leftover_meets(const struct core *core, const struct claim *claim);

/* The owner has taken these bytes, or given them up; the caller releases the owner. Where a rest
 * finds no slot the whole stays, and so do those that are too many for one request. */
void leftover_cut(struct core *core, const struct claim *claim);

/* Gives up those of a client, at most `max`, as long as the batch takes them; returns how many. */
uint32_t leftover_drop(struct core *core, uint32_t client, uint32_t max);

#endif
