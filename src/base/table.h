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
 * The generation of a slot lies in front of its element: who looks at one of a million elements
 * waits for memory, and that once.
 *
 * All memory is reserved by table_init and touched on first use; nothing is allocated afterwards.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/fetch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_NONE UINT32_MAX

/* In front of an element: its generation, and of a linked one the link. */
#define TABLE_HEAD_LEN   8
#define TABLE_LINK_AT    4
#define TABLE_LINKED_LEN 16

struct table {
    uint8_t *slots; /* each: its generation, what an index keeps there, the element */
    uint32_t stride, element_at, element_size;
    uint32_t *next_free; /* chain of freed slots, apart: most slots never were */
    void *memory;        /* owned; the slots begin at a line of the cache in it */
    uint32_t max;        /* capacity in slots */
    uint32_t count;      /* live slots */
    uint32_t used;       /* slots below this were live at some time */
    uint32_t free_head;  /* freed last, or SLOT_NONE */
};

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int table_init(struct table *table, uint32_t max,
                                                   uint32_t element_size);
/* The same with room in each slot for the link of an index (hash_index_init_in). */
__attribute__((warn_unused_result)) int table_init_linked(struct table *table, uint32_t max,
                                                          uint32_t element_size);
void table_done(struct table *table);

/* A zeroed element in a free slot; SLOT_NONE when the table is full. */
uint32_t table_add(struct table *table);

/* The same in the slot that a stored record names. False: the slot is live or beyond the capacity.
 */
bool table_add_at(struct table *table, uint32_t slot);

void table_remove(struct table *table, uint32_t slot);

/* Odd while the slot is live. */
static inline uint32_t *table_generation(const struct table *table, uint32_t slot)
{
    return (uint32_t *)(void *)(table->slots + (size_t)slot * table->stride);
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
    fetch_line(table_generation(table, slot));
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
