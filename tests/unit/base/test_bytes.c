/*
 * test_bytes.c -- views compare by content, with and without ASCII case, and big-endian loads and
 * stores are each other's inverse at every byte position.
 */
#include "base/bytes.h"
#include "unit/test.h"

TEST(test_bytes__equal_is_by_length_and_content)
{
    struct bytes none = {0};
    assert_true(bytes_equal(none, bytes_of_text("")));
    assert_true(bytes_equal(bytes_of_text("abc"), bytes_of_text("abc")));
    assert_false(bytes_equal(bytes_of_text("abc"), bytes_of_text("abd")));
    assert_false(bytes_equal(bytes_of_text("abc"), bytes_of_text("ab")));
    assert_false(bytes_equal(bytes_of_text("abc"), bytes_of_text("ABC")));
    const struct bytes nul = {(const uint8_t *)"a\0b", 3}, other = {(const uint8_t *)"a\0c", 3};
    assert_false(bytes_equal(nul, other));
}

TEST(test_bytes__fold_is_ascii_only)
{
    assert_true(
        bytes_equal_fold(bytes_of_text("Server-7.Example"), bytes_of_text("sERVER-7.eXAMPLE")));
    assert_false(bytes_equal_fold(bytes_of_text("server"), bytes_of_text("servers")));
    assert_false(bytes_equal_fold(bytes_of_text("server"), bytes_of_text("serves")));
    for (unsigned c = 0; c < 256; c++) {
        unsigned expected = c >= 'A' && c <= 'Z' ? c + 32 : c;
        assert_int_equal(byte_fold((uint8_t)c), expected);
    }
}

TEST(test_bytes__big_endian)
{
    uint8_t memory[10] = {0};
    store_be32(memory + 1, UINT32_C(0x81020384));
    assert_memory_equal(memory, ((uint8_t[]){0, 0x81, 2, 3, 0x84, 0, 0, 0, 0, 0}), 10);
    assert_int_equal(load_be32(memory + 1), UINT32_C(0x81020384));
    store_be64(memory + 1, UINT64_C(0x8102030405060788));
    assert_memory_equal(memory, ((uint8_t[]){0, 0x81, 2, 3, 4, 5, 6, 7, 0x88, 0}), 10);
    assert_true(load_be64(memory + 1) == UINT64_C(0x8102030405060788));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
