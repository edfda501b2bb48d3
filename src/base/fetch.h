/*
 * fetch.h -- a line of the processor's cache, on its way before somebody looks at it.
 *
 * gcc takes a function that does nothing else for one without effect, and drops the calls of it:
 * the empty asm is an effect. So this is the only way to do it (tools/house-rules).
 */
#ifndef BASE_FETCH_H
#define BASE_FETCH_H

#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE_LEN 64

/* Any address is legal. */
__attribute__((always_inline)) static inline void fetch_line(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile("" ::"r"(at));
}

/* Of something that begins at any place of a line. */
__attribute__((always_inline)) static inline void fetch_lines(const void *at, size_t len)
{
    const uint8_t *end = (const uint8_t *)at + len;
    const uint8_t *line = (const uint8_t *)at - (uintptr_t)at % CACHE_LINE_LEN;
    for (; line < end; line += CACHE_LINE_LEN)
        fetch_line(line);
}

#endif
