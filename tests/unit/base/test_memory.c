/*
 * test_memory.c -- large arrays ask for huge pages behind their first MiB, small ones do not, and
 * all are clear.
 */
#include "base/memory.h"
#include "unit/test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Has the kernel been advised so at this place? It says "hg" among the flags of a mapping. */
static bool is_huge(const void *at)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[512];
    bool is_here = false, is = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        uintptr_t from, end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &end) == 2)
            is_here = (uintptr_t)at >= from && (uintptr_t)at < end;
        else if (is_here && strncmp(line, "VmFlags:", 8) == 0)
            is = strstr(line, " hg") != NULL;
    }
    (void)fclose(maps);
    return is;
}

TEST(test_memory__only_the_far_part_of_a_large_array_is_in_huge_pages)
{
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
        skip();
    char *large = memory_array(64, MIB), *small = memory_array(7, MIB);
    assert_non_null(large);
    assert_non_null(small);
    assert_false(is_huge(large));
    assert_false(is_huge(large + 3 * MIB));
    assert_true(is_huge(large + 7 * MIB));
    assert_true(is_huge(large + 61 * MIB));
    assert_false(is_huge(small + 5 * MIB));
    free(large);
    free(small);
}

TEST(test_memory__is_clear)
{
    static const size_t counts[] = {1, 1000, 7 * MIB, 32 * MIB};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char *memory = memory_array(counts[i], 1);
        assert_non_null(memory);
        for (size_t at = 0; at < counts[i]; at += 997)
            assert_int_equal(memory[at], 0);
        memory[counts[i] - 1] = 1;
        free(memory);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
