/*
 * memory.c -- see memory.h.
 */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    HUGE_PAGE_LEN = 2 << 20,       /* on the machines we know; elsewhere the advice does no harm */
    SMALL_LEN = 2 * HUGE_PAGE_LEN, /* stays in small pages */
};

void *memory_array(size_t count, size_t size)
{
    char *memory = calloc(count, size);
    if (memory == NULL || count * size < SMALL_LEN + 2 * HUGE_PAGE_LEN)
        return memory;
    uintptr_t mask = HUGE_PAGE_LEN - 1;
    uintptr_t from = ((uintptr_t)memory + SMALL_LEN + mask) & ~mask;
    uintptr_t end = ((uintptr_t)memory + count * size) & ~mask;
    /* A kernel that knows no huge pages does without. */
    (void)!madvise(memory + (from - (uintptr_t)memory), end - from, MADV_HUGEPAGE);
    return memory;
}
