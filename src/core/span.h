/*
 * span.h -- the elements of a file in order of their first byte, and which of them is in the way.
 *
 * Many sets over one table of slots; a slot is in at most one of them. An element is a claim:
 * bytes, owner, mode. What a set answers is "the first element that conflicts with this claim", in
 * a few cache lines however many elements there are and however many of them overlap the claim.
 *
 * Most files have one lock, so a set of few is a *row*: a chain of slots, and the claims are looked
 * at where they are. A larger one is a B+-tree whose leaves have copies of the claims. One with
 * 100,000 elements is four levels deep.
 *
 * All memory is reserved by span_init and touched on first use; nothing is allocated afterwards. No
 * step costs more than a few nodes on each level.
 */
#ifndef CORE_SPAN_H
#define CORE_SPAN_H

#include "core/span_node.h"

enum {
    SPAN_ROW_MAX = 8, /* a set of more is a tree; */
    SPAN_ROW_MIN = 6, /* a set of so many is a row again */
};

/* The claim of a slot that is in a set, or is about to be. */
typedef const struct claim *(*span_claim_fn)(const void *context, uint32_t slot);
/* True when slot a comes before slot b. Never called with a == b. */
typedef bool (*span_before_fn)(const void *context, uint32_t a, uint32_t b);

struct spans {
    struct span_nodes nodes;
    uint32_t *next; /* by slot, in rows and piles: slot + 1; 0 ends it */
    uint32_t slot_max;
    span_claim_fn claim_at;
    const void *context;
};

/* A set. 0 when it is empty; else slot + 1 of the first in its row, or the topmost node. */
typedef uint32_t span_root;

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int span_init(struct spans *spans, uint32_t slot_max,
                                                  span_claim_fn claim_at, const void *context);
void span_done(struct spans *spans);

void span_add(struct spans *spans, span_root *root, uint32_t slot);
/* Its claim must be as it was. */
void span_remove(struct spans *spans, span_root *root, uint32_t slot);
/* It ends elsewhere now or has another mode; it was like this. */
void span_change(struct spans *spans, span_root root, uint32_t slot, const struct claim *before);

/* Walks; SLOT_NONE ends them. */
uint32_t span_first(const struct spans *spans, span_root root);
uint32_t span_next(const struct spans *spans, span_root root, uint32_t slot);

/* It will be searched: what that looks at first is brought into the cache. */
void span_fetch(const struct spans *spans, span_root root);
/* The first element that conflicts with the claim, in order; SLOT_NONE: none. */
uint32_t span_find(const struct spans *spans, span_root root, const struct claim *claim);
/* The same among those behind a slot that is in the set. */
uint32_t span_find_after(const struct spans *spans, span_root root, const struct claim *claim,
                         uint32_t after);

/*
 * Many at once: a *pile* is a root too, but no set yet: slots in a row, of which only these
 * functions know.
 */
/* In front of those that are there. */
void span_pile_add(struct spans *spans, span_root *pile, uint32_t slot);
void span_pile_reverse(struct spans *spans, span_root *pile);
/* Brings it into this order; NULL: into that of a set. */
void span_pile_sort(struct spans *spans, span_root *pile, span_before_fn before);
/* Walks it. */
uint32_t span_pile_first(span_root pile);
uint32_t span_pile_next(const struct spans *spans, uint32_t slot);
/* Makes a set of a pile that is in the order of sets. */
void span_pile_build(struct spans *spans, span_root *pile);

/* Abort unless order, nodes and sums are sound; returns the number of elements. */
uint32_t span_check(const struct spans *spans, span_root root);

#endif
