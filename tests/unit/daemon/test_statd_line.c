/*
 * test_statd_line.c -- a registration as rpc.statd writes it: all seven fields, there and back; and
 * what is not such a line is not taken for one.
 */
#include "daemon/statd_line.h"
#include "unit/test.h"

static const char line[] = "0100007f 000186b5 00000003 00000010 "
                           "000102030405060708090a0b0c0d0e0f 10.77.0.11 nodea.example";

static bool get(const char *text, struct record_registrant *ret)
{
    *ret = (struct record_registrant){0};
    return statd_line_get(bytes_of_text(text), ret);
}

static bool is_refused(const char *text)
{
    struct record_registrant record;
    return !get(text, &record) && record.mon_name.len == 0;
}

TEST(test_statd_line__seven_fields)
{
    struct record_registrant record;
    const uint8_t loopback[4] = {127, 0, 0, 1};
    struct address address = address_v4(loopback);
    assert_true(get(line, &record));
    assert_true(address_equal(&record.address, &address));
    assert_int_equal(record.my_prog, 100021);
    assert_int_equal(record.my_vers, 3);
    assert_int_equal(record.my_proc, 16);
    for (uint8_t i = 0; i < RECORD_PRIV_LEN; i++)
        assert_int_equal(record.priv[i], i);
    assert_true(bytes_equal(record.mon_name, bytes_of_text("10.77.0.11")));
    assert_true(bytes_equal(record.my_name, bytes_of_text("nodea.example")));
}

TEST(test_statd_line__and_back)
{
    struct record_registrant record;
    char back[STATD_LINE_MAX];
    assert_true(get(line, &record));
    assert_true(statd_line_put(back, &record));
    assert_int_equal(strlen(back), strlen(line) + 1);
    assert_memory_equal(back, line, strlen(line));
    assert_int_equal(back[strlen(line)], '\n');
}

TEST(test_statd_line__longest)
{
    static uint8_t name[RECORD_NAME_MAX];
    char back[STATD_LINE_MAX];
    struct record_registrant record, again;
    memset(name, 'n', sizeof name);
    assert_true(get(line, &record));
    record.mon_name = record.my_name = (struct bytes){name, sizeof name};
    record.my_prog = record.my_vers = record.my_proc = UINT32_MAX;
    assert_true(statd_line_put(back, &record));
    back[strlen(back) - 1] = '\0';
    assert_true(get(back, &again));
    assert_int_equal(again.my_name.len, RECORD_NAME_MAX);
    assert_int_equal(again.my_proc, UINT32_MAX);
}

TEST(test_statd_line__not_one)
{
    assert_true(is_refused(""));
    assert_true(is_refused("x"));
    assert_true(is_refused("0100007f 000186b5 00000003 00000010"));
    assert_true(is_refused("0100007f 000186b5 00000003 00000010 0001 a b"));
    assert_true(is_refused("0100007f 000186b5 00000003 00000010 "
                           "000102030405060708090a0b0c0d0e0f 10.77.0.11"));
    assert_true(is_refused("0100007f 000186b5 00000003 00000010 "
                           "000102030405060708090a0b0c0d0e0g a b"));
    assert_true(is_refused("0100007f 000186b5 000000033 00000010 "
                           "000102030405060708090a0b0c0d0e0f a b"));
    assert_true(is_refused("0100007f 000186b5 00000003 00000010 "
                           "000102030405060708090a0b0c0d0e0f a b c"));
}

TEST(test_statd_line__cannot_be_said)
{
    struct record_registrant record;
    char back[STATD_LINE_MAX];
    assert_true(get(line, &record));
    record.mon_name = bytes_of_text("two words");
    assert_false(statd_line_put(back, &record));
    assert_true(get(line, &record));
    record.my_name = bytes_of_text("");
    assert_false(statd_line_put(back, &record));
    assert_true(get(line, &record));
    record.address = (struct address){.family = 6, .bytes = {[15] = 1}};
    assert_false(statd_line_put(back, &record));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
