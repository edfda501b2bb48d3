/*
 * record_make.h -- records of every kind for tests, made from the rows of their layouts: with as
 * little as possible, with everything at its largest, or at random.
 *
 * A new field or kind is in them without a line here. That a layout is the right one is shown
 * elsewhere: by the vectors of tests/vectors/store and by test_record_rules.c.
 */
#ifndef TESTS_STORE_RECORD_MAKE_H
#define TESTS_STORE_RECORD_MAKE_H

#include "base/prng.h"
#include "store/record_layout.h"

enum record_make {
    RECORD_MAKE_LEAST,
    RECORD_MAKE_LONGEST, /* no two numbers the same, where their rules allow that */
    RECORD_MAKE_RANDOM,  /* names mostly short, as in life; now and then the longest there is */
};

/* What names and handles of one record point to. */
struct record_make_room {
    uint8_t at[4][RECORD_NAME_MAX];
    uint32_t used;
};

/* Every field follows from `how`, the kind and the generator, which only RANDOM uses. */
void record_make(enum record_make how, enum record_kind kind, struct prng *prng,
                 struct record_make_room *room, union record_any *ret);

#endif
