/*
 * test_record_rules.c -- shows what each field of each kind may be, and that nothing else is read.
 *
 * The numbers here are written down by hand, not taken from the layouts. In a good value the bytes
 * of one field are replaced, with a checksum that fits: what breaks its rule alone must be refused,
 * and what keeps it must be accepted, so that a rule can be neither forgotten nor stricter than it
 * says. The same for the lengths of names, handles and words, for families, and for interfaces.
 */
#include "samples.h"
#include "unit/test.h"

enum { HEADER_LEN = 8 };

/* ---- the bytes of one field ---- */

/* How many bytes a field has, of those that begin here. Addresses of the least samples are none. */
static uint32_t len_of(enum record_type type, const uint8_t *at)
{
    switch (type) {
    case FIELD_U32:
        return 4;
    case FIELD_U64:
    case FIELD_TIME:
        return 8;
    case FIELD_ADDRESS:
        return 1;
    case FIELD_NAME:
        return 2 + ((uint32_t)at[0] << 8 | at[1]);
    case FIELD_HANDLE:
    case FIELD_WORD:
        return 1 + (uint32_t)at[0];
    case FIELD_PRIV:
        return RECORD_PRIV_LEN;
    }
    UNREACHABLE();
}

/* Puts other bytes in the place of a field's. */
static void replace(struct sample *sample, const struct record_field *field, struct bytes bytes)
{
    const struct record_field *before = record_layout_of(sample->kind)->fields;
    uint32_t at = HEADER_LEN;
    for (; before != field; before++)
        at += len_of(before->type, sample->value + at);
    uint32_t end = at + len_of(field->type, sample->value + at), len = sample->len - end;
    assert_true(at + bytes.len + len <= sizeof sample->value);
    memmove(sample->value + at + bytes.len, sample->value + end, len);
    memcpy(sample->value + at, bytes.at, bytes.len);
    sample->len = at + bytes.len + len;
    sample_reseal(sample);
}

static void set_number(struct sample *sample, const char *name, uint64_t number)
{
    const struct record_field *field = record_layout_of(sample->kind)->fields;
    while (strcmp(field->name, name) != 0) /* there is one, or this test is wrong */
        field++;
    uint8_t bytes[8];
    store_be64(bytes, number);
    replace(sample, field,
            field->type == FIELD_U32 ? (struct bytes){bytes + 4, 4} : (struct bytes){bytes, 8});
}

static void expect_numbers(enum record_kind kind, const char *name, enum record_result expected,
                           const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sample changed = *sample_least(kind);
        set_number(&changed, name, numbers[i]);
        if (sample_get(&changed) != expected)
            fail_msg("%s.%s = %llu", record_kind_name(kind), name, (unsigned long long)numbers[i]);
    }
}

#define EXPECT(kind, name, result, ...)                                                            \
    expect_numbers(kind, name, result, (const uint64_t[]){__VA_ARGS__},                            \
                   sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
#define GOOD(kind, name, ...) EXPECT(kind, name, RECORD_GOOD, __VA_ARGS__)
#define BAD(kind, name, ...)  EXPECT(kind, name, RECORD_CORRUPT, __VA_ARGS__)

/* These flags and no others. */
static void expect_flags(enum record_kind kind, const char *name, uint32_t known)
{
    GOOD(kind, name, known);
    for (uint32_t bit = 0; bit < 32; bit++)
        if ((known >> bit & 1) == 0)
            BAD(kind, name, UINT64_C(1) << bit);
}

/* ---- numbers ---- */

TEST(test_record_rules__server)
{
    GOOD(RECORD_SERVER, "state", 1, 3, UINT32_MAX);
    BAD(RECORD_SERVER, "state", 0, 2, UINT32_MAX - 1);
    GOOD(RECORD_SERVER, "restart_state", 1, 3, UINT32_MAX);
    BAD(RECORD_SERVER, "restart_state", 0, 2, UINT32_MAX - 1);
    expect_flags(RECORD_SERVER, "flags", 15);
    GOOD(RECORD_SERVER, "flags", 1, 2, 4, 8);
}

TEST(test_record_rules__transports)
{
    static const enum record_kind kinds[] = {RECORD_REGISTRANT, RECORD_CLIENT, RECORD_WAITER};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        GOOD(kinds[i], "transport", 6, 17);
        BAD(kinds[i], "transport", 0, 5, 7, 16, 18, 64 + 6, 256 + 6, UINT32_MAX);
    }
}

TEST(test_record_rules__client)
{
    expect_flags(RECORD_CLIENT, "versions", 1 << 1 | 1 << 3 | 1 << 4);
    GOOD(RECORD_CLIENT, "versions", 0, 1 << 1, 1 << 3, 1 << 4);
    GOOD(RECORD_CLIENT, "grant_proc", 0, 5, 10);
    BAD(RECORD_CLIENT, "grant_proc", 1, 2, 3, 4, 6, 7, 8, 9, 11, 15, 64, 64 + 5, UINT32_MAX);
    GOOD(RECORD_CLIENT, "incarnation", 1, UINT32_MAX);
    BAD(RECORD_CLIENT, "incarnation", 0);
    expect_flags(RECORD_CLIENT, "flags", 63);
    GOOD(RECORD_CLIENT, "flags", 1, 2, 4, 8, 16, 32);
}

TEST(test_record_rules__whose)
{
    static const enum record_kind kinds[] = {RECORD_LOCK, RECORD_WAITER, RECORD_SHARE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        GOOD(kinds[i], "of.client_id", 1, UINT64_MAX);
        GOOD(kinds[i], "of.client", 1, RECORD_SLOT_MAX - 1);
        BAD(kinds[i], "of.client", RECORD_SLOT_MAX, UINT32_MAX);
        GOOD(kinds[i], "of.incarnation", 1, UINT32_MAX);
        BAD(kinds[i], "of.incarnation", 0);
        GOOD(kinds[i], "of.state", 1, 2, UINT32_MAX);
    }
}

TEST(test_record_rules__lock)
{
    BAD(RECORD_LOCK, "start", 1, UINT64_MAX); /* its end is 0 */
    GOOD(RECORD_LOCK, "end", 1, UINT64_MAX);
    struct sample changed = *sample_least(RECORD_LOCK);
    set_number(&changed, "end", 7);
    set_number(&changed, "start", 7);
    assert_int_equal(sample_get(&changed), RECORD_GOOD);
    set_number(&changed, "start", 8);
    assert_int_equal(sample_get(&changed), RECORD_CORRUPT);

    expect_flags(RECORD_LOCK, "flags", 15);
    GOOD(RECORD_LOCK, "flags", 1, 2, 4, 7, 10, 11, 14);
    BAD(RECORD_LOCK, "flags", 8, 9, 12, 13); /* it lingers, and is no offer */
}

TEST(test_record_rules__waiter)
{
    GOOD(RECORD_WAITER, "offer", 0, RECORD_SLOT_MAX - 1, UINT32_MAX);
    BAD(RECORD_WAITER, "offer", RECORD_SLOT_MAX, UINT32_MAX - 1);
    GOOD(RECORD_WAITER, "version", 1, 3, 4);
    BAD(RECORD_WAITER, "version", 0, 2, 5, 8, 64 + 1, UINT32_MAX);
    expect_flags(RECORD_WAITER, "flags", 3);
    GOOD(RECORD_WAITER, "flags", 1, 2);
}

TEST(test_record_rules__share)
{
    GOOD(RECORD_SHARE, "mode", 0, 1, 2, 3);
    BAD(RECORD_SHARE, "mode", 4, 64, 256, UINT32_MAX);
    GOOD(RECORD_SHARE, "access", 0, 1, 2, 3);
    BAD(RECORD_SHARE, "access", 4, 64, 256, UINT32_MAX);
    expect_flags(RECORD_SHARE, "flags", RECORD_LOCK_UNMONITORED);
}

TEST(test_record_rules__tracked)
{
    GOOD(RECORD_TRACKED, "window_s", 1, UINT32_MAX);
    GOOD(RECORD_TRACKED, "generation", 1, UINT32_MAX);
    BAD(RECORD_TRACKED, "generation", 0);
    GOOD(RECORD_TRACKED, "state", 1, 2, 3);
    BAD(RECORD_TRACKED, "state", 0, 4, 64 + 1, UINT32_MAX);
    /* Who is connected has no deadline; who is not may have one. */
    BAD(RECORD_TRACKED, "deadline_ns", 1, UINT64_MAX);
    BAD(RECORD_TRACKED, "ttl_s", 1, UINT32_MAX);
    for (uint64_t gone = 2; gone <= 3; gone++) {
        struct sample changed = *sample_least(RECORD_TRACKED);
        set_number(&changed, "state", gone);
        set_number(&changed, "deadline_ns", 1);
        set_number(&changed, "ttl_s", 1);
        assert_int_equal(sample_get(&changed), RECORD_GOOD);
    }
}

/* ---- everything else ---- */

/* A field of so many bytes, its length before them. */
static enum record_result get_with_len(enum record_kind kind, const struct record_field *field,
                                       uint32_t len)
{
    static uint8_t bytes[2 + UINT16_MAX];
    struct sample changed = *sample_least(kind);
    bool is_name = field->type == FIELD_NAME;
    memset(bytes, 's', sizeof bytes);
    bytes[0] = (uint8_t)(len >> 8);
    bytes[1] = (uint8_t)len;
    replace(&changed, field,
            is_name ? (struct bytes){bytes, 2 + len} : (struct bytes){bytes + 1, 1 + len});
    return sample_get(&changed);
}

TEST(test_record_rules__lengths)
{
    uint32_t names = 0, handles = 0, words = 0;
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        const struct record_layout *layout = record_layout_of((enum record_kind)kind);
        for (uint32_t i = 0; i < layout->count; i++) {
            const struct record_field *field = &layout->fields[i];
            if (field->type == FIELD_NAME) {
                for (uint32_t len = 0; len < 1100; len += len < 1000 ? 100 : 1)
                    assert_int_equal(get_with_len((enum record_kind)kind, field, len),
                                     len <= 1024 ? RECORD_GOOD : RECORD_CORRUPT);
                names++;
            } else if (field->type == FIELD_HANDLE || field->type == FIELD_WORD) {
                uint32_t max = field->type == FIELD_HANDLE ? 64 : 16;
                for (uint32_t len = 0; len < 256; len++)
                    assert_int_equal(get_with_len((enum record_kind)kind, field, len),
                                     len > 0 && len <= max ? RECORD_GOOD : RECORD_CORRUPT);
                *(field->type == FIELD_HANDLE ? &handles : &words) += 1;
            }
        }
    }
    assert_true(names == 10 && handles == 4 && words == 1);
}

/* An address of none of the families, or one whose bytes are missing. */
TEST(test_record_rules__families)
{
    uint32_t count = 0;
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        const struct record_layout *layout = record_layout_of((enum record_kind)kind);
        for (uint32_t i = 0; i < layout->count; i++) {
            if (layout->fields[i].type != FIELD_ADDRESS)
                continue;
            for (uint32_t family = 1; family < 256; family++) {
                struct sample changed = *sample_least((enum record_kind)kind);
                replace(&changed, &layout->fields[i],
                        (struct bytes){&(uint8_t){(uint8_t)family}, 1});
                assert_int_equal(sample_get(&changed), RECORD_CORRUPT);
            }
            count++;
        }
    }
    assert_int_equal(count, 7 + RECORD_HOSTS_MAX);
}

/* The address of a notice: on an interface by number as formats 1 to 3 had it, by name since 4. */
static enum record_result get_with_zone(uint8_t format, uint8_t first_byte, uint32_t number,
                                        const char *zone)
{
    uint8_t bytes[64] = {6, first_byte, 0x80, [16] = 1};
    struct sample changed = *sample_least(RECORD_NOTICE);
    store_be32(bytes + 17, number);
    memcpy(bytes + 21, zone, strlen(zone));
    changed.value[3] = format;
    replace(&changed, &record_layout_of(RECORD_NOTICE)->fields[1],
            (struct bytes){bytes, 21 + (uint32_t)strlen(zone)});
    return sample_get(&changed);
}

TEST(test_record_rules__interfaces)
{
    for (uint8_t format = 1; format <= RECORD_FORMAT; format++)
        assert_int_equal(get_with_zone(format, 0xfe, 0, ""), RECORD_GOOD);
    assert_int_equal(get_with_zone(1, 0xfe, UINT32_MAX, ""), RECORD_GOOD);
    assert_int_equal(get_with_zone(3, 0xfe, 3, ""), RECORD_GOOD);
    assert_int_equal(get_with_zone(3, 0x20, 3, ""), RECORD_CORRUPT); /* no link-local address */
    assert_int_equal(get_with_zone(4, 0xfe, 4, "eth0"), RECORD_GOOD);
    assert_int_equal(get_with_zone(4, 0x20, 4, "eth0"), RECORD_CORRUPT);
    assert_int_equal(get_with_zone(4, 0xfe, 15, "enp65535s0f0np0"), RECORD_GOOD);
    assert_int_equal(get_with_zone(4, 0xfe, 16, "enp65535s0f0np01"), RECORD_CORRUPT);
    assert_int_equal(get_with_zone(4, 0xfe, 4, "et 0"), RECORD_CORRUPT);
    assert_int_equal(get_with_zone(4, 0xfe, 200, "eth0"), RECORD_CORRUPT);
}

TEST(test_record_rules__protocols_are_short_words)
{
    const struct record_field *field = record_layout_of(RECORD_TRACKED)->fields;
    while (field->type != FIELD_WORD)
        field++;
    for (uint32_t c = 0; c < 256; c++) {
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        uint8_t word[] = {2, 's', (uint8_t)c};
        struct sample changed = *sample_least(RECORD_TRACKED);
        replace(&changed, field, (struct bytes){word, 3});
        assert_int_equal(sample_get(&changed), is_good ? RECORD_GOOD : RECORD_CORRUPT);
        assert_int_equal(record_is_protocol((struct bytes){word + 1, 2}), is_good);
    }
    assert_false(record_is_protocol((struct bytes){NULL, 0}));
    assert_true(record_is_protocol(bytes_of_text("sixteen-letters-")));
    assert_false(record_is_protocol(bytes_of_text("seventeen-letters")));
}

TEST(test_record_rules__headers)
{
    static const struct {
        uint32_t at;
        uint8_t byte;
    } bad[] = {{0, 77}, {1, 1}, {3, 0}}; /* kind, reserved, version 0 */
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
            struct sample changed = samples[i];
            changed.value[bad[b].at] = bad[b].byte;
            sample_reseal(&changed);
            assert_int_equal(sample_get(&changed), RECORD_CORRUPT);
        }
}

TEST_MAIN(NULL, NULL, samples_make, NULL)
