/*
 * test_record_lock.c -- shows that clients, locks, waiters and shares survive their bytes, and that
 * what no encoder writes is refused.
 *
 * Each kind is read back field by field at its limits. For each rule about a field one byte of a
 * good value is changed to break that rule alone, with a checksum that fits, and must be refused;
 * its neighbours that keep the rule must be accepted, so that a rule cannot be stricter than it
 * says. One lock is compared with bytes written down by hand. Prefixes, extensions, flipped bits
 * and other keys of these kinds are in test_record.c, which runs over all samples.
 */
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
    SLOT = 5,
    BODY = 8,
    OF_LEN = 20,
    /* Where fields of the short samples end: big-endian, so the last byte is the lowest. */
    CLIENT_TRANSPORT = BODY + 6 * 8 + 2 + 3,
    CLIENT_VERSIONS = CLIENT_TRANSPORT + 4,
    CLIENT_GRANT_PROC = CLIENT_VERSIONS + 4,
    CLIENT_INCARNATION = CLIENT_GRANT_PROC + 16,
    CLIENT_FLAGS = CLIENT_INCARNATION + 4,
    OF_CLIENT = BODY + 8 + 3,
    OF_INCARNATION = OF_CLIENT + 4,
    LOCK_START = BODY + OF_LEN + 8 + 7,
    LOCK_END = LOCK_START + 8,
    LOCK_FLAGS = LOCK_END + 8 + 4 + 4,
    LOCK_FH_LEN = LOCK_FLAGS + 1,
    WAITER_OFFER = BODY + OF_LEN + 5 * 8 + 1 + 3,
    WAITER_VERSION = WAITER_OFFER + 8,
    WAITER_TRANSPORT = WAITER_VERSION + 4,
    WAITER_FLAGS = WAITER_TRANSPORT + 4,
    WAITER_FH_LEN = WAITER_FLAGS + 1 + 2,
    SHARE_MODE = BODY + OF_LEN + 8 + 3,
    SHARE_ACCESS = SHARE_MODE + 4,
    SHARE_FLAGS = SHARE_ACCESS + 4,
    SHARE_FH_LEN = SHARE_FLAGS + 1,
};

static void expect_same_of(const struct record_of *got, const struct record_of *put)
{
    assert_true(got->client_id == put->client_id);
    assert_int_equal(got->client, put->client);
    assert_int_equal(got->incarnation, put->incarnation);
    assert_int_equal(got->state, put->state);
}

static void test_record_lock__client_comes_back(void **state)
{
    (void)state;
    struct record_client put = sample_client(), got;
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_client(value, SLOT, &put);
    assert_int_equal(record_get_client((struct bytes){value, len}, SLOT, &got), RECORD_GOOD);
    assert_true(got.id == put.id);
    assert_true(got.registered_ns == put.registered_ns);
    assert_true(got.seen_ns == put.seen_ns);
    assert_true(got.rebooted_ns == put.rebooted_ns);
    assert_true(got.untold_ns == put.untold_ns);
    assert_true(got.server_epoch == put.server_epoch);
    assert_true(address_equal(&got.address, &put.address));
    assert_true(address_equal(&got.local, &put.local));
    assert_int_equal(got.transport, put.transport);
    assert_int_equal(got.versions, put.versions);
    assert_int_equal(got.grant_proc, put.grant_proc);
    assert_int_equal(got.state_seen, put.state_seen);
    assert_int_equal(got.free_below, put.free_below);
    assert_int_equal(got.told_state, put.told_state);
    assert_int_equal(got.incarnation, put.incarnation);
    assert_int_equal(got.flags, put.flags);
    assert_true(bytes_equal(got.caller_name, put.caller_name));
}

static void test_record_lock__lock_comes_back(void **state)
{
    (void)state;
    struct record_lock put = sample_lock(), got;
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_lock(value, SLOT, &put);
    assert_int_equal(record_get_lock((struct bytes){value, len}, SLOT, &got), RECORD_GOOD);
    expect_same_of(&got.of, &put.of);
    assert_true(got.granted_ns == put.granted_ns);
    assert_true(got.start == put.start);
    assert_true(got.end == put.end);
    assert_true(got.len == put.len);
    assert_int_equal(got.svid, put.svid);
    assert_int_equal(got.flags, put.flags);
    assert_true(bytes_equal(got.fh, put.fh));
    assert_true(bytes_equal(got.oh, put.oh));
}

static void test_record_lock__waiter_comes_back(void **state)
{
    (void)state;
    struct record_waiter put = sample_waiter(), got;
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_waiter(value, SLOT, &put);
    assert_int_equal(record_get_waiter((struct bytes){value, len}, SLOT, &got), RECORD_GOOD);
    expect_same_of(&got.of, &put.of);
    assert_true(got.queued_ns == put.queued_ns);
    assert_true(got.order == put.order);
    assert_true(got.cookie == put.cookie);
    assert_true(got.offset == put.offset);
    assert_true(got.len == put.len);
    assert_true(address_equal(&got.local, &put.local));
    assert_int_equal(got.offer, put.offer);
    assert_int_equal(got.svid, put.svid);
    assert_int_equal(got.version, put.version);
    assert_int_equal(got.transport, put.transport);
    assert_int_equal(got.flags, put.flags);
    assert_true(bytes_equal(got.caller_name, put.caller_name));
    assert_true(bytes_equal(got.fh, put.fh));
    assert_true(bytes_equal(got.oh, put.oh));
}

static void test_record_lock__share_comes_back(void **state)
{
    (void)state;
    struct record_share put = sample_share(), got;
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_share(value, SLOT, &put);
    assert_int_equal(record_get_share((struct bytes){value, len}, SLOT, &got), RECORD_GOOD);
    expect_same_of(&got.of, &put.of);
    assert_true(got.granted_ns == put.granted_ns);
    assert_int_equal(got.mode, put.mode);
    assert_int_equal(got.access, put.access);
    assert_int_equal(got.flags, put.flags);
    assert_true(bytes_equal(got.fh, put.fh));
    assert_true(bytes_equal(got.oh, put.oh));
}

/* The stored format is a promise: these bytes may change only together with RECORD_FORMAT. */
static void test_record_lock__lock_has_these_bytes(void **state)
{
    (void)state;
    static const uint8_t fh[] = {0xaa, 0xbb, 0xcc}, oh[] = {'7', '@', 'c'};
    static const uint8_t expected[] = {
        5,    0,    0,    4,    0,   0,   0,   0,        /* kind, version, checksum (below) */
        0,    0,    0,    0,    0,   0,   1,   2,        /* client_id */
        0,    0,    0,    3,    0,   0,   0,   4,        /* client, incarnation */
        0,    0,    0,    5,                             /* state */
        0,    0,    0,    0,    0,   0,   0,   6,        /* granted_ns */
        0,    0,    0,    0,    0,   0,   0,   7,        /* start */
        0xff, 0xff, 0xff, 0xff, 255, 255, 255, 255,      /* end */
        0,    0,    0,    0,    0,   0,   0,   0,        /* len */
        0,    0,    0,    9,    0,   0,   0,   1,        /* svid, flags */
        3,    0xaa, 0xbb, 0xcc, 0,   3,   '7', '@', 'c', /* fh, oh */
    };
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len =
        record_put_lock(value, SLOT,
                        &(struct record_lock){
                            .of = {.client_id = 0x102, .client = 3, .incarnation = 4, .state = 5},
                            .granted_ns = 6,
                            .start = 7,
                            .end = UINT64_MAX,
                            .svid = 9,
                            .flags = RECORD_LOCK_EXCLUSIVE,
                            .fh = {fh, sizeof fh},
                            .oh = {oh, sizeof oh},
                        });
    struct sample sealed = {.kind = RECORD_LOCK, .slot = SLOT, .len = sizeof expected};
    memcpy(sealed.value, expected, sizeof expected);
    sample_reseal(&sealed);
    assert_int_equal(len, sizeof expected);
    assert_memory_equal(value, sealed.value, len);
}

/* Like sample_refuse_changed, for what keeps the rules. */
static void accept_changed(enum sample_name name, uint32_t at, uint8_t byte)
{
    struct sample changed = samples[name];
    assert_true(at < changed.len && changed.value[at] != byte);
    changed.value[at] = byte;
    sample_reseal(&changed);
    assert_int_equal(sample_get(&changed), RECORD_GOOD);
}

static void test_record_lock__odd_clients_are_corrupt(void **state)
{
    (void)state;
    sample_refuse_changed(SAMPLE_CLIENT, BODY + 6 * 8, 5);     /* family of address */
    sample_refuse_changed(SAMPLE_CLIENT, BODY + 6 * 8 + 1, 7); /* family of local */
    sample_refuse_changed(SAMPLE_CLIENT, CLIENT_TRANSPORT, 0);
    sample_refuse_changed(SAMPLE_CLIENT, CLIENT_TRANSPORT, 7);
    sample_refuse_changed(SAMPLE_CLIENT, CLIENT_TRANSPORT - 1, 1);
    accept_changed(SAMPLE_CLIENT, CLIENT_TRANSPORT, RECORD_UDP);
    for (uint32_t bit = 0; bit < 8; bit++)
        if (bit == 1 || bit == 3 || bit == 4)
            accept_changed(SAMPLE_CLIENT, CLIENT_VERSIONS, (uint8_t)(1u << bit));
        else
            sample_refuse_changed(SAMPLE_CLIENT, CLIENT_VERSIONS, (uint8_t)(1u << bit));
    for (uint8_t procedure = 1; procedure < 24; procedure++)
        if (procedure == 5 || procedure == 10)
            accept_changed(SAMPLE_CLIENT, CLIENT_GRANT_PROC, procedure);
        else
            sample_refuse_changed(SAMPLE_CLIENT, CLIENT_GRANT_PROC, procedure);
    sample_refuse_changed(SAMPLE_CLIENT, CLIENT_INCARNATION, 0);
    sample_refuse_changed(SAMPLE_CLIENT, CLIENT_FLAGS, 64);
    sample_refuse_changed(SAMPLE_CLIENT, CLIENT_FLAGS - 3, 0x80);
    accept_changed(SAMPLE_CLIENT, CLIENT_FLAGS, 63);
}

/* Rules that all three share: whose it is, and the file. */
static void refuse_odd_owners(enum sample_name name, uint32_t fh_len_at)
{
    sample_refuse_changed(name, OF_INCARNATION, 0);
    sample_refuse_changed(name, OF_CLIENT - 3, 1); /* no client has such a slot */
    accept_changed(name, OF_CLIENT - 2, 0x80);
    sample_refuse_changed(name, fh_len_at, 0);
    sample_refuse_changed(name, fh_len_at, 2);

    /* A handle of any length up to the longest, with a body that ends where it should. */
    for (uint32_t len = 0; len <= UINT8_MAX; len++) {
        struct sample changed = samples[name];
        uint32_t tail_len = changed.len - fh_len_at - 2;
        memmove(changed.value + fh_len_at + 1 + len, changed.value + fh_len_at + 2, tail_len);
        changed.value[fh_len_at] = (uint8_t)len;
        changed.len = fh_len_at + 1 + len + tail_len;
        sample_reseal(&changed);
        bool is_good = len > 0 && len <= RECORD_FH_MAX;
        assert_int_equal(sample_get(&changed), is_good ? RECORD_GOOD : RECORD_CORRUPT);
    }

    /* An owner handle one byte too long, and the longest. */
    for (uint32_t len = RECORD_NAME_MAX; len <= RECORD_NAME_MAX + 1; len++) {
        struct sample changed = samples[name];
        changed.value[changed.len - 2] = (uint8_t)(len >> 8);
        changed.value[changed.len - 1] = (uint8_t)len;
        changed.len += len;
        sample_reseal(&changed);
        assert_int_equal(sample_get(&changed),
                         len == RECORD_NAME_MAX ? RECORD_GOOD : RECORD_CORRUPT);
    }
}

static void test_record_lock__odd_locks_are_corrupt(void **state)
{
    (void)state;
    refuse_odd_owners(SAMPLE_LOCK, LOCK_FH_LEN);
    sample_refuse_changed(SAMPLE_LOCK, LOCK_START, 1); /* start 1, end 0 */
    sample_refuse_changed(SAMPLE_LOCK, LOCK_START - 7, 0x80);
    accept_changed(SAMPLE_LOCK, LOCK_END, 1);
    sample_refuse_changed(SAMPLE_LOCK, LOCK_FLAGS, 8); /* it lingers, and is no offer */
    accept_changed(SAMPLE_LOCK, LOCK_FLAGS, 10);
    sample_refuse_changed(SAMPLE_LOCK, LOCK_FLAGS, 16);
    sample_refuse_changed(SAMPLE_LOCK, LOCK_FLAGS - 3, 1);
    accept_changed(SAMPLE_LOCK, LOCK_FLAGS, 7);
}

static void test_record_lock__odd_waiters_are_corrupt(void **state)
{
    (void)state;
    refuse_odd_owners(SAMPLE_WAITER, WAITER_FH_LEN);
    sample_refuse_changed(SAMPLE_WAITER, BODY + OF_LEN + 5 * 8, 5); /* family of local */
    sample_refuse_changed(SAMPLE_WAITER, WAITER_OFFER, 0xfe);       /* neither a slot nor none */
    sample_refuse_changed(SAMPLE_WAITER_LONG, WAITER_OFFER + 20, 0x80); /* RECORD_SLOT_MAX */
    for (uint8_t version = 0; version < 9; version++)
        if (version == 3 || version == 4)
            accept_changed(SAMPLE_WAITER, WAITER_VERSION, version);
        else if (version != 1)
            sample_refuse_changed(SAMPLE_WAITER, WAITER_VERSION, version);
    sample_refuse_changed(SAMPLE_WAITER, WAITER_TRANSPORT, 0);
    accept_changed(SAMPLE_WAITER, WAITER_TRANSPORT, RECORD_TCP);
    sample_refuse_changed(SAMPLE_WAITER, WAITER_FLAGS, 4);
    accept_changed(SAMPLE_WAITER, WAITER_FLAGS, 3);
}

static void test_record_lock__odd_shares_are_corrupt(void **state)
{
    (void)state;
    refuse_odd_owners(SAMPLE_SHARE, SHARE_FH_LEN);
    for (uint8_t mode = 1; mode < 4; mode++) {
        accept_changed(SAMPLE_SHARE, SHARE_MODE, mode);
        accept_changed(SAMPLE_SHARE, SHARE_ACCESS, mode);
    }
    sample_refuse_changed(SAMPLE_SHARE, SHARE_MODE, 4);
    sample_refuse_changed(SAMPLE_SHARE, SHARE_ACCESS, 4);
    sample_refuse_changed(SAMPLE_SHARE, SHARE_MODE - 1, 1);
    for (uint32_t bit = 0; bit < 8; bit++)
        if (1u << bit == RECORD_LOCK_UNMONITORED)
            accept_changed(SAMPLE_SHARE, SHARE_FLAGS, (uint8_t)(1u << bit));
        else
            sample_refuse_changed(SAMPLE_SHARE, SHARE_FLAGS, (uint8_t)(1u << bit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_lock__client_comes_back),
        cmocka_unit_test(test_record_lock__lock_comes_back),
        cmocka_unit_test(test_record_lock__waiter_comes_back),
        cmocka_unit_test(test_record_lock__share_comes_back),
        cmocka_unit_test(test_record_lock__lock_has_these_bytes),
        cmocka_unit_test(test_record_lock__odd_clients_are_corrupt),
        cmocka_unit_test(test_record_lock__odd_locks_are_corrupt),
        cmocka_unit_test(test_record_lock__odd_waiters_are_corrupt),
        cmocka_unit_test(test_record_lock__odd_shares_are_corrupt),
    };
    return cmocka_run_group_tests(tests, samples_make, NULL);
}
