/*
 * slot_set.c -- see slot_set.h.
 */
#include "store/slot_set.h"

#include <stdlib.h>

static uint64_t bit_of(uint32_t slot)
{
    return UINT64_C(1) << slot % 64;
}

bool slot_set_has(const struct slot_set *set, enum record_kind kind, uint32_t slot)
{
    const struct slot_bits *bits = &set->kinds[kind];
    return slot / 64 < bits->word_count && (bits->words[slot / 64] & bit_of(slot)) != 0;
}

static bool grow(struct slot_bits *bits, uint32_t slot)
{
    uint32_t count = slot / 64 + 1 + bits->word_count; /* at least doubled */
    uint64_t *words = realloc(bits->words, count * sizeof *words);
    if (words == NULL)
        return false;
    memset(words + bits->word_count, 0, (count - bits->word_count) * sizeof *words);
    bits->words = words;
    bits->word_count = count;
    return true;
}

bool slot_set_add(struct slot_set *set, enum record_kind kind, uint32_t slot)
{
    struct slot_bits *bits = &set->kinds[kind];
    if (slot / 64 >= bits->word_count && !grow(bits, slot))
        return false;
    uint64_t *word = &bits->words[slot / 64];
    set->count += (*word & bit_of(slot)) == 0;
    *word |= bit_of(slot);
    return true;
}

bool slot_set_take(struct slot_set *set, enum record_kind kind, uint32_t slot)
{
    if (!slot_set_has(set, kind, slot))
        return false;
    set->kinds[kind].words[slot / 64] &= ~bit_of(slot);
    set->count--;
    return true;
}

void slot_set_drop(struct slot_set *set, enum record_kind kind)
{
    struct slot_bits *bits = &set->kinds[kind];
    for (uint32_t i = 0; i < bits->word_count; i++)
        set->count -= (uint32_t)__builtin_popcountll(bits->words[i]);
    free(bits->words);
    *bits = (struct slot_bits){0};
}

void slot_set_free(struct slot_set *set)
{
    for (int kind = 0; kind < RECORD_KIND_END; kind++)
        free(set->kinds[kind].words);
    *set = (struct slot_set){0};
}
