/*
 * chains.c -- doubly linked chains of slots; see chains.h.
 *
 * Links hold slot + 1 so that freshly reserved, zeroed memory already is a set of empty chains and
 * chains_init touches none of it.
 */
#include "base/chains.h"

#include "base/check.h"
#include "base/fetch.h"
#include "base/memory.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

int chains_init(struct chains *chains, uint32_t chain_max, uint32_t slot_max)
{
    *chains = (struct chains){.chain_max = chain_max, .slot_max = slot_max};
    chains->heads = memory_array(chain_max > 0 ? chain_max : 1, sizeof *chains->heads);
    chains->links = memory_array(slot_max > 0 ? slot_max : 1, sizeof *chains->links);
    if (chains->heads == NULL || chains->links == NULL) {
        chains_done(chains);
        return -ENOMEM;
    }
    return 0;
}

void chains_done(struct chains *chains)
{
    free(chains->heads);
    free(chains->links);
    *chains = (struct chains){0};
}

void chains_add(struct chains *chains, uint32_t chain, uint32_t slot)
{
    CHECK(chain < chains->chain_max);
    CHECK(slot < chains->slot_max);
    uint32_t first = chains->heads[chain];
    chains->links[slot] = (struct chain_link){.next = first, .prev = 0};
    if (first != 0)
        chains->links[first - 1].prev = slot + 1;
    chains->heads[chain] = slot + 1;
}

void chains_remove(struct chains *chains, uint32_t chain, uint32_t slot)
{
    CHECK(chain < chains->chain_max);
    CHECK(slot < chains->slot_max);
    struct chain_link link = chains->links[slot];
    if (link.prev != 0) {
        chains->links[link.prev - 1].next = link.next;
    } else {
        CHECK(chains->heads[chain] == slot + 1);
        chains->heads[chain] = link.next;
    }
    if (link.next != 0)
        chains->links[link.next - 1].prev = link.prev;
    chains->links[slot] = (struct chain_link){0};
}

uint32_t chains_first(const struct chains *chains, uint32_t chain)
{
    CHECK(chain < chains->chain_max);
    return chains->heads[chain] - 1; /* 0 becomes SLOT_NONE */
}

uint32_t chains_next(const struct chains *chains, uint32_t slot)
{
    CHECK(slot < chains->slot_max);
    return chains->links[slot].next - 1;
}

void chains_fetch(const struct chains *chains, uint32_t chain, uint32_t slot)
{
    fetch_line(&chains->heads[chain]);
    fetch_line(&chains->links[slot]);
}

_Static_assert(UINT32_C(0) - 1 == SLOT_NONE, "an empty link must read as SLOT_NONE");

bool chains_has(const struct chains *chains, uint32_t chain, uint32_t slot)
{
    uint32_t at = chains_first(chains, chain);
    while (at != SLOT_NONE && at != slot)
        at = chains_next(chains, at);
    return at == slot;
}
