/*
 * paging.c -- pages of lists, piece by piece; see paging.h.
 *
 * Always true: what was written so far and what is pending, put together, is the beginning of one
 * JSON object. When a piece finds no row within its budget it writes a blank, which JSON allows
 * between any two rows: libmicrohttpd then asks again in the next turn. A row that waits for the
 * name of its file puts the connection to sleep instead.
 */
#include "admin/paging.h"

#include "admin/http.h"
#include "base/check.h"
#include "base/units.h"

#include <stdlib.h>

enum {
    LIMIT_DEFAULT = 100,
    /* Of one piece; SHORT: while clients call. A slot is one unit, comparing it is more
     * (list_match.h), and what is less than VIEW_DIRECT_MAX finds nothing (view.h). */
    PIECE_UNITS = 4000,
    SHORT_UNITS = VIEW_DIRECT_MAX + 250,
    PIECE_BYTES = 32 * 1024, /* a hundred rows or so */
    SHORT_BYTES = 4 * 1024,
};

#define PAGE_NS (UINT64_C(2) * SECOND_NS)

static void free_listing(void *context)
{
    struct paging *paging = context;
    writer_free(&paging->writer);
    free(paging->own);
    free(paging);
}

static void begin(struct paging *paging)
{
    writer_object(&paging->writer, NULL);
    writer_list(&paging->writer, paging->name);
    paging->has_begun = true;
}

static void write_next(struct paging *paging)
{
    struct writer *writer = &paging->writer;
    char buffer[32];
    struct text cursor;
    text_init(&cursor, buffer, sizeof buffer);
    text_add_u64(&cursor, paging->cursor);
    writer_text(writer, "next", paging->cursor == VIEW_END ? NULL : buffer);
    if (paging->match.len > 0)
        writer_number(writer, "unnamed", paging->unnamed_count);
}

static void end(struct paging *paging)
{
    struct writer *writer = &paging->writer;
    writer_end_list(writer);
    (paging->write_end != NULL ? paging->write_end : write_next)(paging);
    writer_end_object(writer);
    writer_plain(writer, "\n");
    paging->has_ended = true;
}

/* Has it been looked for long enough? The next page must begin further on. */
static bool is_late(const struct paging *paging)
{
    return paging->now_ns - paging->began_ns >= PAGE_NS && paging->cursor != paging->first_cursor;
}

/* Writes what comes next. False: the budget is used up, or a name is waited for. */
static bool advance(struct paging *paging, uint32_t *budget)
{
    if (!paging->has_begun) {
        begin(paging);
    } else if (paging->row_count == paging->limit || paging->cursor == VIEW_END) {
        end(paging);
    } else if (paging->next(paging, &paging->cursor, budget)) {
        paging->row_count++;
    } else if (paging->cursor == VIEW_END || is_late(paging)) {
        end(paging);
    } else {
        return false;
    }
    return true;
}

static void set_time(struct paging *paging)
{
    struct admin_facts facts = {0};
    paging->admin->facts(paging->admin->context, &facts);
    paging->now_ns = facts.now_ns;
    paging->wall_ns = facts.wall_ns;
    if (!paging->has_begun)
        paging->began_ns = facts.now_ns;
}

static ssize_t read_listing(void *context, uint64_t position, char *buffer, size_t max)
{
    struct paging *paging = context;
    struct writer *writer = &paging->writer;
    bool is_short = admin_is_in_use(paging->admin);
    uint32_t budget = is_short ? SHORT_UNITS : PIECE_UNITS;
    size_t piece = is_short ? SHORT_BYTES : PIECE_BYTES;
    (void)position;
    if (max > piece)
        max = piece;
    /* What did not fit last time is less than a row. */
    writer->len -= paging->read;
    if (writer->len > 0)
        memmove(writer->at, writer->at + paging->read, writer->len);
    paging->read = 0;
    paging->waits_for_name = false;
    set_time(paging);
    while (writer->len < max && !paging->has_ended && !writer->has_failed)
        if (!advance(paging, &budget))
            break;
    if (writer->has_failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (writer->len == 0 && paging->has_ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (writer->len == 0 && paging->waits_for_name)
        return http_sleep(paging->exchange);
    if (writer->len == 0)
        writer_plain(writer, " ");
    paging->read = writer->len < max ? writer->len : max;
    memcpy(buffer, writer->at, paging->read);
    return (ssize_t)paging->read;
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

static bool read_cursor(struct paging *paging, const char *text)
{
    return paging->read_cursor != NULL ? paging->read_cursor(paging, text)
                                       : parse_number(text, UINT64_MAX, &paging->cursor);
}

/* Limit and cursor of the request. False: already responded. */
static bool read_page(struct exchange *exchange, struct paging *paging)
{
    const char *limit_text = exchange_parameter(exchange, "limit");
    const char *cursor_text = exchange_parameter(exchange, "cursor");
    uint64_t limit = LIMIT_DEFAULT;
    if (limit_text != NULL && (!parse_number(limit_text, PAGING_LIMIT_MAX, &limit) || limit == 0)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a limit: ", bytes_of_text(limit_text),
                       "allowed: 1 to 1000");
        return false;
    }
    if (cursor_text != NULL && !read_cursor(paging, cursor_text)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a cursor: ", bytes_of_text(cursor_text),
                       "use the value of next from the previous page");
        return false;
    }
    paging->first_cursor = paging->cursor;
    paging->limit = (uint32_t)limit;
    return true;
}

void paging_answer(struct exchange *exchange, const struct paging *first)
{
    struct paging *paging = malloc(sizeof *paging);
    if (paging == NULL) {
        free(first->own);
        return;
    }
    *paging = *first;
    paging->admin = exchange->admin;
    paging->exchange = exchange;
    if (!read_page(exchange, paging)) {
        free_listing(paging);
        return;
    }
    if (paging->filter.fh.len > 0)
        paging->filter.fh.at = paging->handle;
    exchange_stream(exchange, "application/json", PIECE_BYTES, read_listing, paging, free_listing);
}
