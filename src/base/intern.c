/*
 * intern.c -- distinct byte strings with reference counts; see intern.h.
 *
 * Invariant: a live entry has at least one reference and is on the chain of its hash.
 */
#include "base/intern.h"

#include "base/check.h"
#include "base/hash.h"

struct intern_entry {
    uint64_t hash;
    uint32_t cell;
    uint32_t len;
    uint32_t references;
};

int intern_init(struct intern *intern, struct arena *arena, uint32_t max, uint64_t seed)
{
    *intern = (struct intern){.arena = arena, .seed = seed};
    int err = table_init(&intern->table, max, sizeof(struct intern_entry));
    if (err == 0)
        err = chains_init_hash(&intern->by_hash, max);
    if (err != 0)
        intern_done(intern);
    return err;
}

void intern_done(struct intern *intern)
{
    table_done(&intern->table);
    chains_done(&intern->by_hash);
}

static struct intern_entry *entry_at(const struct intern *intern, uint32_t slot)
{
    return table_at(&intern->table, slot);
}

static uint32_t find(const struct intern *intern, struct bytes string, uint64_t hash)
{
    uint32_t slot = chains_first(&intern->by_hash, chains_of_hash(&intern->by_hash, hash));
    for (; slot != SLOT_NONE; slot = chains_next(&intern->by_hash, slot))
        if (entry_at(intern, slot)->hash == hash && bytes_equal(intern_bytes(intern, slot), string))
            return slot;
    return SLOT_NONE;
}

uint32_t intern_find(const struct intern *intern, struct bytes string)
{
    return find(intern, string, hash_bytes(intern->seed, string));
}

uint32_t intern_add(struct intern *intern, struct bytes string)
{
    uint64_t hash = hash_bytes(intern->seed, string);
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
        (struct intern_entry){.hash = hash, .cell = cell, .len = string.len, .references = 1};
    chains_add(&intern->by_hash, chains_of_hash(&intern->by_hash, hash), slot);
    return slot;
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
    chains_remove(&intern->by_hash, chains_of_hash(&intern->by_hash, entry->hash), slot);
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
