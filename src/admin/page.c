/*
 * page.c -- serves the web page; see page.h.
 */
#include "admin/page.h"

#include "admin/exchange.h"

#include <stdlib.h>

void page_answer(struct exchange *exchange)
{
    char *copy = malloc(page_len); /* a response owns its body; pages are requested rarely */
    if (copy == NULL)
        return;
    memcpy(copy, page_bytes, page_len);
    exchange_body(exchange, MHD_HTTP_OK, "text/html; charset=utf-8", copy, page_len);
    exchange_header(exchange, "Content-Security-Policy", page_policy);
    exchange_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
}
