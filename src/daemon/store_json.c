/*
 * store_json.c -- records as lines of JSON; see store_json.h.
 *
 * Reading is jansson's, so that lines that passed through other tools are
 * understood, whatever they did to blanks and to the order of the fields.
 */
#include "daemon/store_json.h"

#include "admin/writer.h"
#include "base/check.h"
#include "base/hex.h"
#include "store/record_layout.h"

#include <errno.h>
#include <jansson.h>

/* ---- writing ---- */

static uint64_t number_of(const struct record_field *field, const void *record)
{
    uint64_t number = record_layout_number(field, record);
    if (field->json_flag != 0)
        return (number & field->json_flag) != 0;
    if (field->rule != RULE_END)
        return number;
    return number == UINT64_MAX ? 0 : number - record_layout_number(field - 1, record) + 1;
}

static void add_field(struct writer *line, const struct record_field *field, const void *record)
{
    char address[ADDRESS_TEXT_MAX];
    switch (field->type) {
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_TIME:
        writer_integer(line, field->json, number_of(field, record));
        return;
    case FIELD_ADDRESS:
        address_text(record_layout_address(field, record), address);
        writer_text(line, field->json, address);
        return;
    case FIELD_NAME:
    case FIELD_WORD:
        writer_bytes(line, field->json, record_layout_bytes(field, record));
        return;
    case FIELD_HANDLE:
    case FIELD_PRIV:
        writer_hex(line, field->json, record_layout_bytes(field, record));
        return;
    }
    UNREACHABLE();
}

/* The field with this place among the keys, from 1; NULL: there are no more. */
static const struct record_field *field_at(const struct record_layout *layout, uint32_t place)
{
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->fields[i].json_at == place)
            return &layout->fields[i];
    return NULL;
}

bool store_json_put(char ret[static STORE_JSON_LINE_MAX], enum record_kind kind, uint32_t slot,
                    struct bytes value)
{
    struct writer line = writer_into(ret, STORE_JSON_LINE_MAX);
    line.is_spaced = true;
    writer_object(&line, NULL);
    writer_text(&line, "kind", record_kind_name(kind));
    writer_integer(&line, "slot", slot);
    const struct record_layout *layout = record_layout_of(kind);
    const struct record_field *field = NULL;
    union record_any record;
    bool is_good = record_get(value, kind, slot, &record) == RECORD_GOOD;
    for (uint32_t place = 1; is_good && (field = field_at(layout, place)) != NULL; place++)
        add_field(&line, field, &record);
    writer_hex(&line, "record", value);
    writer_end_object(&line);
    CHECK(!line.has_failed);
    ret[line.len] = '\0';
    return is_good;
}

/* ---- reading ---- */

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

static int take_end(json_t *object, struct digest *ret, struct text *ret_why)
{
    const char *hex = json_string_value(json_object_get(object, "digest"));
    const json_t *records = json_object_get(object, "records");
    uint8_t bytes[8];
    uint32_t len = 0;
    if (!json_is_number(records) || json_number_value(records) < 0 || hex == NULL ||
        !hex_parse(hex, bytes, sizeof bytes, &len) || len != sizeof bytes)
        return refuse(ret_why, "the last line is damaged");
    *ret = (struct digest){(uint64_t)json_number_value(records), load_be64(bytes)};
    return STORE_JSON_END;
}

/* The server could not go on. */
static int take_error(json_t *object, struct text *ret_why)
{
    const char *why = json_string_value(json_object_get(object, "error"));
    text_add(ret_why, why != NULL ? why : "no reason is given");
    return STORE_JSON_BROKEN;
}

static int take(json_t *object, uint8_t *buffer, struct record_change *ret, struct text *ret_why)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *hex = json_string_value(json_object_get(object, "record"));
    const json_t *number = json_object_get(object, "slot");
    double slot = json_is_number(number) ? json_number_value(number) : -1;
    struct record_change change = {0};
    union record_any record;
    uint32_t len = 0;
    if (kind == NULL || !find_kind(kind, &change.kind))
        return refuse(ret_why, "unknown kind of record");
    if (slot < 0 || slot >= RECORD_SLOT_MAX || slot != (double)(uint32_t)slot)
        return refuse(ret_why, "no slot");
    if (hex == NULL || !hex_parse(hex, buffer, RECORD_VALUE_MAX, &len))
        return refuse(ret_why, "the record is not hexadecimal");
    change.slot = (uint32_t)slot;
    change.value = (struct bytes){buffer, len};
    if (record_get(change.value, change.kind, change.slot, &record) != RECORD_GOOD)
        return refuse(ret_why, "the record is damaged or has a newer format");
    *ret = change;
    return 0;
}

int store_json_get(const char *line, uint8_t *buffer, struct record_change *ret,
                   struct digest *ret_end, struct text *ret_why)
{
    json_error_t error;
    /* An offset may be past what jansson takes for an integer; nobody reads it back. */
    json_t *object = json_loads(line, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (object == NULL) {
        text_add(ret_why, error.text);
        return -EBADMSG;
    }
    const char *kind = json_string_value(json_object_get(object, "kind"));
    int result = kind != NULL && strcmp(kind, "end") == 0     ? take_end(object, ret_end, ret_why)
                 : kind != NULL && strcmp(kind, "error") == 0 ? take_error(object, ret_why)
                                                              : take(object, buffer, ret, ret_why);
    json_decref(object);
    return result;
}
