/*
 * store_json.c -- records as lines of JSON; see store_json.h.
 *
 * Writing needs no library; reading is jansson's, so that lines that passed through other tools are
 * understood, whatever they did to blanks and to the order of the fields.
 */
#include "daemon/store_json.h"

#include "base/check.h"

#include <errno.h>
#include <jansson.h>

/* ---- writing ---- */

static void add_key(struct text *line, const char *key)
{
    text_add(line, ", \"");
    text_add(line, key);
    text_add(line, "\": ");
}

static void add_number(struct text *line, const char *key, uint64_t value)
{
    add_key(line, key);
    text_add_u64(line, value);
}

static void add_name(struct text *line, const char *key, struct bytes name)
{
    add_key(line, key);
    text_add_char(line, '"');
    text_add_json(line, name);
    text_add_char(line, '"');
}

static void add_hex(struct text *line, const char *key, struct bytes bytes)
{
    add_key(line, key);
    text_add_char(line, '"');
    text_add_hex(line, bytes);
    text_add_char(line, '"');
}

static void add_address(struct text *line, const char *key, const struct address *address)
{
    add_key(line, key);
    text_add_char(line, '"');
    text_add_address(line, address);
    text_add_char(line, '"');
}

static bool add_server(struct text *line, struct bytes value)
{
    struct record_server record;
    if (record_get_server(value, &record) != RECORD_GOOD)
        return false;
    add_number(line, "epoch", record.epoch);
    add_number(line, "state", record.state);
    add_number(line, "restart_state", record.restart_state);
    add_number(line, "incomplete", (record.flags & RECORD_SERVER_INCOMPLETE) != 0);
    return true;
}

static bool add_registrant(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_registrant record;
    if (record_get_registrant(value, slot, &record) != RECORD_GOOD)
        return false;
    add_number(line, "id", record.id);
    add_name(line, "mon_name", record.mon_name);
    add_name(line, "callback_host", record.my_name);
    add_number(line, "callback_prog", record.my_prog);
    add_address(line, "address", &record.address);
    return true;
}

static bool add_notice(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_notice record;
    if (record_get_notice(value, slot, &record) != RECORD_GOOD)
        return false;
    add_name(line, "mon_name", record.mon_name);
    add_number(line, "state", record.state);
    return true;
}

static bool add_client(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_client record;
    if (record_get_client(value, slot, &record) != RECORD_GOOD)
        return false;
    add_number(line, "id", record.id);
    add_name(line, "caller_name", record.caller_name);
    add_address(line, "address", &record.address);
    return true;
}

static bool add_lock(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_lock record;
    if (record_get_lock(value, slot, &record) != RECORD_GOOD)
        return false;
    add_number(line, "client_id", record.of.client_id);
    add_hex(line, "fh", record.fh);
    add_number(line, "offset", record.start);
    add_number(line, "length", record.end == UINT64_MAX ? 0 : record.end - record.start + 1);
    add_number(line, "exclusive", (record.flags & RECORD_LOCK_EXCLUSIVE) != 0);
    return true;
}

static bool add_waiter(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_waiter record;
    if (record_get_waiter(value, slot, &record) != RECORD_GOOD)
        return false;
    add_number(line, "client_id", record.of.client_id);
    add_hex(line, "fh", record.fh);
    add_number(line, "offset", record.offset);
    add_number(line, "length", record.len);
    return true;
}

static bool add_share(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_share record;
    if (record_get_share(value, slot, &record) != RECORD_GOOD)
        return false;
    add_number(line, "client_id", record.of.client_id);
    add_hex(line, "fh", record.fh);
    return true;
}

static bool add_tracked(struct text *line, uint32_t slot, struct bytes value)
{
    struct record_tracked record;
    if (record_get_tracked(value, slot, &record) != RECORD_GOOD)
        return false;
    add_number(line, "id", record.id);
    add_name(line, "protocol", record.protocol);
    add_hex(line, "key", record.key);
    return true;
}

static bool add_fields(struct text *line, enum record_kind kind, uint32_t slot, struct bytes value)
{
    switch (kind) {
    case RECORD_SERVER:
        return add_server(line, value);
    case RECORD_REGISTRANT:
        return add_registrant(line, slot, value);
    case RECORD_NOTICE:
        return add_notice(line, slot, value);
    case RECORD_CLIENT:
        return add_client(line, slot, value);
    case RECORD_LOCK:
        return add_lock(line, slot, value);
    case RECORD_WAITER:
        return add_waiter(line, slot, value);
    case RECORD_SHARE:
        return add_share(line, slot, value);
    case RECORD_TRACKED:
        return add_tracked(line, slot, value);
    case RECORD_KIND_END:
        break;
    }
    UNREACHABLE();
}

bool store_json_put(struct text *line, enum record_kind kind, uint32_t slot, struct bytes value)
{
    text_add(line, "{\"kind\": \"");
    text_add(line, record_kind_name(kind));
    text_add(line, "\"");
    add_number(line, "slot", slot);
    bool is_good = add_fields(line, kind, slot, value);
    add_hex(line, "record", value);
    text_add(line, "}");
    return is_good;
}

/* ---- reading ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static bool read_hex(const char *text, uint8_t *buffer, uint32_t *ret_len)
{
    size_t len = strlen(text);
    if (len % 2 != 0 || len / 2 > RECORD_VALUE_MAX)
        return false;
    for (size_t i = 0; i < len / 2; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        buffer[i] = (uint8_t)(high << 4 | low);
    }
    *ret_len = (uint32_t)(len / 2);
    return true;
}

static bool find_kind(const char *name, enum record_kind *ret)
{
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        if (strcmp(name, record_kind_name((enum record_kind)kind)) == 0) {
            *ret = (enum record_kind)kind;
            return true;
        }
    }
    return false;
}

static int refuse(struct text *ret_why, const char *why)
{
    text_add(ret_why, why);
    return -EINVAL;
}

static int take(json_t *object, uint8_t *buffer, struct record_change *ret, struct text *ret_why)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *hex = json_string_value(json_object_get(object, "record"));
    const json_t *slot = json_object_get(object, "slot");
    struct record_change change = {0};
    uint32_t len = 0;
    if (kind == NULL || !find_kind(kind, &change.kind))
        return refuse(ret_why, "no kind that this version knows");
    if (!json_is_integer(slot) || json_integer_value(slot) < 0 ||
        json_integer_value(slot) >= RECORD_SLOT_MAX)
        return refuse(ret_why, "no slot");
    if (hex == NULL || !read_hex(hex, buffer, &len))
        return refuse(ret_why, "no record in lower-case hexadecimal");
    change.slot = (uint32_t)json_integer_value(slot);
    change.value = (struct bytes){buffer, len};
    char scrap[STORE_JSON_LINE_MAX];
    struct text fields;
    text_init(&fields, scrap, sizeof scrap);
    if (!add_fields(&fields, change.kind, change.slot, change.value))
        return refuse(ret_why, "the record is damaged, or of a newer format");
    *ret = change;
    return 0;
}

int store_json_get(const char *line, uint8_t *buffer, struct record_change *ret,
                   struct text *ret_why)
{
    json_error_t error;
    json_t *object = json_loads(line, JSON_ALLOW_NUL, &error);
    if (object == NULL)
        return refuse(ret_why, error.text);
    int result = take(object, buffer, ret, ret_why);
    json_decref(object);
    return result;
}
