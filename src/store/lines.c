/*
 * lines.c -- see lines.h.
 */
#include "store/lines.h"

#include "base/hex.h"

#include <stdio.h>

static const char error_begin[] = "{\"kind\": \"error\", \"error\": \"";
static const char line_end[] = "\"}\n";

enum { END_LEN = sizeof line_end - 1, NUMBER_MAX = 20, DIGEST_DIGITS = 16 };

/* ---- writing ---- */

uint32_t lines_put_record(char ret[static LINES_MAX], enum record_kind kind, uint32_t slot,
                          struct bytes value)
{
    uint32_t len = value.len < RECORD_VALUE_MAX ? value.len : RECORD_VALUE_MAX;
    char *at = ret + snprintf(ret, LINES_MAX, "{\"kind\": \"%s\", \"slot\": %u, \"record\": \"",
                              record_kind_name(kind), slot);
    for (uint32_t i = 0; i < len; i++, at += 2)
        hex_put(at, value.at[i]);
    memcpy(at, line_end, END_LEN);
    return (uint32_t)(at + END_LEN - ret);
}

uint32_t lines_put_end(char ret[static LINES_MAX], const struct digest *digest)
{
    return (uint32_t)snprintf(ret, LINES_MAX,
                              "{\"kind\": \"end\", \"records\": %llu, \"digest\": \"%016llx\"}\n",
                              (unsigned long long)digest->count, (unsigned long long)digest->sum);
}

/* The sentence is ours, but may name a path. */
uint32_t lines_put_error(char ret[static LINES_MAX], const char *sentence)
{
    uint32_t len = sizeof error_begin - 1;
    memcpy(ret, error_begin, len);
    for (; *sentence != '\0' && len < LINES_MAX - END_LEN; sentence++) {
        char c = *sentence;
        ret[len++] = c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c;
    }
    memcpy(ret + len, line_end, END_LEN);
    return len + END_LEN;
}

/* ---- reading ---- */

static bool skip(struct bytes *line, const char *text)
{
    uint32_t len = (uint32_t)strlen(text);
    if (line->len < len || memcmp(line->at, text, len) != 0)
        return false;
    line->at += len;
    line->len -= len;
    return true;
}

static bool take_number(struct bytes *line, uint64_t *ret)
{
    uint64_t value = 0;
    uint32_t len = 0;
    for (; len < line->len && line->at[len] >= '0' && line->at[len] <= '9'; len++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(line->at[len] - '0'), &value))
            return false;
    line->at += len;
    line->len -= len;
    *ret = value;
    return len > 0;
}

static int digit_of(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Pairs of digits up to the quote. */
static bool take_hex(struct bytes *line, uint8_t *ret, uint32_t max, uint32_t *ret_len)
{
    uint32_t len = 0;
    for (; line->len >= 2 && line->at[0] != '"'; line->at += 2, line->len -= 2) {
        int high = digit_of(line->at[0]), low = digit_of(line->at[1]);
        if (high < 0 || low < 0 || len == max)
            return false;
        ret[len++] = (uint8_t)(high << 4 | low);
    }
    *ret_len = len;
    return true;
}

static enum lines_kind take_record(struct bytes line, struct lines_read *ret)
{
    struct record_change *change = &ret->record;
    uint64_t slot;
    uint32_t len;
    *change = (struct record_change){0};
    for (int kind = RECORD_SERVER; change->kind == 0 && kind < RECORD_KIND_END; kind++) {
        struct bytes rest = line;
        if (!skip(&rest, record_kind_name((enum record_kind)kind)) ||
            !skip(&rest, "\", \"slot\": "))
            continue;
        change->kind = (enum record_kind)kind;
        line = rest;
    }
    if (change->kind == 0 || !take_number(&line, &slot) || slot >= RECORD_SLOT_MAX ||
        !skip(&line, ", \"record\": \"") ||
        !take_hex(&line, ret->buffer, sizeof ret->buffer, &len) || !skip(&line, line_end) ||
        line.len != 0)
        return LINES_OTHER;
    change->slot = (uint32_t)slot;
    change->value = (struct bytes){ret->buffer, len};
    return LINES_RECORD;
}

static enum lines_kind take_end(struct bytes line, struct digest *ret)
{
    uint8_t sum[DIGEST_DIGITS / 2];
    uint32_t len;
    if (!take_number(&line, &ret->count) || !skip(&line, ", \"digest\": \"") ||
        !take_hex(&line, sum, sizeof sum, &len) || len != sizeof sum || !skip(&line, line_end) ||
        line.len != 0)
        return LINES_OTHER;
    ret->sum = load_be64(sum);
    return LINES_END;
}

enum lines_kind lines_get(struct bytes line, struct lines_read *ret)
{
    if (skip(&line, error_begin)) {
        if (line.len < END_LEN || memcmp(line.at + line.len - END_LEN, line_end, END_LEN) != 0)
            return LINES_OTHER;
        ret->error = (struct bytes){line.at, line.len - END_LEN};
        return LINES_ERROR;
    }
    if (!skip(&line, "{\"kind\": \""))
        return LINES_OTHER;
    return skip(&line, "end\", \"records\": ") ? take_end(line, &ret->end) : take_record(line, ret);
}
