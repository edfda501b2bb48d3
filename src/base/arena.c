/*
 * arena.c -- cells of nine sizes cut from 64 KiB blocks; see arena.h.
 *
 *   budget:   [ block | block | block | ... ]       a block is free, or belongs to one size
 *   block:    [ cell | cell | cell | ... ]          cells of that size; free ones are chained
 *
 * A cell is named by the number of its first 16-byte unit, which reaches 64 GiB.
 *
 * Always true:
 *  (1) A block is on the free-block chain exactly when none of its cells is in use.
 *  (2) A block of a size is on that size's chain exactly when it has at least one free cell.
 *  (3) A free cell's first word is the next free cell of its block; a used cell is all the user's.
 */
#include "base/arena.h"

#include "base/check.h"

#include <stdlib.h>

enum {
    UNIT = 16,
    BLOCK_LEN = 64 * 1024,
    SIZE_COUNT = 9, /* 16, 32, ... 4096 */
};

#define NO_BLOCK UINT32_MAX

struct block {
    uint32_t next, prev; /* chain of free blocks, or of blocks of one size with free cells */
    uint32_t free_cell;  /* first freed cell, ARENA_NONE at the end */
    uint16_t cells_used; /* in use now */
    uint16_t cells_cut;  /* ever cut since the block got its size; the rest is untouched */
    uint8_t size_index;
};

struct arena {
    uint8_t *memory;
    struct block *blocks;
    uint32_t block_max;
    uint32_t blocks_touched; /* blocks above this number were never used */
    uint32_t free_blocks;    /* chain */
    uint32_t free_count;     /* its length */
    uint32_t open_blocks[SIZE_COUNT];
    uint64_t bytes_used;
};

_Static_assert(UNIT << (SIZE_COUNT - 1) == ARENA_CELL_MAX, "sizes must end at ARENA_CELL_MAX");

static uint32_t cell_len(uint32_t size_index)
{
    return (uint32_t)UNIT << size_index;
}

static uint32_t size_index_of(uint32_t len)
{
    uint32_t units = (len + UNIT - 1) / UNIT;
    return units <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(units - 1);
}

struct arena *arena_new(uint64_t bytes_max)
{
    uint64_t blocks = bytes_max / BLOCK_LEN + (bytes_max % BLOCK_LEN != 0);
    if (blocks == 0)
        blocks = 1;
    if (blocks > UINT32_MAX / (BLOCK_LEN / UNIT) - 1)
        return NULL;
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    arena->block_max = (uint32_t)blocks;
    arena->free_blocks = NO_BLOCK;
    for (uint32_t i = 0; i < SIZE_COUNT; i++)
        arena->open_blocks[i] = NO_BLOCK;
    arena->memory = calloc(blocks, BLOCK_LEN);
    arena->blocks = calloc(blocks, sizeof *arena->blocks);
    if (arena->memory == NULL || arena->blocks == NULL) {
        arena_free(arena);
        return NULL;
    }
    return arena;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    free(arena->memory);
    free(arena->blocks);
    free(arena);
}

static void chain_push(struct arena *arena, uint32_t *head, uint32_t block)
{
    arena->blocks[block].next = *head;
    arena->blocks[block].prev = NO_BLOCK;
    if (*head != NO_BLOCK)
        arena->blocks[*head].prev = block;
    *head = block;
}

static void chain_remove(struct arena *arena, uint32_t *head, uint32_t block)
{
    struct block *b = &arena->blocks[block];
    if (b->prev == NO_BLOCK)
        *head = b->next;
    else
        arena->blocks[b->prev].next = b->next;
    if (b->next != NO_BLOCK)
        arena->blocks[b->next].prev = b->prev;
}

static uint32_t cells_per_block(uint32_t size_index)
{
    return BLOCK_LEN / UNIT >> size_index;
}

/* A block with a free cell of this size, or NO_BLOCK. */
static uint32_t open_block(struct arena *arena, uint32_t size_index)
{
    uint32_t block = arena->open_blocks[size_index];
    if (block != NO_BLOCK)
        return block;
    if (arena->free_blocks != NO_BLOCK) {
        block = arena->free_blocks;
        chain_remove(arena, &arena->free_blocks, block);
        arena->free_count--;
    } else if (arena->blocks_touched < arena->block_max) {
        block = arena->blocks_touched++;
    } else {
        return NO_BLOCK;
    }
    arena->blocks[block] = (struct block){
        .free_cell = ARENA_NONE,
        .size_index = (uint8_t)size_index,
    };
    chain_push(arena, &arena->open_blocks[size_index], block);
    return block;
}

static uint8_t *cell_memory(const struct arena *arena, uint32_t cell)
{
    return arena->memory + (uint64_t)cell * UNIT;
}

uint32_t arena_add(struct arena *arena, struct bytes data)
{
    CHECK(data.len <= ARENA_CELL_MAX);
    uint32_t size_index = size_index_of(data.len);
    uint32_t number = open_block(arena, size_index);
    if (number == NO_BLOCK)
        return ARENA_NONE;
    struct block *block = &arena->blocks[number];

    uint32_t cell = block->free_cell;
    if (cell != ARENA_NONE) {
        memcpy(&block->free_cell, cell_memory(arena, cell), sizeof block->free_cell);
    } else {
        uint32_t units = cell_len(size_index) / UNIT;
        cell = number * (BLOCK_LEN / UNIT) + block->cells_cut * units;
        block->cells_cut++;
    }
    block->cells_used++;
    if (block->cells_used == cells_per_block(size_index))
        chain_remove(arena, &arena->open_blocks[size_index], number);
    if (data.len > 0)
        memcpy(cell_memory(arena, cell), data.at, data.len);
    arena->bytes_used += cell_len(size_index);
    return cell;
}

void arena_remove(struct arena *arena, uint32_t cell, uint32_t len)
{
    uint32_t number = cell / (BLOCK_LEN / UNIT);
    CHECK(number < arena->blocks_touched);
    struct block *block = &arena->blocks[number];
    CHECK(block->size_index == size_index_of(len));
    CHECK(block->cells_used > 0);

    uint32_t *open = &arena->open_blocks[block->size_index];
    if (block->cells_used == cells_per_block(block->size_index))
        chain_push(arena, open, number);
    memcpy(cell_memory(arena, cell), &block->free_cell, sizeof block->free_cell);
    block->free_cell = cell;
    block->cells_used--;
    arena->bytes_used -= cell_len(block->size_index);
    if (block->cells_used == 0) {
        chain_remove(arena, open, number);
        chain_push(arena, &arena->free_blocks, number);
        arena->free_count++;
    }
}

struct bytes arena_at(const struct arena *arena, uint32_t cell, uint32_t len)
{
    CHECK(cell / (BLOCK_LEN / UNIT) < arena->blocks_touched);
    return (struct bytes){cell_memory(arena, cell), len};
}

bool arena_has_room(const struct arena *arena, uint32_t count)
{
    /* Each needs one block at most. */
    return arena->block_max - arena->blocks_touched + arena->free_count >= count;
}

uint64_t arena_used(const struct arena *arena)
{
    return arena->bytes_used;
}

uint32_t arena_cell_len(uint32_t len)
{
    CHECK(len <= ARENA_CELL_MAX);
    return cell_len(size_index_of(len));
}
