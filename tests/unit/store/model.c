/*
 * model.c -- the expected contents of a store; see model.h.
 */
#include "model.h"

#include "base/check.h"
#include "record_make.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    CHANGES_MAX = 400,       /* in a batch of the history */
    BATCH_CHANGES_MIN = 4096 /* what fits into a batch by hand at least */
};

void model_init(struct model *model, uint32_t slot_max)
{
    *model = (struct model){.slot_max = slot_max};
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        model->versions[kind] = calloc(slot_max, sizeof *model->versions[kind]);
        CHECK(model->versions[kind] != NULL);
    }
    uint64_t changes = (uint64_t)2 * slot_max + 1;
    if (changes < BATCH_CHANGES_MIN)
        changes = BATCH_CHANGES_MIN;
    model->writer.max = changes * (RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD);
    model->writer.start = malloc(model->writer.max); /* touched as far as a batch needs it */
    CHECK(model->writer.start != NULL);
}

void model_done(struct model *model)
{
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        free(model->versions[kind]);
    free(model->writer.start);
}

/* Every byte of a record follows from its kind, slot and version. */
static uint32_t encode(uint8_t *buffer, enum record_kind kind, uint32_t slot, uint64_t version)
{
    struct prng prng = {version * 1000003 + (uint64_t)kind * 31 + slot};
    struct record_make_room room;
    union record_any record;
    record_make(RECORD_MAKE_RANDOM, kind, &prng, &room, &record);
    if (kind == RECORD_SERVER) { /* by which a back end goes */
        record.server.txn = version;
        record.server.epoch = 3;
    }
    return record_put(buffer, kind, slot, &record);
}

void model_begin(struct model *model)
{
    model->txn++;
    model->writer.len = 0;
    model->writer.count = 0;
}

void model_put(struct model *model, enum record_kind kind, uint32_t slot)
{
    uint8_t value[RECORD_VALUE_MAX];
    CHECK(slot < model->slot_max);
    uint32_t len = encode(value, kind, slot, model->txn);
    store_batch_put(&model->writer, kind, slot, (struct bytes){value, len});
    model->versions[kind][slot] = model->txn;
}

void model_delete(struct model *model, enum record_kind kind, uint32_t slot)
{
    CHECK(slot < model->slot_max);
    store_batch_delete(&model->writer, kind, slot);
    model->versions[kind][slot] = 0;
}

const struct store_batch *model_end(struct model *model, bool must_sync)
{
    model_put(model, RECORD_SERVER, 0);
    model->batch = (struct store_batch){
        .txn = model->txn,
        .epoch = 3,
        .must_sync = must_sync,
        .count = model->writer.count,
        .changes = {model->writer.start, model->writer.len},
    };
    return &model->batch;
}

/* Locks mostly, as in life, but no kind is rare. */
static enum record_kind kind_of(struct prng *prng)
{
    static const enum record_kind kinds[] = {
        RECORD_LOCK,   RECORD_LOCK,   RECORD_LOCK,   RECORD_REGISTRANT, RECORD_REGISTRANT,
        RECORD_NOTICE, RECORD_CLIENT, RECORD_WAITER, RECORD_SHARE,      RECORD_TRACKED,
    };
    return kinds[prng_below(prng, sizeof kinds / sizeof kinds[0])];
}

const struct store_batch *model_next(struct model *model)
{
    model_begin(model);
    struct prng prng = {model->txn};
    uint64_t count = prng_chance(&prng, 20) ? prng_below(&prng, CHANGES_MAX) : prng_below(&prng, 4);
    for (uint64_t i = 0; i < count; i++) {
        enum record_kind kind = kind_of(&prng);
        uint32_t slot = (uint32_t)prng_below(&prng, model->slot_max);
        if (prng_chance(&prng, 40))
            model_delete(model, kind, slot);
        else
            model_put(model, kind, slot);
    }
    return model_end(model, prng_chance(&prng, 30));
}

void model_commit(const struct store_batch *batch, struct store *store)
{
    struct store_failure failure = {0};
    if (store_commit(store, batch, &failure) == 0)
        return;
    (void)fprintf(stderr, "commit %llu: %s\n", (unsigned long long)batch->txn, failure.text);
    abort();
}

struct comparison {
    const struct model *model;
    uint64_t next; /* kind and slot of the next record that must come, or anything before it */
    char text[160];
};

static uint64_t place_of(const struct model *model, uint64_t kind, uint64_t slot)
{
    return kind * model->slot_max + slot;
}

/* The first place at or behind `place` with a record; past the end when there is none. */
static uint64_t next_place(const struct model *model, uint64_t place)
{
    uint64_t end = place_of(model, RECORD_KIND_END, 0);
    while (place < end && model->versions[place / model->slot_max][place % model->slot_max] == 0)
        place++;
    return place;
}

static int compare_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct comparison *comparison = context;
    const struct model *model = comparison->model;
    uint8_t expected[RECORD_VALUE_MAX];
    uint64_t place = next_place(model, comparison->next);
    if (slot >= model->slot_max || place_of(model, kind, slot) != place) {
        (void)snprintf(comparison->text, sizeof comparison->text,
                       "%s %u came where kind %llu slot %llu was expected", record_kind_name(kind),
                       slot, (unsigned long long)place / model->slot_max,
                       (unsigned long long)place % model->slot_max);
        return 1;
    }
    uint32_t len = encode(expected, kind, slot, model->versions[kind][slot]);
    if (!bytes_equal(value, (struct bytes){expected, len})) {
        (void)snprintf(comparison->text, sizeof comparison->text, "%s %u has other bytes",
                       record_kind_name(kind), slot);
        return 1;
    }
    comparison->next = place + 1;
    return 0;
}

const char *model_compare(const struct model *model, struct store *store)
{
    static struct comparison comparison; /* its text is the answer */
    struct store_failure failure;
    comparison = (struct comparison){.model = model, .next = place_of(model, RECORD_SERVER, 0)};
    int code = store_load(store, compare_record, &comparison, &failure);
    if (code < 0)
        (void)snprintf(comparison.text, sizeof comparison.text, "%.150s", failure.text);
    uint64_t missing = next_place(model, comparison.next);
    if (code == 0 && missing < place_of(model, RECORD_KIND_END, 0))
        (void)snprintf(comparison.text, sizeof comparison.text, "kind %llu slot %llu is missing",
                       (unsigned long long)missing / model->slot_max,
                       (unsigned long long)missing % model->slot_max);
    return comparison.text[0] == '\0' ? NULL : comparison.text;
}

static int find_txn(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct record_server server;
    if (kind != RECORD_SERVER || slot != 0 || record_get_server(value, &server) != RECORD_GOOD)
        return 1;
    *(uint64_t *)context = server.txn;
    return 1;
}

uint64_t model_stored_txn(struct store *store)
{
    struct store_failure failure;
    uint64_t txn = 0;
    (void)!store_load(store, find_txn, &txn, &failure); /* 0 is an answer no test accepts */
    return txn;
}
