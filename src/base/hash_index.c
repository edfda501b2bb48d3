/*
 * hash_index.c -- see hash_index.h.
 *
 * Linear hashing. Chain i of the first `level` chains was split, into itself and chain i + level,
 * exactly when i + level < chain_count. A slot that is added beyond one per chain splits the next
 * one; when all are split the level doubles. Nothing shrinks: what was needed once is cheap to
 * keep, and mostly needed again.
 *
 * Always true:
 *  (1) A slot is on the chain that its hash belongs to now (asserted by hash_index_check()).
 *  (2) Among the slots of one hash the newest comes first, also after a split.
 */
#include "base/hash_index.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

enum { CHAINS_MIN = 16 };

int hash_index_init(struct hash_index *index, uint32_t slot_max)
{
    uint32_t head_max = CHAINS_MIN;
    while (head_max < slot_max && head_max < UINT32_C(1) << 30)
        head_max *= 2;
    *index = (struct hash_index){
        .slot_max = slot_max, .head_max = head_max, .chain_count = CHAINS_MIN, .level = CHAINS_MIN};
    index->heads = memory_array(head_max, sizeof *index->heads);
    index->links = memory_array(slot_max > 0 ? slot_max : 1, sizeof *index->links);
    if (index->heads == NULL || index->links == NULL) {
        hash_index_done(index);
        return -ENOMEM;
    }
    return 0;
}

void hash_index_done(struct hash_index *index)
{
    free(index->heads);
    free(index->links);
    *index = (struct hash_index){0};
}

static uint32_t chain_of(const struct hash_index *index, uint32_t hash)
{
    uint32_t chain = hash & (2 * index->level - 1);
    return chain < index->chain_count ? chain : chain - index->level;
}

/* The next chain gives those away that belong to its new other half. Both keep their order. */
static void split(struct hash_index *index)
{
    uint32_t level = index->level, from = index->chain_count - level;
    uint32_t *tails[2] = {&index->heads[from], &index->heads[from + level]};
    uint32_t last[2] = {0, 0}, at = index->heads[from];
    while (at != 0) {
        struct hash_index_link *link = &index->links[at - 1];
        uint32_t side = (link->hash & level) != 0, next = link->next;
        *tails[side] = at;
        link->prev = last[side];
        last[side] = at;
        tails[side] = &link->next;
        at = next;
    }
    *tails[0] = *tails[1] = 0;
    index->chain_count++;
    if (index->chain_count == 2 * level)
        index->level = 2 * level;
}

void hash_index_expect(struct hash_index *index, uint32_t count)
{
    CHECK(index->count == 0);
    uint32_t chains = count < index->head_max ? count : index->head_max;
    if (chains <= index->chain_count)
        return;
    index->chain_count = chains; /* all are empty, so there is nothing to split */
    while (2 * index->level <= chains)
        index->level *= 2;
}

void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t slot)
{
    CHECK(slot < index->slot_max);
    if (index->count >= index->chain_count && index->chain_count < index->head_max)
        split(index);
    uint32_t *head = &index->heads[chain_of(index, (uint32_t)hash)];
    if (*head != 0)
        index->links[*head - 1].prev = slot + 1;
    index->links[slot] = (struct hash_index_link){.next = *head, .hash = (uint32_t)hash};
    *head = slot + 1;
    index->count++;
}

void hash_index_remove(struct hash_index *index, uint32_t slot)
{
    CHECK(slot < index->slot_max);
    struct hash_index_link link = index->links[slot];
    if (link.prev != 0) {
        index->links[link.prev - 1].next = link.next;
    } else {
        uint32_t *head = &index->heads[chain_of(index, link.hash)];
        CHECK(*head == slot + 1);
        *head = link.next;
    }
    if (link.next != 0)
        index->links[link.next - 1].prev = link.prev;
    index->links[slot] = (struct hash_index_link){0};
    index->count--;
}

/* From here on in the chain. */
static uint32_t seek(const struct hash_index *index, uint32_t at, uint32_t hash)
{
    while (at != 0 && index->links[at - 1].hash != hash)
        at = index->links[at - 1].next;
    return at - 1; /* 0 becomes SLOT_NONE */
}
_Static_assert(UINT32_C(0) - 1 == SLOT_NONE, "an empty link must read as SLOT_NONE");

uint32_t hash_index_first(const struct hash_index *index, uint64_t hash)
{
    return seek(index, index->heads[chain_of(index, (uint32_t)hash)], (uint32_t)hash);
}

uint32_t hash_index_next(const struct hash_index *index, uint32_t slot)
{
    CHECK(slot < index->slot_max);
    return seek(index, index->links[slot].next, index->links[slot].hash);
}

bool hash_index_has(const struct hash_index *index, uint64_t hash, uint32_t slot)
{
    uint32_t at = hash_index_first(index, hash);
    while (at != SLOT_NONE && at != slot)
        at = hash_index_next(index, at);
    return at == slot;
}

void hash_index_check(const struct hash_index *index)
{
    uint32_t count = 0;
    CHECK(index->chain_count >= index->level && index->chain_count <= index->head_max);
    CHECK(index->chain_count < 2 * index->level);
    for (uint32_t chain = 0; chain < index->chain_count; chain++) {
        uint32_t prev = 0, at = index->heads[chain];
        for (; at != 0; prev = at, at = index->links[at - 1].next, count++) {
            CHECK(chain_of(index, index->links[at - 1].hash) == chain);
            CHECK(index->links[at - 1].prev == prev);
        }
    }
    CHECK(count == index->count);
}
