/*
 * samples.c -- values of every kind of record at their limits; see samples.h.
 */
#include "samples.h"

#include "base/check.h"
#include "store/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SLOT = 0x01020304 };

struct sample samples[SAMPLE_COUNT];

static uint8_t long_name[RECORD_NAME_MAX], other_name[RECORD_NAME_MAX], long_fh[RECORD_FH_MAX];
static const uint8_t v4[4] = {192, 0, 2, 33};
static const uint8_t link_local[16] = {0xfe, 0x80, [14] = 1, [15] = 2};

static const struct record_of largest_of = {
    .client_id = UINT64_MAX,
    .client = RECORD_SLOT_MAX - 1,
    .incarnation = UINT32_MAX,
    .state = UINT32_MAX - 1,
};

struct record_registrant sample_registrant(void)
{
    struct record_registrant record = {
        .id = UINT64_MAX,
        .registered_ns = UINT64_MAX - 1,
        .server_epoch = UINT64_MAX - 2,
        .address = address_v6(link_local, "enp65535s0f0np0"),
        .local = address_v6(link_local, "eth0.7"),
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

struct record_client sample_client(void)
{
    return (struct record_client){
        .id = UINT64_MAX,
        .registered_ns = UINT64_MAX - 1,
        .seen_ns = UINT64_MAX - 2,
        .rebooted_ns = UINT64_MAX - 3,
        .untold_ns = UINT64_MAX - 4,
        .server_epoch = UINT64_MAX - 5,
        .address = address_v6(link_local, "enp65535s0f0np0"),
        .local = address_v6(link_local, "eth0.7"),
        .transport = RECORD_UDP,
        .versions = 1 << 1 | 1 << 3 | 1 << 4,
        .grant_proc = 10,
        .state_seen = UINT32_MAX,
        .free_below = UINT32_MAX - 1,
        .told_state = UINT32_MAX - 2,
        .incarnation = UINT32_MAX - 3,
        .flags = RECORD_CLIENT_MONITORED | RECORD_CLIENT_CRASHED | RECORD_CLIENT_UNUSED |
                 RECORD_CLIENT_RECOUNTED | RECORD_CLIENT_WAITS,
        .caller_name = {long_name, RECORD_NAME_MAX},
    };
}

struct record_lock sample_lock(void)
{
    return (struct record_lock){
        .of = largest_of,
        .granted_ns = UINT64_MAX - 1,
        .start = UINT64_MAX - 2,
        .end = UINT64_MAX,
        .len = UINT64_MAX - 3,
        .svid = UINT32_MAX - 4,
        .flags = RECORD_LOCK_EXCLUSIVE | RECORD_LOCK_OFFER | RECORD_LOCK_UNMONITORED,
        .fh = {long_fh, RECORD_FH_MAX},
        .oh = {other_name, RECORD_NAME_MAX},
    };
}

struct record_waiter sample_waiter(void)
{
    return (struct record_waiter){
        .of = largest_of,
        .queued_ns = UINT64_MAX - 1,
        .order = UINT64_MAX - 2,
        .cookie = UINT64_MAX - 3,
        .offset = UINT64_MAX - 4,
        .len = UINT64_MAX - 5,
        .local = address_v6(link_local, "enp65535s0f0np0"),
        .offer = RECORD_SLOT_MAX - 1,
        .svid = UINT32_MAX,
        .version = 4,
        .transport = RECORD_TCP,
        .flags = RECORD_WAITER_EXCLUSIVE | RECORD_WAITER_MESSAGE,
        .caller_name = {long_name, RECORD_NAME_MAX},
        .fh = {long_fh, RECORD_FH_MAX},
        .oh = {other_name, RECORD_NAME_MAX},
    };
}

struct record_share sample_share(void)
{
    return (struct record_share){
        .of = largest_of,
        .granted_ns = UINT64_MAX - 1,
        .mode = 3,
        .access = 2,
        .flags = RECORD_LOCK_UNMONITORED,
        .fh = {long_fh, RECORD_FH_MAX},
        .oh = {other_name, RECORD_NAME_MAX},
    };
}

struct record_tracked sample_tracked(void)
{
    return (struct record_tracked){
        .id = UINT64_MAX,
        .registered_ns = UINT64_MAX - 1,
        .server_epoch = UINT64_MAX - 2,
        .deadline_ns = UINT64_MAX - 3,
        .address = address_v6(link_local, "enp65535s0f0np0"),
        .window_s = UINT32_MAX,
        .ttl_s = UINT32_MAX - 1,
        .generation = UINT32_MAX - 2,
        .state = RECORD_TRACKED_EXPIRED,
        .protocol = {(const uint8_t *)"smb-3-azaz-09-lo", RECORD_PROTOCOL_MAX},
        .key = {long_fh, RECORD_KEY_MAX},
        .bytes = {other_name, RECORD_BYTES_MAX},
    };
}

static struct sample *begin(enum sample_name name, enum record_kind kind, uint32_t slot)
{
    samples[name] = (struct sample){.kind = kind, .slot = slot};
    return &samples[name];
}

static void make_old_kinds(void)
{
    struct sample *sample = begin(SAMPLE_SERVER_LONG, RECORD_SERVER, 0);
    sample->len =
        record_put_server(sample->value, &(struct record_server){.txn = UINT64_MAX,
                                                                 .epoch = UINT64_MAX - 1,
                                                                 .next_id = UINT64_MAX - 2,
                                                                 .state = UINT32_MAX,
                                                                 .flags = RECORD_SERVER_INCOMPLETE,
                                                                 .restart_state = UINT32_MAX - 2});
    sample = begin(SAMPLE_SERVER, RECORD_SERVER, 0);
    sample->len =
        record_put_server(sample->value, &(struct record_server){.state = 1, .restart_state = 1});

    struct record_registrant registrant = sample_registrant();
    sample = begin(SAMPLE_REGISTRANT_LONG, RECORD_REGISTRANT, SLOT);
    sample->len = record_put_registrant(sample->value, SLOT, &registrant);
    sample = begin(SAMPLE_REGISTRANT, RECORD_REGISTRANT, 0);
    sample->len = record_put_registrant(
        sample->value, 0,
        &(struct record_registrant){.transport = RECORD_UDP, .address = address_v4(v4)});
    sample = begin(SAMPLE_NOTICE_LONG, RECORD_NOTICE, UINT32_MAX);
    sample->len = record_put_notice(sample->value, UINT32_MAX,
                                    &(struct record_notice){.heard_ns = 5,
                                                            .state = UINT32_MAX,
                                                            .address = address_v4(v4),
                                                            .mon_name = registrant.mon_name});
    sample = begin(SAMPLE_NOTICE, RECORD_NOTICE, 9);
    sample->len = record_put_notice(sample->value, 9, &(struct record_notice){0});
}

static void make_lock_kinds(void)
{
    static const struct record_of least_of = {.incarnation = 1};
    const struct bytes fh = {long_fh, 1};

    struct record_client client = sample_client();
    struct sample *sample = begin(SAMPLE_CLIENT_LONG, RECORD_CLIENT, SLOT);
    sample->len = record_put_client(sample->value, SLOT, &client);
    sample = begin(SAMPLE_CLIENT, RECORD_CLIENT, 0);
    sample->len = record_put_client(
        sample->value, 0, &(struct record_client){.transport = RECORD_TCP, .incarnation = 1});

    struct record_lock lock = sample_lock();
    sample = begin(SAMPLE_LOCK_LONG, RECORD_LOCK, SLOT);
    sample->len = record_put_lock(sample->value, SLOT, &lock);
    sample = begin(SAMPLE_LOCK, RECORD_LOCK, 3);
    sample->len =
        record_put_lock(sample->value, 3, &(struct record_lock){.of = least_of, .fh = fh});

    struct record_waiter waiter = sample_waiter();
    sample = begin(SAMPLE_WAITER_LONG, RECORD_WAITER, SLOT);
    sample->len = record_put_waiter(sample->value, SLOT, &waiter);
    sample = begin(SAMPLE_WAITER, RECORD_WAITER, UINT32_MAX);
    sample->len = record_put_waiter(
        sample->value, UINT32_MAX,
        &(struct record_waiter){
            .of = least_of, .offer = UINT32_MAX, .version = 1, .transport = RECORD_UDP, .fh = fh});

    struct record_share share = sample_share();
    sample = begin(SAMPLE_SHARE_LONG, RECORD_SHARE, SLOT);
    sample->len = record_put_share(sample->value, SLOT, &share);
    sample = begin(SAMPLE_SHARE, RECORD_SHARE, 7);
    sample->len =
        record_put_share(sample->value, 7, &(struct record_share){.of = least_of, .fh = fh});
}

static void make_tracked_kind(void)
{
    struct record_tracked tracked = sample_tracked();
    struct sample *sample = begin(SAMPLE_TRACKED_LONG, RECORD_TRACKED, SLOT);
    sample->len = record_put_tracked(sample->value, SLOT, &tracked);
    sample = begin(SAMPLE_TRACKED, RECORD_TRACKED, 4);
    sample->len = record_put_tracked(sample->value, 4,
                                     &(struct record_tracked){.generation = 1,
                                                              .state = RECORD_TRACKED_CONNECTED,
                                                              .protocol = bytes_of_text("s"),
                                                              .key = {long_fh, 1}});
}

int samples_make(void **state)
{
    (void)state;
    for (size_t i = 0; i < RECORD_NAME_MAX; i++) {
        long_name[i] = (uint8_t)i;
        other_name[i] = (uint8_t)(255 - i % 256);
    }
    for (size_t i = 0; i < RECORD_FH_MAX; i++)
        long_fh[i] = (uint8_t)(3 * i + 1);
    make_old_kinds();
    make_lock_kinds();
    make_tracked_kind();
    return 0;
}

enum record_result sample_get_as(enum record_kind kind, uint32_t slot, const uint8_t *value,
                                 uint32_t len)
{
    union {
        struct record_server server;
        struct record_registrant registrant;
        struct record_notice notice;
        struct record_client client;
        struct record_lock lock;
        struct record_waiter waiter;
        struct record_share share;
        struct record_tracked tracked;
    } record, before;
    memset(&record, 0xa5, sizeof record);
    memset(&before, 0xa5, sizeof before);
    /* A copy of exactly this length lets the address sanitizer see a read past the end. */
    uint8_t *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, value, len);
    const struct bytes bytes = {copy, len};
    enum record_result result = RECORD_GOOD;
    switch (kind) {
    case RECORD_SERVER:
        result = record_get_server(bytes, &record.server);
        break;
    case RECORD_REGISTRANT:
        result = record_get_registrant(bytes, slot, &record.registrant);
        break;
    case RECORD_NOTICE:
        result = record_get_notice(bytes, slot, &record.notice);
        break;
    case RECORD_CLIENT:
        result = record_get_client(bytes, slot, &record.client);
        break;
    case RECORD_LOCK:
        result = record_get_lock(bytes, slot, &record.lock);
        break;
    case RECORD_WAITER:
        result = record_get_waiter(bytes, slot, &record.waiter);
        break;
    case RECORD_SHARE:
        result = record_get_share(bytes, slot, &record.share);
        break;
    case RECORD_TRACKED:
        result = record_get_tracked(bytes, slot, &record.tracked);
        break;
    case RECORD_KIND_END:
        UNREACHABLE();
    }
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

void sample_refuse_changed(enum sample_name name, uint32_t at, uint8_t byte)
{
    struct sample changed = samples[name];
    assert_true(at < changed.len && changed.value[at] != byte);
    changed.value[at] = byte;
    sample_reseal(&changed);
    assert_int_equal(sample_get(&changed), RECORD_CORRUPT);
}
