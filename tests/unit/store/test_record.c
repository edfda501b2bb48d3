/*
 * test_record.c -- shows that records survive their bytes and that damaged bytes are found.
 *
 * Each kind is put with as little as possible, with everything at its largest and at random, and
 * read back field by field. From each sample every proper prefix, every one-byte extension, every
 * single bit flip, and every other slot or kind must be refused as damaged; a higher version with a
 * correct checksum must be refused as newer. Batches are walked back to exactly what was put in.
 *
 * Which bytes, and what they mean, is in tests/vectors/store, for every format; what a field may be
 * is in test_record_rules.c.
 */
#include "samples.h"
#include "unit/test.h"

static void expect_same_fields(enum record_kind kind, const union record_any *got,
                               const union record_any *put)
{
    const struct record_layout *layout = record_layout_of(kind);
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct record_field *field = &layout->fields[i];
        if (field->type <= FIELD_TIME)
            assert_true(record_layout_number(field, got) == record_layout_number(field, put));
        else if (field->type == FIELD_ADDRESS)
            assert_true(address_equal(record_layout_address(field, got),
                                      record_layout_address(field, put)));
        else
            assert_true(
                bytes_equal(record_layout_bytes(field, got), record_layout_bytes(field, put)));
    }
}

TEST(test_record__every_kind_comes_back)
{
    struct prng prng = {1};
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        for (uint32_t i = 0; i < 1000; i++) {
            enum record_make how =
                i < RECORD_MAKE_RANDOM ? (enum record_make)i : RECORD_MAKE_RANDOM;
            uint32_t slot = kind == RECORD_SERVER ? 0 : (uint32_t)prng_next(&prng);
            struct record_make_room room;
            union record_any put, got;
            uint8_t value[RECORD_VALUE_MAX];
            record_make(how, (enum record_kind)kind, &prng, &room, &put);
            uint32_t len = record_put(value, (enum record_kind)kind, slot, &put);
            assert_int_equal(
                record_get((struct bytes){value, len}, (enum record_kind)kind, slot, &got),
                RECORD_GOOD);
            expect_same_fields((enum record_kind)kind, &got, &put);
        }
}

static uint8_t first_format(enum record_kind kind)
{
    return kind <= RECORD_NOTICE ? 1 : kind <= RECORD_SHARE ? 2 : 3;
}

/* A field, or an interface by its name, that this format did not have. */
static bool has_newer_part(const struct sample *sample, uint8_t format)
{
    const struct record_layout *layout = record_layout_of(sample->kind);
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->fields[i].since > format)
            return true;
    return format < 4 && memmem(sample->value, sample->len, "enp65535", 8) != NULL;
}

/* A kind under the number of a format that did not have it was never written. */
TEST(test_record__kinds_begin_with_their_format)
{
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        for (uint8_t format = 1; format < RECORD_FORMAT; format++) {
            struct sample old = samples[i];
            old.value[3] = format;
            assert_int_equal(sample_get(&old), RECORD_CORRUPT);
            sample_reseal(&old);
            bool is_good = format >= first_format(old.kind) && !has_newer_part(&old, format);
            assert_int_equal(sample_get(&old), is_good ? RECORD_GOOD : RECORD_CORRUPT);
        }
    }
}

/* Older versions verify the checksum, then refuse the store for a larger number of its format. So
 * whatever we write must have one, the server record above all, which is in every batch. */
TEST(test_record__older_versions_refuse_what_we_write)
{
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        struct sample sealed = samples[i];
        sample_reseal(&sealed);
        assert_memory_equal(sealed.value, samples[i].value, sealed.len);
        assert_int_equal(sealed.value[2] << 8 | sealed.value[3], RECORD_FORMAT);
    }
}

TEST(test_record__samples_are_good)
{
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        assert_int_equal(sample_get(&samples[i]), RECORD_GOOD);
}

TEST(test_record__every_other_length_is_corrupt)
{
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        struct sample *sample = &samples[i];
        for (uint32_t len = 0; len < sample->len; len++) {
            assert_int_equal(sample_get_as(sample->kind, sample->slot, sample->value, len),
                             RECORD_CORRUPT);
            if (len < 8)
                continue;
            /* The same with a checksum that fits: the body itself must end where it ends. */
            struct sample cut = *sample;
            cut.len = len;
            sample_reseal(&cut);
            assert_int_equal(sample_get(&cut), RECORD_CORRUPT);
        }
        struct sample longer = *sample;
        longer.len++;
        for (int byte = 0; byte < 256; byte++) {
            longer.value[longer.len - 1] = (uint8_t)byte;
            memcpy(longer.value + 4, sample->value + 4, 4);
            assert_int_equal(sample_get(&longer), RECORD_CORRUPT);
            sample_reseal(&longer);
            assert_int_equal(sample_get(&longer), RECORD_CORRUPT);
        }
    }
}

TEST(test_record__every_bit_flip_is_corrupt)
{
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        for (uint32_t bit = 0; bit < samples[i].len * 8; bit++) {
            struct sample flipped = samples[i];
            flipped.value[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(sample_get(&flipped), RECORD_CORRUPT);
        }
}

TEST(test_record__another_key_is_corrupt)
{
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        const struct sample *sample = &samples[i];
        for (uint32_t bit = 0; sample->kind != RECORD_SERVER && bit < 32; bit++)
            assert_int_equal(
                sample_get_as(sample->kind, sample->slot ^ 1u << bit, sample->value, sample->len),
                RECORD_CORRUPT);
        for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
            if (kind != (int)sample->kind)
                assert_int_equal(
                    sample_get_as((enum record_kind)kind, sample->slot, sample->value, sample->len),
                    RECORD_CORRUPT);
    }
}

TEST(test_record__higher_version_is_newer)
{
    static const uint32_t versions[] = {RECORD_FORMAT + 1, 255, 256, 65535};
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
            struct sample newer = samples[i];
            newer.value[2] = (uint8_t)(versions[v] >> 8);
            newer.value[3] = (uint8_t)versions[v];
            assert_int_equal(sample_get(&newer), RECORD_CORRUPT); /* damage, not a version */
            sample_reseal(&newer);
            assert_int_equal(sample_get(&newer), RECORD_NEWER);
            newer.len = 8; /* a newer body may be anything */
            sample_reseal(&newer);
            assert_int_equal(sample_get(&newer), RECORD_NEWER);
        }
}

TEST(test_record__kinds_have_names)
{
    assert_string_equal(record_kind_name(RECORD_SERVER), "server");
    assert_string_equal(record_kind_name(RECORD_REGISTRANT), "registrant");
    assert_string_equal(record_kind_name(RECORD_NOTICE), "notice");
    assert_string_equal(record_kind_name(RECORD_CLIENT), "client");
    assert_string_equal(record_kind_name(RECORD_LOCK), "lock");
    assert_string_equal(record_kind_name(RECORD_WAITER), "waiter");
    assert_string_equal(record_kind_name(RECORD_SHARE), "share");
    assert_string_equal(record_kind_name(RECORD_TRACKED), "tracked");
}

TEST(test_record__batch_is_walked_back)
{
    uint8_t buffer[SAMPLE_COUNT * (RECORD_VALUE_MAX + 2 * BATCH_CHANGE_OVERHEAD)];
    struct batch_writer writer = {.start = buffer};
    uint64_t value_len = 0;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        value_len += samples[i].len;
    /* Room to the byte: the writer may not ask for more than it says. */
    writer.max = value_len + (uint64_t)2 * SAMPLE_COUNT * BATCH_CHANGE_OVERHEAD;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        store_batch_put(&writer, samples[i].kind, samples[i].slot,
                        (struct bytes){samples[i].value, samples[i].len});
        store_batch_delete(&writer, RECORD_NOTICE, UINT32_MAX - i);
    }
    assert_int_equal(writer.count, 2 * SAMPLE_COUNT);
    assert_int_equal(writer.len, writer.max);

    struct store_batch batch = {.count = writer.count, .changes = {buffer, writer.len}};
    struct record_change change;
    uint64_t at = 0;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        assert_true(store_batch_next(&batch, &at, &change));
        assert_int_equal(change.kind, samples[i].kind);
        assert_int_equal(change.slot, samples[i].slot);
        assert_false(change.deleted);
        assert_true(bytes_equal(change.value, (struct bytes){samples[i].value, samples[i].len}));
        assert_true(store_batch_next(&batch, &at, &change));
        assert_int_equal(change.kind, RECORD_NOTICE);
        assert_int_equal(change.slot, UINT32_MAX - i);
        assert_true(change.deleted);
        assert_int_equal(change.value.len, 0);
    }
    assert_false(store_batch_next(&batch, &at, &change));
    assert_int_equal(at, writer.len);
    assert_false(store_batch_next(&(struct store_batch){0}, &(uint64_t){0}, &change));
}

TEST_MAIN(NULL, NULL, samples_make, NULL)
