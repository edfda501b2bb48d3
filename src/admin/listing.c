/*
 * listing.c -- pages of lists, piece by piece; see listing.h.
 *
 * Always true: what was written so far and what is pending, put together, is the beginning of one
 * JSON object. When a piece finds no row within its budget it writes a blank, which JSON allows
 * between any two rows: libmicrohttpd then asks again in the next turn.
 */
#include "admin/listing.h"

#include "base/check.h"

#include <stdlib.h>

enum {
    LIMIT_DEFAULT = 100,
    SLOTS_PER_PIECE = 4000,
    PIECE_BYTES = 8 * 1024, /* written at once */
};

static void free_listing(void *context)
{
    struct listing *listing = context;
    free(listing->piece);
    free(listing);
}

/* What comes next goes into `piece`. False: no memory. */
static bool set_piece(struct listing *listing, char *text)
{
    free(listing->piece);
    listing->piece = text;
    listing->piece_len = text == NULL ? 0 : strlen(text);
    listing->piece_at = 0;
    return text != NULL;
}

static bool begin(struct listing *listing)
{
    char buffer[64];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "{\"");
    text_add(&text, listing->name);
    text_add(&text, "\":[");
    listing->has_begun = true;
    return set_piece(listing, strdup(buffer));
}

static bool end(struct listing *listing)
{
    char buffer[64];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "],\"next\":");
    if (listing->cursor == VIEW_END) {
        text_add(&text, "null");
    } else {
        text_add(&text, "\"");
        text_add_u64(&text, listing->cursor);
        text_add(&text, "\"");
    }
    text_add(&text, "}\n");
    listing->has_ended = true;
    return set_piece(listing, strdup(buffer));
}

static bool add_row(struct listing *listing, json_t *row)
{
    char *text = json_dumps(row, EXCHANGE_JSON_FLAGS);
    json_decref(row);
    if (text == NULL)
        return false;
    size_t len = strlen(text);
    char *piece = malloc(len + 3);
    if (piece != NULL) {
        size_t at = 0;
        if (listing->row_count > 0)
            piece[at++] = ',';
        piece[at++] = '\n';
        memcpy(piece + at, text, len + 1);
    }
    free(text);
    listing->row_count++;
    return set_piece(listing, piece);
}

/* The next piece. False: no memory. An empty one: the budget is used up. */
static bool make_piece(struct listing *listing, uint32_t *budget)
{
    if (!listing->has_begun)
        return begin(listing);
    if (listing->row_count == listing->limit || listing->cursor == VIEW_END)
        return end(listing);
    json_t *row = listing->next(listing, &listing->cursor, budget);
    if (row != NULL)
        return add_row(listing, row);
    return listing->cursor == VIEW_END ? end(listing) : set_piece(listing, strdup(""));
}

static ssize_t read_listing(void *context, uint64_t position, char *buffer, size_t max)
{
    struct listing *listing = context;
    uint32_t budget = SLOTS_PER_PIECE;
    size_t len = 0;
    (void)position;
    if (max > PIECE_BYTES)
        max = PIECE_BYTES;
    while (len < max) {
        size_t left = listing->piece_len - listing->piece_at;
        if (left == 0) {
            if (listing->has_ended)
                break;
            if (!make_piece(listing, &budget))
                return MHD_CONTENT_READER_END_WITH_ERROR;
            if (listing->piece_len == 0) {
                buffer[len++] = ' ';
                break;
            }
            continue;
        }
        size_t count = left < max - len ? left : max - len;
        memcpy(buffer + len, listing->piece + listing->piece_at, count);
        listing->piece_at += count;
        len += count;
    }
    return len == 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)len;
}

/* Digits only. False: they are not, or the number is larger than `max`. */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *ret = value;
    return value <= max;
}

void listing_answer(struct exchange *exchange, const struct listing *first)
{
    const char *limit_text = exchange_parameter(exchange, "limit");
    const char *cursor_text = exchange_parameter(exchange, "cursor");
    uint64_t limit = LIMIT_DEFAULT, cursor = 0;
    if (limit_text != NULL &&
        (!parse_number(limit_text, LISTING_LIMIT_MAX, &limit) || limit == 0)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a limit: ", bytes_of_text(limit_text),
                       "allowed: 1 to 1000");
        return;
    }
    if (cursor_text != NULL && !parse_number(cursor_text, UINT64_MAX, &cursor)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a cursor: ", bytes_of_text(cursor_text),
                       "take it from next of the page before");
        return;
    }
    struct listing *listing = malloc(sizeof *listing);
    if (listing == NULL)
        return;
    *listing = *first;
    listing->admin = exchange->admin;
    listing->limit = (uint32_t)limit;
    listing->cursor = cursor;
    if (listing->filter.fh.len > 0)
        listing->filter.fh.at = listing->handle;
    exchange_stream(exchange, MHD_HTTP_OK, "application/json", PIECE_BYTES, read_listing, listing,
                    free_listing);
}
