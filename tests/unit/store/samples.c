/*
 * samples.c -- values of every kind of record at their limits; see samples.h.
 */
#include "samples.h"

#include "store/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct sample samples[SAMPLE_COUNT];

int samples_make(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        struct sample *sample = &samples[i];
        struct record_make_room room;
        union record_any record;
        bool is_long = i % 2 == 1;
        sample->kind = (enum record_kind)(RECORD_SERVER + i / 2);
        sample->slot = sample->kind == RECORD_SERVER ? 0 : is_long ? UINT32_MAX - i : i;
        record_make(is_long ? RECORD_MAKE_LONGEST : RECORD_MAKE_LEAST, sample->kind, NULL, &room,
                    &record);
        sample->len = record_put(sample->value, sample->kind, sample->slot, &record);
    }
    return 0;
}

const struct sample *sample_least(enum record_kind kind)
{
    return &samples[2 * (kind - RECORD_SERVER)];
}

enum record_result sample_get_as(enum record_kind kind, uint32_t slot, const uint8_t *value,
                                 uint32_t len)
{
    union record_any record, before;
    memset(&record, 0xa5, sizeof record);
    memset(&before, 0xa5, sizeof before);
    /* A copy of exactly this length lets the address sanitizer see a read past the end. */
    uint8_t *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, value, len);
    enum record_result result = record_get((struct bytes){copy, len}, kind, slot, &record);
    free(copy);
    if (result != RECORD_GOOD)
        assert_memory_equal(&record, &before, sizeof record);
    return result;
}

enum record_result sample_get(const struct sample *sample)
{
    return sample_get_as(sample->kind, sample->slot, sample->value, sample->len);
}

void sample_reseal(struct sample *sample)
{
    uint8_t key[8];
    store_be32(key, (uint32_t)sample->kind);
    store_be32(key + 4, sample->slot);
    uint32_t crc = crc32c(0, (struct bytes){key, 8});
    crc = crc32c(crc, (struct bytes){sample->value, 4});
    crc = crc32c(crc, (struct bytes){sample->value + 8, sample->len - 8});
    store_be32(sample->value + 4, crc);
}
