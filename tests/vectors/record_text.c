/*
 * record_text.c -- a stored record as one line of text; see record_text.h.
 */
#include "record_text.h"

#include "store/record_layout.h"

void record_text_name(FILE *out, struct bytes name)
{
    if (name.len == 0)
        fputc('%', out);
    for (uint32_t i = 0; i < name.len; i++) {
        uint8_t c = name.at[i];
        if (c > ' ' && c < 0x7f && c != '%')
            fputc(c, out);
        else
            fprintf(out, "%%%02X", c);
    }
}

void record_text_hex(FILE *out, struct bytes bytes)
{
    for (uint32_t i = 0; i < bytes.len; i++)
        fprintf(out, "%02x", bytes.at[i]);
}

static void print_field(FILE *out, const struct record_field *field, const void *record)
{
    char address[ADDRESS_TEXT_MAX];
    switch (field->type) {
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_TIME:
        fprintf(out, "%llu", (unsigned long long)record_layout_number(field, record));
        return;
    case FIELD_ADDRESS:
        address_text(record_layout_address(field, record), address);
        fputs(address, out);
        return;
    case FIELD_NAME:
    case FIELD_WORD:
        record_text_name(out, record_layout_bytes(field, record));
        return;
    case FIELD_HANDLE:
    case FIELD_PRIV:
        record_text_hex(out, record_layout_bytes(field, record));
        return;
    }
    UNREACHABLE();
}

void record_text_print(FILE *out, enum record_kind kind, uint32_t slot,
                       const union record_any *record)
{
    const struct record_layout *layout = record_layout_of(kind);
    fprintf(out, "slot=%u", slot);
    for (uint32_t i = 0; i < layout->count; i++) {
        fprintf(out, " %s=", layout->fields[i].name);
        print_field(out, &layout->fields[i], record);
    }
}
