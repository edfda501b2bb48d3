/*
 * pieces.h -- the bytes of a file that are held, in which mode: stretches in order.
 *
 * Always true, and asserted by pieces_check(): no stretch is empty or LOCAL_NONE, none overlaps
 * another, and two that touch have different modes. So there are as few as there can be, as in the
 * kernel's own list of the same locks.
 */
#ifndef FILE_PIECES_H
#define FILE_PIECES_H

#include "core/local.h"

struct pieces {
    struct local_range *at; /* in order */
    uint32_t count, room;
};

void pieces_done(struct pieces *pieces);

/* Room for what one pieces_set may add. False: no memory. */
__attribute__((warn_unused_result)) bool pieces_reserve(struct pieces *pieces);
/* From now on these bytes have this mode; there is room for it. */
void pieces_set(struct pieces *pieces, const struct local_range *range);

/* The bytes from this one on that are alike, as far as this end. */
struct local_range pieces_at(const struct pieces *pieces, uint64_t at, uint64_t end);

void pieces_check(const struct pieces *pieces);

#endif
