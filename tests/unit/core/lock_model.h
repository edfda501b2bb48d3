/*
 * lock_model.h -- what locks are, byte by byte: the lock table written so that nobody can doubt it.
 *
 * The model has a few positions. A position is a byte, or a stretch of bytes that is only ever
 * locked as a whole, so that one model serves ranges at 0 as well as at 2^63 and 2^64. For each
 * file, owner and position it knows what is held there; offers are a list. Owner i is process
 * 100 + i of client i % client_count.
 */
#ifndef UNIT_CORE_LOCK_MODEL_H
#define UNIT_CORE_LOCK_MODEL_H

#include "lock_world.h"

enum {
    MODEL_POSITIONS_MAX = 32,
    MODEL_OWNERS_MAX = 10,
    MODEL_FILES_MAX = 2,
    MODEL_CLIENTS_MAX = 4,
    MODEL_OFFERS_MAX = 16,
};

struct model_kind {
    bool is_held, exclusive, is_unmonitored;
    uint32_t state, incarnation;
    uint64_t asked; /* when, counted by the model; of what became one lock: the latest */
};

/* From the first to the last position. */
struct model_range {
    uint32_t file, owner, first, last;
};

struct model_offer {
    bool is_live;
    struct model_range range;
    struct model_kind kind;
    uint32_t slot; /* of the lock table */
};

struct lock_model {
    uint64_t bounds[MODEL_POSITIONS_MAX]; /* the first byte of each position */
    uint64_t top;                         /* the last byte of the last one */
    uint32_t position_count, owner_count, client_count, file_count;
    struct model_kind at[MODEL_FILES_MAX][MODEL_OWNERS_MAX][MODEL_POSITIONS_MAX];
    struct model_offer offers[MODEL_OFFERS_MAX];
    uint64_t asked;
    struct {
        uint32_t incarnation, free_below;
    } clients[MODEL_CLIENTS_MAX];
};

struct who lock_model_who(const struct lock_model *model, uint32_t owner, uint32_t file);
uint64_t lock_model_start(const struct lock_model *model, uint32_t first);
uint64_t lock_model_end(const struct lock_model *model, uint32_t last);

/* The stamp of what is granted to this owner now. */
struct model_kind lock_model_kind(const struct lock_model *model, uint32_t owner, bool exclusive,
                                  uint32_t state, bool is_unmonitored);

/* Nobody else is in the way. */
bool lock_model_is_free(const struct lock_model *model, struct model_range range, bool exclusive);
bool lock_model_covers(const struct lock_model *model, struct model_range range, bool exclusive);

void lock_model_take(struct lock_model *model, struct model_range range, struct model_kind kind);
void lock_model_release(struct lock_model *model, struct model_range range);
void lock_model_accept(struct lock_model *model, struct model_offer *offer);
/* An offer of a client that started anew cannot be accepted. */
bool lock_model_is_doomed(const struct lock_model *model, uint32_t owner, struct model_kind kind);

/* What the lock table has of this file and the model has not, or the other way round, in words;
 * NULL: they are the same, down to which bytes are one lock. */
const char *lock_model_difference(const struct lock_model *model, const struct core *core,
                                  uint32_t file);
/* The same for what stands in the way of a range, and for the answer of lock_covers. */
const char *lock_model_search_difference(const struct lock_model *model, const struct core *core,
                                         struct model_range range, bool exclusive);

/* lock_drain was called: takes out of the model what it freed. Returns how many elements that were;
 * one that was not to be freed is left for lock_model_difference to find. */
uint32_t lock_model_drained(struct lock_model *model, const struct core *core, uint32_t client);
bool lock_model_has_doomed(const struct lock_model *model, uint32_t client);

#endif
