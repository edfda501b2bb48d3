/*
 * suggest.h -- "did you mean ...?" for names that people type: options, keys, commands.
 *
 * Offer every known name in turn; the one that is closest to the typed word and close enough to be
 * a slip of the finger is kept.
 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stdint.h>

struct suggest {
    const char *word; /* what was typed */
    const char *best; /* the closest name so far; NULL: none is close */
    uint32_t distance;
};

/* `word` and the names are borrowed for as long as the struct is used. */
void suggest_init(struct suggest *suggest, const char *word);
void suggest_offer(struct suggest *suggest, const char *name);

#endif
