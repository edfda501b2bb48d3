/*
 * test_record.c -- shows that records survive their bytes and that damaged bytes are found.
 *
 * Each kind is put at its limits (empty and longest names, all address families, largest numbers)
 * and read back. From each of those values every proper prefix, every one-byte extension, every
 * single bit flip, and every other slot or kind must be refused as damaged; a higher version with a
 * correct checksum must be refused as newer; and a value with a correct checksum that no encoder
 * writes must be refused as damaged. Batches are walked back to exactly what was put in.
 */
#include "store/record.h"

#include "store/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SLOT = 0x01020304, SAMPLES_MAX = 16 };

static uint8_t long_name[RECORD_NAME_MAX], other_name[RECORD_NAME_MAX];

struct sample {
    enum record_kind kind;
    uint32_t slot;
    uint8_t value[RECORD_VALUE_MAX + 1]; /* one more for extensions */
    uint32_t len;
};

static struct sample samples[SAMPLES_MAX];
static uint32_t sample_count;

static const uint8_t v4[4] = {192, 0, 2, 33};
static const uint8_t link_local[16] = {0xfe, 0x80, [14] = 1, [15] = 2};

static struct record_registrant longest_registrant(void)
{
    struct record_registrant record = {
        .id = UINT64_MAX,
        .registered_ns = UINT64_MAX - 1,
        .server_epoch = UINT64_MAX - 2,
        .address = address_v6(link_local, UINT32_MAX),
        .local = address_v6(link_local, 7),
        .port = 65535,
        .transport = RECORD_TCP,
        .my_prog = UINT32_MAX,
        .my_vers = UINT32_MAX - 1,
        .my_proc = UINT32_MAX - 2,
        .told_state = UINT32_MAX - 3,
        .relayed_state = UINT32_MAX - 4,
        .mon_name = {long_name, RECORD_NAME_MAX},
        .my_name = {other_name, RECORD_NAME_MAX},
    };
    for (uint8_t i = 0; i < RECORD_PRIV_LEN; i++)
        record.priv[i] = (uint8_t)(0xf0 + i);
    return record;
}

static struct sample *add_sample(enum record_kind kind, uint32_t slot)
{
    assert_true(sample_count < SAMPLES_MAX);
    struct sample *sample = &samples[sample_count++];
    *sample = (struct sample){.kind = kind, .slot = slot};
    return sample;
}

static int make_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < RECORD_NAME_MAX; i++) {
        long_name[i] = (uint8_t)i;
        other_name[i] = (uint8_t)(255 - i % 256);
    }
    struct sample *sample = add_sample(RECORD_SERVER, 0);
    sample->len = record_put_server(sample->value,
                                    &(struct record_server){.txn = UINT64_MAX,
                                                            .epoch = UINT64_MAX - 1,
                                                            .next_id = UINT64_MAX - 2,
                                                            .state = UINT32_MAX,
                                                            .flags = RECORD_SERVER_INCOMPLETE});
    sample = add_sample(RECORD_SERVER, 0);
    sample->len = record_put_server(sample->value, &(struct record_server){.state = 1});

    struct record_registrant longest = longest_registrant();
    sample = add_sample(RECORD_REGISTRANT, SLOT);
    sample->len = record_put_registrant(sample->value, SLOT, &longest);
    sample = add_sample(RECORD_REGISTRANT, 0);
    sample->len = record_put_registrant(
        sample->value, 0,
        &(struct record_registrant){.transport = RECORD_UDP, .address = address_v4(v4)});
    sample = add_sample(RECORD_NOTICE, UINT32_MAX);
    sample->len = record_put_notice(sample->value, UINT32_MAX,
                                    &(struct record_notice){.heard_ns = 5,
                                                            .state = UINT32_MAX,
                                                            .address = address_v4(v4),
                                                            .mon_name = longest.mon_name});
    sample = add_sample(RECORD_NOTICE, 9);
    sample->len = record_put_notice(sample->value, 9, &(struct record_notice){0});
    return 0;
}

/* Decodes as a kind and slot; *ret stays as it was unless the value is good, which is asserted. */
static enum record_result get(enum record_kind kind, uint32_t slot, const uint8_t *value,
                              uint32_t len)
{
    union {
        struct record_server server;
        struct record_registrant registrant;
        struct record_notice notice;
    } record, before;
    memset(&record, 0xa5, sizeof record);
    memset(&before, 0xa5, sizeof before);
    /* A copy of exactly this length lets the address sanitizer see a read past the end. */
    uint8_t *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, value, len);
    struct bytes bytes = {copy, len};
    enum record_result result = RECORD_CORRUPT;
    if (kind == RECORD_SERVER)
        result = record_get_server(bytes, &record.server);
    else if (kind == RECORD_REGISTRANT)
        result = record_get_registrant(bytes, slot, &record.registrant);
    else
        result = record_get_notice(bytes, slot, &record.notice);
    free(copy);
    if (result != RECORD_GOOD)
        assert_memory_equal(&record, &before, sizeof record);
    return result;
}

static enum record_result get_sample(const struct sample *sample)
{
    return get(sample->kind, sample->slot, sample->value, sample->len);
}

/* Gives a changed value the checksum that belongs to it, as record.c describes it. */
static void reseal(struct sample *sample)
{
    uint8_t key[8];
    store_be32(key, (uint32_t)sample->kind);
    store_be32(key + 4, sample->slot);
    uint32_t crc = crc32c(0, (struct bytes){key, 8});
    crc = crc32c(crc, (struct bytes){sample->value, 4});
    crc = crc32c(crc, (struct bytes){sample->value + 8, sample->len - 8});
    store_be32(sample->value + 4, crc);
}

static void test_record__server_comes_back(void **state)
{
    (void)state;
    struct record_server got;
    const struct sample *sample = &samples[0];
    struct bytes value = {sample->value, sample->len};
    assert_int_equal(record_get_server(value, &got), RECORD_GOOD);
    assert_true(got.txn == UINT64_MAX);
    assert_true(got.epoch == UINT64_MAX - 1);
    assert_true(got.next_id == UINT64_MAX - 2);
    assert_int_equal(got.state, UINT32_MAX);
    assert_int_equal(got.flags, RECORD_SERVER_INCOMPLETE);
}

static void test_record__registrant_comes_back(void **state)
{
    (void)state;
    struct record_registrant put = longest_registrant(), got;
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_registrant(value, SLOT, &put);
    assert_true(len <= RECORD_VALUE_MAX);
    assert_int_equal(record_get_registrant((struct bytes){value, len}, SLOT, &got), RECORD_GOOD);
    assert_true(got.id == put.id);
    assert_true(got.registered_ns == put.registered_ns);
    assert_true(got.server_epoch == put.server_epoch);
    assert_true(address_equal(&got.address, &put.address));
    assert_true(address_equal(&got.local, &put.local));
    assert_int_equal(got.port, put.port);
    assert_int_equal(got.transport, put.transport);
    assert_int_equal(got.my_prog, put.my_prog);
    assert_int_equal(got.my_vers, put.my_vers);
    assert_int_equal(got.my_proc, put.my_proc);
    assert_int_equal(got.told_state, put.told_state);
    assert_int_equal(got.relayed_state, put.relayed_state);
    assert_memory_equal(got.priv, put.priv, RECORD_PRIV_LEN);
    assert_true(bytes_equal(got.mon_name, put.mon_name));
    assert_true(bytes_equal(got.my_name, put.my_name));
}

static void test_record__notice_comes_back(void **state)
{
    (void)state;
    struct record_notice got;
    struct record_notice put = {
        .heard_ns = UINT64_MAX - 9,
        .address = address_v6(link_local, 3),
        .state = 8, /* a client that is down sends an even state */
        .mon_name = bytes_of_text("client.example"),
    };
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_notice(value, 2, &put);
    assert_int_equal(record_get_notice((struct bytes){value, len}, 2, &got), RECORD_GOOD);
    assert_true(got.heard_ns == put.heard_ns);
    assert_true(address_equal(&got.address, &put.address));
    assert_int_equal(got.state, put.state);
    assert_true(bytes_equal(got.mon_name, put.mon_name));
}

/* The stored format is a promise to stores that exist: these bytes may change only together with
 * RECORD_FORMAT. The checksum was computed from the definition, not by record.c. */
static void test_record__server_has_these_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[40] = {
        1, 0, 0, 1, 0, 0, 0,    0,    /* kind, version, checksum (below) */
        0, 0, 0, 0, 0, 0, 0x12, 0x34, /* txn */
        0, 0, 0, 0, 0, 0, 0,    5,    /* epoch */
        0, 0, 0, 0, 0, 0, 0,    42,   /* next_id */
        0, 0, 0, 7, 0, 0, 0,    1,    /* state, flags */
    };
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_server(
        value,
        &(struct record_server){.txn = 0x1234, .epoch = 5, .next_id = 42, .state = 7, .flags = 1});
    assert_int_equal(len, sizeof expected);
    assert_memory_equal(value, expected, 4);
    assert_memory_equal(value + 8, expected + 8, sizeof expected - 8);
    struct sample sealed = {.kind = RECORD_SERVER, .slot = 0, .len = len};
    memcpy(sealed.value, expected, len);
    reseal(&sealed);
    assert_memory_equal(value, sealed.value, len);
}

static void test_record__samples_are_good(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sample_count; i++)
        assert_int_equal(get_sample(&samples[i]), RECORD_GOOD);
}

static void test_record__every_other_length_is_corrupt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sample_count; i++) {
        struct sample *sample = &samples[i];
        for (uint32_t len = 0; len < sample->len; len++) {
            assert_int_equal(get(sample->kind, sample->slot, sample->value, len), RECORD_CORRUPT);
            if (len < 8)
                continue;
            /* The same with a checksum that fits: the body itself must end where it ends. */
            struct sample cut = *sample;
            cut.len = len;
            reseal(&cut);
            assert_int_equal(get_sample(&cut), RECORD_CORRUPT);
        }
        struct sample longer = *sample;
        longer.len++;
        for (int byte = 0; byte < 256; byte++) {
            longer.value[longer.len - 1] = (uint8_t)byte;
            memcpy(longer.value + 4, sample->value + 4, 4);
            assert_int_equal(get_sample(&longer), RECORD_CORRUPT);
            reseal(&longer);
            assert_int_equal(get_sample(&longer), RECORD_CORRUPT);
        }
    }
}

static void test_record__every_bit_flip_is_corrupt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sample_count; i++)
        for (uint32_t bit = 0; bit < samples[i].len * 8; bit++) {
            struct sample flipped = samples[i];
            flipped.value[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(get_sample(&flipped), RECORD_CORRUPT);
        }
}

static void test_record__another_key_is_corrupt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sample_count; i++) {
        const struct sample *sample = &samples[i];
        for (uint32_t bit = 0; sample->kind != RECORD_SERVER && bit < 32; bit++)
            assert_int_equal(
                get(sample->kind, sample->slot ^ 1u << bit, sample->value, sample->len),
                RECORD_CORRUPT);
        for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
            if (kind != (int)sample->kind)
                assert_int_equal(
                    get((enum record_kind)kind, sample->slot, sample->value, sample->len),
                    RECORD_CORRUPT);
    }
}

static void test_record__higher_version_is_newer(void **state)
{
    (void)state;
    static const uint32_t versions[] = {RECORD_FORMAT + 1, 255, 256, 65535};
    for (uint32_t i = 0; i < sample_count; i++)
        for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
            struct sample newer = samples[i];
            newer.value[2] = (uint8_t)(versions[v] >> 8);
            newer.value[3] = (uint8_t)versions[v];
            assert_int_equal(get_sample(&newer), RECORD_CORRUPT); /* damage, not a version */
            reseal(&newer);
            assert_int_equal(get_sample(&newer), RECORD_NEWER);
            newer.len = 8; /* a newer body may be anything */
            reseal(&newer);
            assert_int_equal(get_sample(&newer), RECORD_NEWER);
        }
}

/* Changes one byte of a sample, keeps the checksum right, and expects the value to be refused. */
static void refuse_changed(uint32_t index, uint32_t at, uint8_t byte)
{
    struct sample changed = samples[index];
    assert_true(at < changed.len && changed.value[at] != byte);
    changed.value[at] = byte;
    reseal(&changed);
    assert_int_equal(get_sample(&changed), RECORD_CORRUPT);
}

static void test_record__what_nobody_writes_is_corrupt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sample_count; i++) {
        refuse_changed(i, 0, 77); /* kind */
        refuse_changed(i, 1, 1);  /* reserved */
        refuse_changed(i, 3, 0);  /* version 0 */
    }
    refuse_changed(1, 35, 2); /* server: even state */
    refuse_changed(1, 39, 2); /* server: unknown flag */
    refuse_changed(1, 36, 1);
    refuse_changed(3, 32, 5); /* registrant: family of the address */
    refuse_changed(3, 45, 0); /* transport */
    refuse_changed(3, 45, 18);
    refuse_changed(5, 16, 1); /* notice: family */

    /* A name longer than any may be, complete and with the right checksum. */
    struct sample long_sample = {.kind = RECORD_NOTICE, .slot = 9, .len = 8 + 8 + 1 + 4 + 2 + 1025};
    memcpy(long_sample.value, samples[5].value, samples[5].len);
    long_sample.value[8 + 8 + 1 + 4] = 1025 >> 8;
    long_sample.value[8 + 8 + 1 + 4 + 1] = 1025 & 0xff;
    reseal(&long_sample);
    assert_int_equal(get_sample(&long_sample), RECORD_CORRUPT);
}

static void test_record__kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(record_kind_name(RECORD_SERVER), "server");
    assert_string_equal(record_kind_name(RECORD_REGISTRANT), "registrant");
    assert_string_equal(record_kind_name(RECORD_NOTICE), "notice");
}

static void test_record__batch_is_walked_back(void **state)
{
    (void)state;
    uint8_t buffer[SAMPLES_MAX * (RECORD_VALUE_MAX + 2 * BATCH_CHANGE_OVERHEAD)];
    struct batch_writer writer = {.start = buffer};
    uint64_t value_len = 0;
    for (uint32_t i = 0; i < sample_count; i++)
        value_len += samples[i].len;
    /* Room to the byte: the writer may not ask for more than it says. */
    writer.max = value_len + (uint64_t)2 * sample_count * BATCH_CHANGE_OVERHEAD;
    for (uint32_t i = 0; i < sample_count; i++) {
        batch_put(&writer, samples[i].kind, samples[i].slot,
                  (struct bytes){samples[i].value, samples[i].len});
        batch_delete(&writer, RECORD_NOTICE, UINT32_MAX - i);
    }
    assert_int_equal(writer.count, 2 * sample_count);
    assert_int_equal(writer.len, writer.max);

    struct store_batch batch = {.count = writer.count, .changes = {buffer, writer.len}};
    struct record_change change;
    uint64_t at = 0;
    for (uint32_t i = 0; i < sample_count; i++) {
        assert_true(batch_next(&batch, &at, &change));
        assert_int_equal(change.kind, samples[i].kind);
        assert_int_equal(change.slot, samples[i].slot);
        assert_false(change.deleted);
        assert_true(bytes_equal(change.value, (struct bytes){samples[i].value, samples[i].len}));
        assert_true(batch_next(&batch, &at, &change));
        assert_int_equal(change.kind, RECORD_NOTICE);
        assert_int_equal(change.slot, UINT32_MAX - i);
        assert_true(change.deleted);
        assert_int_equal(change.value.len, 0);
    }
    assert_false(batch_next(&batch, &at, &change));
    assert_int_equal(at, writer.len);
    assert_false(batch_next(&(struct store_batch){0}, &(uint64_t){0}, &change));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record__server_comes_back),
        cmocka_unit_test(test_record__registrant_comes_back),
        cmocka_unit_test(test_record__notice_comes_back),
        cmocka_unit_test(test_record__server_has_these_bytes),
        cmocka_unit_test(test_record__samples_are_good),
        cmocka_unit_test(test_record__every_other_length_is_corrupt),
        cmocka_unit_test(test_record__every_bit_flip_is_corrupt),
        cmocka_unit_test(test_record__another_key_is_corrupt),
        cmocka_unit_test(test_record__higher_version_is_newer),
        cmocka_unit_test(test_record__what_nobody_writes_is_corrupt),
        cmocka_unit_test(test_record__kinds_have_names),
        cmocka_unit_test(test_record__batch_is_walked_back),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
