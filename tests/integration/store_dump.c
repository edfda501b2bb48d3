/*
 * store_dump.c -- prints what a store holds, one record per line; for tests, while no server runs.
 *
 * The long ones are broken here only:
 *
 *   server epoch=3 state=7 txn=41 flags=0
 *   registrant id=17 epoch=3 address=127.0.0.1 prog=100021 vers=3 proc=16 priv=00.. mon_name=a
 *              my_name=b port=1023 transport=6 slot=0
 *   notice state=5 address=127.0.0.1 mon_name=a
 *   client id=18 epoch=3 address=127.0.0.2 local=127.0.0.1 caller_name=web3 transport=6 versions=16
 *          grant_proc=5 state_seen=3 free_below=0 told_state=7 incarnation=1 flags=1 rebooted_ns=0
 *          untold_ns=0 slot=0
 *   lock client=18 client_slot=0 incarnation=1 state=3 svid=4711 fh=0102 start=0 end=99 len=100
 *        exclusive=1 offer=0 unmonitored=0 oh=34373131 slot=0
 *   waiter client=18 client_slot=0 incarnation=1 state=3 svid=4711 fh=0102 offset=0 len=0
 *          exclusive=1 message=0 order=5 cookie=0 offer_slot=- version=4 transport=6
 *          local=127.0.0.1 caller_name=web3 oh=34373131 slot=0
 *   share client=18 client_slot=0 incarnation=1 state=3 fh=0102 mode=0 access=3 unmonitored=0
 *         oh=34373131 slot=0
 *
 * A lock's client is the id of a client line. `end` is inclusive; 18446744073709551615 is the end
 * of the file. File handles and owner handles are hexadecimal, an empty one is "-".
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

static void print_hex(const char *key, struct bytes bytes)
{
    printf(" %s=", key);
    if (bytes.len == 0)
        putchar('-');
    for (uint32_t i = 0; i < bytes.len; i++)
        printf("%02x", bytes.at[i]);
}

static void print_address(const char *key, const struct address *address)
{
    char text[ADDRESS_TEXT_MAX];
    address_text(address, text);
    printf(" %s=%s", key, text);
}

/* Whose a lock, waiter or share is. */
static void print_of(const struct record_of *of)
{
    printf(" client=%llu client_slot=%u incarnation=%u state=%u", (unsigned long long)of->client_id,
           of->client, of->incarnation, of->state);
}

static int print_client(uint32_t slot, struct bytes value)
{
    struct record_client client;
    if (record_get_client(value, slot, &client) != RECORD_GOOD)
        return 1;
    printf("client id=%llu epoch=%llu", (unsigned long long)client.id,
           (unsigned long long)client.server_epoch);
    print_address("address", &client.address);
    print_address("local", &client.local);
    print_name("caller_name", client.caller_name);
    printf(" transport=%u versions=%u grant_proc=%u state_seen=%u free_below=%u told_state=%u "
           "incarnation=%u flags=%u rebooted_ns=%llu untold_ns=%llu slot=%u\n",
           client.transport, client.versions, client.grant_proc, client.state_seen,
           client.free_below, client.told_state, client.incarnation, client.flags,
           (unsigned long long)client.rebooted_ns, (unsigned long long)client.untold_ns, slot);
    return 0;
}

static int print_lock(uint32_t slot, struct bytes value)
{
    struct record_lock lock;
    if (record_get_lock(value, slot, &lock) != RECORD_GOOD)
        return 1;
    fputs("lock", stdout);
    print_of(&lock.of);
    printf(" svid=%u", lock.svid);
    print_hex("fh", lock.fh);
    printf(" start=%llu end=%llu len=%llu exclusive=%u offer=%u unmonitored=%u",
           (unsigned long long)lock.start, (unsigned long long)lock.end,
           (unsigned long long)lock.len, (lock.flags & RECORD_LOCK_EXCLUSIVE) != 0,
           (lock.flags & RECORD_LOCK_OFFER) != 0, (lock.flags & RECORD_LOCK_UNMONITORED) != 0);
    print_hex("oh", lock.oh);
    printf(" lingers=%u slot=%u\n", (lock.flags & RECORD_LOCK_LINGERS) != 0, slot);
    return 0;
}

static int print_waiter(uint32_t slot, struct bytes value)
{
    struct record_waiter waiter;
    if (record_get_waiter(value, slot, &waiter) != RECORD_GOOD)
        return 1;
    fputs("waiter", stdout);
    print_of(&waiter.of);
    printf(" svid=%u", waiter.svid);
    print_hex("fh", waiter.fh);
    printf(" offset=%llu len=%llu exclusive=%u message=%u order=%llu cookie=%llu",
           (unsigned long long)waiter.offset, (unsigned long long)waiter.len,
           (waiter.flags & RECORD_WAITER_EXCLUSIVE) != 0,
           (waiter.flags & RECORD_WAITER_MESSAGE) != 0, (unsigned long long)waiter.order,
           (unsigned long long)waiter.cookie);
    if (waiter.offer == UINT32_MAX)
        fputs(" offer_slot=-", stdout);
    else
        printf(" offer_slot=%u", waiter.offer);
    printf(" version=%u transport=%u", waiter.version, waiter.transport);
    print_address("local", &waiter.local);
    print_name("caller_name", waiter.caller_name);
    print_hex("oh", waiter.oh);
    printf(" slot=%u\n", slot);
    return 0;
}

static int print_share(uint32_t slot, struct bytes value)
{
    struct record_share share;
    if (record_get_share(value, slot, &share) != RECORD_GOOD)
        return 1;
    fputs("share", stdout);
    print_of(&share.of);
    print_hex("fh", share.fh);
    printf(" mode=%u access=%u unmonitored=%u", share.mode, share.access,
           (share.flags & RECORD_LOCK_UNMONITORED) != 0);
    print_hex("oh", share.oh);
    printf(" slot=%u\n", slot);
    return 0;
}

static int print_tracked(uint32_t slot, struct bytes value)
{
    struct record_tracked tracked;
    if (record_get_tracked(value, slot, &tracked) != RECORD_GOOD)
        return 1;
    printf("tracked id=%llu", (unsigned long long)tracked.id);
    print_name("protocol", tracked.protocol);
    print_hex("key", tracked.key);
    print_address("address", &tracked.address);
    printf(" state=%u generation=%u epoch=%llu deadline_ns=%llu window_s=%u ttl_s=%u",
           tracked.state, tracked.generation, (unsigned long long)tracked.server_epoch,
           (unsigned long long)tracked.deadline_ns, tracked.window_s, tracked.ttl_s);
    print_hex("bytes", tracked.bytes);
    printf(" slot=%u\n", slot);
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
    case RECORD_CLIENT:
        result = print_client(slot, value);
        break;
    case RECORD_LOCK:
        result = print_lock(slot, value);
        break;
    case RECORD_WAITER:
        result = print_waiter(slot, value);
        break;
    case RECORD_SHARE:
        result = print_share(slot, value);
        break;
    case RECORD_TRACKED:
        result = print_tracked(slot, value);
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
