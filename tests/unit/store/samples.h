/*
 * samples.h -- values of every kind of record at their limits, for tests of the record formats.
 *
 * A sample is what an encoder of src/store made. Tests change its bytes, give it the checksum that
 * belongs to them, and ask the decoder of its kind.
 */
#ifndef TESTS_STORE_SAMPLES_H
#define TESTS_STORE_SAMPLES_H

#include "store/record.h"

struct sample {
    enum record_kind kind;
    uint32_t slot;
    uint8_t value[RECORD_VALUE_MAX + 1]; /* one more for extensions */
    uint32_t len;
};

/* Two of each kind: with everything at its largest, and with as little as possible. */
enum sample_name {
    SAMPLE_SERVER_LONG,
    SAMPLE_SERVER,
    SAMPLE_REGISTRANT_LONG,
    SAMPLE_REGISTRANT,
    SAMPLE_NOTICE_LONG,
    SAMPLE_NOTICE,
    SAMPLE_CLIENT_LONG,
    SAMPLE_CLIENT,
    SAMPLE_LOCK_LONG,
    SAMPLE_LOCK,
    SAMPLE_WAITER_LONG,
    SAMPLE_WAITER,
    SAMPLE_SHARE_LONG,
    SAMPLE_SHARE,
    SAMPLE_TRACKED_LONG,
    SAMPLE_TRACKED,
    SAMPLE_COUNT,
};

extern struct sample samples[SAMPLE_COUNT];

/* A set-up function of cmocka: fills them. */
int samples_make(void **state);

/* The records of the long ones; their names and handles live as long as the program. */
struct record_registrant sample_registrant(void);
struct record_client sample_client(void);
struct record_lock sample_lock(void);
struct record_waiter sample_waiter(void);
struct record_share sample_share(void);
struct record_tracked sample_tracked(void);

/* Decodes bytes as a kind under a slot. Asserts that nothing was put out unless they are good. */
enum record_result sample_get_as(enum record_kind kind, uint32_t slot, const uint8_t *value,
                                 uint32_t len);
enum record_result sample_get(const struct sample *sample);

/* Gives changed bytes the checksum that belongs to them, as record.c describes it. */
void sample_reseal(struct sample *sample);

/* Changes one byte of a sample, keeps the checksum right, and expects the value to be refused. */
void sample_refuse_changed(enum sample_name name, uint32_t at, uint8_t byte);

#endif
