/*
 * store_copy.c -- see store_copy.h.
 */
#include "admin/store_copy.h"

#include "admin/http.h"
#include "base/units.h"

#include <stdlib.h>
#include <uv.h>

enum {
    PIECE_BYTES = 64 * 1024,
    SILENCE_S = 30, /* a reader that takes nothing for so long is gone */
    PACE_BYTES = 1024 * 1024,
};
#define PACE_NS (60 * SECOND_NS) /* for PACE_BYTES: slower ones are gone, too */

struct stream {
    const struct admin *admin; /* outlives the exchange */
    struct exchange *exchange;
    void *copy;
    uint64_t paced_bytes; /* taken since `paced_ns` */
    uint64_t paced_ns;
    bool is_too_slow;
};

static void free_stream(void *context)
{
    struct stream *stream = context;
    stream->admin->copy_end(stream->copy, stream->is_too_slow);
    free(stream);
}

static bool keeps_pace(struct stream *stream, size_t len)
{
    uint64_t now_ns = uv_hrtime();
    bool is_slow = now_ns - stream->paced_ns > PACE_NS;
    stream->paced_bytes += len;
    if (stream->paced_bytes >= PACE_BYTES) {
        stream->paced_bytes = 0;
        stream->paced_ns = now_ns;
        return true;
    }
    return !is_slow;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t max)
{
    struct stream *stream = context;
    (void)position;
    ssize_t len = stream->admin->copy_read(stream->copy, buffer, max);
    if (len == 0) { /* the store is busy: that is not the reader's time */
        stream->paced_ns = uv_hrtime();
        return http_sleep(stream->exchange);
    }
    if (len == ADMIN_COPY_WHOLE)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (len == ADMIN_COPY_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (len > 0 && !keeps_pace(stream, (size_t)len)) {
        /* Without a word: what it has may end inside a line, and one more would be part of it. */
        stream->is_too_slow = true;
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    return len;
}

void store_copy_answer(struct exchange *exchange)
{
    static const char type[] = "application/x-ndjson";
    const struct admin *admin = exchange->admin;
    if (exchange->is_head) {
        exchange_constant(exchange, type, "", 0);
        return;
    }
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return;
    struct admin_copy begun = {0};
    admin->copy_begin(admin->context, &exchange->who, &begun);
    if (begun.copy == NULL) {
        free(stream);
        exchange_error(exchange, MHD_HTTP_CONFLICT, begun.error, (struct bytes){0}, begun.hint);
        return;
    }
    stream->admin = admin;
    stream->exchange = exchange;
    stream->copy = begun.copy;
    stream->paced_ns = uv_hrtime();
    /* Fails for no reason that the reader could do anything about. */
    (void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                    (unsigned)SILENCE_S);
    exchange_stream(exchange, type, PIECE_BYTES, read_stream, stream, free_stream);
    exchange_header(exchange, STORE_COPY_HEADER, begun.store);
}
