/*
 * test_text.c -- the text builder never writes past its end, always ends in NUL, and lets nothing
 * of a peer's bytes through that could change a log line or a JSON string (R-SEC-8).
 */
#include "base/text.h"
#include "unit/test.h"

static char buffer[64];

static struct text fresh(uint32_t size)
{
    struct text text;
    memset(buffer, '#', sizeof buffer);
    text_init(&text, buffer, size);
    return text;
}

TEST(test_text__starts_empty)
{
    struct text text = fresh(1);
    assert_string_equal(buffer, "");
    text_add(&text, "anything");
    assert_string_equal(buffer, "");
    assert_int_equal(buffer[1], '#');
}

TEST(test_text__is_cut_at_every_size)
{
    const char whole[] = "state 7, \\xff from 192.0.2.1, 1,311";
    struct address address = address_v4((const uint8_t[]){192, 0, 2, 1});
    for (uint32_t size = 1; size < sizeof buffer; size++) {
        struct text text = fresh(size);
        text_add(&text, "state ");
        text_add_u64(&text, 7);
        text_add_char(&text, ',');
        text_add_char(&text, ' ');
        text_add_escaped(&text, bytes_of_text("\xff"), 10);
        text_add(&text, " from ");
        text_add_address(&text, &address);
        text_add(&text, ", ");
        text_add_count(&text, 1311);
        size_t kept = size - 1 < strlen(whole) ? size - 1 : strlen(whole);
        assert_int_equal(text.len, kept);
        assert_memory_equal(buffer, whole, kept);
        assert_int_equal(buffer[kept], '\0');
        assert_int_equal(buffer[size], '#');
    }
}

TEST(test_text__numbers)
{
    const struct {
        uint64_t value;
        const char *plain, *count;
    } rows[] = {
        {0, "0", "0"},
        {999, "999", "999"},
        {1000, "1000", "1,000"},
        {100024, "100024", "100,024"},
        {UINT64_MAX, "18446744073709551615", "18,446,744,073,709,551,615"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct text text = fresh(sizeof buffer);
        text_add_u64(&text, rows[i].value);
        assert_string_equal(buffer, rows[i].plain);
        text = fresh(sizeof buffer);
        text_add_count(&text, rows[i].value);
        assert_string_equal(buffer, rows[i].count);
    }
}

TEST(test_text__plurals)
{
    struct text text = fresh(sizeof buffer);
    text_add_plural(&text, 0, "lock");
    text_add_char(&text, ' ');
    text_add_plural(&text, 1, "lock");
    text_add_char(&text, ' ');
    text_add_plural(&text, 1311, "lock");
    assert_string_equal(buffer, "0 locks 1 lock 1,311 locks");
}

TEST(test_text__hex_is_lower_case)
{
    struct text text = fresh(sizeof buffer);
    text_add_hex(&text, (struct bytes){(const uint8_t[]){0x00, 0x0f, 0xa5, 0xff}, 4});
    text_add_hex(&text, (struct bytes){0});
    assert_string_equal(buffer, "000fa5ff");
}

TEST(test_text__escaped_lets_only_harmless_bytes_through)
{
    for (unsigned c = 0; c < 256; c++) {
        struct text text = fresh(sizeof buffer);
        uint8_t byte = (uint8_t)c;
        text_add_escaped(&text, (struct bytes){&byte, 1}, 10);
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
            assert_int_equal(text.len, 1);
            assert_int_equal(buffer[0], c);
        } else {
            char expected[5] = {'\\', 'x', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
            assert_string_equal(buffer, expected);
        }
    }
}

TEST(test_text__escaped_is_limited)
{
    struct text text = fresh(sizeof buffer);
    text_add_escaped(&text, bytes_of_text("abcdef"), 6);
    assert_string_equal(buffer, "abcdef");
    text = fresh(sizeof buffer);
    text_add_escaped(&text, bytes_of_text("abcdef"), 5);
    assert_string_equal(buffer, "abcde...");
    text = fresh(sizeof buffer);
    text_add_escaped(&text, (struct bytes){0}, 5);
    assert_string_equal(buffer, "");
}

TEST_MAIN(NULL, NULL, NULL, NULL)
