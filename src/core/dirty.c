/*
 * dirty.c -- marks of changed slots; see dirty.h.
 *
 * A bit for each slot, and a bit for each word of these: what is marked is found in the order of
 * slots, in which a store is written best, and there is nothing to sort. A million slots have 245
 * words of the second kind.
 *
 * Always true:
 *  (1) `count` is the number of bits that are set in `words`.
 *  (2) A bit of the summary is set exactly when its word is not 0.
 */
#include "core/dirty.h"

#include "base/check.h"
#include "base/minmax.h"

#include <errno.h>
#include <stdlib.h>

enum { WORD_BITS = 64 };

static uint32_t words_for(uint32_t bits)
{
    return bits / WORD_BITS + (bits % WORD_BITS != 0);
}

static uint64_t bit(uint32_t number)
{
    return UINT64_C(1) << number % WORD_BITS;
}

int dirty_init(struct dirty *dirty, const uint32_t slots_max[RECORD_KIND_END])
{
    *dirty = (struct dirty){0};
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        struct dirty_slots *of = &dirty->of[kind];
        if (slots_max[kind] == 0)
            continue;
        of->max = slots_max[kind];
        of->words = calloc(words_for(of->max), sizeof *of->words);
        of->summary = calloc(words_for(words_for(of->max)), sizeof *of->summary);
        if (of->words == NULL || of->summary == NULL) {
            dirty_done(dirty);
            return -ENOMEM;
        }
    }
    return 0;
}

void dirty_done(struct dirty *dirty)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        free(dirty->of[kind].words);
        free(dirty->of[kind].summary);
    }
    *dirty = (struct dirty){0};
}

static void mark(struct dirty *dirty, enum record_kind kind, uint32_t slot)
{
    struct dirty_slots *of = &dirty->of[kind];
    CHECK(slot < of->max);
    of->change_count++;
    uint32_t word = slot / WORD_BITS;
    if (of->words[word] & bit(slot))
        return;
    of->words[word] |= bit(slot);
    of->summary[word / WORD_BITS] |= bit(word);
    of->count++;
    dirty->count++;
}

void dirty_put(struct dirty *dirty, enum record_kind kind, uint32_t slot)
{
    mark(dirty, kind, slot);
    dirty->put_count++;
}

void dirty_delete(struct dirty *dirty, enum record_kind kind, uint32_t slot)
{
    mark(dirty, kind, slot);
}

/* The first bit from here on that is set, or SLOT_NONE. */
static uint32_t find_bit(const uint64_t *words, uint32_t word_count, uint32_t from)
{
    uint32_t word = from / WORD_BITS;
    if (word >= word_count)
        return SLOT_NONE;
    uint64_t bits = words[word] & ~(bit(from) - 1);
    while (bits == 0) {
        if (++word == word_count)
            return SLOT_NONE;
        bits = words[word];
    }
    return word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
}

uint32_t dirty_next(const struct dirty_slots *of, uint32_t slot)
{
    uint32_t word_count = words_for(of->max), from = slot == SLOT_NONE ? 0 : slot + 1;
    uint32_t next_word = from / WORD_BITS + 1;
    uint32_t found = find_bit(of->words, min_u32(next_word, word_count), from);
    if (found != SLOT_NONE)
        return found;
    uint32_t word = find_bit(of->summary, words_for(word_count), next_word);
    return word == SLOT_NONE ? SLOT_NONE : find_bit(of->words, word_count, word * WORD_BITS);
}

bool dirty_is_empty(const struct dirty *dirty)
{
    return dirty->count == 0;
}

void dirty_clear(struct dirty *dirty)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        struct dirty_slots *of = &dirty->of[kind];
        of->change_count = 0;
        for (uint32_t slot = SLOT_NONE; of->count > 0; of->count--) {
            slot = dirty_next(of, slot);
            CHECK(slot != SLOT_NONE);
            uint32_t word = slot / WORD_BITS;
            of->words[word] &= ~bit(slot);
            if (of->words[word] == 0)
                of->summary[word / WORD_BITS] &= ~bit(word);
        }
    }
    dirty->count = 0;
    dirty->put_count = 0;
}
