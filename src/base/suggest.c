/*
 * suggest.c -- the closest name by edit distance; see suggest.h.
 *
 * The distance counts letters inserted, left out, replaced, and neighbours swapped. A third of the
 * word's letters, rounded up, may be wrong: more is a different word, and a wrong suggestion is
 * worse than none. Words longer than any name we have get no suggestion.
 */
#include "base/suggest.h"

#include "base/minmax.h"

#include <string.h>

enum { WORD_MAX = 40 };

/* Three rows of the usual table are kept: the swap of neighbours looks back two. */
static uint32_t distance_of(const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    uint32_t rows[3][WORD_MAX + 1];
    for (uint32_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (uint32_t i = 1; i <= a_len; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3], *above_two = rows[(i + 1) % 3];
        row[0] = i;
        for (uint32_t j = 1; j <= b_len; j++) {
            uint32_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min_u32(replaced, min_u32(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_u32(row[j], above_two[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void suggest_init(struct suggest *suggest, const char *word)
{
    *suggest = (struct suggest){.word = word, .distance = UINT32_MAX};
}

void suggest_offer(struct suggest *suggest, const char *name)
{
    size_t word_len = strlen(suggest->word), name_len = strlen(name);
    if (word_len == 0 || word_len > WORD_MAX || name_len > WORD_MAX)
        return;
    uint32_t distance = distance_of(suggest->word, (uint32_t)word_len, name, (uint32_t)name_len);
    if (distance > (word_len + 2) / 3 || distance >= suggest->distance)
        return;
    suggest->best = name;
    suggest->distance = distance;
}
