/*
 * exchange.c -- responses; see exchange.h.
 */
#include "admin/exchange.h"

#include "base/check.h"
#include "base/minmax.h"

#include <stdlib.h>

enum {
    ERROR_MAX = 4096,
    SHOWN_MAX = 200, /* bytes of a request quoted in an error */
};

#define HTML "text/html; charset=utf-8"

/* No page of another origin may read, frame or embed a response. */
static const char *const headers[][2] = {
    {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

void exchange_reset(struct exchange *exchange)
{
    if (exchange->response != NULL)
        MHD_destroy_response(exchange->response); /* a queued one has another reference */
    body_done(&exchange->body);
    *exchange = (struct exchange){0};
}

const char *exchange_parameter(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

void exchange_header(struct exchange *exchange, const char *name, const char *value)
{
    if (exchange->response != NULL)
        (void)MHD_add_response_header(exchange->response, name, value); /* fails without memory */
}

static void set_headers(struct exchange *exchange, const char *type)
{
    exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        exchange_header(exchange, headers[i][0], headers[i][1]);
    if (strcmp(type, HTML) != 0) /* a page sets its own policy */
        exchange_header(exchange, "Content-Security-Policy",
                        "default-src 'none'; frame-ancestors 'none'");
}

/* Takes over a body of malloc, or copies another one. No memory: no response, and the connection
 * is closed. */
static void respond(struct exchange *exchange, unsigned status, const char *type, void *body,
                    size_t len, enum MHD_ResponseMemoryMode mode)
{
    CHECK(exchange->response == NULL);
    exchange->status = status;
    exchange->response = MHD_create_response_from_buffer(len, body, mode);
    if (exchange->response == NULL && mode == MHD_RESPMEM_MUST_FREE)
        free(body);
    set_headers(exchange, type);
}

void exchange_stream(struct exchange *exchange, const char *type, size_t block,
                     MHD_ContentReaderCallback reader, void *context,
                     MHD_ContentReaderFreeCallback free_context)
{
    CHECK(exchange->response == NULL);
    exchange->status = MHD_HTTP_OK;
    exchange->response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block, reader, context, free_context);
    if (exchange->response == NULL)
        free_context(context);
    /* With chunks libmicrohttpd would terminate even an absent body on a kept connection, and the
     * next response would begin with that terminator. Without them the connection is closed. */
    else if (exchange->is_head)
        (void)MHD_set_response_options(exchange->response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT,
                                       MHD_RO_END);
    set_headers(exchange, type);
}

void exchange_body(struct exchange *exchange, unsigned status, const char *type, char *body,
                   size_t len)
{
    respond(exchange, status, type, body, len, MHD_RESPMEM_MUST_FREE);
}

void exchange_constant(struct exchange *exchange, const char *type, const void *body, size_t len)
{
    respond(exchange, MHD_HTTP_OK, type, (void *)(uintptr_t)body, len, MHD_RESPMEM_PERSISTENT);
}

void exchange_text(struct exchange *exchange, unsigned status, const char *text)
{
    char *copy = strdup(text);
    if (copy != NULL)
        respond(exchange, status, "text/plain; charset=utf-8", copy, strlen(copy),
                MHD_RESPMEM_MUST_FREE);
}

void exchange_error(struct exchange *exchange, unsigned status, const char *error,
                    struct bytes shown, const char *hint)
{
    char buffer[ERROR_MAX];
    uint8_t sentence[ERROR_MAX / 8];
    struct bytes said = bytes_of_text(error);
    uint32_t shown_len = min_u32(shown.len, SHOWN_MAX + 1);
    CHECK(said.len + shown_len <= sizeof sentence);
    memcpy(sentence, said.at, said.len);
    if (shown_len > 0)
        memcpy(sentence + said.len, shown.at, shown_len);
    struct writer body = writer_into(buffer, sizeof buffer);
    body.is_spaced = true;
    writer_object(&body, NULL);
    writer_cut(&body, "error", (struct bytes){sentence, said.len + shown_len},
               said.len + SHOWN_MAX);
    writer_text(&body, "hint", hint);
    writer_end_object(&body);
    writer_plain(&body, "\n");
    CHECK(!body.has_failed);
    respond(exchange, status, "application/json", buffer, body.len, MHD_RESPMEM_MUST_COPY);
}

void exchange_json(struct exchange *exchange, unsigned status, struct writer *writer)
{
    size_t len;
    char *body = writer_take(writer, &len);
    if (body == NULL) {
        exchange_error(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory for the response",
                       (struct bytes){0}, "try again later");
        return;
    }
    respond(exchange, status, "application/json", body, len, MHD_RESPMEM_MUST_FREE);
}

bool exchange_parse_id(struct bytes text, uint64_t *ret)
{
    uint64_t id = 0;
    uint32_t at = text.len > 0 && text.at[0] == 'c';
    if (at == text.len)
        return false;
    for (; at < text.len; at++)
        if (text.at[at] < '0' || text.at[at] > '9' || __builtin_mul_overflow(id, 10, &id) ||
            __builtin_add_overflow(id, (uint64_t)(text.at[at] - '0'), &id))
            return false;
    *ret = id;
    return true;
}
