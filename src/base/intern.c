/*
 * intern.c -- distinct byte strings with reference counts; see intern.h.
 *
 * Invariant: a live entry has at least one reference and is on the chain of its hash.
 */
#include "base/intern.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

struct intern_entry {
    uint32_t cell;
    uint32_t len;
    uint32_t references;
};

int intern_init(struct intern *intern, struct arena *arena, uint32_t max, uint64_t seed)
{
    *intern = (struct intern){.arena = arena, .seed = seed};
    int err = table_init_linked(&intern->table, max, sizeof(struct intern_entry));
    if (err == 0)
        err = hash_index_init_in(&intern->by_hash, &intern->table);
    intern->last = calloc(1, sizeof *intern->last);
    if (intern->last == NULL)
        err = -ENOMEM;
    if (err != 0)
        intern_done(intern);
    return err;
}

void intern_done(struct intern *intern)
{
    table_done(&intern->table);
    hash_index_done(&intern->by_hash);
    free(intern->last);
    intern->last = NULL;
}

static struct intern_entry *entry_at(const struct intern *intern, uint32_t slot)
{
    return table_at(&intern->table, slot);
}

static bool is_at(const struct intern *intern, uint32_t slot, struct bytes string)
{
    return bytes_equal(intern_bytes(intern, slot), string);
}

/* The string that was found last, if it is this one: no hash is needed then. */
static bool is_last(const struct intern *intern, struct bytes string)
{
    return table_is_live(&intern->table, *intern->last) && is_at(intern, *intern->last, string);
}

static uint32_t find(const struct intern *intern, struct bytes string, uint64_t hash)
{
    uint32_t slot = hash_index_first(&intern->by_hash, hash);
    while (slot != SLOT_NONE && !is_at(intern, slot, string))
        slot = hash_index_next(&intern->by_hash, slot);
    if (slot != SLOT_NONE)
        *intern->last = slot;
    return slot;
}

uint32_t intern_find(const struct intern *intern, struct bytes string)
{
    if (is_last(intern, string))
        return *intern->last;
    return find(intern, string, hash_key(intern->seed, string));
}

uint32_t intern_add(struct intern *intern, struct bytes string)
{
    if (is_last(intern, string)) {
        entry_at(intern, *intern->last)->references++;
        return *intern->last;
    }
    uint64_t hash = hash_key(intern->seed, string);
    uint32_t slot = find(intern, string, hash);
    if (slot != SLOT_NONE) {
        entry_at(intern, slot)->references++;
        return slot;
    }
    if (string.len > ARENA_CELL_MAX)
        return SLOT_NONE;
    slot = table_add(&intern->table);
    if (slot == SLOT_NONE)
        return SLOT_NONE;
    uint32_t cell = arena_add(intern->arena, string);
    if (cell == ARENA_NONE) {
        table_remove(&intern->table, slot);
        return SLOT_NONE;
    }
    *entry_at(intern, slot) =
        (struct intern_entry){.cell = cell, .len = string.len, .references = 1};
    hash_index_add(&intern->by_hash, hash, slot);
    *intern->last = slot;
    return slot;
}

uint64_t intern_fetch(const struct intern *intern, struct bytes string)
{
    uint64_t hash = hash_key(intern->seed, string);
    hash_index_fetch(&intern->by_hash, hash);
    return hash;
}

void intern_keep(struct intern *intern, uint32_t slot)
{
    CHECK(entry_at(intern, slot)->references > 0);
    entry_at(intern, slot)->references++;
}

bool intern_release(struct intern *intern, uint32_t slot)
{
    struct intern_entry *entry = entry_at(intern, slot);
    CHECK(entry->references > 0);
    if (--entry->references > 0)
        return false;
    hash_index_remove(&intern->by_hash, slot);
    arena_remove(intern->arena, entry->cell, entry->len);
    table_remove(&intern->table, slot);
    return true;
}

struct bytes intern_bytes(const struct intern *intern, uint32_t slot)
{
    const struct intern_entry *entry = entry_at(intern, slot);
    return arena_at(intern->arena, entry->cell, entry->len);
}

uint32_t intern_references(const struct intern *intern, uint32_t slot)
{
    return entry_at(intern, slot)->references;
}
