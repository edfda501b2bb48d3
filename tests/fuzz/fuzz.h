/*
 * fuzz.h -- fuzz input as a stream of small decisions.
 *
 * A target reads what it needs from the front: bytes, numbers, slices. An exhausted input reads as
 * zeros, so that every input, also the empty one, is a complete run. A broken promise is a CHECK.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdlib.h>

/* libFuzzer's entry; replay_main.c calls it with the files of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    const uint8_t *at;
    size_t left;
};

static inline struct bytes fuzz_slice(struct fuzz *fuzz, size_t len)
{
    if (len > fuzz->left)
        len = fuzz->left;
    struct bytes slice = {fuzz->at, (uint32_t)len};
    if (len > 0)
        fuzz->at += len;
    fuzz->left -= len;
    return slice;
}

static inline uint8_t fuzz_u8(struct fuzz *fuzz)
{
    struct bytes slice = fuzz_slice(fuzz, 1);
    return slice.len == 1 ? slice.at[0] : 0;
}

static inline uint32_t fuzz_u16(struct fuzz *fuzz)
{
    uint32_t high = fuzz_u8(fuzz);
    return high << 8 | fuzz_u8(fuzz);
}

static inline uint32_t fuzz_u32(struct fuzz *fuzz)
{
    uint32_t high = fuzz_u16(fuzz);
    return high << 16 | fuzz_u16(fuzz);
}

/* The bytes in an allocation of exactly their size, where the sanitizer sees both ends. */
static inline uint8_t *fuzz_copy(struct bytes data)
{
    uint8_t *copy = malloc(data.len > 0 ? data.len : 1);
    CHECK(copy != NULL);
    if (data.len > 0)
        memcpy(copy, data.at, data.len);
    return copy;
}

/* True when the view lies inside the bytes; an empty one may be anywhere. */
static inline bool fuzz_is_inside(struct bytes view, const uint8_t *start, size_t len)
{
    return view.len == 0 || (view.at >= start && view.at <= start + len &&
                             view.len <= (size_t)(start + len - view.at));
}

#endif
