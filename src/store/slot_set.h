/*
 * slot_set.h -- a set of records, by kind and slot: one bit for each slot up to the highest.
 */
#ifndef STORE_SLOT_SET_H
#define STORE_SLOT_SET_H

#include "store/record.h"

/* Zeroed: empty. */
struct slot_set {
    struct slot_bits {
        uint64_t *words; /* owned */
        uint32_t word_count;
    } kinds[RECORD_KIND_END];
    uint32_t count; /* of slots in it */
};

bool slot_set_has(const struct slot_set *set, enum record_kind kind, uint32_t slot);
/* True: it is in the set now. False: no memory. */
__attribute__((warn_unused_result)) bool slot_set_add(struct slot_set *set, enum record_kind kind,
                                                      uint32_t slot);
/* True: it was in the set, and is not any more. */
bool slot_set_take(struct slot_set *set, enum record_kind kind, uint32_t slot);
/* Of one kind nothing is in it any more, and its memory is given back. */
void slot_set_drop(struct slot_set *set, enum record_kind kind);
/* Gives all memory back. */
void slot_set_free(struct slot_set *set);

#endif
