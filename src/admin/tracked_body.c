/*
 * tracked_body.c -- see tracked_body.h.
 *
 * Everything is checked before the core is asked, and what is unknown is refused rather than
 * ignored: a misspelt window_s would be found when a client is lost.
 */
#include "admin/tracked_body.h"

#include "base/check.h"
#include "base/hex.h"

#include <jansson.h>

#define HEX_PREFIX "hex:"

enum { HEX_PREFIX_LEN = sizeof HEX_PREFIX - 1, KEY_TEXT_MAX = 2 * RECORD_KEY_MAX };

static bool refuse(struct exchange *exchange, const char *error, struct bytes shown,
                   const char *hint)
{
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST, error, shown, hint);
    return false;
}

/* ---- the path ---- */

bool tracked_body_read_protocol(struct exchange *exchange, struct bytes word, struct bytes *ret)
{
    if (!record_is_protocol(word))
        return refuse(exchange, "not a protocol name: ", word,
                      "a protocol is named by 1 to 16 of a-z, 0-9 and -");
    if (!tracking_is_protocol(word))
        return refuse(exchange, "not a tracked protocol: ", word,
                      "lock clients (nlm) and registrations (nsm) are in /api/v1/clients");
    *ret = word;
    return true;
}

/* Printable, and no sign of an encoding that was not understood. */
static bool is_key_text(struct bytes text)
{
    for (uint32_t i = 0; i < text.len; i++)
        if (text.at[i] < ' ' || text.at[i] == 0x7f || text.at[i] == '%' || text.at[i] == '/')
            return false;
    return text.len > 0 && text.len <= RECORD_KEY_MAX;
}

static bool read_key(struct exchange *exchange, uint8_t key[static RECORD_KEY_MAX],
                     struct bytes *ret)
{
    struct bytes text = exchange->key;
    char digits[KEY_TEXT_MAX + 1];
    ret->at = key;
    if (text.len < HEX_PREFIX_LEN || memcmp(text.at, HEX_PREFIX, HEX_PREFIX_LEN) != 0) {
        if (!is_key_text(text))
            return refuse(exchange, "not a key: ", text,
                          "a key has 1 to 64 bytes: text without /, % and control characters, or "
                          "hex: and pairs of hex digits");
        memcpy(key, text.at, text.len);
        ret->len = text.len;
        return true;
    }
    uint32_t len = text.len - HEX_PREFIX_LEN;
    if (len > 0 && len <= KEY_TEXT_MAX) {
        memcpy(digits, text.at + HEX_PREFIX_LEN, len);
        digits[len] = '\0';
        if (hex_parse(digits, key, RECORD_KEY_MAX, &ret->len) && ret->len > 0)
            return true;
    }
    return refuse(exchange, "not a key: ", text, "hex: is followed by 1 to 64 pairs of hex digits");
}

/* ---- parameters ---- */

static bool read_connection(struct exchange *exchange, uint32_t *ret)
{
    const char *text = exchange_parameter(exchange, "connection");
    uint64_t number;
    if (text == NULL)
        return true;
    if (text[0] == 'c' || !exchange_parse_id(bytes_of_text(text), &number) || number == 0 ||
        number > UINT32_MAX)
        return refuse(exchange, "not the number of a connection: ", bytes_of_text(text),
                      "it is in the response to the register or reconnect that made it");
    *ret = (uint32_t)number;
    return true;
}

static bool read_id(struct exchange *exchange, uint64_t *ret)
{
    const char *text = exchange_parameter(exchange, "id");
    if (text == NULL || (exchange_parse_id(bytes_of_text(text), ret) && *ret != 0))
        return true;
    return refuse(exchange, "not a client id: ", bytes_of_text(text), "ids look like c17");
}

/* ---- the body ---- */

/* The string of a member, null and missing being the empty one. */
static bool read_text(struct exchange *exchange, const json_t *value, const char *key,
                      const char **ret)
{
    *ret = "";
    if (value == NULL || json_is_null(value))
        return true;
    *ret = json_string_value(value);
    return *ret != NULL ||
           refuse(exchange, "not a string: ", bytes_of_text(key), "write it in quotation marks");
}

static bool read_seconds(struct exchange *exchange, const json_t *value, const char *key,
                         uint32_t *ret)
{
    json_int_t seconds = json_integer_value(value);
    if (value == NULL || json_is_null(value))
        return true;
    if (!json_is_integer(value) || seconds < 0 || seconds > TRACKED_WINDOW_MAX_S)
        return refuse(exchange, "not a number of seconds: ", bytes_of_text(key),
                      "allowed: 0 to 86400; 0: the window of the client, of its protocol (--window)"
                      ", or of the server (--recovery-window)");
    *ret = (uint32_t)seconds;
    return true;
}

static bool read_name(struct exchange *exchange, const json_t *value, struct tracked_words *words,
                      struct bytes *ret)
{
    const char *name;
    if (!read_text(exchange, value, "name", &name))
        return false;
    size_t len = strlen(name);
    bool is_plain = true;
    for (size_t i = 0; i < len; i++)
        is_plain &= (uint8_t)name[i] >= ' ' && name[i] != 0x7f;
    if (len > TRACKING_NAME_MAX || !is_plain)
        return refuse(exchange, "not a name: ", bytes_of_text(name),
                      "a name has at most 255 bytes and no control characters");
    memcpy(words->name, name, len + 1);
    *ret = (struct bytes){(const uint8_t *)words->name, (uint32_t)len};
    return true;
}

static bool read_address(struct exchange *exchange, const json_t *value, struct address *ret)
{
    const char *address;
    if (!read_text(exchange, value, "address", &address))
        return false;
    return address[0] == '\0' || address_parse(bytes_of_text(address), ret) ||
           refuse(exchange, "not an IP address: ", bytes_of_text(address),
                  "like 192.0.2.9 or 2001:db8::9; leave it out if there is none");
}

static bool read_bytes(struct exchange *exchange, const json_t *value, struct tracked_words *words,
                       struct bytes *ret)
{
    const char *hex;
    if (!read_text(exchange, value, "bytes", &hex))
        return false;
    uint32_t len = 0;
    if (hex[0] != '\0' && !hex_parse(hex, words->bytes, RECORD_BYTES_MAX, &len))
        return refuse(exchange, "not bytes: ", bytes_of_text(hex),
                      "bytes are at most 1,024 pairs of hex digits");
    *ret = (struct bytes){words->bytes, len};
    return true;
}

/* What a body may say, by kind. */
static const char *members_of(enum tracking_kind kind)
{
    switch (kind) {
    case TRACKING_REGISTER:
        return "window_s, name, address, bytes";
    case TRACKING_RECONNECT:
        return "address";
    case TRACKING_DISCONNECT:
        return "timeout_s";
    case TRACKING_UPDATE:
        return "bytes";
    case TRACKING_REMOVE:
    case TRACKING_TAKE:
    case TRACKING_LOOK:
        return "";
    }
    UNREACHABLE();
}

static bool is_member(const char *members, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = members; *at != '\0'; at += strspn(at, ", ")) {
        size_t member_len = strcspn(at, ",");
        if (member_len == len && strncmp(at, key, len) == 0)
            return true;
        at += member_len;
    }
    return false;
}

static bool read_members(struct exchange *exchange, json_t *body, struct tracked_words *words,
                         struct tracking *ret)
{
    const char *members = members_of(ret->kind), *key;
    json_t *value;
    json_object_foreach(body, key, value) if (!is_member(members, key)) return refuse(
        exchange, "unknown member of the body: ", bytes_of_text(key),
        members[0] == '\0' ? "no body is allowed here"
                           : "allowed: window_s, name, address and bytes to register, address to "
                             "reconnect, timeout_s to disconnect, bytes to update");
    if (ret->kind == TRACKING_UPDATE && json_object_get(body, "bytes") == NULL)
        return refuse(exchange, "missing member of the body: bytes", (struct bytes){0},
                      "for example {\"bytes\": \"0a0b\"}");
    return read_seconds(exchange, json_object_get(body, "window_s"), "window_s", &ret->window_s) &&
           read_seconds(exchange, json_object_get(body, "timeout_s"), "timeout_s",
                        &ret->timeout_s) &&
           read_name(exchange, json_object_get(body, "name"), words, &ret->name) &&
           read_address(exchange, json_object_get(body, "address"), &ret->address) &&
           read_bytes(exchange, json_object_get(body, "bytes"), words, &ret->bytes);
}

static bool read_body(struct exchange *exchange, struct tracked_words *words, struct tracking *ret)
{
    static const char nothing[] = "{}";
    const struct body *body = &exchange->body;
    const char *text = body->len > 0 ? (const char *)body->at : nothing;
    json_error_t error;
    json_t *object = json_loadb(text, body->len > 0 ? body->len : sizeof nothing - 1,
                                JSON_REJECT_DUPLICATES, &error);
    bool is_good = false;
    if (json_is_object(object))
        is_good = read_members(exchange, object, words, ret);
    else
        (void)refuse(exchange, "the body is not a JSON object: ",
                     bytes_of_text(object != NULL ? "something else" : error.text),
                     "for example {\"name\": \"laptop\", \"bytes\": \"0a0b\"}");
    json_decref(object);
    return is_good;
}

bool tracked_body_read(struct exchange *exchange, struct tracked_words *words, struct tracking *ret)
{
    return tracked_body_read_protocol(exchange, exchange->id, &ret->protocol) &&
           (ret->kind == TRACKING_TAKE || read_key(exchange, words->key, &ret->key)) &&
           read_id(exchange, &ret->id) && read_connection(exchange, &ret->connection) &&
           read_body(exchange, words, ret);
}
