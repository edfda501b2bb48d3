/*
 * test_pieces.c -- stretches of bytes in modes (file/pieces.h) against an array with a mode for
 * each byte, at both ends of what can be counted.
 */
#include "../test.h"
#include "file/pieces.h"

enum { BYTES = 24, ROUNDS = 200000 };

static uint64_t bits = 88172645463325252u;

static uint32_t chance(uint32_t below)
{
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    return (uint32_t)(bits % below);
}

static void assert_like(const struct pieces *pieces, const uint8_t model[BYTES], uint64_t base)
{
    uint32_t stretches = 0;
    pieces_check(pieces);
    for (uint32_t i = 0; i < BYTES; i++) {
        struct local_range found = pieces_at(pieces, base + i, base + BYTES - 1);
        assert_int_equal(found.mode, model[i]);
        assert_int_equal(found.start, base + i);
        for (uint64_t at = found.start; at < found.end; at++)
            assert_int_equal(model[at - base + 1], model[i]);
        stretches += model[i] != LOCAL_NONE && (i == 0 || model[i - 1] != model[i]);
    }
    assert_int_equal(pieces->count, stretches);
}

static void compare(uint64_t base)
{
    struct pieces pieces = {0};
    uint8_t model[BYTES] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t first = chance(BYTES), last = first + chance(BYTES - first);
        struct local_range range = {base + first, base + last, (enum local_mode)chance(3)};
        assert_true(pieces_reserve(&pieces));
        pieces_set(&pieces, &range);
        memset(&model[first], (int)range.mode, last - first + 1);
        if (round % 16 == 0)
            assert_like(&pieces, model, base);
    }
    pieces_done(&pieces);
}

TEST(test_pieces__are_as_if_each_byte_had_its_mode)
{
    compare(0);
    compare(UINT64_MAX - BYTES + 1);
}

TEST(test_pieces__nothing_is_released_from_nothing)
{
    struct pieces pieces = {0};
    pieces_set(&pieces, &(struct local_range){5, 9, LOCAL_NONE});
    assert_int_equal(pieces.count, 0);
    assert_int_equal(pieces_at(&pieces, 0, UINT64_MAX).end, UINT64_MAX);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
