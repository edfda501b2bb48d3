/*
 * memory.c -- the volatile back end: for tests, and for servers that need not remember.
 *
 * It keeps a copy of every record in an array per kind, indexed by slot. It promises everything
 * that store.h asks for except that anything outlives store_close: P2 and P3 do not hold for it.
 *
 * Always true:
 *  (1) A commit allocates everything it needs before it changes anything: it is whole or nothing.
 */
#include "store/backend.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

struct value {
    uint32_t len;
    uint8_t bytes[];
};

struct kind_table {
    struct value **slots; /* NULL where there is no record */
    uint32_t slot_max;
};

struct memory {
    struct kind_table tables[RECORD_KIND_END];
};

static void *memory_open(const char *rest, const struct store_options *options,
                         struct store_summary *ret_summary, struct store_failure *ret_failure)
{
    (void)options;     /* nothing is ever synced */
    (void)ret_summary; /* zeros: holds nothing yet */
    if (rest[0] != '\0') {
        store_fail(ret_failure, STORE_EXIT_USAGE,
                   "store \"memory:%.200s\": a memory store has no name; use memory:", rest);
        return NULL;
    }
    struct memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store \"memory:\": out of memory");
        return NULL;
    }
    return memory;
}

static int memory_walk(void *self, struct store_slots slots, store_visit_fn visit, void *context,
                       struct store_failure *ret_failure)
{
    (void)ret_failure; /* cannot fail */
    const struct kind_table *table = &((const struct memory *)self)->tables[slots.kind];
    for (uint32_t slot = slots.from; slot < table->slot_max && slot < slots.end; slot++) {
        const struct value *value = table->slots[slot];
        if (value == NULL)
            continue;
        int stop = visit(context, slots.kind, slot, (struct bytes){value->bytes, value->len});
        if (stop != 0)
            return stop;
    }
    return 0;
}

static int memory_load(void *self, store_visit_fn visit, void *context,
                       struct store_failure *ret_failure)
{
    struct store_slots slots = {.kind = RECORD_SERVER, .end = UINT32_MAX};
    int stop = 0;
    for (; stop == 0 && slots.kind < RECORD_KIND_END; slots.kind++)
        stop = memory_walk(self, slots, visit, context, ret_failure);
    return stop;
}

/* Makes room for a slot, at least doubling, so that growth costs little per record. */
static bool grow(struct kind_table *table, uint32_t slot)
{
    if (slot < table->slot_max)
        return true;
    uint64_t slot_max = (uint64_t)table->slot_max * 2;
    if (slot_max <= slot)
        slot_max = (uint64_t)slot + 1;
    if (slot_max > UINT32_MAX)
        slot_max = UINT32_MAX;
    if (slot_max <= slot)
        return false;
    struct value **slots = realloc(table->slots, slot_max * sizeof(struct value *));
    if (slots == NULL)
        return false;
    memset(slots + table->slot_max, 0, (slot_max - table->slot_max) * sizeof(struct value *));
    table->slots = slots;
    table->slot_max = (uint32_t)slot_max;
    return true;
}

/* Copies the new values of a batch, one entry per change. False: out of memory. */
static bool prepare(struct memory *memory, const struct store_batch *batch, struct value **values)
{
    struct record_change change;
    uint64_t at = 0;
    uint32_t index = 0;
    for (; store_batch_next(batch, &at, &change); index++) {
        CHECK(index < batch->count);
        if (change.deleted)
            continue;
        values[index] = malloc(sizeof *values[index] + change.value.len);
        if (values[index] == NULL || !grow(&memory->tables[change.kind], change.slot))
            return false;
        values[index]->len = change.value.len;
        memcpy(values[index]->bytes, change.value.at, change.value.len);
    }
    CHECK(index == batch->count);
    return true;
}

static void install(struct memory *memory, const struct store_batch *batch, struct value **values)
{
    struct record_change change;
    uint64_t at = 0;
    for (uint32_t index = 0; store_batch_next(batch, &at, &change); index++) {
        struct kind_table *table = &memory->tables[change.kind];
        if (change.slot >= table->slot_max)
            continue; /* deletes what never was */
        free(table->slots[change.slot]);
        table->slots[change.slot] = values[index];
    }
}

static int memory_commit(void *self, const struct store_batch *batch,
                         struct store_failure *ret_failure)
{
    if (batch->count == 0)
        return 0;
    struct value **values = calloc(batch->count, sizeof(struct value *));
    bool is_ready = values != NULL && prepare(self, batch, values);
    if (is_ready) {
        install(self, batch, values);
    } else {
        for (uint32_t i = 0; values != NULL && i < batch->count; i++)
            free(values[i]);
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store \"memory:\": out of memory for batch %llu; raise the memory limit or "
                   "lower --max-clients and --max-locks",
                   (unsigned long long)batch->txn);
    }
    free(values);
    return is_ready ? 0 : -EIO;
}

static bool memory_tend(void *self)
{
    (void)self;
    return false;
}

static bool memory_has_room(const void *self)
{
    (void)self;
    return true;
}

static void memory_close(void *self)
{
    struct memory *memory = self;
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        struct kind_table *table = &memory->tables[kind];
        for (uint32_t slot = 0; slot < table->slot_max; slot++)
            free(table->slots[slot]);
        free(table->slots);
    }
    free(memory);
}

const struct store_backend store_memory = {
    .scheme = "memory",
    .usage = "memory:",
    .keeps_nothing = true,
    .open = memory_open,
    .load = memory_load,
    .commit = memory_commit,
    .walk = memory_walk,
    .tend = memory_tend,
    .has_room = memory_has_room,
    .close = memory_close,
};
