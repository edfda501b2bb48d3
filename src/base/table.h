/*
 * table.h -- fixed-capacity tables of slots with generation handles.
 *
 * Every registrant, name and cache entry lives in a slot. Elements never move. What outlives one
 * step refers to an element by handle (slot and generation): a handle to an element that is gone
 * does not resolve, also after the slot was used again.
 *
 * Freed slots are used again last-freed-first and new ones in ascending order, so the live slots
 * stay few and dense: slots are the keys of the store, and a commit should dirty few pages.
 *
 * All that is known of a slot lies in front of its element: who looks at one of a million elements
 * waits for memory, and that once.
 *
 * All memory is reserved by table_init and touched on first use; nothing is allocated afterwards.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_NONE UINT32_MAX

/* In front of an element. */
struct table_slot {
    uint32_t generation; /* odd while the slot is live */
    uint32_t next_free;  /* chain of freed slots */
};

struct table {
    uint8_t *slots; /* each: struct table_slot, what an index keeps there, the element */
    uint32_t stride, element_at, element_size;
    uint32_t max;       /* capacity in slots */
    uint32_t count;     /* live slots */
    uint32_t used;      /* slots below this were live at some time */
    uint32_t free_head; /* freed last, or SLOT_NONE */
};

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int table_init(struct table *table, uint32_t max,
                                                   uint32_t element_size);
/* The same with eight bytes in each slot that are an index's (hash_index_init_in). */
__attribute__((warn_unused_result)) int table_init_linked(struct table *table, uint32_t max,
                                                          uint32_t element_size);
void table_done(struct table *table);

/* A zeroed element in a free slot; SLOT_NONE when the table is full. */
uint32_t table_add(struct table *table);

/* The same in the slot that a stored record names. False: the slot is live or beyond the capacity.
 */
bool table_add_at(struct table *table, uint32_t slot);

void table_remove(struct table *table, uint32_t slot);

static inline struct table_slot *table_slot_at(const struct table *table, uint32_t slot)
{
    return (struct table_slot *)(void *)(table->slots + (size_t)slot * table->stride);
}

bool table_is_live(const struct table *table, uint32_t slot);

/* The element in a live slot. */
void *table_at(const struct table *table, uint32_t slot);
/* Where the element of a slot is, live or not: to be fetched, not to be looked at. */
static inline const void *table_memory(const struct table *table, uint32_t slot)
{
    return table->slots + (size_t)slot * table->stride + table->element_at;
}

/* Has the beginning of a slot brought into the cache, live or not: somebody will look at it. */
static inline void table_fetch(const struct table *table, uint32_t slot)
{
    __builtin_prefetch(table_slot_at(table, slot));
}

/* The slot of such an element. */
uint32_t table_slot(const struct table *table, const void *element);

/* Live slots in ascending order: start with SLOT_NONE; SLOT_NONE again at the end. */
uint32_t table_next(const struct table *table, uint32_t slot);

uint64_t table_handle(const struct table *table, uint32_t slot);
/* The slot that a handle names, or SLOT_NONE when that element is gone. */
uint32_t table_find(const struct table *table, uint64_t handle);

/* Abort unless the free chain and the live slots together are exactly the used ones. */
void table_check(const struct table *table);

#endif
