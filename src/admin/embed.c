/*
 * embed.c -- runs at build time: makes page_data.c from page.html.
 *
 * usage: embed PAGE.HTML PAGE_DATA.C
 *
 * What it writes is the page as bytes and the policy that the page is served with: nothing may be
 * loaded, nothing sent but to the server itself, and of scripts and styles only those run whose
 * hashes are named, which are the ones of this page. Text can never become markup: browsers that
 * know trusted types refuse every attempt. A page with anything that the policy would stop, an
 * attribute with a style or a handler, or an address of elsewhere, does not build.
 */
#include "admin/sha256.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_MAX = 1024 * 1024,
    BASE64_LEN = (SHA256_LEN + 2) / 3 * 4,
    BYTES_PER_LINE = 24,
};

static const char *path; /* of the page, for messages */

static void fail(const char *why, const char *what)
{
    (void)fprintf(stderr, "embed: %s: %s%s\n", path, why, what);
    exit(1);
}

static char *read_page(size_t *ret_len)
{
    char *page = malloc(PAGE_MAX + 1);
    FILE *file = fopen(path, "rb");
    if (page == NULL || file == NULL)
        fail("cannot be read: ", strerror(errno));
    size_t len = fread(page, 1, PAGE_MAX + 1, file);
    if (ferror(file) != 0)
        fail("cannot be read: ", strerror(errno));
    (void)fclose(file);
    if (len > PAGE_MAX)
        fail("is larger than a page should be", "");
    page[len] = '\0';
    if (strlen(page) != len)
        fail("has a zero byte", "");
    *ret_len = len;
    return page;
}

/* A hash as base64, which is what a policy wants. */
static void encode(const uint8_t hash[static SHA256_LEN], char ret[static BASE64_LEN + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = 0;
    for (int i = 0; i < SHA256_LEN; i += 3) {
        uint32_t word = 0;
        for (int j = 0; j < 3; j++)
            word = word << 8 | (i + j < SHA256_LEN ? hash[i + j] : 0);
        for (int j = 0; j < 4; j++)
            ret[len++] = i + j > SHA256_LEN ? '=' : digits[word >> (18 - 6 * j) & 63];
    }
    ret[len] = '\0';
}

/* Writes the hash of everything between the first such tags; they may be there once. */
static void write_hash(FILE *out, const char *page, const char *open, const char *close)
{
    const char *begin = strstr(page, open);
    const char *end = begin == NULL ? NULL : strstr(begin, close);
    if (end == NULL || strstr(end, open) != NULL)
        fail("must have exactly one ", open);
    begin += strlen(open);
    uint8_t hash[SHA256_LEN];
    char text[BASE64_LEN + 1];
    sha256(begin, (size_t)(end - begin), hash);
    encode(hash, text);
    (void)fprintf(out, "'sha256-%s'", text);
}

static void check_page(const char *page)
{
    static const char *const forbidden[] = {
        " style=\"",      " onclick=",   " onload=",  "<script ",  "<style ",
        "http://",        "https://",    "innerHTML", "outerHTML", "insertAdjacentHTML",
        "document.write", "javascript:", "eval("};
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (strstr(page, forbidden[i]) != NULL)
            fail("must not have ", forbidden[i]);
}

static void write_bytes(FILE *out, const char *page, size_t len)
{
    (void)fputs("const unsigned char page_bytes[] = {", out);
    for (size_t i = 0; i < len; i++)
        (void)fprintf(out, "%s%u,", i % BYTES_PER_LINE == 0 ? "\n" : "", (unsigned char)page[i]);
    (void)fprintf(out, "\n};\nconst size_t page_len = %zu;\n", len);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fputs("usage: embed PAGE.HTML PAGE_DATA.C\n", stderr);
        return 2;
    }
    path = argv[1];
    size_t len;
    char *page = read_page(&len);
    check_page(page);
    FILE *out = fopen(argv[2], "w");
    if (out == NULL) {
        path = argv[2];
        fail("cannot be written: ", strerror(errno));
    }
    (void)fputs("/* page_data.c -- made of page.html by embed.c. */\n#include \"admin/page.h\"\n\n",
                out);
    write_bytes(out, page, len);
    (void)fputs("const char page_policy[] = \"default-src 'none'; script-src ", out);
    write_hash(out, page, "<script>", "</script>");
    (void)fputs("; style-src ", out);
    write_hash(out, page, "<style>", "</style>");
    (void)fputs("; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \"\n"
                "    \"frame-ancestors 'none'; require-trusted-types-for 'script'; "
                "trusted-types 'none'\";\n",
                out);
    bool is_written = ferror(out) == 0;
    if (fclose(out) != 0 || !is_written) {
        path = argv[2];
        fail("cannot be written: ", strerror(errno));
    }
    free(page);
    return 0;
}
