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
#include "base/fetch.h"
#include "base/memory.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

enum { CHAINS_MIN = 16 };

_Static_assert(TABLE_LINK_AT + sizeof(struct hash_index_link) <= TABLE_LINKED_LEN,
               "a table has room for the link");

static int init(struct hash_index *index, uint32_t slot_max, uint8_t *links, uint32_t stride)
{
    uint32_t head_max = CHAINS_MIN;
    while (head_max < slot_max && head_max < UINT32_C(1) << 30)
        head_max *= 2;
    *index = (struct hash_index){.links = links,
                                 .stride = stride,
                                 .slot_max = slot_max,
                                 .head_max = head_max,
                                 .chain_count = CHAINS_MIN,
                                 .level = CHAINS_MIN};
    index->heads = memory_array(head_max, sizeof *index->heads);
    return index->heads == NULL ? -ENOMEM : 0;
}

int hash_index_init(struct hash_index *index, uint32_t slot_max)
{
    void *links = memory_array(slot_max > 0 ? slot_max : 1, sizeof(struct hash_index_link));
    int err = init(index, slot_max, links, sizeof(struct hash_index_link));
    index->own_links = links;
    if (err == 0 && links != NULL)
        return 0;
    hash_index_done(index);
    return -ENOMEM;
}

int hash_index_init_in(struct hash_index *index, const struct table *table)
{
    CHECK(table->element_at == TABLE_LINKED_LEN);
    return init(index, table->max, table->slots + TABLE_LINK_AT, table->stride);
}

void hash_index_done(struct hash_index *index)
{
    free(index->heads);
    free(index->own_links);
    *index = (struct hash_index){0};
}

static struct hash_index_link *link_at(const struct hash_index *index, uint32_t slot)
{
    return (struct hash_index_link *)(void *)(index->links + (size_t)slot * index->stride);
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
    uint32_t last[2] = {0, 0}, next;
    for (uint32_t at = index->heads[from]; at != 0; at = next) {
        struct hash_index_link *link = link_at(index, at - 1);
        uint32_t side = (link->hash & level) != 0;
        next = link->next;
        *tails[side] = at;
        link->prev = last[side];
        last[side] = at;
        tails[side] = &link->next;
    }
    *tails[0] = *tails[1] = 0;
    index->chain_count++;
    if (index->chain_count == 2 * level)
        index->level = 2 * level;
}

void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t slot)
{
    CHECK(slot < index->slot_max);
    if (index->count >= index->chain_count && index->chain_count < index->head_max)
        split(index);
    uint32_t *head = &index->heads[chain_of(index, (uint32_t)hash)];
    if (*head != 0) /* a look-up has just been there */
        link_at(index, *head - 1)->prev = slot + 1;
    *link_at(index, slot) = (struct hash_index_link){.next = *head, .hash = (uint32_t)hash};
    *head = slot + 1;
    index->count++;
}

void hash_index_remove(struct hash_index *index, uint32_t slot)
{
    CHECK(slot < index->slot_max);
    struct hash_index_link *link = link_at(index, slot);
    if (link->prev != 0) {
        link_at(index, link->prev - 1)->next = link->next;
    } else {
        uint32_t *head = &index->heads[chain_of(index, link->hash)];
        CHECK(*head == slot + 1);
        *head = link->next;
    }
    if (link->next != 0)
        link_at(index, link->next - 1)->prev = link->prev;
    *link = (struct hash_index_link){0};
    index->count--;
}

/* From here on in the chain. */
static uint32_t seek(const struct hash_index *index, uint32_t at, uint32_t hash)
{
    while (at != 0 && link_at(index, at - 1)->hash != hash)
        at = link_at(index, at - 1)->next;
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
    const struct hash_index_link *link = link_at(index, slot);
    return seek(index, link->next, link->hash);
}

void hash_index_fetch(const struct hash_index *index, uint64_t hash)
{
    fetch_line(&index->heads[chain_of(index, (uint32_t)hash)]);
}

uint32_t hash_index_fetch_first(const struct hash_index *index, uint64_t hash)
{
    uint32_t at = index->heads[chain_of(index, (uint32_t)hash)];
    if (at != 0)
        fetch_line(link_at(index, at - 1));
    return at - 1;
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
        for (; at != 0; prev = at, at = link_at(index, at - 1)->next) {
            CHECK(chain_of(index, link_at(index, at - 1)->hash) == chain);
            CHECK(link_at(index, at - 1)->prev == prev);
            CHECK(++count <= index->slot_max);
        }
    }
    CHECK(count == index->count);
}
