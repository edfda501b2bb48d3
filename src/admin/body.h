/*
 * body.h -- the body of a request, where a route takes one: gathered as it comes, and bounded.
 */
#ifndef ADMIN_BODY_H
#define ADMIN_BODY_H

#include "base/bytes.h"

#include <stddef.h>

/* Twice what the longest one with a meaning has: 1,024 bytes in hex, and a name. */
#define BODY_LEN_MAX 8192

/* All zero: empty. */
struct body {
    uint8_t *at; /* owned */
    uint32_t len;
};

/* False: it becomes too long, or there is no memory. */
__attribute__((warn_unused_result)) bool body_add(struct body *body, const char *piece, size_t len);
void body_done(struct body *body);

#endif
