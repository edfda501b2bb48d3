/*
 * host_index.h -- how clients and registrants are found: by their key, their address, and their
 * name in every spelling. The two tables (table_init_linked) have one each; an element is known
 * here by its slot.
 */
#ifndef CORE_HOST_INDEX_H
#define CORE_HOST_INDEX_H

#include "base/chains.h"
#include "base/hash_index.h"
#include "base/intern.h"

struct core;

struct host_index {
    struct intern addresses;
    struct hash_index by_key; /* by the hash of the key */
    struct chains by_address; /* chain = slot of the address */
    struct chains by_name;    /* chain = slot of the name's fold */
};

/* Where one of them is found. */
struct host_place {
    uint64_t key_hash;
    uint32_t address, fold; /* slots */
};

__attribute__((warn_unused_result)) int host_index_init(struct core *core, struct host_index *index,
                                                        const struct table *table);
void host_index_done(struct host_index *index);

void host_index_add(struct host_index *index, uint32_t slot, struct host_place place);
void host_index_remove(struct host_index *index, uint32_t slot, struct host_place place);
/* It may be removed soon: what that looks at first is brought into the cache. */
void host_index_fetch(const struct host_index *index, uint32_t slot, struct host_place place);
/* CHECKs that it is found there. */
void host_index_check(const struct host_index *index, uint32_t slot, struct host_place place);

#endif
