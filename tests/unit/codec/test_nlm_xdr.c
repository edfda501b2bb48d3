/*
 * test_nlm_xdr.c -- what NLM bodies mean and how far they may go: every rule of R-RNG-1 at both
 * sides of its edge, every status in every version (R-NLM-5), holders that 32 bits cannot say
 * (R-NLM-6), lengths at and beyond their limits (R-NLM-1), and outputs untouched by a failure.
 *
 * Bodies are built with the builder of xdr.h. The bytes themselves are checked by the vectors, and
 * against libtirpc by vectors/oracle.
 */
#include "codec/nlm_xdr.h"
#include "unit/test.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define END          UINT64_MAX

static const uint32_t versions[] = {1, 3, 4};
static uint8_t buffer[8192];

/* A lock to be written; lengths beyond the limits are the point of some tests. */
struct draft {
    uint32_t cookie_len, name_len, fh_len, oh_len;
    uint64_t offset, len;
};

static const struct draft plain = {4, 3, 32, 5, 0, 0};

static struct bytes filled(uint32_t len)
{
    static uint8_t bytes[2048];
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    return (struct bytes){bytes, len};
}

static void put_range(struct xdr_out *out, uint32_t version, uint64_t offset, uint64_t len)
{
    if (version == 4) {
        xdr_put_u64(out, offset);
        xdr_put_u64(out, len);
        return;
    }
    assert_true(offset <= UINT32_MAX && len <= UINT32_MAX);
    xdr_put_u32(out, (uint32_t)offset);
    xdr_put_u32(out, (uint32_t)len);
}

/* The arguments of a procedure: NLM_TEST, NLM_LOCK, NLM_CANCEL or NLM_UNLOCK. */
static struct bytes body(enum nlm_procedure procedure, uint32_t version, const struct draft *draft)
{
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, filled(draft->cookie_len));
    if (procedure == NLM_LOCK || procedure == NLM_CANCEL)
        xdr_put_u32(&out, 1);
    if (procedure != NLM_UNLOCK)
        xdr_put_u32(&out, 2); /* true, as any number but 0 */
    xdr_put_opaque(&out, filled(draft->name_len));
    xdr_put_opaque(&out, filled(draft->fh_len));
    xdr_put_opaque(&out, filled(draft->oh_len));
    xdr_put_u32(&out, 0x80000007);
    put_range(&out, version, draft->offset, draft->len);
    if (procedure == NLM_LOCK) {
        xdr_put_u32(&out, 1);
        xdr_put_u32(&out, 11);
    }
    assert_false(out.overflowed);
    return (struct bytes){buffer, xdr_out_len(&out)};
}

static bool get(enum nlm_procedure procedure, uint32_t version, struct bytes data,
                struct nlm_args *ret)
{
    struct xdr_in in = xdr_in_of(data);
    if (procedure == NLM_TEST)
        return nlm_xdr_get_test(&in, version, ret);
    if (procedure == NLM_LOCK)
        return nlm_xdr_get_lock(&in, version, ret);
    if (procedure == NLM_CANCEL)
        return nlm_xdr_get_cancel(&in, version, ret);
    assert_int_equal(procedure, NLM_UNLOCK);
    return nlm_xdr_get_unlock(&in, version, ret);
}

static const enum nlm_procedure lock_procedures[] = {NLM_TEST, NLM_LOCK, NLM_CANCEL, NLM_UNLOCK};

TEST(test_nlm_xdr__versions_and_handles)
{
    for (uint32_t version = 0; version < 8; version++)
        assert_int_equal(nlm_xdr_is_version(version), version == 1 || version == 3 || version == 4);
    for (uint32_t len = 0; len <= 1024; len++) {
        assert_int_equal(nlm_xdr_is_handle(1, filled(len)), len == 32);
        assert_int_equal(nlm_xdr_is_handle(3, filled(len)), len == 32);
        assert_int_equal(nlm_xdr_is_handle(4, filled(len)), len >= 1 && len <= 64);
    }
}

TEST(test_nlm_xdr__every_field_is_read)
{
    struct draft draft = {8, 3, 32, 5, 4096, 100};
    for (size_t v = 0; v < COUNT(versions); v++) {
        for (size_t p = 0; p < COUNT(lock_procedures); p++) {
            enum nlm_procedure procedure = lock_procedures[p];
            struct nlm_args args;
            memset(&args, 0xee, sizeof args);
            assert_true(get(procedure, versions[v], body(procedure, versions[v], &draft), &args));
            assert_true(bytes_equal(args.cookie, filled(8)));
            assert_int_equal(args.block, procedure == NLM_LOCK || procedure == NLM_CANCEL);
            assert_int_equal(args.exclusive, procedure != NLM_UNLOCK);
            assert_int_equal(args.reclaim, procedure == NLM_LOCK);
            assert_int_equal(args.state, procedure == NLM_LOCK ? 11 : 0);
            assert_true(bytes_equal(args.lock.caller_name, filled(3)));
            assert_true(bytes_equal(args.lock.fh, filled(32)));
            assert_true(bytes_equal(args.lock.oh, filled(5)));
            assert_int_equal(args.lock.svid, 0x80000007);
            assert_int_equal(args.lock.offset, 4096);
            assert_int_equal(args.lock.len, 100);
            assert_int_equal(args.lock.range, NLM_RANGE_GOOD);
            assert_int_equal(args.lock.start, 4096);
            assert_int_equal(args.lock.end, 4195);
        }
    }
}

struct range_row {
    uint64_t offset, len;
    enum nlm_range range;
    uint64_t start, end;
};

static void check_ranges(uint32_t version, const struct range_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct draft draft = plain;
        draft.offset = rows[i].offset;
        draft.len = rows[i].len;
        for (size_t p = 0; p < COUNT(lock_procedures); p++) {
            struct nlm_args args;
            struct bytes data = body(lock_procedures[p], version, &draft);
            assert_true(get(lock_procedures[p], version, data, &args));
            assert_int_equal(args.lock.offset, rows[i].offset);
            assert_int_equal(args.lock.len, rows[i].len);
            assert_int_equal(args.lock.range, rows[i].range);
            assert_int_equal(args.lock.start, rows[i].start);
            assert_int_equal(args.lock.end, rows[i].end);
        }
    }
}

TEST(test_nlm_xdr__ranges_of_64_bits)
{
    const uint64_t max = INT64_MAX;
    const struct range_row rows[] = {
        /* Within the largest file. */
        {0, 1, NLM_RANGE_GOOD, 0, 0},
        {5, 1, NLM_RANGE_GOOD, 5, 5},
        {0, 100, NLM_RANGE_GOOD, 0, 99},
        {0, UINT32_MAX, NLM_RANGE_GOOD, 0, UINT32_MAX - 1}, /* no end of file in 64 bits */
        {UINT32_MAX, 2, NLM_RANGE_GOOD, UINT32_MAX, UINT64_C(0x100000000)},
        {0, max + 1, NLM_RANGE_GOOD, 0, max},
        {1, max, NLM_RANGE_GOOD, 1, max},
        {max, 1, NLM_RANGE_GOOD, max, max},
        {max - 1, 2, NLM_RANGE_GOOD, max - 1, max},
        /* Length 0 and all ones: to the end. */
        {0, 0, NLM_RANGE_GOOD, 0, END},
        {7, 0, NLM_RANGE_GOOD, 7, END},
        {max, 0, NLM_RANGE_GOOD, max, END},
        {0, UINT64_MAX, NLM_RANGE_GOOD, 0, END},
        {7, UINT64_MAX, NLM_RANGE_GOOD, 7, END},
        {max, UINT64_MAX, NLM_RANGE_GOOD, max, END},
        /* The last byte lies beyond any file and still in 64 bits: to the end. */
        {0, max + 2, NLM_RANGE_GOOD, 0, END},
        {1, max + 1, NLM_RANGE_GOOD, 1, END},
        {max, 2, NLM_RANGE_GOOD, max, END},
        {0, UINT64_MAX - 1, NLM_RANGE_GOOD, 0, END},
        {1, UINT64_MAX - 1, NLM_RANGE_GOOD, 1, END},
        {2, UINT64_MAX - 1, NLM_RANGE_GOOD, 2, END}, /* the last byte is 2^64 - 1 */
        {max, max + 2, NLM_RANGE_GOOD, max, END},    /* and here */
        /* The last byte does not fit. */
        {3, UINT64_MAX - 1, NLM_RANGE_TOO_BIG, 0, 0},
        {max, max + 3, NLM_RANGE_TOO_BIG, 0, 0},
        {max, UINT64_MAX - 1, NLM_RANGE_TOO_BIG, 0, 0},
        /* No file has a byte there to start at, whatever the length. */
        {max + 1, 0, NLM_RANGE_TOO_BIG, 0, 0},
        {max + 1, 1, NLM_RANGE_TOO_BIG, 0, 0},
        {max + 1, UINT64_MAX, NLM_RANGE_TOO_BIG, 0, 0},
        {UINT64_MAX, 0, NLM_RANGE_TOO_BIG, 0, 0},
        {UINT64_MAX, 1, NLM_RANGE_TOO_BIG, 0, 0},
        {UINT64_MAX, UINT64_MAX, NLM_RANGE_TOO_BIG, 0, 0},
    };
    check_ranges(4, rows, COUNT(rows));
}

TEST(test_nlm_xdr__ranges_of_32_bits)
{
    const uint64_t max = UINT32_MAX;
    const struct range_row rows[] = {
        {0, 1, NLM_RANGE_GOOD, 0, 0},
        {5, 100, NLM_RANGE_GOOD, 5, 104},
        {0, max - 1, NLM_RANGE_GOOD, 0, max - 2},
        {1, max - 1, NLM_RANGE_GOOD, 1, max - 1},
        {2, max - 1, NLM_RANGE_GOOD, 2, max}, /* the last byte that fits */
        {max, 1, NLM_RANGE_GOOD, max, max},
        {max - 1, 2, NLM_RANGE_GOOD, max - 1, max},
        /* Length 0 and all ones: to the end of the file, not to the end of 32 bits. */
        {0, 0, NLM_RANGE_GOOD, 0, END},
        {max, 0, NLM_RANGE_GOOD, max, END},
        {0, max, NLM_RANGE_GOOD, 0, END},
        {1, max, NLM_RANGE_GOOD, 1, END},
        {max, max, NLM_RANGE_GOOD, max, END},
        /* The last byte does not fit: to the end, never an error. */
        {3, max - 1, NLM_RANGE_GOOD, 3, END},
        {max, 2, NLM_RANGE_GOOD, max, END},
        {max, max - 1, NLM_RANGE_GOOD, max, END},
        {0x80000000, 0x80000001, NLM_RANGE_GOOD, 0x80000000, END},
        {0x80000000, 0x80000000, NLM_RANGE_GOOD, 0x80000000, max},
    };
    check_ranges(1, rows, COUNT(rows));
    check_ranges(3, rows, COUNT(rows));
}

TEST(test_nlm_xdr__lengths_up_to_their_limits)
{
    const struct {
        struct draft draft;
        bool good;
    } rows[] = {
        {{0, 0, 0, 0, 0, 0}, true},
        {{1024, 1024, 1024, 1024, 0, 0}, true},
        {{1025, 3, 32, 5, 0, 0}, false},
        {{4, 1025, 32, 5, 0, 0}, false},
        {{4, 3, 1025, 5, 0, 0}, false},
        {{4, 3, 32, 1025, 0, 0}, false},
        {{1023, 1023, 1021, 1022, 0, 0}, true},
    };
    for (size_t v = 0; v < COUNT(versions); v++) {
        for (size_t p = 0; p < COUNT(lock_procedures); p++) {
            for (size_t i = 0; i < COUNT(rows); i++) {
                struct nlm_args args = {.state = 99};
                struct bytes data = body(lock_procedures[p], versions[v], &rows[i].draft);
                assert_int_equal(get(lock_procedures[p], versions[v], data, &args), rows[i].good);
                if (!rows[i].good) {
                    assert_int_equal(args.state, 99); /* untouched */
                    continue;
                }
                assert_true(bytes_equal(args.cookie, filled(rows[i].draft.cookie_len)));
                assert_true(bytes_equal(args.lock.caller_name, filled(rows[i].draft.name_len)));
                assert_true(bytes_equal(args.lock.fh, filled(rows[i].draft.fh_len)));
                assert_true(bytes_equal(args.lock.oh, filled(rows[i].draft.oh_len)));
            }
        }
    }
}

TEST(test_nlm_xdr__only_whole_bodies_decode)
{
    for (size_t v = 0; v < COUNT(versions); v++) {
        for (size_t p = 0; p < COUNT(lock_procedures); p++) {
            struct bytes data = body(lock_procedures[p], versions[v], &plain);
            buffer[data.len] = 0;
            for (uint32_t len = 0; len <= data.len + 1; len++) {
                struct nlm_args args = {.state = 99};
                bool good =
                    get(lock_procedures[p], versions[v], (struct bytes){data.at, len}, &args);
                assert_int_equal(good, len == data.len);
                assert_true(good || args.state == 99);
            }
        }
    }
}

static struct bytes share_body(const struct draft *draft, uint32_t mode, uint32_t access)
{
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, filled(draft->cookie_len));
    xdr_put_opaque(&out, filled(draft->name_len));
    xdr_put_opaque(&out, filled(draft->fh_len));
    xdr_put_opaque(&out, filled(draft->oh_len));
    xdr_put_u32(&out, mode);
    xdr_put_u32(&out, access);
    xdr_put_u32(&out, 1);
    return (struct bytes){buffer, xdr_out_len(&out)};
}

static bool get_share(uint32_t version, struct bytes data, struct nlm_share_args *ret)
{
    struct xdr_in in = xdr_in_of(data);
    return nlm_xdr_get_share(&in, version, ret);
}

TEST(test_nlm_xdr__shares)
{
    static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 0x80000000, UINT32_MAX};
    for (uint32_t version = 3; version <= 4; version++) {
        for (size_t m = 0; m < COUNT(values); m++) {
            for (size_t a = 0; a < COUNT(values); a++) {
                struct nlm_share_args args = {.mode = 99};
                bool good = get_share(version, share_body(&plain, values[m], values[a]), &args);
                assert_int_equal(good, values[m] <= 3 && values[a] <= 3);
                if (!good) {
                    assert_int_equal(args.mode, 99);
                    continue;
                }
                assert_int_equal(args.mode, values[m]);
                assert_int_equal(args.access, values[a]);
                assert_true(args.reclaim);
                assert_true(bytes_equal(args.cookie, filled(4)));
                assert_true(bytes_equal(args.caller_name, filled(3)));
                assert_true(bytes_equal(args.fh, filled(32)));
                assert_true(bytes_equal(args.oh, filled(5)));
            }
        }
        const struct draft longest = {1024, 1024, 1024, 1024, 0, 0};
        struct nlm_share_args args;
        assert_true(get_share(version, share_body(&longest, 3, 3), &args));
        for (int i = 0; i < 4; i++) {
            struct draft longer = plain;
            *(i == 0   ? &longer.cookie_len
              : i == 1 ? &longer.name_len
              : i == 2 ? &longer.fh_len
                       : &longer.oh_len) = 1025;
            assert_false(get_share(version, share_body(&longer, 0, 0), &args));
        }
    }
}

TEST(test_nlm_xdr__names_of_free_all_and_of_the_upcall)
{
    static const uint32_t lens[] = {0, 1, 1024, 1025, 1026};
    for (size_t i = 0; i < COUNT(lens); i++) {
        struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
        xdr_put_opaque(&out, filled(lens[i]));
        xdr_put_u32(&out, UINT32_MAX);
        struct nlm_notify notify = {.state = 99};
        struct xdr_in in = xdr_in_of((struct bytes){buffer, xdr_out_len(&out)});
        assert_int_equal(nlm_xdr_get_free_all(&in, &notify), lens[i] <= 1025);
        assert_int_equal(notify.state, lens[i] <= 1025 ? UINT32_MAX : 99);
        if (lens[i] <= 1025) {
            assert_true(bytes_equal(notify.name, filled(lens[i])));
            assert_int_equal(notify.priv.len, 0);
        }
        xdr_put_fixed(&out, filled(NLM_PRIV_LEN));
        notify = (struct nlm_notify){.state = 99};
        in = xdr_in_of((struct bytes){buffer, xdr_out_len(&out)});
        assert_int_equal(nlm_xdr_get_upcall(&in, &notify), lens[i] <= 1024);
        assert_int_equal(notify.state, lens[i] <= 1024 ? UINT32_MAX : 99);
        if (lens[i] <= 1024) {
            assert_true(bytes_equal(notify.name, filled(lens[i])));
            assert_true(bytes_equal(notify.priv, filled(NLM_PRIV_LEN)));
        }
    }
}

/* The status that goes out, by version. */
static const struct {
    enum nlm_stat stat;
    uint32_t narrow;
} stats[] = {
    {NLM_STAT_GRANTED, 0},
    {NLM_STAT_DENIED, 1},
    {NLM_STAT_DENIED_NOLOCKS, 2},
    {NLM_STAT_BLOCKED, 3},
    {NLM_STAT_DENIED_GRACE_PERIOD, 4},
    {NLM_STAT_DEADLCK, 1},
    {NLM_STAT_ROFS, 2},
    {NLM_STAT_STALE_FH, 2},
    {NLM_STAT_FBIG, 2},
    {NLM_STAT_FAILED, 2},
};

static struct nlm_res res_of(const struct xdr_out *out)
{
    struct nlm_res res;
    struct xdr_in in = xdr_in_of((struct bytes){buffer, xdr_out_len(out)});
    assert_true(nlm_xdr_get_res(&in, &res));
    return res;
}

TEST(test_nlm_xdr__every_status_in_every_version)
{
    assert_int_equal(COUNT(stats), NLM_STAT_FAILED + 1);
    for (size_t v = 0; v < COUNT(versions); v++) {
        for (size_t i = 0; i < COUNT(stats); i++) {
            uint32_t said = versions[v] == 4 ? (uint32_t)stats[i].stat : stats[i].narrow;
            struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
            nlm_xdr_put_res(&out, versions[v], filled(5), stats[i].stat);
            assert_int_equal(xdr_out_len(&out), 4 + 8 + 4);
            struct nlm_res res = res_of(&out);
            assert_true(bytes_equal(res.cookie, filled(5)));
            assert_int_equal(res.stat, said);

            out = xdr_out_of(buffer, sizeof buffer);
            nlm_xdr_put_share_res(&out, versions[v], filled(5), stats[i].stat);
            assert_int_equal(xdr_out_len(&out), 4 + 8 + 4 + 4);
            assert_int_equal(load_be32(buffer + 12), said);
            assert_int_equal(load_be32(buffer + 16), 0);

            if (stats[i].stat == NLM_STAT_DENIED || stats[i].stat == NLM_STAT_DEADLCK)
                continue;
            out = xdr_out_of(buffer, sizeof buffer);
            nlm_xdr_put_test_res(&out, versions[v], filled(5), stats[i].stat, NULL);
            assert_int_equal(xdr_out_len(&out), 4 + 8 + 4);
            assert_int_equal(res_of(&out).stat, said);
        }
    }
}

TEST(test_nlm_xdr__cookies_go_back_as_they_came)
{
    static const uint32_t lens[] = {0, 1, 4, 32, 33, 1023, 1024};
    for (size_t i = 0; i < COUNT(lens); i++) {
        struct draft draft = plain;
        draft.cookie_len = lens[i];
        struct nlm_args args;
        assert_true(get(NLM_LOCK, 4, body(NLM_LOCK, 4, &draft), &args));
        static uint8_t reply[NLM_RESULT_MAX];
        struct xdr_out out = xdr_out_of(reply, sizeof reply);
        nlm_xdr_put_res(&out, 4, args.cookie, NLM_STAT_GRANTED);
        assert_false(out.overflowed);
        struct nlm_res res;
        struct xdr_in in = xdr_in_of((struct bytes){reply, xdr_out_len(&out)});
        assert_true(nlm_xdr_get_res(&in, &res));
        assert_true(bytes_equal(res.cookie, filled(lens[i])));
    }
}

/* Offset and length of the holder that was written, at the end of a testres. */
static void written_range(uint32_t version, const struct nlm_holder *holder, uint64_t *ret_offset,
                          uint64_t *ret_len)
{
    static uint8_t bytes[NLM_RESULT_MAX];
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    nlm_xdr_put_test_res(&out, version, filled(4), NLM_STAT_DENIED, holder);
    assert_false(out.overflowed);
    uint32_t len = xdr_out_len(&out);
    struct nlm_res res;
    struct xdr_in in = xdr_in_of((struct bytes){bytes, len});
    assert_true(nlm_xdr_get_test_res(&in, version, &res));
    assert_int_equal(res.stat, NLM_STAT_DENIED);
    assert_int_equal(load_be32(bytes + 12), holder->exclusive);
    assert_int_equal(load_be32(bytes + 16), holder->svid);
    assert_int_equal(load_be32(bytes + 20), holder->oh.len);
    *ret_offset = version == 4 ? load_be64(bytes + len - 16) : load_be32(bytes + len - 8);
    *ret_len = version == 4 ? load_be64(bytes + len - 8) : load_be32(bytes + len - 4);
}

TEST(test_nlm_xdr__holders)
{
    const uint64_t max32 = UINT32_MAX, max63 = INT64_MAX;
    const struct {
        uint64_t start, end, wide_len, narrow_start, narrow_len;
    } rows[] = {
        {0, 0, 1, 0, 1},
        {5, 104, 100, 5, 100},
        {0, END, 0, 0, 0},
        {7, END, 0, 7, 0},
        {0, max32 - 1, max32, 0, max32},
        {0, max32, max32 + 1, 0, 0}, /* one more than 32 bits can say */
        {1, max32, max32, 1, max32},
        {max32, max32, 1, max32, 1},
        {0, max32 + 1, max32 + 2, 0, 0},
        {9, max32 + 1, max32 - 7, 9, 0},
        {max32, max32 + 1, 2, max32, 0},
        {max32 + 1, max32 + 1, 1, max32, 0}, /* all of it beyond 32 bits */
        {max32 + 9, END, 0, max32, 0},
        {0, max63, max63 + 1, 0, 0},
        {max63, max63, 1, max32, 0},
        {max63, END, 0, max32, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nlm_holder holder = {
            .exclusive = i % 2 == 0,
            .svid = UINT32_MAX - (uint32_t)i,
            .oh = filled((uint32_t)i),
            .start = rows[i].start,
            .end = rows[i].end,
        };
        uint64_t offset, len;
        written_range(4, &holder, &offset, &len);
        assert_int_equal(offset, rows[i].start);
        assert_int_equal(len, rows[i].wide_len);
        for (uint32_t version = 1; version <= 3; version += 2) {
            written_range(version, &holder, &offset, &len);
            assert_int_equal(offset, rows[i].narrow_start);
            assert_int_equal(len, rows[i].narrow_len);
        }
    }
}

TEST(test_nlm_xdr__results_of_others)
{
    /* A testres without its holder, or with one that does not belong there, is refused. */
    for (uint32_t stat = 0; stat < 12; stat++) {
        for (size_t v = 0; v < COUNT(versions); v++) {
            struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
            xdr_put_opaque(&out, filled(0));
            xdr_put_u32(&out, stat);
            struct nlm_res res = {.stat = 99};
            struct xdr_in in = xdr_in_of((struct bytes){buffer, xdr_out_len(&out)});
            assert_int_equal(nlm_xdr_get_test_res(&in, versions[v], &res), stat != 1);
            assert_int_equal(res.stat, stat != 1 ? stat : 99);
            xdr_put_u32(&out, 1);
            xdr_put_u32(&out, 7);
            xdr_put_opaque(&out, filled(1024));
            put_range(&out, versions[v], 0, 0);
            res.stat = 99;
            in = xdr_in_of((struct bytes){buffer, xdr_out_len(&out)});
            assert_int_equal(nlm_xdr_get_test_res(&in, versions[v], &res), stat == 1);
            assert_int_equal(res.stat, stat == 1 ? 1 : 99);
        }
    }
    /* A status that no version has is for the reader to judge. */
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, filled(1024));
    xdr_put_u32(&out, UINT32_MAX);
    assert_int_equal(res_of(&out).stat, UINT32_MAX);
    /* An oh of a holder has the limit of every netobj. */
    out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, filled(0));
    xdr_put_u32(&out, 1);
    xdr_put_u32(&out, 1);
    xdr_put_u32(&out, 7);
    xdr_put_opaque(&out, filled(1025));
    put_range(&out, 4, 0, 0);
    struct nlm_res res;
    struct xdr_in in = xdr_in_of((struct bytes){buffer, xdr_out_len(&out)});
    assert_false(nlm_xdr_get_test_res(&in, 4, &res));
}

TEST(test_nlm_xdr__granted_echoes_what_was_sent)
{
    /* As sent, also where R-RNG-1 makes something else of it (R-RNG-2). */
    const uint64_t ranges[][2] = {{0, 0}, {7, 100}, {0, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}};
    for (size_t v = 0; v < COUNT(versions); v++) {
        for (size_t i = 0; i < COUNT(ranges); i++) {
            struct draft draft = {8, 1024, 32, 1024, ranges[i][0], ranges[i][1]};
            struct bytes data = body(NLM_TEST, versions[v], &draft);
            struct nlm_args asked, echoed;
            assert_true(get(NLM_TEST, versions[v], data, &asked));
            static uint8_t call[NLM_GRANTED_MAX];
            struct xdr_out out = xdr_out_of(call, sizeof call);
            nlm_xdr_put_granted(&out, versions[v], asked.cookie, asked.exclusive, &asked.lock);
            assert_false(out.overflowed);
            assert_int_equal(xdr_out_len(&out), data.len);
            struct xdr_in in = xdr_in_of((struct bytes){call, data.len});
            assert_true(nlm_xdr_get_test(&in, versions[v], &echoed));
            assert_true(echoed.exclusive);
            assert_int_equal(load_be32(call + 12), 1); /* however true was said */
            store_be32(buffer + 12, 1);
            assert_memory_equal(call, buffer, data.len);
        }
    }
    /* In a version that cannot say the range it is clipped, not cut down to its low bits. */
    struct draft draft = plain;
    draft.offset = UINT64_C(0x100000005);
    draft.len = UINT64_C(0x200000007);
    struct nlm_args asked, echoed;
    assert_true(get(NLM_TEST, 4, body(NLM_TEST, 4, &draft), &asked));
    static uint8_t call[NLM_GRANTED_MAX];
    struct xdr_out out = xdr_out_of(call, sizeof call);
    nlm_xdr_put_granted(&out, 3, asked.cookie, false, &asked.lock);
    struct xdr_in in = xdr_in_of((struct bytes){call, xdr_out_len(&out)});
    assert_true(nlm_xdr_get_test(&in, 3, &echoed));
    assert_false(echoed.exclusive);
    assert_int_equal(echoed.lock.offset, UINT32_MAX);
    assert_int_equal(echoed.lock.len, UINT32_MAX);
}

TEST(test_nlm_xdr__the_longest_messages_fit_exactly)
{
    struct nlm_holder holder = {.oh = filled(NLM_NETOBJ_MAX), .start = 1, .end = 2};
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    nlm_xdr_put_test_res(&out, 4, filled(NLM_NETOBJ_MAX), NLM_STAT_DENIED, &holder);
    assert_int_equal(xdr_out_len(&out), NLM_RESULT_MAX);
    struct nlm_lock lock = {
        .caller_name = filled(NLM_NAME_MAX),
        .fh = filled(NLM_FH_V4_MAX),
        .oh = filled(NLM_NETOBJ_MAX),
    };
    out = xdr_out_of(buffer, sizeof buffer);
    nlm_xdr_put_granted(&out, 4, filled(8), true, &lock);
    assert_int_equal(xdr_out_len(&out), NLM_GRANTED_MAX);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
