/*
 * test_nsm_xdr.c -- the limits of the NSM decoders: names of exactly 1024 bytes pass and of 1025 do
 * not (R-NSM-1), names may hold any byte, nothing is written to the output of a failed decode, and
 * cut or extended bodies fail. The bytes themselves are checked by the vectors.
 */
#include "codec/nsm_xdr.h"
#include "unit/test.h"

static uint8_t buffer[4 * NSM_NAME_MAX];
static uint8_t long_name[NSM_NAME_MAX + 1];

static struct bytes name_of(uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        long_name[i] = (uint8_t)(i * 7);
    return (struct bytes){long_name, len};
}

/* The body of a mon with names of these lengths; mon_id and my_id are parts of it. */
static struct bytes body(uint32_t mon_len, uint32_t my_len)
{
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, name_of(mon_len));
    xdr_put_opaque(&out, name_of(my_len));
    xdr_put_u32(&out, 100021);
    xdr_put_u32(&out, UINT32_MAX);
    xdr_put_u32(&out, 16);
    xdr_put_fixed(&out, (struct bytes){(const uint8_t *)"0123456789abcdef", NSM_PRIV_LEN});
    assert_false(out.overflowed);
    return (struct bytes){buffer, xdr_out_len(&out)};
}

static bool get_mon(struct bytes data, struct nsm_mon *ret)
{
    struct xdr_in in = xdr_in_of(data);
    return nsm_xdr_get_mon(&in, ret);
}

TEST(test_nsm_xdr__names_up_to_the_limit)
{
    const struct {
        uint32_t mon_len, my_len;
        bool good;
    } rows[] = {
        {0, 0, true},       {1, 1023, true},  {1023, 1, true},
        {1024, 1024, true}, {1025, 0, false}, {0, 1025, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nsm_mon mon = {.mon_id.my_id.my_prog = 99};
        struct bytes data = body(rows[i].mon_len, rows[i].my_len);
        assert_int_equal(get_mon(data, &mon), rows[i].good);
        if (!rows[i].good) {
            assert_int_equal(mon.mon_id.my_id.my_prog, 99); /* untouched */
            continue;
        }
        assert_true(bytes_equal(mon.mon_id.mon_name, name_of(rows[i].mon_len)));
        assert_true(bytes_equal(mon.mon_id.my_id.my_name, name_of(rows[i].my_len)));
        assert_int_equal(mon.mon_id.my_id.my_prog, 100021);
        assert_int_equal(mon.mon_id.my_id.my_vers, UINT32_MAX);
        assert_int_equal(mon.mon_id.my_id.my_proc, 16);
        assert_int_equal(mon.priv.len, NSM_PRIV_LEN);
        assert_memory_equal(mon.priv.at, "0123456789abcdef", NSM_PRIV_LEN);
    }
}

TEST(test_nsm_xdr__only_whole_bodies_decode)
{
    struct bytes data = body(5, 6);
    buffer[data.len] = 0;
    const uint32_t name_len = 4 + 8, my_id_len = 4 + 8 + 12;
    for (uint32_t len = 0; len <= data.len + 1; len++) {
        struct nsm_mon mon;
        assert_int_equal(get_mon((struct bytes){data.at, len}, &mon), len == data.len);

        struct nsm_mon_id mon_id;
        struct xdr_in in = xdr_in_of((struct bytes){data.at, len});
        assert_int_equal(nsm_xdr_get_mon_id(&in, &mon_id), len == name_len + my_id_len);

        struct bytes name;
        in = xdr_in_of((struct bytes){data.at, len});
        assert_int_equal(nsm_xdr_get_name(&in, &name), len == name_len);

        /* A stat_chge is a name and a word, which here is the length of the next name. */
        struct nsm_stat_chge change;
        in = xdr_in_of((struct bytes){data.at, len});
        assert_int_equal(nsm_xdr_get_stat_chge(&in, &change), len == name_len + 4);

        if (len < name_len)
            continue;
        struct nsm_my_id my_id;
        in = xdr_in_of((struct bytes){data.at + name_len, len - name_len});
        assert_int_equal(nsm_xdr_get_my_id(&in, &my_id), len == name_len + my_id_len);
    }
}

TEST(test_nsm_xdr__a_failed_cursor_stays_failed)
{
    struct bytes name = {.at = NULL, .len = 99};
    struct xdr_in in = xdr_in_of((struct bytes){0});
    xdr_get_u32(&in);
    assert_false(nsm_xdr_get_name(&in, &name));
    assert_int_equal(name.len, 99);
}

TEST(test_nsm_xdr__results)
{
    uint8_t bytes[NSM_RESULT_MAX];
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    nsm_xdr_put_stat_res(&out, NSM_STAT_FAIL, UINT32_MAX);
    assert_int_equal(xdr_out_len(&out), 8);
    assert_memory_equal(bytes, "\0\0\0\1\xff\xff\xff\xff", 8);
    out = xdr_out_of(bytes, sizeof bytes);
    nsm_xdr_put_stat_res(&out, NSM_STAT_SUCC, 7);
    assert_memory_equal(bytes, "\0\0\0\0\0\0\0\7", 8);
    out = xdr_out_of(bytes, sizeof bytes);
    nsm_xdr_put_stat(&out, 0x01020305);
    assert_int_equal(xdr_out_len(&out), 4);
    assert_memory_equal(bytes, "\1\2\3\5", 4);
}

/* The golden bytes of SM_NOTIFY: name "srv", state 5. */
TEST(test_nsm_xdr__notify_arguments)
{
    uint8_t bytes[12];
    struct nsm_stat_chge change;
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    nsm_xdr_put_stat_chge(&out, bytes_of_text("srv"), 5);
    assert_false(out.overflowed);
    assert_int_equal(xdr_out_len(&out), 12);
    assert_memory_equal(bytes, "\0\0\0\3srv\0\0\0\0\5", 12);
    struct xdr_in in = xdr_in_of((struct bytes){bytes, sizeof bytes});
    assert_true(nsm_xdr_get_stat_chge(&in, &change));
    assert_true(bytes_equal(change.mon_name, bytes_of_text("srv")));
    assert_int_equal(change.state, 5);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
