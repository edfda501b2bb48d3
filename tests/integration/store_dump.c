/*
 * store_dump.c -- prints what a store holds, one record per line; for tests, while no server runs.
 *
 *   server epoch=3 state=7 txn=41 flags=0
 *   registrant id=17 epoch=3 address=127.0.0.1 prog=100021 vers=3 proc=16 priv=00.. mon_name=a
 *              my_name=b port=1023 transport=6 slot=0            (in one line)
 *   notice state=5 address=127.0.0.1 mon_name=a
 *
 * Bytes of names other than printable ASCII, '%' and blanks are written as %XX; an empty name is
 * "%". It reads through src/store, the same code as the server's start: that is the point, for what
 * a start cannot read is lost. Exit 1 when the store or a record cannot be read.
 */
#include "base/address.h"
#include "store/store.h"

#include <stdio.h>

static void print_name(const char *key, struct bytes name)
{
    printf(" %s=", key);
    if (name.len == 0)
        putchar('%');
    for (uint32_t i = 0; i < name.len; i++) {
        uint8_t c = name.at[i];
        if (c > ' ' && c < 0x7f && c != '%')
            putchar(c);
        else
            printf("%%%02X", c);
    }
}

static int print_server(struct bytes value)
{
    struct record_server server;
    if (record_get_server(value, &server) != RECORD_GOOD)
        return 1;
    printf("server epoch=%llu state=%u txn=%llu flags=%u\n", (unsigned long long)server.epoch,
           server.state, (unsigned long long)server.txn, server.flags);
    return 0;
}

static int print_registrant(uint32_t slot, struct bytes value)
{
    struct record_registrant registrant;
    char address[ADDRESS_TEXT_MAX];
    if (record_get_registrant(value, slot, &registrant) != RECORD_GOOD)
        return 1;
    address_text(&registrant.address, address);
    printf("registrant id=%llu epoch=%llu address=%s prog=%u vers=%u proc=%u priv=",
           (unsigned long long)registrant.id, (unsigned long long)registrant.server_epoch, address,
           registrant.my_prog, registrant.my_vers, registrant.my_proc);
    for (uint32_t i = 0; i < RECORD_PRIV_LEN; i++)
        printf("%02x", registrant.priv[i]);
    print_name("mon_name", registrant.mon_name);
    print_name("my_name", registrant.my_name);
    printf(" port=%u transport=%u slot=%u\n", registrant.port, registrant.transport, slot);
    return 0;
}

static int print_notice(uint32_t slot, struct bytes value)
{
    struct record_notice notice;
    char address[ADDRESS_TEXT_MAX];
    if (record_get_notice(value, slot, &notice) != RECORD_GOOD)
        return 1;
    address_text(&notice.address, address);
    printf("notice state=%u address=%s", notice.state, address);
    print_name("mon_name", notice.mon_name);
    putchar('\n');
    return 0;
}

static int print_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    int result = 1;
    (void)context;
    switch (kind) {
    case RECORD_SERVER:
        result = print_server(value);
        break;
    case RECORD_REGISTRANT:
        result = print_registrant(slot, value);
        break;
    case RECORD_NOTICE:
        result = print_notice(slot, value);
        break;
    case RECORD_KIND_END:
        break;
    }
    if (result != 0)
        fprintf(stderr, "store_dump: record %s/%u cannot be read\n", record_kind_name(kind), slot);
    return result;
}

int main(int argc, char **argv)
{
    struct store_options options = {0};
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
