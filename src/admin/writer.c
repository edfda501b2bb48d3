/*
 * writer.c -- JSON, value by value; see writer.h.
 *
 * Every function reserves room for all it may write, once, and then only stores bytes. `grow` is
 * the only place that can fail.
 */
#include "admin/writer.h"

#include "base/check.h"
#include "base/hex.h"
#include "base/minmax.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    FIRST_SIZE = 1024,
    NUMBER_MAX = 32, /* characters of any number */
    TIME_MAX = 64,   /* more than enough for a time */
    ESCAPED_MAX = 6, /* characters that one byte can become: \u001f */
};

static bool grow(struct writer *writer, size_t wanted)
{
    size_t size = writer->size == 0 ? FIRST_SIZE : writer->size;
    while (size < wanted)
        size *= 2;
    char *at = writer->is_fixed ? NULL : realloc(writer->at, size);
    if (at == NULL) {
        writer->has_failed = true;
        return false;
    }
    writer->at = at;
    writer->size = size;
    return true;
}

/* Room for so many bytes and a NUL. False: the writer has failed for good: text after a gap may be
 * short enough to fit, and would join parts that do not belong together. */
static bool has_room(struct writer *writer, size_t count)
{
    size_t wanted = writer->len + count + 1;
    if (writer->has_failed)
        return false;
    return wanted <= writer->size || grow(writer, wanted);
}

static void put(struct writer *writer, char c)
{
    writer->at[writer->len++] = c;
}

static void put_all(struct writer *writer, const char *text, size_t len)
{
    memcpy(writer->at + writer->len, text, len);
    writer->len += len;
}

static uint32_t digit_count(uint64_t value)
{
    uint32_t count = 1;
    for (; value >= 10; value /= 10)
        count++;
    return count;
}

/* At least `width` digits, written where they belong, from the last one on. */
static void put_digits(struct writer *writer, uint64_t value, uint32_t width)
{
    uint32_t count = max_u32(digit_count(value), width);
    for (char *at = writer->at + writer->len + count; at > writer->at + writer->len; value /= 10)
        *--at = (char)('0' + value % 10);
    writer->len += count;
}

/* What precedes a value, and room for its `count` bytes. */
static bool begin_value(struct writer *writer, const char *key, size_t count)
{
    size_t key_len = key == NULL ? 0 : strlen(key);
    if (!has_room(writer, key_len + count + (writer->is_spaced ? 6 : 4)))
        return false;
    if (writer->has_before) {
        put(writer, ',');
        if (writer->is_spaced)
            put(writer, ' ');
    }
    writer->has_before = true;
    if (key != NULL) {
        put(writer, '"');
        put_all(writer, key, key_len);
        put(writer, '"');
        put(writer, ':');
        if (writer->is_spaced)
            put(writer, ' ');
    }
    return true;
}

struct writer writer_into(char *at, size_t size)
{
    return (struct writer){.at = at, .size = size, .is_fixed = true, .is_ascii = true};
}

void writer_free(struct writer *writer)
{
    free(writer->at);
    *writer = (struct writer){0};
}

char *writer_take(struct writer *writer, size_t *ret_len)
{
    if (!has_room(writer, 0)) {
        writer_free(writer);
        return NULL;
    }
    char *text = writer->at;
    text[writer->len] = '\0';
    *ret_len = writer->len;
    *writer = (struct writer){0};
    return text;
}

/* ---- structure ---- */

static void open(struct writer *writer, const char *key, char bracket)
{
    if (!begin_value(writer, key, 1))
        return;
    put(writer, bracket);
    writer->has_before = false;
}

static void close(struct writer *writer, char bracket)
{
    if (!has_room(writer, 1))
        return;
    put(writer, bracket);
    writer->has_before = true;
}

void writer_object(struct writer *writer, const char *key)
{
    open(writer, key, '{');
}

void writer_end_object(struct writer *writer)
{
    close(writer, '}');
}

void writer_list(struct writer *writer, const char *key)
{
    open(writer, key, '[');
}

void writer_end_list(struct writer *writer)
{
    close(writer, ']');
}

void writer_line(struct writer *writer)
{
    if (!has_room(writer, 2))
        return;
    if (writer->has_before)
        put(writer, ',');
    put(writer, '\n');
    writer->has_before = false;
}

void writer_plain(struct writer *writer, const char *text)
{
    size_t len = strlen(text);
    if (has_room(writer, len))
        put_all(writer, text, len);
}

/* ---- values ---- */

/* A value that needs no quotes. */
static void add_word(struct writer *writer, const char *key, const char *word)
{
    size_t len = strlen(word);
    if (begin_value(writer, key, len))
        put_all(writer, word, len);
}

void writer_null(struct writer *writer, const char *key)
{
    add_word(writer, key, "null");
}

void writer_bool(struct writer *writer, const char *key, bool value)
{
    add_word(writer, key, value ? "true" : "false");
}

void writer_number(struct writer *writer, const char *key, uint64_t value)
{
    if (value > INT64_MAX) {
        char buffer[NUMBER_MAX];
        (void)snprintf(buffer, sizeof buffer, "%.17g", (double)value);
        add_word(writer, key, buffer);
    } else {
        writer_integer(writer, key, value);
    }
}

void writer_integer(struct writer *writer, const char *key, uint64_t value)
{
    if (begin_value(writer, key, digit_count(value)))
        put_digits(writer, value, 1);
}

void writer_seconds(struct writer *writer, const char *key, uint64_t ns)
{
    if (!begin_value(writer, key, NUMBER_MAX))
        return;
    put_digits(writer, ns / SECOND_NS, 1);
    put(writer, '.');
    put_digits(writer, ns % SECOND_NS, 9);
}

void writer_text(struct writer *writer, const char *key, const char *text)
{
    if (text == NULL)
        writer_null(writer, key);
    else
        writer_bytes(writer, key, bytes_of_text(text));
}

/* Length in bytes of the first character; 0: not UTF-8, which has no overlong forms, no surrogates,
 * and nothing beyond U+10FFFF. */
static uint32_t character_len(struct bytes bytes)
{
    uint8_t first = bytes.at[0];
    if (first < 0x80)
        return 1;
    uint32_t len = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || len > bytes.len)
        return 0;
    for (uint32_t i = 1; i < len; i++)
        if ((bytes.at[i] & 0xc0) != 0x80)
            return 0;
    uint8_t second = bytes.at[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0;
    return len;
}

bool writer_is_utf8(struct bytes bytes)
{
    for (uint32_t at = 0, len; at < bytes.len; at += len)
        if ((len = character_len((struct bytes){bytes.at + at, bytes.len - at})) == 0)
            return false;
    return true;
}

bool writer_shows(struct bytes bytes, struct bytes text)
{
    if (writer_is_utf8(bytes))
        return bytes_equal_fold(bytes, text);
    uint32_t at = 0;
    for (uint32_t i = 0; i < bytes.len; i++) {
        struct bytes rest = {text.at + at, text.len - at};
        uint32_t len = rest.len > 0 ? character_len(rest) : 0;
        if (len == 0 || len > 2)
            return false;
        uint8_t c = len == 1 ? rest.at[0] : (uint8_t)((rest.at[0] & 0x03) << 6 | (rest.at[1] & 63));
        if ((len == 2 && rest.at[0] > 0xc3) || byte_fold(c) != byte_fold(bytes.at[i]))
            return false;
        at += len;
    }
    return at == text.len;
}

static bool is_escaped(uint8_t c, bool is_ascii)
{
    return c < 0x20 || c == 0x7f || c == '"' || c == '\\' || (c >= 0x80 && is_ascii);
}

static void put_escaped(struct writer *writer, uint8_t c)
{
    bool is_newline = c == '\n' && !writer->is_ascii;
    if (c == '"' || c == '\\' || is_newline) {
        put(writer, '\\');
        put(writer, is_newline ? 'n' : (char)c);
    } else {
        put_all(writer, "\\u00", 4);
        hex_put(writer->at + writer->len, c);
        writer->len += 2;
    }
}

/* Nothing of it is escaped, whatever the writer. */
static bool is_plain(struct bytes bytes)
{
    for (uint32_t i = 0; i < bytes.len; i++)
        if (is_escaped(bytes.at[i], true))
            return false;
    return true;
}

void writer_cut(struct writer *writer, const char *key, struct bytes bytes, uint32_t len_max)
{
    struct bytes shown = {bytes.at, min_u32(bytes.len, len_max)};
    if (shown.len == bytes.len && is_plain(bytes)) { /* as nearly all are */
        if (!begin_value(writer, key, (size_t)bytes.len + 2))
            return;
        put(writer, '"');
        if (bytes.len > 0)
            put_all(writer, (const char *)bytes.at, bytes.len);
        put(writer, '"');
        return;
    }
    bool is_ascii = writer->is_ascii || !writer_is_utf8(shown);
    size_t room = sizeof "\"...\"";
    for (uint32_t i = 0; i < shown.len; i++)
        room += is_escaped(shown.at[i], is_ascii) ? ESCAPED_MAX : 1;
    if (!begin_value(writer, key, room))
        return;
    put(writer, '"');
    for (uint32_t i = 0; i < shown.len; i++) {
        if (is_escaped(shown.at[i], is_ascii))
            put_escaped(writer, shown.at[i]);
        else
            put(writer, (char)shown.at[i]);
    }
    put_all(writer, "...", shown.len < bytes.len ? 3 : 0);
    put(writer, '"');
}

void writer_bytes(struct writer *writer, const char *key, struct bytes bytes)
{
    writer_cut(writer, key, bytes, UINT32_MAX);
}

void writer_hex(struct writer *writer, const char *key, struct bytes bytes)
{
    if (!begin_value(writer, key, (size_t)bytes.len * 2 + 2))
        return;
    put(writer, '"');
    for (uint32_t i = 0; i < bytes.len; i++, writer->len += 2)
        hex_put(writer->at + writer->len, bytes.at[i]);
    put(writer, '"');
}

void writer_address(struct writer *writer, const char *key, const struct address *address)
{
    char text[ADDRESS_TEXT_MAX];
    if (address->family != 0)
        address_text(address, text);
    writer_text(writer, key, address->family != 0 ? text : NULL);
}

void writer_id(struct writer *writer, const char *key, uint64_t id)
{
    if (!begin_value(writer, key, NUMBER_MAX))
        return;
    put_all(writer, "\"c", 2);
    put_digits(writer, id, 1);
    put(writer, '"');
}

void writer_time(struct writer *writer, const char *key, uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / SECOND_NS);
    struct tm parts;
    if (wall_ns == 0) {
        writer_null(writer, key);
        return;
    }
    CHECK(gmtime_r(&seconds, &parts) != NULL); /* 2^64 ns end in the year 2554 */
    if (!begin_value(writer, key, TIME_MAX))
        return;
    put(writer, '"');
    put_digits(writer, (uint64_t)parts.tm_year + 1900, 4);
    put(writer, '-');
    put_digits(writer, (uint64_t)parts.tm_mon + 1, 2);
    put(writer, '-');
    put_digits(writer, (uint64_t)parts.tm_mday, 2);
    put(writer, 'T');
    put_digits(writer, (uint64_t)parts.tm_hour, 2);
    put(writer, ':');
    put_digits(writer, (uint64_t)parts.tm_min, 2);
    put(writer, ':');
    put_digits(writer, (uint64_t)parts.tm_sec, 2);
    put(writer, '.');
    put_digits(writer, wall_ns / MS_NS % 1000, 3);
    put(writer, 'Z');
    put(writer, '"');
}
