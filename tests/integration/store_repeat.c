/*
 * store_repeat.c -- writes the first lock of a store into further slots: damage that no server
 * makes, because each of these locks contradicts the others. For tests, while no server runs.
 *
 * usage: store_repeat lmdb:DIR COUNT
 */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT_MAX = 1000 };

struct found {
    struct record_server server;
    struct record_lock lock;
    uint8_t value[RECORD_VALUE_MAX]; /* behind it */
    bool has_lock;
};

static int look_at(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct found *found = context;
    if (kind == RECORD_SERVER)
        return record_get_server(value, &found->server) == RECORD_GOOD ? 0 : 1;
    if (kind != RECORD_LOCK || found->has_lock)
        return 0;
    memcpy(found->value, value.at, value.len);
    found->has_lock = slot == 0;
    return record_get_lock((struct bytes){found->value, value.len}, slot, &found->lock) ==
                   RECORD_GOOD
               ? 0
               : 1;
}

/* In the slots behind the first one. */
static int repeat(struct store *store, const struct found *found, uint32_t count)
{
    static uint8_t buffer[COUNT_MAX * (RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD)];
    struct batch_writer writer = {.start = buffer, .max = sizeof(buffer)};
    struct store_failure failure = {0};
    uint8_t value[RECORD_VALUE_MAX];
    struct record_server server = found->server;
    server.txn++;
    store_batch_put(&writer, RECORD_SERVER, 0,
                    (struct bytes){value, record_put_server(value, &server)});
    for (uint32_t slot = 1; slot <= count; slot++)
        store_batch_put(&writer, RECORD_LOCK, slot,
                        (struct bytes){value, record_put_lock(value, slot, &found->lock)});
    struct store_batch batch = {.txn = server.txn,
                                .epoch = server.epoch,
                                .must_sync = true,
                                .count = writer.count,
                                .changes = {buffer, writer.len}};
    if (store_commit(store, &batch, &failure) == 0)
        return 0;
    fprintf(stderr, "store_repeat: %s\n", failure.text);
    return 1;
}

int main(int argc, char **argv)
{
    static struct found found;
    struct store_options options = {0};
    struct store_failure failure = {0};
    uint32_t count = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (count == 0 || count >= COUNT_MAX) {
        fputs("usage: store_repeat lmdb:DIR COUNT\n", stderr);
        return 2;
    }
    struct store *store = store_open(argv[1], &options, &failure);
    if (!store) {
        fprintf(stderr, "store_repeat: %s\n", failure.text);
        return 1;
    }
    int result = store_load(store, look_at, &found, &failure);
    if (result != 0 || !found.has_lock)
        fprintf(stderr, "store_repeat: no lock in slot 0, or it cannot be read\n");
    else
        result = repeat(store, &found, count);
    store_close(store);
    return result == 0 && found.has_lock ? 0 : 1;
}
