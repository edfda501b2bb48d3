/*
 * test_xdr.c -- the cursor reads every XDR item at every cut of its input and never beyond it; the
 * builder writes what the cursor reads and stops at its end. Inputs are copied to the end of an
 * allocation of their exact size, so that the sanitizer build sees any byte read too far.
 */
#include "codec/xdr.h"
#include "unit/test.h"

static const uint8_t item_bytes[] = {
    0x80, 0x00, 0x00, 0x01,                                       /* u32 */
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,               /* u64 */
    0x00, 0x00, 0x00, 0x02,                                       /* bool: true, though not 1 */
    0x00, 0x00, 0x00, 0x00,                                       /* bool: false */
    0x00, 0x00, 0x00, 0x05, 'h',  'e',  'l',  'l',  'o', 0, 0, 0, /* opaque<5> */
    0x00, 0x00, 0x00, 0x00,                                       /* opaque<> of length 0 */
    'a',  'b',  'c',  'd',  'e',  'f',  0,    0,                  /* opaque[6] */
};

struct items {
    uint32_t u32;
    uint64_t u64;
    bool yes, no;
    struct bytes text, empty, fixed;
};

static struct items get_items(struct xdr_in *in)
{
    struct items items = {0};
    items.u32 = xdr_get_u32(in);
    items.u64 = xdr_get_u64(in);
    items.yes = xdr_get_bool(in);
    items.no = xdr_get_bool(in);
    items.text = xdr_get_opaque(in, 5);
    items.empty = xdr_get_opaque(in, 0);
    items.fixed = xdr_get_fixed(in, 6);
    return items;
}

TEST(test_xdr__reads_every_item)
{
    struct xdr_in in = xdr_in_of((struct bytes){item_bytes, sizeof item_bytes});
    struct items items = get_items(&in);
    assert_true(xdr_in_done(&in));
    assert_int_equal(items.u32, UINT32_C(0x80000001));
    assert_true(items.u64 == UINT64_C(0x0102030405060708));
    assert_true(items.yes);
    assert_false(items.no);
    assert_true(bytes_equal(items.text, bytes_of_text("hello")));
    assert_ptr_equal(items.text.at, item_bytes + 24); /* a view, not a copy */
    assert_int_equal(items.empty.len, 0);
    assert_true(bytes_equal(items.fixed, bytes_of_text("abcdef")));
    assert_int_equal(xdr_in_rest(&in).len, 0);
}

TEST(test_xdr__every_prefix_fails)
{
    for (uint32_t len = 0; len < sizeof item_bytes; len++) {
        uint8_t *copy = malloc(len + (len == 0));
        assert_non_null(copy);
        memcpy(copy, item_bytes, len);
        struct xdr_in in = xdr_in_of((struct bytes){copy, len});
        get_items(&in);
        assert_false(xdr_in_ok(&in));
        assert_false(xdr_in_done(&in));
        assert_int_equal(xdr_in_rest(&in).len, 0);
        free(copy);
    }
    struct xdr_in nothing = xdr_in_of((struct bytes){0});
    assert_true(xdr_in_done(&nothing));
    assert_int_equal(xdr_get_fixed(&nothing, 0).len, 0);
    assert_true(xdr_in_done(&nothing));
}

TEST(test_xdr__left_over_is_not_done)
{
    uint8_t longer[sizeof item_bytes + 1] = {0};
    memcpy(longer, item_bytes, sizeof item_bytes);
    longer[sizeof item_bytes] = 0x7e;
    struct xdr_in in = xdr_in_of((struct bytes){longer, sizeof longer});
    get_items(&in);
    assert_true(xdr_in_ok(&in));
    assert_false(xdr_in_done(&in));
    assert_int_equal(xdr_in_rest(&in).len, 1);
    assert_int_equal(xdr_in_rest(&in).at[0], 0x7e);
}

TEST(test_xdr__after_a_failure_everything_is_empty)
{
    const uint8_t bytes[12] = {0, 0, 0, 4, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff};
    struct xdr_in in = xdr_in_of((struct bytes){bytes, sizeof bytes});
    assert_int_equal(xdr_get_opaque(&in, 3).len, 0); /* longer than allowed */
    assert_false(xdr_in_ok(&in));
    /* The bytes are there, but nothing behind a failure means anything. */
    assert_int_equal(xdr_get_u32(&in), 0);
    assert_true(xdr_get_u64(&in) == 0);
    assert_false(xdr_get_bool(&in));
    assert_null(xdr_get_opaque(&in, 100).at);
    assert_int_equal(xdr_get_fixed(&in, 0).len, 0);
    assert_null(xdr_get_fixed(&in, 1).at);
    assert_false(xdr_in_ok(&in));
}

TEST(test_xdr__lengths_near_the_wrap_fail)
{
    const uint32_t lengths[] = {9, 12, 0x7fffffff, 0x80000000, 0xfffffffc, 0xfffffffd, 0xffffffff};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t bytes[12] = {0};
        store_be32(bytes, lengths[i]);
        struct xdr_in in = xdr_in_of((struct bytes){bytes, sizeof bytes});
        assert_int_equal(xdr_get_opaque(&in, UINT32_MAX).len, 0);
        assert_false(xdr_in_ok(&in));
        in = xdr_in_of((struct bytes){bytes + 4, 8});
        assert_int_equal(xdr_get_fixed(&in, lengths[i]).len, 0);
        assert_false(xdr_in_ok(&in));
    }
}

TEST(test_xdr__padding_must_be_there_but_may_be_anything)
{
    for (uint32_t len = 0; len <= 9; len++) {
        uint32_t padded = (len + 3) / 4 * 4;
        uint8_t bytes[4 + 12];
        memset(bytes, 0xee, sizeof bytes);
        store_be32(bytes, len);
        for (uint32_t size = 4; size <= 4 + padded; size++) {
            uint8_t *copy = malloc(size);
            assert_non_null(copy);
            memcpy(copy, bytes, size);
            struct xdr_in in = xdr_in_of((struct bytes){copy, size});
            struct bytes got = xdr_get_opaque(&in, len);
            assert_int_equal(xdr_in_done(&in), size == 4 + padded);
            if (xdr_in_ok(&in))
                assert_int_equal(got.len, len);
            free(copy);
        }
    }
}

TEST(test_xdr__writes_what_is_read)
{
    uint8_t buffer[sizeof item_bytes];
    memset(buffer, 0xee, sizeof buffer); /* padding must be written, not found */
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_u32(&out, UINT32_C(0x80000001));
    xdr_put_u64(&out, UINT64_C(0x0102030405060708));
    xdr_put_u32(&out, 2);
    xdr_put_u32(&out, 0);
    xdr_put_opaque(&out, bytes_of_text("hello"));
    xdr_put_opaque(&out, (struct bytes){0});
    xdr_put_fixed(&out, bytes_of_text("abcdef"));
    xdr_put_fixed(&out, (struct bytes){0});
    assert_false(out.overflowed);
    assert_int_equal(xdr_out_len(&out), sizeof item_bytes);
    assert_memory_equal(buffer, item_bytes, sizeof item_bytes);
}

TEST(test_xdr__the_builder_stops_at_its_end)
{
    for (uint32_t size = 0; size < 4 + 8 + 12 + 8; size++) {
        uint8_t buffer[40];
        memset(buffer, 0xee, sizeof buffer);
        struct xdr_out out = xdr_out_of(buffer, size);
        xdr_put_u32(&out, 1);
        xdr_put_u64(&out, 2);
        xdr_put_opaque(&out, bytes_of_text("hello"));
        xdr_put_fixed(&out, bytes_of_text("abcdef"));
        assert_true(out.overflowed);
        uint32_t whole = size < 4 ? 0 : size < 12 ? 4 : size < 24 ? 12 : 24;
        assert_int_equal(xdr_out_len(&out), whole);
        for (uint32_t i = whole; i < sizeof buffer; i++)
            assert_int_equal(buffer[i], 0xee);
        /* Once stopped it stays stopped, also for what would fit. */
        xdr_put_fixed(&out, (struct bytes){0});
        xdr_put_u32(&out, 3);
        assert_int_equal(xdr_out_len(&out), whole);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
