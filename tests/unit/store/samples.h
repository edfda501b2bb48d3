/*
 * samples.h -- values of every kind of record at their limits, for tests of the record formats.
 *
 * A sample is what the encoder of its kind made of record_make.h's records. Tests change its bytes,
 * give it the checksum that belongs to them, and ask the decoder.
 */
#ifndef TESTS_STORE_SAMPLES_H
#define TESTS_STORE_SAMPLES_H

#include "record_make.h"

struct sample {
    enum record_kind kind;
    uint32_t slot;
    uint8_t value[RECORD_VALUE_MAX + 1]; /* one more for extensions */
    uint32_t len;
};

/* Two of each kind: with as little as possible, then with everything at its largest. */
enum { SAMPLE_COUNT = 2 * (RECORD_KIND_END - RECORD_SERVER) };

extern struct sample samples[SAMPLE_COUNT];

/* A set-up function of cmocka: fills them. */
int samples_make(void **state);

/* The one of a kind that has as little as possible. */
const struct sample *sample_least(enum record_kind kind);

/* Decodes bytes as a kind under a slot. Asserts that nothing was put out unless they are good. */
enum record_result sample_get_as(enum record_kind kind, uint32_t slot, const uint8_t *value,
                                 uint32_t len);
enum record_result sample_get(const struct sample *sample);

/* Gives changed bytes the checksum that belongs to them, as record.c describes it. */
void sample_reseal(struct sample *sample);

#endif
