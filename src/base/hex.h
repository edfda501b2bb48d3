/*
 * hex.h -- bytes as pairs of hexadecimal digits, and back.
 */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stdbool.h>
#include <stdint.h>

/* The two digits of a byte, lower case. */
void hex_put(char at[static 2], uint8_t byte);

/* Digits of either case. False: not one to `max` bytes in pairs of digits; what ret holds then is
 * of no use. */
bool hex_parse(const char *text, uint8_t *ret, uint32_t max, uint32_t *ret_len);

#endif
