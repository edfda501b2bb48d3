/*
 * text.c -- the bounded text builder of text.h.
 */
#include "base/text.h"

#include "base/check.h"
#include "base/hex.h"

void text_init(struct text *text, char *buffer, uint32_t size)
{
    CHECK(size >= 1);
    *text = (struct text){.start = buffer, .max = size - 1};
    buffer[0] = '\0';
}

void text_add_char(struct text *text, char c)
{
    if (text->len == text->max)
        return;
    text->start[text->len++] = c;
    text->start[text->len] = '\0';
}

static void put(struct text *text, const char *from, size_t len)
{
    uint32_t room = text->max - text->len;
    uint32_t count = len < room ? (uint32_t)len : room;
    memcpy(text->start + text->len, from, count);
    text->len += count;
    text->start[text->len] = '\0';
}

void text_add(struct text *text, const char *string)
{
    put(text, string, strlen(string));
}

static void add_digits(struct text *text, uint64_t value, bool grouped)
{
    char digits[26]; /* 20, and six separators */
    uint32_t at = sizeof digits, count = 0;
    do {
        if (grouped && count > 0 && count % 3 == 0)
            digits[--at] = ',';
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
        count++;
    } while (value > 0);
    put(text, digits + at, sizeof digits - at);
}

void text_add_u64(struct text *text, uint64_t value)
{
    add_digits(text, value, false);
}

void text_add_count(struct text *text, uint64_t value)
{
    add_digits(text, value, true);
}

void text_add_plural(struct text *text, uint64_t count, const char *noun)
{
    text_add_count(text, count);
    text_add_char(text, ' ');
    text_add(text, noun);
    text_add(text, count == 1 ? "" : "s");
}

void text_add_hex(struct text *text, struct bytes data)
{
    char digits[2];
    for (uint32_t i = 0; i < data.len; i++) {
        hex_put(digits, data.at[i]);
        put(text, digits, sizeof digits);
    }
}

void text_add_address(struct text *text, const struct address *address)
{
    char buffer[ADDRESS_TEXT_MAX];
    address_text(address, buffer);
    text_add(text, buffer);
}

static bool is_printable(uint8_t c)
{
    return c >= 0x20 && c < 0x7f;
}

void text_add_escaped(struct text *text, struct bytes data, uint32_t len_max)
{
    for (uint32_t i = 0; i < data.len; i++) {
        if (i == len_max) {
            text_add(text, "...");
            return;
        }
        uint8_t c = data.at[i];
        if (is_printable(c) && c != '\\' && c != '"') {
            text_add_char(text, (char)c);
        } else {
            text_add(text, "\\x");
            text_add_hex(text, (struct bytes){&c, 1});
        }
    }
}
