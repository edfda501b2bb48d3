/*
 * chains.h -- doubly linked chains of table slots, by number.
 *
 * One mechanism for every "which elements belong to this?": the registrants of a name are the chain
 * numbered by the slot of the name. (By hash: hash_index.h.) A slot is on at most one chain of a
 * set. Adding and removing cost the same however long the chain is (P7). New members go to the
 * front.
 */
#ifndef BASE_CHAINS_H
#define BASE_CHAINS_H

#include <stdbool.h>
#include <stdint.h>

struct chain_link {
    uint32_t next,
        prev; /* slot + 1; 0 ends the chain, so that zeroed memory is a set of empty ones */
};

struct chains {
    uint32_t *heads; /* slot + 1 */
    struct chain_link *links;
    uint32_t chain_max, slot_max;
};

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int chains_init(struct chains *chains, uint32_t chain_max,
                                                    uint32_t slot_max);
void chains_done(struct chains *chains);

void chains_add(struct chains *chains, uint32_t chain, uint32_t slot);
void chains_remove(struct chains *chains, uint32_t chain, uint32_t slot);

/* Walk a chain: SLOT_NONE ends it. The current slot may be removed once its successor was asked. */
uint32_t chains_first(const struct chains *chains, uint32_t chain);
uint32_t chains_next(const struct chains *chains, uint32_t slot);
/* What chains_remove will look at is brought into the cache. */
void chains_fetch(const struct chains *chains, uint32_t chain, uint32_t slot);
/* For checks: is the slot on this chain? Costs its length. */
bool chains_has(const struct chains *chains, uint32_t chain, uint32_t slot);

#endif
