/*
 * intent_parts.h -- the insides of the ring of intents, for intent.c and intent_ring.c.
 */
#ifndef FILE_INTENT_PARTS_H
#define FILE_INTENT_PARTS_H

#include "file/intent.h"

enum {
    INTENT_OBJECT_WORDS = 6,
    INTENT_AT_CHECK = 0,
    INTENT_AT_OVER,
    INTENT_AT_NUMBER,
    INTENT_AT_RUN,
    INTENT_AT_KEY,
    INTENT_AT_CLIENT,
    INTENT_AT_PLACE,
    INTENT_AT_BOOT,
    INTENT_AT_CLOCK,
    INTENT_AT_ORDER,
    INTENT_AT_BEGUN,
    INTENT_AT_PROCEDURE,
    INTENT_AT_FIRST,
    INTENT_AT_SECOND = INTENT_AT_FIRST + INTENT_OBJECT_WORDS,
    INTENT_AT_END = INTENT_AT_SECOND + INTENT_OBJECT_WORDS, /* of what the first checksum covers */
    INTENT_AT_OUTCOME = INTENT_WORD_OUTCOME + 1,
    INTENT_AT_MADE,
};

struct intent_entry {
    atomic_uint_least64_t words[INTENT_WORDS];
};

struct intent_head {
    atomic_uint_least64_t magic, format, check;
    atomic_uint_least64_t clock_ms; /* how long servers were up on this ring */
};

struct intent_ring {
    struct mac_key key;
    uint64_t run, boot, first_number; /* the last: of this run */
    atomic_uint_least64_t next_number, clock_ms;
    struct intent_head *head; /* the mapped file */
    struct intent_entry *entries;

    /* What earlier runs left; does not change once the ring is open. */
    struct intent *earlier;
    uint32_t earlier_count, index_len; /* the second a power of two */
    uint32_t *index;                   /* by key: 0, or one more than a place in `earlier` */
};

/* One entry as it is now. False: there is none, or it is being written. */
bool intent_read(const struct intent_ring *ring, uint32_t slot, struct intent *ret);
/* The wall clock as file systems see it: never ahead of the time of a change that follows. */
uint64_t intent_clock_ns(void);

#endif
