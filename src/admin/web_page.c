/*
 * web_page.c -- serves the web page; see web_page.h.
 *
 * The policy: nothing may be loaded but its own script and style, nothing sent but to the server
 * itself. Text can never become markup: browsers that know trusted types refuse every attempt.
 */
#include "admin/web_page.h"

#include "admin/exchange.h"

void web_page_answer(struct exchange *exchange)
{
    exchange_constant(exchange, "text/html; charset=utf-8", page_html, page_html_len);
    exchange_header(exchange, "Content-Security-Policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                    "require-trusted-types-for 'script'; trusted-types 'none'");
    exchange_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
}

void web_page_script_answer(struct exchange *exchange)
{
    exchange_constant(exchange, "text/javascript; charset=utf-8", page_js, page_js_len);
}

void web_page_style_answer(struct exchange *exchange)
{
    exchange_constant(exchange, "text/css; charset=utf-8", page_css, page_css_len);
}
