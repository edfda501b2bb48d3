/*
 * body.c -- see body.h.
 */
#include "admin/body.h"

#include <stdlib.h>

bool body_add(struct body *body, const char *piece, size_t len)
{
    if (len > BODY_LEN_MAX - body->len)
        return false;
    uint8_t *at = realloc(body->at, body->len + len);
    if (at == NULL)
        return false;
    memcpy(at + body->len, piece, len);
    body->at = at;
    body->len += (uint32_t)len;
    return true;
}

void body_done(struct body *body)
{
    free(body->at);
    *body = (struct body){0};
}
