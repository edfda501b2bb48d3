/*
 * crc32c.c -- CRC-32C, eight bytes at a step: by the processor's instruction where it has one, else
 * in plain C.
 *
 * Eight tables: tables[k][b] is the CRC of byte b followed by k zero bytes. Because a CRC is
 * linear, eight input bytes are eight independent look-ups joined by XOR, and each table is spanned
 * by its eight entries for single bits. Only those are written down here; the compiler makes the
 * rest.
 *
 * The polynomial is 0x1EDC6F41, used bit-reversed (0x82F63B78, the entry of bit 7 in the first
 * table), with the register inverted before and after.
 */
#include "store/crc32c.h"

#define BIT(byte, bit, value) ((uint32_t)((byte) >> (bit)&1) * (value))
#define ENTRY(byte, a, b, c, d, e, f, g, h)                                                        \
    (BIT(byte, 0, a) ^ BIT(byte, 1, b) ^ BIT(byte, 2, c) ^ BIT(byte, 3, d) ^ BIT(byte, 4, e) ^     \
     BIT(byte, 5, f) ^ BIT(byte, 6, g) ^ BIT(byte, 7, h))
#define ROW4(byte, ...)                                                                            \
    ENTRY(byte, __VA_ARGS__), ENTRY((byte) + 1, __VA_ARGS__), ENTRY((byte) + 2, __VA_ARGS__),      \
        ENTRY((byte) + 3, __VA_ARGS__)
#define ROW16(byte, ...)                                                                           \
    ROW4(byte, __VA_ARGS__), ROW4((byte) + 4, __VA_ARGS__), ROW4((byte) + 8, __VA_ARGS__),         \
        ROW4((byte) + 12, __VA_ARGS__)
#define ROW64(byte, ...)                                                                           \
    ROW16(byte, __VA_ARGS__), ROW16((byte) + 16, __VA_ARGS__), ROW16((byte) + 32, __VA_ARGS__),    \
        ROW16((byte) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__),                    \
            ROW64(192, __VA_ARGS__)                                                                \
    }

static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu, 0x20bd8edeu, 0x417b1dbcu,
          0x82f63b78u),
    TABLE(0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u, 0x7f8be302u, 0xff17c604u,
          0xfbc3faf9u),
    TABLE(0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au, 0xe144fb14u, 0xc76580d9u,
          0x8b277743u),
    TABLE(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du, 0xd725148bu, 0xaba65fe7u,
          0x52a0c93fu),
    TABLE(0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u, 0x1ba8b557u, 0x37516aaeu,
          0x6ea2d55cu),
    TABLE(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu, 0x85f4168du, 0x0e045bebu,
          0x1c08b7d6u),
    TABLE(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u, 0x3d5b83bdu, 0x7ab7077au,
          0xf56e0ef4u),
    TABLE(0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u, 0x0d006599u, 0x1a00cb32u,
          0x34019664u),
};

/* Byte by byte, so that it means the same on every machine; compilers make one load of it. */
static uint32_t load_le32(const uint8_t *at)
{
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

uint32_t crc32c_by_tables(uint32_t crc, struct bytes data)
{
    const uint8_t *at = data.at;
    uint32_t left = data.len;

    crc = ~crc;
    for (; left >= 8; left -= 8, at += 8) {
        uint32_t low = crc ^ load_le32(at);
        uint32_t high = load_le32(at + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; left > 0; left--, at++)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, struct bytes data)
{
    const uint8_t *at = data.at;
    uint32_t left = data.len;
    uint64_t wide = (uint32_t)~crc;
    for (; left >= 8; left -= 8, at += 8)
        wide = __builtin_ia32_crc32di(wide, (uint64_t)load_le32(at + 4) << 32 | load_le32(at));
    crc = (uint32_t)wide;
    for (; left > 0; left--, at++)
        crc = __builtin_ia32_crc32qi(crc, *at);
    return ~crc;
}
#endif

uint32_t crc32c(uint32_t crc, struct bytes data)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(crc, data);
#endif
    return crc32c_by_tables(crc, data);
}
