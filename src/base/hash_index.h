/*
 * hash_index.h -- which slots of a table have this hash?
 *
 * A slot is in an index at most once, with a hash that it keeps there; several slots may have the
 * same one, so what is found is compared with what is looked for. A chain per hash would be too
 * many; the chains grow with what is in the index, one at a time (linear hashing): an index of few
 * slots stays in the cache however many it may take, and none is ever rebuilt.
 *
 * The links of an index that is the main one of a table lie in the table's slots: who follows one
 * is where the element is, and waits for memory once. Others have an array.
 *
 * All memory is reserved by hash_index_init and touched on first use.
 */
#ifndef BASE_HASH_INDEX_H
#define BASE_HASH_INDEX_H

#include "base/table.h"

struct hash_index_link {
    uint32_t next, prev; /* slot + 1; 0 ends the chain, so that zeroed memory is empty */
    uint32_t hash;       /* the low half */
};

struct hash_index {
    uint32_t *heads; /* slot + 1 */
    uint8_t *links;  /* that of the first slot; the others follow in steps of `stride` */
    void *own_links; /* owned; NULL: they are in the slots of a table */
    uint32_t stride;
    uint32_t slot_max, head_max; /* head_max is a power of two */
    uint32_t count;              /* slots in it */
    uint32_t chain_count;        /* chains in use */
    uint32_t level; /* a power of two: chain_count is at least this, and less than twice this */
};

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int hash_index_init(struct hash_index *index,
                                                        uint32_t slot_max);
/* The same for the slots of this table (table_init_linked), which has its links. It must outlive
 * the index. */
__attribute__((warn_unused_result)) int hash_index_init_in(struct hash_index *index,
                                                           const struct table *table);
void hash_index_done(struct hash_index *index);

/* Newest first among those of one hash. */
void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t slot);
/* It must be in the index. */
void hash_index_remove(struct hash_index *index, uint32_t slot);

/* Walk the slots of one hash: SLOT_NONE ends it. The current slot may be removed once its successor
 * was asked for; nothing may be added meanwhile. */
uint32_t hash_index_first(const struct hash_index *index, uint64_t hash);
uint32_t hash_index_next(const struct hash_index *index, uint32_t slot);
/* Have what hash_index_first will look at brought into the cache: its chain, and when that may have
 * come, the first slot of the chain. That slot, or SLOT_NONE; it may have another hash. */
void hash_index_fetch(const struct hash_index *index, uint64_t hash);
uint32_t hash_index_fetch_first(const struct hash_index *index, uint64_t hash);
/* For checks: is the slot there, with this hash? Costs the length of a chain. */
bool hash_index_has(const struct hash_index *index, uint64_t hash, uint32_t slot);
/* For tests: aborts on a broken invariant. Costs what is in the index. */
void hash_index_check(const struct hash_index *index);

#endif
