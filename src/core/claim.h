/*
 * claim.h -- who has or wants which bytes of which file, and in which mode.
 *
 * What a lock holds, a waiter wants, a request asks for and a restart leaves unsettled are the same
 * five facts. This is the only place that says when two of them meet.
 */
#ifndef CORE_CLAIM_H
#define CORE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

/* There is one in every lock: it is not padded to 32 bytes. */
struct claim {
    uint64_t start, end; /* inclusive; end UINT64_MAX: to the end of the file */
    uint32_t owner;      /* slot; SLOT_NONE: an owner that has nothing here */
    uint32_t file;       /* slot */
    bool exclusive;
} __attribute__((packed, aligned(4)));

/* They have a byte in common. */
static inline bool claim_overlaps(const struct claim *a, const struct claim *b)
{
    return a->file == b->file && a->start <= b->end && b->start <= a->end;
}

/* One owner cannot have its claim while another has the other one. */
static inline bool claim_conflicts(const struct claim *a, const struct claim *b)
{
    return a->owner != b->owner && (a->exclusive || b->exclusive) && claim_overlaps(a, b);
}

/* Every byte of the first is one of the second, which is of the same file. */
static inline bool claim_is_inside(const struct claim *inner, const struct claim *outer)
{
    return inner->start >= outer->start && inner->end <= outer->end;
}

/* They are the same bytes of one file. */
static inline bool claim_is_same_range(const struct claim *a, const struct claim *b)
{
    return a->start == b->start && a->end == b->end;
}

/* The mode that one has is the mode that the other wants, or a stronger one. */
static inline bool claim_has_mode(const struct claim *has, const struct claim *wants)
{
    return has->exclusive || !wants->exclusive;
}

/* As a length on the wire; 0: to the end of the file. */
static inline uint64_t claim_len(const struct claim *claim)
{
    return claim->end == UINT64_MAX ? 0 : claim->end - claim->start + 1;
}

/* The claim with the byte on either side of it: what touches it overlaps that. */
struct claim claim_widened(const struct claim *claim);

/* What is left of a claim when another that overlaps it is cut out. */
struct claim_rests {
    bool has_left, has_right;
    struct claim left, right; /* meaningless when there is none */
};
struct claim_rests claim_rests(const struct claim *of, const struct claim *cut);

#endif
