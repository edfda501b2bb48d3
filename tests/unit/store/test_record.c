/*
 * test_record.c -- shows that records survive their bytes and that damaged bytes are found.
 *
 * Each kind is put at its limits (empty and longest names, all address families, largest numbers)
 * and read back. From each of those values every proper prefix, every one-byte extension, every
 * single bit flip, and every other slot or kind must be refused as damaged; a higher version with a
 * correct checksum must be refused as newer; and a value with a correct checksum that no encoder
 * writes must be refused as damaged. Batches are walked back to exactly what was put in. Values
 * that the first format wrote are read, and what is written now is newer than it.
 */
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SLOT = 0x01020304 };

static const uint8_t link_local[16] = {0xfe, 0x80, [14] = 1, [15] = 2};

static void test_record__server_comes_back(void **state)
{
    (void)state;
    struct record_server got;
    const struct sample *sample = &samples[SAMPLE_SERVER_LONG];
    struct bytes value = {sample->value, sample->len};
    assert_int_equal(record_get_server(value, &got), RECORD_GOOD);
    assert_true(got.txn == UINT64_MAX);
    assert_true(got.epoch == UINT64_MAX - 1);
    assert_true(got.next_id == UINT64_MAX - 2);
    assert_int_equal(got.state, UINT32_MAX);
    assert_int_equal(got.flags, RECORD_SERVER_INCOMPLETE);
    assert_int_equal(got.restart_state, UINT32_MAX - 2);
}

static void test_record__registrant_comes_back(void **state)
{
    (void)state;
    struct record_registrant put = sample_registrant(), got;
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
        .address = address_v6(link_local, "wlan0"),
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
    static const uint8_t expected[44] = {
        1, 0, 0, 4, 0, 0, 0,    0,    /* kind, version, checksum (below) */
        0, 0, 0, 0, 0, 0, 0x12, 0x34, /* txn */
        0, 0, 0, 0, 0, 0, 0,    5,    /* epoch */
        0, 0, 0, 0, 0, 0, 0,    42,   /* next_id */
        0, 0, 0, 7, 0, 0, 0,    1,    /* state, flags */
        0, 0, 0, 5,                   /* restart_state */
    };
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_server(
        value,
        &(struct record_server){
            .txn = 0x1234, .epoch = 5, .next_id = 42, .state = 7, .flags = 1, .restart_state = 5});
    assert_int_equal(len, sizeof expected);
    assert_memory_equal(value, expected, 4);
    assert_memory_equal(value + 8, expected + 8, sizeof expected - 8);
    struct sample sealed = {.kind = RECORD_SERVER, .slot = 0, .len = len};
    memcpy(sealed.value, expected, len);
    sample_reseal(&sealed);
    assert_memory_equal(value, sealed.value, len);
}

/* Values as the version with format 1 wrote them, checksum and all. */
static const uint8_t old_server[] = {
    0x01, 0x00, 0x00, 0x01, 0x76, 0xaa, 0x10, 0x3d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x12, 0x34, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x01,
};
static const uint8_t old_registrant[] = {
    /* under slot 3 */
    0x02, 0x00, 0x00, 0x01, 0x9a, 0xa9, 0x15, 0x3d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x11,
    0x17, 0x97, 0x9c, 0xfe, 0x36, 0x2a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05,
    0x04, 0xc0, 0x00, 0x02, 0x21, 0x00, 0x00, 0x00, 0x02, 0xbc, 0x00, 0x00, 0x00, 0x11, 0x00, 0x01,
    0x86, 0xb5, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00,
    0x00, 0x09, 0x01, 0x02, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x10, 0x00, 0x03, 0x73, 0x72, 0x76, 0x00, 0x02, 0x63, 0x6c,
};
static const uint8_t old_notice[] = {
    /* under slot 4 */
    0x03, 0x00, 0x00, 0x01, 0xd9, 0x48, 0x19, 0xb4, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x63, 0x04, 0xc0, 0x00, 0x02, 0x21, 0x00, 0x00, 0x00, 0x08, 0x00, 0x02, 0x63, 0x6c,
};

/* A store of the first format is used as it is; what is written anew has the same body. */
static void test_record__format_1_is_read(void **state)
{
    (void)state;
    uint8_t value[RECORD_VALUE_MAX];
    struct record_server server;
    struct bytes old = {old_server, sizeof old_server};
    assert_int_equal(record_get_server(old, &server), RECORD_GOOD);
    assert_true(server.txn == 0x1234 && server.next_id == 42 && server.flags == 1);
    assert_int_equal(server.restart_state, server.state); /* nobody was told another */
    assert_int_equal(record_put_server(value, &server), old.len + 4);
    assert_memory_equal(value + 8, old.at + 8, old.len - 8);

    struct record_registrant registrant;
    old = (struct bytes){old_registrant, sizeof old_registrant};
    assert_int_equal(record_get_registrant(old, 3, &registrant), RECORD_GOOD);
    assert_true(registrant.id == 17 && bytes_equal(registrant.my_name, bytes_of_text("cl")));
    assert_int_equal(record_put_registrant(value, 3, &registrant), old.len);
    assert_memory_equal(value + 8, old.at + 8, old.len - 8);

    struct record_notice notice;
    old = (struct bytes){old_notice, sizeof old_notice};
    assert_int_equal(record_get_notice(old, 4, &notice), RECORD_GOOD);
    assert_true(notice.heard_ns == 99 && notice.state == 8);
    assert_int_equal(record_put_notice(value, 4, &notice), old.len);
    assert_memory_equal(value + 8, old.at + 8, old.len - 8);
}

/* A notice of fe80::1 on an interface: by number as formats 1 to 3 had it, by name since 4. */
static uint32_t make_notice(uint8_t format, uint32_t number, const char *zone, uint8_t *value)
{
    struct sample sealed = {.kind = RECORD_NOTICE, .slot = 2};
    uint8_t bytes[128] = {
        RECORD_NOTICE, 0, 0, format, [8 + 7] = 9, [16] = 6, 0xfe, 0x80, [17 + 15] = 1};
    uint32_t len = 33;
    store_be32(bytes + len, number);
    len += 4;
    memcpy(bytes + len, zone, strlen(zone));
    len += (uint32_t)strlen(zone);
    store_be32(bytes + len, 8);
    len += 4;
    memcpy(bytes + len, "\0\1x", 3);
    len += 3;
    memcpy(sealed.value, bytes, len);
    sealed.len = len;
    sample_reseal(&sealed);
    memcpy(value, sealed.value, len);
    return len;
}

static enum record_result read_notice(uint8_t format, uint32_t number, const char *zone,
                                      struct record_notice *ret)
{
    static uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = make_notice(format, number, zone, value);
    return record_get_notice((struct bytes){value, len}, 2, ret);
}

static void test_record__interfaces_have_names_since_format_4(void **state)
{
    (void)state;
    struct record_notice got;
    assert_int_equal(read_notice(3, 0, "", &got), RECORD_GOOD);
    assert_string_equal(got.address.zone, "");
    assert_int_equal(read_notice(3, 3, "", &got), RECORD_GOOD);
    assert_string_equal(got.address.zone, "3"); /* which nobody who calls has */
    assert_int_equal(read_notice(1, UINT32_MAX, "", &got), RECORD_GOOD);
    assert_string_equal(got.address.zone, "4294967295");
    assert_int_equal(read_notice(4, 0, "", &got), RECORD_GOOD);
    assert_string_equal(got.address.zone, "");
    assert_int_equal(read_notice(4, 4, "eth0", &got), RECORD_GOOD);
    assert_string_equal(got.address.zone, "eth0");
    assert_int_equal(got.state, 8);
    /* What no encoder writes. */
    assert_int_equal(read_notice(4, 16, "enp65535s0f0np01", &got), RECORD_CORRUPT);
    assert_int_equal(read_notice(4, 4, "et 0", &got), RECORD_CORRUPT);
    assert_int_equal(read_notice(4, 200, "eth0", &got), RECORD_CORRUPT);
}

static uint8_t first_format(enum record_kind kind)
{
    return kind <= RECORD_NOTICE ? 1 : kind <= RECORD_SHARE ? 2 : 3;
}

/* An interface by its name, which older formats did not have (see above). */
static bool has_zone(const struct sample *sample)
{
    return memmem(sample->value, sample->len, "enp65535", 8) != NULL ||
           memmem(sample->value, sample->len, "eth0.7", 6) != NULL;
}

/* A kind under the number of a format that did not have it was never written. */
static void test_record__kinds_begin_with_their_format(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        for (uint8_t format = 1; format < RECORD_FORMAT; format++) {
            struct sample old = samples[i];
            old.value[3] = format;
            if (has_zone(&old))
                continue;
            if (old.kind == RECORD_SERVER && format < 3)
                old.len -= 4; /* it had no restart_state */
            assert_int_equal(sample_get(&old), RECORD_CORRUPT);
            sample_reseal(&old);
            assert_int_equal(sample_get(&old),
                             format >= first_format(old.kind) ? RECORD_GOOD : RECORD_CORRUPT);
        }
    }
}

/* Older versions verify the checksum, then refuse the store for a larger number of its format. So
 * whatever we write must have one, the server record above all, which is in every batch. */
static void test_record__older_versions_refuse_what_we_write(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        struct sample sealed = samples[i];
        sample_reseal(&sealed);
        assert_memory_equal(sealed.value, samples[i].value, sealed.len);
        assert_int_equal(sealed.value[2] << 8 | sealed.value[3], RECORD_FORMAT);
    }
}

static void test_record__samples_are_good(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        assert_int_equal(sample_get(&samples[i]), RECORD_GOOD);
}

static void test_record__every_other_length_is_corrupt(void **state)
{
    (void)state;
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

static void test_record__every_bit_flip_is_corrupt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        for (uint32_t bit = 0; bit < samples[i].len * 8; bit++) {
            struct sample flipped = samples[i];
            flipped.value[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(sample_get(&flipped), RECORD_CORRUPT);
        }
}

static void test_record__another_key_is_corrupt(void **state)
{
    (void)state;
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

static void test_record__higher_version_is_newer(void **state)
{
    (void)state;
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

static void test_record__what_nobody_writes_is_corrupt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        sample_refuse_changed(i, 0, 77); /* kind */
        sample_refuse_changed(i, 1, 1);  /* reserved */
        sample_refuse_changed(i, 3, 0);  /* version 0 */
    }
    sample_refuse_changed(SAMPLE_SERVER, 35, 2); /* server: even state */
    sample_refuse_changed(SAMPLE_SERVER, 39, 8); /* server: unknown flag */
    sample_refuse_changed(SAMPLE_SERVER, 36, 1);
    sample_refuse_changed(SAMPLE_REGISTRANT, 32, 5); /* registrant: family of the address */
    sample_refuse_changed(SAMPLE_REGISTRANT, 45, 0); /* transport */
    sample_refuse_changed(SAMPLE_REGISTRANT, 45, 18);
    sample_refuse_changed(SAMPLE_NOTICE, 16, 1); /* notice: family */

    /* A name longer than any may be, complete and with the right checksum. */
    struct sample long_sample = {.kind = RECORD_NOTICE, .slot = 9, .len = 8 + 8 + 1 + 4 + 2 + 1025};
    memcpy(long_sample.value, samples[SAMPLE_NOTICE].value, samples[SAMPLE_NOTICE].len);
    long_sample.value[8 + 8 + 1 + 4] = 1025 >> 8;
    long_sample.value[8 + 8 + 1 + 4 + 1] = 1025 & 0xff;
    sample_reseal(&long_sample);
    assert_int_equal(sample_get(&long_sample), RECORD_CORRUPT);
}

static void test_record__kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(record_kind_name(RECORD_SERVER), "server");
    assert_string_equal(record_kind_name(RECORD_REGISTRANT), "registrant");
    assert_string_equal(record_kind_name(RECORD_NOTICE), "notice");
    assert_string_equal(record_kind_name(RECORD_CLIENT), "client");
    assert_string_equal(record_kind_name(RECORD_LOCK), "lock");
    assert_string_equal(record_kind_name(RECORD_WAITER), "waiter");
    assert_string_equal(record_kind_name(RECORD_SHARE), "share");
    assert_string_equal(record_kind_name(RECORD_TRACKED), "tracked");
}

static void test_record__batch_is_walked_back(void **state)
{
    (void)state;
    uint8_t buffer[SAMPLE_COUNT * (RECORD_VALUE_MAX + 2 * BATCH_CHANGE_OVERHEAD)];
    struct batch_writer writer = {.start = buffer};
    uint64_t value_len = 0;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++)
        value_len += samples[i].len;
    /* Room to the byte: the writer may not ask for more than it says. */
    writer.max = value_len + (uint64_t)2 * SAMPLE_COUNT * BATCH_CHANGE_OVERHEAD;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        batch_put(&writer, samples[i].kind, samples[i].slot,
                  (struct bytes){samples[i].value, samples[i].len});
        batch_delete(&writer, RECORD_NOTICE, UINT32_MAX - i);
    }
    assert_int_equal(writer.count, 2 * SAMPLE_COUNT);
    assert_int_equal(writer.len, writer.max);

    struct store_batch batch = {.count = writer.count, .changes = {buffer, writer.len}};
    struct record_change change;
    uint64_t at = 0;
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
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
        cmocka_unit_test(test_record__format_1_is_read),
        cmocka_unit_test(test_record__interfaces_have_names_since_format_4),
        cmocka_unit_test(test_record__kinds_begin_with_their_format),
        cmocka_unit_test(test_record__older_versions_refuse_what_we_write),
        cmocka_unit_test(test_record__samples_are_good),
        cmocka_unit_test(test_record__every_other_length_is_corrupt),
        cmocka_unit_test(test_record__every_bit_flip_is_corrupt),
        cmocka_unit_test(test_record__another_key_is_corrupt),
        cmocka_unit_test(test_record__higher_version_is_newer),
        cmocka_unit_test(test_record__what_nobody_writes_is_corrupt),
        cmocka_unit_test(test_record__kinds_have_names),
        cmocka_unit_test(test_record__batch_is_walked_back),
    };
    return cmocka_run_group_tests(tests, samples_make, NULL);
}
