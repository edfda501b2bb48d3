/*
 * test_hex.c -- every byte goes to two digits and back; what is no pairs of digits is refused.
 */
#include "base/hex.h"
#include "unit/test.h"

TEST(test_hex__every_byte_there_and_back)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[3] = "";
        uint8_t back[1];
        uint32_t len;
        hex_put(text, (uint8_t)byte);
        assert_true(hex_parse(text, back, 1, &len));
        assert_int_equal(len, 1);
        assert_int_equal(back[0], byte);
    }
}

TEST(test_hex__either_case)
{
    uint8_t bytes[4];
    uint32_t len;
    assert_true(hex_parse("00fFAb", bytes, sizeof bytes, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "\x00\xff\xab", 3);
}

TEST(test_hex__what_is_none)
{
    static const char *const wrong[] = {"", "0", "000", "0g", "g0", " 0", "0x", "0000000000"};
    uint8_t bytes[4];
    uint32_t len = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(hex_parse(wrong[i], bytes, sizeof bytes, &len));
    assert_int_equal(len, 7);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
