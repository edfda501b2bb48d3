/*
 * sorter.c -- see sorter.h.
 *
 * While rows are added, those kept are a heap with the last of them on top: a row that comes behind
 * it is passed over by one comparison, which is what happens to most rows of a long list.
 */
#include "admin/sorter.h"

#include "base/check.h"
#include "base/hex.h"
#include "base/text.h"

#include <string.h>

/* ---- order ---- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Takes the digits that a text begins with, without leading zeros. */
static struct bytes take_digits(struct bytes *text)
{
    struct bytes digits = {text->at, 0};
    while (digits.len < text->len && is_digit(digits.at[digits.len]))
        digits.len++;
    text->at += digits.len;
    text->len -= digits.len;
    while (digits.len > 0 && digits.at[0] == '0') {
        digits.at++;
        digits.len--;
    }
    return digits;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_texts(struct bytes a, struct bytes b)
{
    int result = 0;
    while (result == 0 && a.len > 0 && b.len > 0) {
        if (is_digit(a.at[0]) && is_digit(b.at[0])) {
            struct bytes first = take_digits(&a), second = take_digits(&b);
            result = compare_u64(first.len, second.len);
            if (result == 0 && first.len > 0)
                result = memcmp(first.at, second.at, first.len);
            continue;
        }
        result = (int)byte_fold(a.at[0]) - (int)byte_fold(b.at[0]);
        a = (struct bytes){a.at + 1, a.len - 1};
        b = (struct bytes){b.at + 1, b.len - 1};
    }
    return result != 0 ? result : compare_u64(a.len, b.len);
}

static struct bytes text_of(const struct sorter_key *key)
{
    return (struct bytes){key->text, key->len};
}

int sorter_compare(const struct sorter *sorter, const struct sorter_key *a,
                   const struct sorter_key *b)
{
    int result = compare_u64(a->number, b->number);
    if (result != 0)
        return sorter->is_down ? -result : result;
    result = compare_texts(text_of(a), text_of(b));
    if (result != 0)
        return sorter->is_text && sorter->is_down ? -result : result;
    return compare_u64(a->id, b->id);
}

void sorter_set_text(struct sorter_key *key, struct bytes text)
{
    key->len = text.len < SORTER_TEXT_MAX ? text.len : SORTER_TEXT_MAX;
    if (key->len > 0)
        memcpy(key->text, text.at, key->len);
}

/* ---- those kept ---- */

static bool is_behind(const struct sorter *sorter, uint32_t a, uint32_t b)
{
    return sorter_compare(sorter, &sorter->kept[a], &sorter->kept[b]) > 0;
}

static void swap(struct sorter *sorter, uint32_t a, uint32_t b)
{
    struct sorter_key key = sorter->kept[a];
    sorter->kept[a] = sorter->kept[b];
    sorter->kept[b] = key;
}

static void sift_up(struct sorter *sorter, uint32_t at)
{
    for (; at > 0 && is_behind(sorter, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(sorter, at, (at - 1) / 2);
}

static void sift_down(struct sorter *sorter, uint32_t count)
{
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && is_behind(sorter, child + 1, child))
            child++;
        if (!is_behind(sorter, child, at))
            return;
        swap(sorter, at, child);
        at = child;
    }
}

void sorter_add(struct sorter *sorter, const struct sorter_key *key)
{
    CHECK(sorter->max > 0);
    sorter->total++;
    if (sorter->has_after && sorter_compare(sorter, key, &sorter->after) <= 0) {
        sorter->before++;
    } else if (sorter->count < sorter->max) {
        sorter->kept[sorter->count] = *key;
        sift_up(sorter, sorter->count++);
    } else if (sorter_compare(sorter, key, &sorter->kept[0]) < 0) {
        sorter->kept[0] = *key;
        sift_down(sorter, sorter->count);
    }
}

void sorter_finish(struct sorter *sorter)
{
    for (uint32_t left = sorter->count; left > 1; left--) {
        swap(sorter, 0, left - 1);
        sift_down(sorter, left - 1);
    }
}

/* ---- cursors: number-id-text in hex ---- */

void sorter_put_cursor(const struct sorter_key *key, char ret[static SORTER_CURSOR_MAX])
{
    struct text text;
    text_init(&text, ret, SORTER_CURSOR_MAX);
    text_add_u64(&text, key->number);
    text_add(&text, "-");
    text_add_u64(&text, key->id);
    text_add(&text, "-");
    text_add_hex(&text, text_of(key));
}

/* Digits and a dash. */
static bool take_number(const char **text, uint64_t *ret)
{
    uint64_t value = 0;
    const char *at = *text;
    for (; is_digit((uint8_t)*at); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == *text || *at != '-')
        return false;
    *text = at + 1;
    *ret = value;
    return true;
}

bool sorter_parse_cursor(const char *text, struct sorter_key *ret)
{
    struct sorter_key key = {0};
    if (!take_number(&text, &key.number) || !take_number(&text, &key.id) ||
        (*text != '\0' && !hex_parse(text, key.text, SORTER_TEXT_MAX, &key.len)))
        return false;
    *ret = key;
    return true;
}
