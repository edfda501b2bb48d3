/*
 * dirty.h -- which stored slots changed since the last batch was taken.
 *
 * A change marks its slot; what is written is decided when the batch is taken: the record if the
 * slot is live then, its removal if not. A slot changed twice is written once.
 */
#ifndef CORE_DIRTY_H
#define CORE_DIRTY_H

#include "base/table.h"
#include "store/record.h"

struct dirty_slots {
    uint64_t *words;       /* a bit for each slot */
    uint64_t *summary;     /* a bit for each word, set unless that is 0 */
    uint32_t count, max;   /* slots that are marked; that there are */
    uint32_t change_count; /* how often one was marked: a slot used again counts each time */
};

struct dirty {
    struct dirty_slots of[RECORD_KIND_END];
    uint32_t count;     /* marked slots, of all kinds */
    uint32_t put_count; /* marks by dirty_put: bounds the bytes of the open batch */
};

/* 0 or -ENOMEM. Kinds without slots (max 0) are never marked. */
__attribute__((warn_unused_result)) int dirty_init(struct dirty *dirty,
                                                   const uint32_t slots_max[RECORD_KIND_END]);
void dirty_done(struct dirty *dirty);

void dirty_put(struct dirty *dirty, enum record_kind kind, uint32_t slot);
void dirty_delete(struct dirty *dirty, enum record_kind kind, uint32_t slot);

/* Marked slots of a kind in ascending order: start with SLOT_NONE; SLOT_NONE again at the end. */
uint32_t dirty_next(const struct dirty_slots *of, uint32_t slot);

bool dirty_is_empty(const struct dirty *dirty);
/* Forget every mark: the batch was taken. */
void dirty_clear(struct dirty *dirty);

#endif
