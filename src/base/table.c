/*
 * table.c -- slots with generations; the contract is in table.h.
 *
 * Always true, and asserted by table_check():
 *  (1) The generation of a slot is odd exactly while it is live; it grows by one at every add and
 *      every remove, so a handle matches one life of one slot only.
 *  (2) Every slot below `used` is live or on the free chain, once; none above it is either.
 *  (3) `count` is the number of live slots.
 */
#include "base/table.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 };

static int init(struct table *table, uint32_t max, uint32_t element_size, uint32_t element_at)
{
    CHECK(max < SLOT_NONE);
    *table = (struct table){
        .element_size = element_size, .element_at = element_at, .max = max, .free_head = SLOT_NONE};
    size_t count = max > 0 ? max : 1;
    table->stride = (element_at + element_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    table->memory = memory_array(count * table->stride + CACHE_LINE_LEN, 1);
    table->next_free = memory_array(count, sizeof *table->next_free);
    if (table->memory == NULL || table->next_free == NULL) {
        table_done(table);
        return -ENOMEM;
    }
    uintptr_t past = (uintptr_t)table->memory % CACHE_LINE_LEN;
    table->slots = (uint8_t *)table->memory + (past == 0 ? 0 : CACHE_LINE_LEN - past);
    return 0;
}

int table_init(struct table *table, uint32_t max, uint32_t element_size)
{
    return init(table, max, element_size, TABLE_HEAD_LEN);
}

int table_init_linked(struct table *table, uint32_t max, uint32_t element_size)
{
    return init(table, max, element_size, TABLE_LINKED_LEN);
}

void table_done(struct table *table)
{
    free(table->memory);
    free(table->next_free);
    *table = (struct table){0};
}

bool table_is_live(const struct table *table, uint32_t slot)
{
    return slot < table->used && *table_generation(table, slot) % 2 == 1;
}

void *table_at(const struct table *table, uint32_t slot)
{
    CHECK(table_is_live(table, slot));
    return table->slots + (size_t)slot * table->stride + table->element_at;
}

static void make_live(struct table *table, uint32_t slot)
{
    ++*table_generation(table, slot);
    CHECK(table_is_live(table, slot));
    memset(table_at(table, slot), 0, table->element_size);
    table->count++;
}

uint32_t table_add(struct table *table)
{
    uint32_t slot = table->free_head;
    if (slot != SLOT_NONE)
        table->free_head = table->next_free[slot];
    else if (table->used < table->max)
        slot = table->used++;
    else
        return SLOT_NONE;
    make_live(table, slot);
    if (table->free_head != SLOT_NONE)
        table_fetch(table, table->free_head); /* the next one that is added */
    return slot;
}

bool table_add_at(struct table *table, uint32_t slot)
{
    if (slot >= table->max || table_is_live(table, slot))
        return false;
    if (slot < table->used) {
        /* A store is loaded in ascending slot order, so this walk happens in tests only. */
        uint32_t *link = &table->free_head;
        while (*link != slot)
            link = &table->next_free[*link];
        *link = table->next_free[slot];
    }
    for (; table->used <= slot; table->used++) {
        if (table->used == slot)
            continue;
        table->next_free[table->used] = table->free_head;
        table->free_head = table->used;
    }
    make_live(table, slot);
    return true;
}

void table_remove(struct table *table, uint32_t slot)
{
    CHECK(table_is_live(table, slot));
    ++*table_generation(table, slot);
    table->next_free[slot] = table->free_head;
    table->free_head = slot;
    table->count--;
}

uint32_t table_slot(const struct table *table, const void *element)
{
    return (uint32_t)((size_t)((const uint8_t *)element - table->slots) / table->stride);
}

uint32_t table_next(const struct table *table, uint32_t slot)
{
    for (slot = slot == SLOT_NONE ? 0 : slot + 1; slot < table->used; slot++)
        if (table_is_live(table, slot))
            return slot;
    return SLOT_NONE;
}

uint64_t table_handle(const struct table *table, uint32_t slot)
{
    CHECK(table_is_live(table, slot));
    return (uint64_t)*table_generation(table, slot) << 32 | slot;
}

uint32_t table_find(const struct table *table, uint64_t handle)
{
    uint32_t slot = (uint32_t)handle;
    if (!table_is_live(table, slot) || *table_generation(table, slot) != (uint32_t)(handle >> 32))
        return SLOT_NONE;
    return slot;
}

void table_check(const struct table *table)
{
    CHECK(table->used <= table->max);
    uint32_t live = 0, freed = 0;
    for (uint32_t slot = 0; slot < table->used; slot++)
        live += table_is_live(table, slot);
    for (uint32_t slot = table->free_head; slot != SLOT_NONE; slot = table->next_free[slot]) {
        CHECK(slot < table->used);
        CHECK(!table_is_live(table, slot));
        freed++;
        CHECK(freed <= table->used);
    }
    CHECK(live == table->count);
    CHECK(live + freed == table->used);
}
