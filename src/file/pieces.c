/*
 * pieces.c -- see pieces.h.
 */
#include "file/pieces.h"

#include "base/check.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 4, ADDED_MAX = 2 };

void pieces_done(struct pieces *pieces)
{
    free(pieces->at);
    *pieces = (struct pieces){0};
}

bool pieces_reserve(struct pieces *pieces)
{
    if (pieces->count + ADDED_MAX <= pieces->room)
        return true;
    uint32_t room = pieces->room == 0 ? ROOM_FIRST : 2 * pieces->room;
    struct local_range *at = realloc(pieces->at, room * sizeof *at);
    if (at == NULL)
        return false;
    pieces->at = at;
    pieces->room = room;
    return true;
}

/* The first that does not end before this byte. */
static uint32_t first_from(const struct pieces *pieces, uint64_t byte)
{
    uint32_t low = 0, high = pieces->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pieces->at[middle].end < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct local_range pieces_at(const struct pieces *pieces, uint64_t at, uint64_t end)
{
    uint32_t i = first_from(pieces, at);
    if (i == pieces->count || pieces->at[i].start > end)
        return (struct local_range){at, end, LOCAL_NONE};
    const struct local_range *found = &pieces->at[i];
    if (found->start > at)
        return (struct local_range){at, found->start - 1, LOCAL_NONE};
    return (struct local_range){at, min_u64(found->end, end), found->mode};
}

/* Stretches that take the place of others, alike ones that touch as one. */
struct fresh {
    struct local_range at[5];
    uint32_t count;
};

static void put(struct fresh *fresh, uint64_t start, uint64_t end, enum local_mode mode)
{
    struct local_range *last = fresh->count > 0 ? &fresh->at[fresh->count - 1] : NULL;
    if (mode == LOCAL_NONE)
        return;
    if (last != NULL && last->mode == mode && last->end + 1 == start)
        last->end = end;
    else
        fresh->at[fresh->count++] = (struct local_range){start, end, mode};
}

void pieces_set(struct pieces *pieces, const struct local_range *range)
{
    struct fresh fresh = {.count = 0};
    const struct local_range *at = pieces->at;
    /* Those that overlap it, and one on either side, with which it may be one. */
    uint32_t first = first_from(pieces, range->start), end = first;
    while (end < pieces->count && at[end].start <= range->end)
        end++;
    uint32_t from = first > 0 ? first - 1 : 0, to = end < pieces->count ? end + 1 : end;
    if (from < first)
        put(&fresh, at[from].start, at[from].end, at[from].mode);
    if (first < end && at[first].start < range->start)
        put(&fresh, at[first].start, range->start - 1, at[first].mode);
    put(&fresh, range->start, range->end, range->mode);
    if (first < end && at[end - 1].end > range->end)
        put(&fresh, range->end + 1, at[end - 1].end, at[end - 1].mode);
    if (to > end)
        put(&fresh, at[end].start, at[end].end, at[end].mode);
    CHECK(pieces->count - (to - from) + fresh.count <= pieces->room);
    if (pieces->room == 0)
        return; /* nothing was there, and nothing comes */
    memmove(&pieces->at[from + fresh.count], &pieces->at[to],
            (pieces->count - to) * sizeof pieces->at[0]);
    memcpy(&pieces->at[from], fresh.at, fresh.count * sizeof fresh.at[0]);
    pieces->count = pieces->count - (to - from) + fresh.count;
}

void pieces_check(const struct pieces *pieces)
{
    CHECK(pieces->count <= pieces->room);
    for (uint32_t i = 0; i < pieces->count; i++) {
        const struct local_range *piece = &pieces->at[i];
        CHECK(piece->start <= piece->end && piece->mode != LOCAL_NONE);
        CHECK(i == 0 || piece[-1].end < piece->start);
        CHECK(i == 0 || piece[-1].end + 1 < piece->start || piece[-1].mode != piece->mode);
    }
}
