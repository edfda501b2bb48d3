/*
 * web_page.h -- the web page at /: page.html, page.css and one script, made of src/admin/page/ and
 * parts of the program.
 *
 * It is read-only. It uses the same public paths (route.h) and loads nothing else.
 */
#ifndef ADMIN_WEB_PAGE_H
#define ADMIN_WEB_PAGE_H

#include <stddef.h>

struct exchange;

/* Made by tools/embed-page when holdfast is built. */
extern const unsigned char page_html[], page_js[], page_css[];
extern const size_t page_html_len, page_js_len, page_css_len;

void web_page_answer(struct exchange *exchange);
void web_page_script_answer(struct exchange *exchange);
void web_page_style_answer(struct exchange *exchange);

#endif
