/*
 * intern.h -- each distinct byte string once, counted.
 *
 * Names and addresses repeat (a thousand registrants watch one server), so records refer to them by
 * slot. A slot stays valid while somebody holds a reference. Strings are distinct byte for byte;
 * the index is case-blind, so that all spellings of a hostname can be walked together.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/arena.h"
#include "base/hash_index.h"
#include "base/table.h"

struct intern {
    struct table table; /* of struct intern_entry */
    struct hash_index by_hash;
    struct arena *arena; /* borrowed; holds the bytes */
    /* The slot found last: the next question is often the same one. Behind a pointer, because
     * finding changes nothing that anybody can see. */
    uint32_t *last;
    uint64_t seed;
};

__attribute__((warn_unused_result)) int intern_init(struct intern *intern, struct arena *arena,
                                                    uint32_t max, uint64_t seed);
void intern_done(struct intern *intern);

/* A reference to this string, new or one more. SLOT_NONE: no slot or no bytes left. */
uint32_t intern_add(struct intern *intern, struct bytes string);
/* One more reference to a string that is there. */
void intern_keep(struct intern *intern, uint32_t slot);
/* Gives one reference back; the last one frees the string. True when it was the last. */
bool intern_release(struct intern *intern, uint32_t slot);

/* The slot of exactly this string, or SLOT_NONE. Takes no reference. */
uint32_t intern_find(const struct intern *intern, struct bytes string);

/* Has what intern_find and intern_add will look at first brought into the cache: the chain of this
 * hash, which is the string's. */
uint64_t intern_fetch(const struct intern *intern, struct bytes string);

struct bytes intern_bytes(const struct intern *intern, uint32_t slot);
uint32_t intern_references(const struct intern *intern, uint32_t slot);

#endif
