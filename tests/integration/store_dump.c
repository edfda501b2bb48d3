/*
 * store_dump.c -- prints what a store holds, one record per line; for tests, while no server runs.
 *
 *   server slot=0 txn=41 epoch=3 next_id=19 state=7 flags=0 restart_state=7
 *   client slot=0 id=18 registered_ns=... address=127.0.0.2 local=127.0.0.1 ... caller_name=web3
 *
 * The kind, then all fields as tests/vectors/record_text.h says. A lock's of.client_id is the id of
 * a client's line; its `end` is inclusive, and 18446744073709551615 the end of the file.
 *
 * It reads through src/store, the same code as the server's start: that is the point, for what a
 * start cannot read is lost. Exit 1 when the store or a record cannot be read.
 */
#include "../vectors/record_text.h"
#include "store/store.h"

static int print_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    union record_any record;
    (void)context;
    if (record_get(value, kind, slot, &record) != RECORD_GOOD) {
        fprintf(stderr, "store_dump: record %s/%u cannot be read\n", record_kind_name(kind), slot);
        return 1;
    }
    printf("%s ", record_kind_name(kind));
    record_text_print(stdout, kind, slot, &record);
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    struct store_options options = {.is_reader = true};
    struct store_failure failure = {0};
    if (argc != 2) {
        fputs("usage: store_dump lmdb:DIR\n", stderr);
        return 2;
    }
    struct store *store = store_open(argv[1], &options, &failure);
    if (!store) {
        fprintf(stderr, "store_dump: %s\n", failure.text);
        return 1;
    }
    int result = store_load(store, print_record, NULL, &failure);
    if (result < 0)
        fprintf(stderr, "store_dump: %s\n", failure.text);
    store_close(store);
    return result == 0 ? 0 : 1;
}
