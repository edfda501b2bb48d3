/*
 * test_crc32c.c -- shows that the checksum is CRC-32C: the published values of RFC 3720 (B.4) and
 * the customary check value, and agreement with the definition, bit by bit, for every length and
 * alignment up to 64 bytes. Damage that a checksum of records must find is in test_record.c.
 */
#include "store/crc32c.h"

#include "base/prng.h"
#include "unit/test.h"

static uint32_t by_definition(struct bytes data)
{
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < data.len; i++) {
        crc ^= data.at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

/* With the instruction, if this machine has it, and without. */
static void assert_both(struct bytes data, uint32_t expected)
{
    assert_int_equal(crc32c(0, data), expected);
    assert_int_equal(crc32c_by_tables(0, data), expected);
}

TEST(test_crc32c__gives_the_published_values)
{
    uint8_t data[32];
    memset(data, 0, sizeof data);
    assert_both((struct bytes){data, 32}, 0x8a9136aau);
    memset(data, 0xff, sizeof data);
    assert_both((struct bytes){data, 32}, 0x62a8ab43u);
    for (uint8_t i = 0; i < 32; i++)
        data[i] = i;
    assert_both((struct bytes){data, 32}, 0x46dd794eu);
    for (uint8_t i = 0; i < 32; i++)
        data[i] = (uint8_t)(31 - i);
    assert_both((struct bytes){data, 32}, 0x113fdb5cu);
    assert_both(bytes_of_text("123456789"), 0xe3069283u);
    assert_both((struct bytes){NULL, 0}, 0);
}

TEST(test_crc32c__equals_its_definition)
{
    struct prng prng = {7};
    uint8_t data[80];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)prng_next(&prng);
    for (uint32_t start = 0; start < 16; start++)
        for (uint32_t len = 0; len <= 64; len++) {
            struct bytes piece = {data + start, len};
            assert_both(piece, by_definition(piece));
        }
    for (int byte = 0; byte < 256; byte++) { /* each table entry at each of the eight places */
        uint8_t run[9];
        memset(run, byte, sizeof run);
        struct bytes piece = {run, sizeof run};
        assert_both(piece, by_definition(piece));
    }
}

TEST(test_crc32c__goes_on_from_a_piece)
{
    struct prng prng = {8};
    uint8_t data[40];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)prng_next(&prng);
    uint32_t whole = crc32c(0, (struct bytes){data, sizeof data});
    for (uint32_t cut = 0; cut <= sizeof data; cut++) {
        uint32_t crc = crc32c(0, (struct bytes){data, cut});
        struct bytes rest = {data + cut, (uint32_t)sizeof data - cut};
        assert_int_equal(crc32c(crc, rest), whole);
        assert_int_equal(crc32c_by_tables(crc, rest), whole);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
