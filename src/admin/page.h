/*
 * page.h -- the web page at /: one file, page.html, that is a part of the program.
 *
 * It is read-only. It uses the same public paths (route.h) and loads nothing else.
 */
#ifndef ADMIN_PAGE_H
#define ADMIN_PAGE_H

#include <stddef.h>

struct exchange;

/* Made by embed.c when holdfast is built. */
extern const unsigned char page_bytes[];
extern const size_t page_len;
extern const char page_policy[]; /* Content-Security-Policy */

void page_answer(struct exchange *exchange);

#endif
