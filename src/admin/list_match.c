/*
 * list_match.c -- see list_match.h.
 *
 * What is known at once is looked at first: only when nothing of it matches is the path asked for,
 * which may have to be read from disk.
 */
#include "admin/list_match.h"

#include "base/check.h"
#include "base/text.h"

#include <string.h>

/* What looking costs, in bytes compared. */
enum {
    BYTES_PER_UNIT = 64,
    ADDRESS_BYTES = 256, /* to write one */
    EXPORT_BYTES = 64,   /* to check whose handle it is */
    PATH_BYTES = 1024,   /* to ask for one: the kernel may have to be */
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Knuth, Morris, Pratt: no text makes it take more than two steps per byte. memmem would prepare
 * itself for each of many short haystacks. */
static bool is_part(const struct list_match *match, struct bytes of, uint32_t *bytes)
{
    uint32_t same = 0;
    if (of.len < match->len)
        return false;
    *bytes += of.len;
    for (uint32_t i = 0; i < of.len && same < match->len; i++) {
        char c = lower((char)of.at[i]);
        while (same > 0 && match->text[same] != c)
            same = match->border[same - 1];
        same += match->text[same] == c;
    }
    return same == match->len;
}

/* What people see of a name is what they look for: where it is not UTF-8, each byte is shown as
 * Latin-1 (writer_bytes). */
static bool is_part_of_name(const struct list_match *match, struct bytes name, uint32_t *bytes)
{
    uint8_t shown[2 * RECORD_NAME_MAX];
    uint32_t len = 0;
    if (is_part(match, name, bytes))
        return true;
    if (match->is_ascii || name.len > RECORD_NAME_MAX || writer_is_utf8(name))
        return false;
    for (uint32_t i = 0; i < name.len; i++) {
        if (name.at[i] >= 0x80)
            shown[len++] = (uint8_t)(0xc0 | name.at[i] >> 6);
        shown[len++] = name.at[i] >= 0x80 ? (uint8_t)(0x80 | (name.at[i] & 63)) : name.at[i];
    }
    return is_part(match, (struct bytes){shown, len}, bytes);
}

/* An id is looked for among clients: "c17" is part of many handles. */
static bool is_part_of_handle(const struct list_match *match, struct bytes fh, uint32_t *bytes)
{
    char digits[2 * RECORD_FH_MAX + 1];
    struct text hex;
    if (match->has_id)
        return false;
    if (is_part(match, fh, bytes))
        return true;
    if (!match->is_hex || match->len > 2 * fh.len)
        return false;
    text_init(&hex, digits, sizeof digits);
    text_add_hex(&hex, fh);
    return is_part(match, (struct bytes){(const uint8_t *)digits, hex.len}, bytes);
}

static bool is_part_of_address(const struct list_match *match, const struct address *of,
                               uint32_t *bytes)
{
    char address[ADDRESS_TEXT_MAX];
    if (match->len >= sizeof address || of->family == 0)
        return false;
    address_text(of, address);
    *bytes += ADDRESS_BYTES;
    return is_part(match, bytes_of_text(address), bytes);
}

static bool is_of_client(const struct list_match *match, const struct view_owner *owner,
                         uint32_t *bytes)
{
    return (match->has_id && match->id == owner->client) ||
           is_part_of_name(match, owner->name, bytes) ||
           is_part_of_address(match, &owner->address, bytes);
}

static enum list_fit fit_of_path(const struct admin *admin, const struct list_match *match,
                                 struct bytes fh, uint32_t *bytes)
{
    struct bytes path;
    if (admin->path == NULL)
        return LIST_FITS_NOT;
    *bytes += PATH_BYTES;
    switch (admin->path(admin->context, fh, &path)) {
    case ADMIN_PATH_NONE:
        return LIST_FITS_NOT;
    case ADMIN_PATH_KNOWN:
        return is_part(match, path, bytes) ? LIST_FITS : LIST_FITS_NOT;
    case ADMIN_PATH_LATER:
        return LIST_FITS_LATER;
    case ADMIN_PATH_UNKNOWN:
        return LIST_FITS_UNKNOWN;
    }
    UNREACHABLE();
}

static enum list_fit fit_of(const struct admin *admin, const struct list_match *match,
                            const struct view_claim *claim, uint32_t *bytes)
{
    uint32_t export;
    if (match->has_export) {
        *bytes += EXPORT_BYTES;
        if (!admin->export_of(admin->context, claim->fh, &export) || export != match->export)
            return LIST_FITS_NOT;
    }
    if (match->len == 0 || is_of_client(match, &claim->owner, bytes) ||
        is_part_of_handle(match, claim->fh, bytes) || is_part(match, claim->file_set, bytes))
        return LIST_FITS;
    return fit_of_path(admin, match, claim->fh, bytes);
}

static void pay(uint32_t bytes, uint32_t *budget)
{
    uint32_t cost = (bytes + BYTES_PER_UNIT - 1) / BYTES_PER_UNIT;
    *budget -= cost < *budget ? cost : *budget;
}

enum list_fit list_match_claim(const struct admin *admin, const struct list_match *match,
                               const struct view_claim *claim, uint32_t *budget)
{
    uint32_t bytes = 0;
    enum list_fit fit = fit_of(admin, match, claim, &bytes);
    pay(bytes, budget);
    return fit;
}

bool list_match_client(const struct list_match *match, const struct view_client *client,
                       uint32_t *budget)
{
    const struct view_owner owner = {
        .client = client->id, .name = client->name, .address = client->address};
    uint32_t bytes = 0;
    bool is_found = match->len == 0 || is_of_client(match, &owner, &bytes) ||
                    is_part_of_name(match, client->mon_name, &bytes);
    pay(bytes, budget);
    return is_found;
}

void list_match_prepare(struct list_match *match, const char *text)
{
    uint32_t same = 0;
    match->len = (uint32_t)strlen(text);
    CHECK(match->len <= LIST_MATCH_MAX);
    match->has_id = text[0] == 'c' && exchange_parse_id(bytes_of_text(text), &match->id);
    for (uint32_t i = 0; i <= match->len; i++)
        match->text[i] = lower(text[i]);
    match->is_ascii = true;
    for (uint32_t i = 0; i < match->len; i++)
        match->is_ascii &= (uint8_t)text[i] < 0x80;
    match->is_hex = strspn(match->text, "0123456789abcdef") == match->len;
    for (uint32_t i = 1; i < match->len; i++) {
        while (same > 0 && match->text[same] != match->text[i])
            same = match->border[same - 1];
        same += match->text[same] == match->text[i];
        match->border[i] = (uint8_t)same;
    }
}

static bool find_export(const struct admin *admin, const char *directory, uint32_t *ret)
{
    struct admin_export export;
    for (uint32_t i = 0; admin->export != NULL && admin->export(admin->context, i, &export); i++)
        if (strcmp(export.directory, directory) == 0) {
            *ret = export.id;
            return true;
        }
    return false;
}

bool list_match_read(struct exchange *exchange, struct list_match *ret)
{
    const char *text = exchange_parameter(exchange, "match");
    const char *directory = exchange_parameter(exchange, "export");
    if (text != NULL && (*text == '\0' || strlen(text) > LIST_MATCH_MAX)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                       "not a text to look for: ", bytes_of_text(text), "allowed: 1 to 255 bytes");
        return false;
    }
    if (text != NULL)
        list_match_prepare(ret, text);
    ret->has_export = directory != NULL;
    if (directory != NULL && !find_export(exchange->admin, directory, &ret->export)) {
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "no such export: ", bytes_of_text(directory),
                       "/api/v1/exports, or holdfast exports, lists them");
        return false;
    }
    return true;
}

bool list_match_read_words(struct exchange *exchange, struct list_match ret[static LIST_WORDS_MAX],
                           uint32_t *ret_count)
{
    const char *given = exchange_parameter(exchange, "words"), *at = given;
    char word[LIST_MATCH_MAX + 1];
    uint32_t count = 0;
    while (at != NULL && *(at += strspn(at, " ")) != '\0') {
        size_t len = strcspn(at, " ");
        if (len > LIST_MATCH_MAX || count == LIST_WORDS_MAX)
            break;
        memcpy(word, at, len);
        word[len] = '\0';
        list_match_prepare(&ret[count++], word);
        at += len;
    }
    if (given != NULL && (count == 0 || *at != '\0')) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                       "not words to look for: ", bytes_of_text(given),
                       "allowed: 1 to 8 words of 1 to 255 bytes, separated by blanks");
        return false;
    }
    *ret_count = count;
    return true;
}
