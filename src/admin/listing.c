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
    writer_free(&listing->writer);
    free(listing);
}

static void begin(struct listing *listing)
{
    writer_object(&listing->writer, NULL);
    writer_list(&listing->writer, listing->name);
    listing->has_begun = true;
}

static void end(struct listing *listing)
{
    struct writer *writer = &listing->writer;
    char buffer[32];
    struct text cursor;
    text_init(&cursor, buffer, sizeof buffer);
    text_add_u64(&cursor, listing->cursor);
    writer_end_list(writer);
    writer_text(writer, "next", listing->cursor == VIEW_END ? NULL : buffer);
    writer_end_object(writer);
    writer_plain(writer, "\n");
    listing->has_ended = true;
}

/* Writes what comes next. False: the budget is used up. */
static bool advance(struct listing *listing, uint32_t *budget)
{
    if (!listing->has_begun) {
        begin(listing);
    } else if (listing->row_count == listing->limit || listing->cursor == VIEW_END) {
        end(listing);
    } else if (listing->next(listing, &listing->cursor, budget)) {
        listing->row_count++;
    } else if (listing->cursor == VIEW_END) {
        end(listing);
    } else {
        return false;
    }
    return true;
}

static void set_time(struct listing *listing)
{
    struct admin_facts facts = {0};
    listing->admin->facts(listing->admin->context, &facts);
    listing->now_ns = facts.now_ns;
    listing->wall_ns = facts.wall_ns;
}

static ssize_t read_listing(void *context, uint64_t position, char *buffer, size_t max)
{
    struct listing *listing = context;
    struct writer *writer = &listing->writer;
    uint32_t budget = SLOTS_PER_PIECE;
    (void)position;
    if (max > PIECE_BYTES)
        max = PIECE_BYTES;
    /* What did not fit last time is less than a row. */
    writer->len -= listing->read;
    if (writer->len > 0)
        memmove(writer->at, writer->at + listing->read, writer->len);
    listing->read = 0;
    set_time(listing);
    while (writer->len < max && !listing->has_ended && !writer->has_failed)
        if (!advance(listing, &budget))
            break;
    if (writer->has_failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (writer->len == 0 && listing->has_ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (writer->len == 0)
        writer_plain(writer, " ");
    listing->read = writer->len < max ? writer->len : max;
    memcpy(buffer, writer->at, listing->read);
    return (ssize_t)listing->read;
}

/* Digits only. False: something else, or larger than `max`. */
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
                       "use the value of next from the previous page");
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
