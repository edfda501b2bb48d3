/*
 * arena.h -- variable-length bytes inside one fixed budget (`--max-bytes`, R-SEC-6).
 *
 * Cells of a few sizes are cut from blocks; a block whose cells are all free again can serve any
 * size, so one kind of use cannot exhaust the budget for another once it is over. Nothing is
 * allocated after arena_init; what does not fit is refused.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/bytes.h"

#define ARENA_CELL_MAX 4096 /* the largest thing that may be stored */
#define ARENA_NONE     UINT32_MAX

struct arena;

/* NULL when memory cannot be reserved. The budget is rounded up to whole blocks. */
struct arena *arena_new(uint64_t bytes_max);
void arena_free(struct arena *arena);

/* Keeps a copy of at most ARENA_CELL_MAX bytes. ARENA_NONE: the budget is used up. */
uint32_t arena_add(struct arena *arena, struct bytes data);
void arena_remove(struct arena *arena, uint32_t cell, uint32_t len);

/* The bytes of a cell; `len` is what was given to arena_add. Valid until arena_remove. */
struct bytes arena_at(const struct arena *arena, uint32_t cell, uint32_t len);

/* True when `count` more things of any length fit, however the budget is cut up now. */
bool arena_has_room(const struct arena *arena, uint32_t count);

/* Bytes in cells that are in use, counted by cell size. */
uint64_t arena_used(const struct arena *arena);
/* What a thing of this length counts there. */
uint32_t arena_cell_len(uint32_t len);

#endif
