/*
 * test_record_tracked.c -- shows that a client of another protocol survives its bytes, and that
 * what no encoder writes is refused.
 *
 * It is read back field by field at its limits, one is compared with bytes written down by hand,
 * and for each rule about a field one byte of a good value is changed to break that rule alone,
 * with a checksum that fits; neighbours that keep the rule must be accepted. Prefixes, extensions,
 * flipped bits and other keys are in test_record.c, which runs over all samples.
 */
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
    SLOT = 5,
    BODY = 8,
    /* Where fields of the short sample end: big-endian, so the last byte is the lowest. */
    DEADLINE = BODY + 3 * 8 + 7,
    FAMILY = DEADLINE + 1,
    WINDOW = FAMILY + 4,
    TTL = WINDOW + 4,
    GENERATION = TTL + 4,
    STATE = GENERATION + 4,
    PROTOCOL_LEN = STATE + 1,
    KEY_LEN = PROTOCOL_LEN + 2,
};

static void test_record_tracked__comes_back(void **state)
{
    (void)state;
    struct record_tracked put = sample_tracked(), got;
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_tracked(value, SLOT, &put);
    assert_int_equal(record_get_tracked((struct bytes){value, len}, SLOT, &got), RECORD_GOOD);
    assert_true(got.id == put.id);
    assert_true(got.registered_ns == put.registered_ns);
    assert_true(got.server_epoch == put.server_epoch);
    assert_true(got.deadline_ns == put.deadline_ns);
    assert_true(address_equal(&got.address, &put.address));
    assert_int_equal(got.window_s, put.window_s);
    assert_int_equal(got.ttl_s, put.ttl_s);
    assert_int_equal(got.generation, put.generation);
    assert_int_equal(got.state, put.state);
    assert_true(bytes_equal(got.protocol, put.protocol));
    assert_true(bytes_equal(got.key, put.key));
    assert_true(bytes_equal(got.bytes, put.bytes));
}

/* The stored format is a promise to stores that exist. */
static void test_record_tracked__has_these_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[] = {
        8, 0,   0,   4,   0, 0, 0, 0,                /* kind, version, checksum (below) */
        0, 0,   0,   0,   0, 0, 1, 2,                /* id */
        0, 0,   0,   0,   0, 0, 0, 3,                /* registered_ns */
        0, 0,   0,   0,   0, 0, 0, 4,                /* server_epoch */
        0, 0,   0,   0,   0, 0, 0, 5,                /* deadline_ns */
        4, 192, 0,   2,   9,                         /* address */
        0, 0,   0,   60,  0, 0, 2, 0x58,             /* window_s, ttl_s */
        0, 0,   0,   7,   0, 0, 0, 2,                /* generation, state */
        3, 's', 'm', 'b', 2, 0, 1, 0,    2, 'h', 'i' /* protocol, key, bytes */
    };
    static const uint8_t key[] = {0, 1};
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_tracked(value, SLOT,
                                      &(struct record_tracked){
                                          .id = 0x102,
                                          .registered_ns = 3,
                                          .server_epoch = 4,
                                          .deadline_ns = 5,
                                          .address = address_v4((const uint8_t[]){192, 0, 2, 9}),
                                          .window_s = 60,
                                          .ttl_s = 600,
                                          .generation = 7,
                                          .state = RECORD_TRACKED_DISCONNECTED,
                                          .protocol = bytes_of_text("smb"),
                                          .key = {key, sizeof key},
                                          .bytes = bytes_of_text("hi"),
                                      });
    struct sample sealed = {.kind = RECORD_TRACKED, .slot = SLOT, .len = sizeof expected};
    memcpy(sealed.value, expected, sizeof expected);
    sample_reseal(&sealed);
    assert_int_equal(len, sizeof expected);
    assert_memory_equal(value, sealed.value, len);
}

static struct sample change(enum sample_name name, uint32_t at, uint8_t byte)
{
    struct sample changed = samples[name];
    assert_true(at < changed.len && changed.value[at] != byte);
    changed.value[at] = byte;
    sample_reseal(&changed);
    return changed;
}

static void accept_changed(enum sample_name name, uint32_t at, uint8_t byte)
{
    struct sample changed = change(name, at, byte);
    assert_int_equal(sample_get(&changed), RECORD_GOOD);
}

static void test_record_tracked__odd_ones_are_corrupt(void **state)
{
    (void)state;
    sample_refuse_changed(SAMPLE_TRACKED, FAMILY, 5);
    sample_refuse_changed(SAMPLE_TRACKED, GENERATION, 0);
    accept_changed(SAMPLE_TRACKED, GENERATION, 2);
    accept_changed(SAMPLE_TRACKED, WINDOW, 1);
    accept_changed(SAMPLE_TRACKED, STATE, RECORD_TRACKED_DISCONNECTED);
    accept_changed(SAMPLE_TRACKED, STATE, RECORD_TRACKED_EXPIRED);
    sample_refuse_changed(SAMPLE_TRACKED, STATE, 0);
    sample_refuse_changed(SAMPLE_TRACKED, STATE, 4);
    sample_refuse_changed(SAMPLE_TRACKED, STATE - 3, 1);
    /* Who is connected has no deadline; who is not may have one. */
    sample_refuse_changed(SAMPLE_TRACKED, DEADLINE, 1);
    sample_refuse_changed(SAMPLE_TRACKED, TTL, 1);
    struct sample gone = change(SAMPLE_TRACKED, STATE, RECORD_TRACKED_DISCONNECTED);
    gone.value[DEADLINE] = gone.value[TTL] = 1;
    sample_reseal(&gone);
    assert_int_equal(sample_get(&gone), RECORD_GOOD);
    sample_refuse_changed(SAMPLE_TRACKED, KEY_LEN, 0);
    sample_refuse_changed(SAMPLE_TRACKED, KEY_LEN, RECORD_KEY_MAX + 1);
}

static void test_record_tracked__protocols_are_short_words(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        if (c != samples[SAMPLE_TRACKED].value[PROTOCOL_LEN + 1]) {
            struct sample changed = change(SAMPLE_TRACKED, PROTOCOL_LEN + 1, (uint8_t)c);
            assert_int_equal(sample_get(&changed), is_good ? RECORD_GOOD : RECORD_CORRUPT);
        }
        uint8_t name[] = {'s', (uint8_t)c};
        assert_int_equal(record_is_protocol((struct bytes){name, 2}), is_good);
    }
    /* Of every length, with a body that ends where it should. */
    for (uint32_t len = 0; len <= UINT8_MAX; len++) {
        struct sample changed = samples[SAMPLE_TRACKED];
        uint32_t tail_len = changed.len - PROTOCOL_LEN - 2;
        memmove(changed.value + PROTOCOL_LEN + 1 + len, changed.value + PROTOCOL_LEN + 2, tail_len);
        memset(changed.value + PROTOCOL_LEN + 1, 's', len);
        changed.value[PROTOCOL_LEN] = (uint8_t)len;
        changed.len = PROTOCOL_LEN + 1 + len + tail_len;
        sample_reseal(&changed);
        bool is_good = len > 0 && len <= RECORD_PROTOCOL_MAX;
        assert_int_equal(sample_get(&changed), is_good ? RECORD_GOOD : RECORD_CORRUPT);
        assert_int_equal(record_is_protocol((struct bytes){changed.value + PROTOCOL_LEN + 1, len}),
                         is_good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_tracked__comes_back),
        cmocka_unit_test(test_record_tracked__has_these_bytes),
        cmocka_unit_test(test_record_tracked__odd_ones_are_corrupt),
        cmocka_unit_test(test_record_tracked__protocols_are_short_words),
    };
    return cmocka_run_group_tests(tests, samples_make, NULL);
}
