/*
 * hex.c -- see hex.h.
 */
#include "base/hex.h"

#include <string.h>

void hex_put(char at[static 2], uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    at[0] = digits[byte >> 4];
    at[1] = digits[byte & 15];
}

/* -1: not a digit. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool hex_parse(const char *text, uint8_t *ret, uint32_t max, uint32_t *ret_len)
{
    size_t len = strlen(text);
    if (len == 0 || len % 2 != 0 || len / 2 > max)
        return false;
    for (size_t i = 0; i < len / 2; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    *ret_len = (uint32_t)(len / 2);
    return true;
}
