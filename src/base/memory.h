/*
 * memory.h -- arrays with a member for every slot there may ever be.
 *
 * They are allocated once, as large as the limits say, and cost only what was touched. One with a
 * million members in use is walked all over, and in pages of 4 KiB most steps miss the translation
 * cache too. So what lies beyond the first few MiB of an array may be in huge pages: a small server
 * does not pay for them, and a large one has few pages to look up.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* As calloc(), and given back by free(). NULL: no memory. */
void *memory_array(size_t count, size_t size);

#endif
