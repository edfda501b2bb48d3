/*
 * bytes.h -- views of bytes that somebody else owns, and big-endian loads and stores.
 *
 * Names, handles and cookies travel through the server as views into the receive buffer; a view
 * dies with the buffer it points into. Text from the network is never a C string: it may contain
 * anything, also NUL.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at;
    uint32_t len;
};

/* A view of a C string that the program itself wrote, without its NUL. */
static inline struct bytes bytes_of_text(const char *text)
{
    return (struct bytes){(const uint8_t *)text, (uint32_t)strlen(text)};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Host names compare without regard to ASCII case, and to nothing else: no locale. */
static inline uint8_t byte_fold(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static inline bool bytes_equal_fold(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return false;
    for (uint32_t i = 0; i < a.len; i++)
        if (byte_fold(a.at[i]) != byte_fold(b.at[i]))
            return false;
    return true;
}

static inline uint32_t load_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t load_be64(const uint8_t *at)
{
    return (uint64_t)load_be32(at) << 32 | load_be32(at + 4);
}

static inline void store_be32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static inline void store_be64(uint8_t *at, uint64_t value)
{
    store_be32(at, (uint32_t)(value >> 32));
    store_be32(at + 4, (uint32_t)value);
}

#endif
