/*
 * statd_line.c -- see statd_line.h.
 *
 * rpc.statd prints every number with eight digits and reads up to eight. Fields are apart by one
 * blank, so a name that has one cannot be told.
 */
#include "daemon/statd_line.h"

#include "base/hex.h"

#include <inttypes.h>
#include <stdio.h>

enum { NUMBERS = 4, NUMBER_DIGITS_MAX = 8 };

/* The next field of what is left; its length is 0 at the end. */
static struct bytes next_field(struct bytes *left)
{
    while (left->len > 0 && (*left->at == ' ' || *left->at == '\t'))
        *left = (struct bytes){left->at + 1, left->len - 1};
    struct bytes field = {left->at, 0};
    while (field.len < left->len && field.at[field.len] != ' ' && field.at[field.len] != '\t')
        field.len++;
    *left = (struct bytes){left->at + field.len, left->len - field.len};
    return field;
}

static bool get_number(struct bytes field, uint32_t *ret)
{
    /* An even number of digits, for hex_parse. */
    char digits[NUMBER_DIGITS_MAX + 1] = "00000000";
    uint8_t bytes[4];
    uint32_t len;
    if (field.len == 0 || field.len > NUMBER_DIGITS_MAX)
        return false;
    memcpy(digits + NUMBER_DIGITS_MAX - field.len, field.at, field.len);
    if (!hex_parse(digits, bytes, sizeof bytes, &len))
        return false;
    *ret = load_be32(bytes);
    return true;
}

static bool get_priv(struct bytes field, uint8_t ret[static RECORD_PRIV_LEN])
{
    char digits[2 * RECORD_PRIV_LEN + 1] = {0};
    uint32_t len;
    if (field.len != 2 * RECORD_PRIV_LEN)
        return false;
    memcpy(digits, field.at, field.len);
    return hex_parse(digits, ret, RECORD_PRIV_LEN, &len);
}

static bool is_name(struct bytes name)
{
    if (name.len == 0 || name.len > RECORD_NAME_MAX)
        return false;
    for (uint32_t i = 0; i < name.len; i++)
        if (name.at[i] <= ' ' || name.at[i] == 0x7f)
            return false;
    return true;
}

bool statd_line_get(struct bytes line, struct record_registrant *ret)
{
    uint32_t numbers[NUMBERS];
    uint8_t priv[RECORD_PRIV_LEN], address[4];
    for (uint32_t i = 0; i < NUMBERS; i++)
        if (!get_number(next_field(&line), &numbers[i]))
            return false;
    if (!get_priv(next_field(&line), priv))
        return false;
    struct bytes mon_name = next_field(&line), my_name = next_field(&line);
    if (!is_name(mon_name) || !is_name(my_name) || next_field(&line).len > 0)
        return false;
    memcpy(address, &numbers[0], sizeof address);
    ret->address = address_v4(address);
    ret->my_prog = numbers[1];
    ret->my_vers = numbers[2];
    ret->my_proc = numbers[3];
    memcpy(ret->priv, priv, sizeof ret->priv);
    ret->mon_name = mon_name;
    ret->my_name = my_name;
    return true;
}

bool statd_line_put(char ret[static STATD_LINE_MAX], const struct record_registrant *record)
{
    uint32_t address;
    char priv[2 * RECORD_PRIV_LEN];
    if (record->address.family != 4 || !is_name(record->mon_name) || !is_name(record->my_name))
        return false;
    memcpy(&address, record->address.bytes, sizeof address);
    for (size_t i = 0; i < RECORD_PRIV_LEN; i++)
        hex_put(&priv[2 * i], record->priv[i]);
    int len = snprintf(ret, STATD_LINE_MAX,
                       "%08" PRIx32 " %08" PRIx32 " %08" PRIx32 " %08" PRIx32 " %.*s %.*s %.*s\n",
                       address, record->my_prog, record->my_vers, record->my_proc, (int)sizeof priv,
                       priv, (int)record->mon_name.len, (const char *)record->mon_name.at,
                       (int)record->my_name.len, (const char *)record->my_name.at);
    return len > 0 && len < STATD_LINE_MAX;
}
