/*
 * make_seeds.c -- writes the seeds of the fuzz corpora: what the wire vectors hold, cut and odd
 * forms of it, and a few stored records and histories that a fuzzer would need long to find.
 *
 * The files are kept in the repository; this program makes them anew when the format of a target's
 * input or a vector changes. Names start with "seed-"; what libFuzzer found beyond them has other
 * names.
 *
 * usage: make_seeds VECTOR-DIRECTORY CORPUS-DIRECTORY
 */
#include "codec/nsm_xdr.h"
#include "codec/record_mark.h"
#include "fuzz.h"
#include "nlm_body.h"
#include "proto/nsm.h"
#include "store/record.h"
#include "vector.h"

#include <ctype.h>
#include <stdio.h>

enum { SEED_MAX = 1 << 14 };

static const char *corpus;

/* A seed under construction. */
static struct seed {
    uint8_t bytes[SEED_MAX];
    uint32_t len;
} seed;

static void add(struct bytes data)
{
    CHECK(data.len <= SEED_MAX - seed.len);
    if (data.len > 0)
        memcpy(seed.bytes + seed.len, data.at, data.len);
    seed.len += data.len;
}

static void add_u8(uint32_t value)
{
    uint8_t byte = (uint8_t)value;
    add((struct bytes){&byte, 1});
}

static void add_u16(uint32_t value)
{
    add_u8(value >> 8);
    add_u8(value);
}

static void add_u32(uint32_t value)
{
    add_u16(value >> 16);
    add_u16(value);
}

/* Writes the seed and begins the next one. */
static void write_seed(const char *target, const char *part, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/seed-%s%s%s", corpus, target, part, *part ? "-" : "", name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(seed.bytes, 1, seed.len, file) != seed.len || fclose(file) != 0) {
        fprintf(stderr, "cannot write %s: make the directory first\n", path);
        exit(1);
    }
    seed.len = 0;
}

/* The number of the procedure that a file is named after, or -1. */
static int procedure_of(const char *file)
{
    for (uint32_t i = 0; i < nsm_program.versions[0].procedure_count; i++) {
        const char *name = nsm_program.versions[0].procedures[i].name, *at = file + strlen("nsm_");
        size_t len = strlen(name), same = 0;
        while (same < len && toupper((unsigned char)at[same]) == name[same])
            same++;
        if (strncmp(file, "nsm_", 4) == 0 && same == len && strcmp(at + len, ".txt") == 0)
            return (int)i;
    }
    return -1;
}

static void nsm_seed(int procedure, struct bytes args, const char *name)
{
    add_u8((uint32_t)procedure);
    add(args);
    write_seed("nsm", nsm_program.versions[0].procedures[procedure].name, name);
    /* The same as reads: two names, three words, priv. */
    static const uint8_t reads[] = {31 << 3 | 3, 31 << 3 | 3, 0, 0, 0, 16 << 3 | 4};
    if (args.len > 0 && args.len < 200) {
        add_u8(sizeof reads);
        add((struct bytes){reads, sizeof reads});
        add(args);
        write_seed("xdr", nsm_program.versions[0].procedures[procedure].name, name);
    }
}

static void message_seeds(struct bytes message, const char *name)
{
    add(message);
    write_seed("rpc_msg", "", name);
    if (message.len > 600)
        return;
    /* As a record in two fragments and once more whole, read in pieces of 7 and 50 bytes. */
    uint32_t half = message.len / 2;
    add_u16(1023);
    add_u8(2);
    add_u8(6);
    add_u8(49);
    add_u32(half);
    add((struct bytes){message.at, half});
    add_u32(RECORD_MARK_LAST | (message.len - half));
    add((struct bytes){message.at + half, message.len - half});
    add_u32(RECORD_MARK_LAST | message.len);
    add(message);
    write_seed("record_mark", "", name);
    /* To the server twice, then stored and answered, then once more. */
    for (uint32_t round = 0; round < 3; round++) {
        add_u8(0);
        add_u16(message.len);
        add(message);
        if (round == 1)
            add((struct bytes){(const uint8_t[]){2, 3, 4, 2, 3, 4}, 6});
    }
    write_seed("server", "", name);
}

/* A vector of NLM for fuzz_nlm: once per body, of the first procedure that has it; version 1 has
 * the bytes of version 3. */
static void nlm_seeds(const char *file, const struct vector *vector)
{
    static const enum nlm_shape decoders[] = {
        NLM_SHAPE_TESTARGS,   NLM_SHAPE_LOCKARGS,  NLM_SHAPE_CANCARGS,
        NLM_SHAPE_UNLOCKARGS, NLM_SHAPE_SHAREARGS, NLM_SHAPE_RES,
        NLM_SHAPE_TESTRES,    NLM_SHAPE_NOTIFY,    NLM_SHAPE_UPCALL,
    };
    const struct nlm_body_row *row = nlm_body_row_of_file(file), *first = nlm_body_rows;
    CHECK(row != NULL);
    while (first->args != row->args)
        first++;
    uint32_t decoder = 0, versions[NLM_BODY_VERSIONS];
    while (decoder < sizeof decoders / sizeof decoders[0] && decoders[decoder] != row->args)
        decoder++;
    if (row != first || decoder == sizeof decoders / sizeof decoders[0])
        return; /* written already, or void */
    for (unsigned i = 0, count = nlm_body_versions(vector->more, versions); i < count; i++) {
        if (versions[i] == 1)
            continue;
        add_u8(versions[i] == 3 ? 1 : 2);
        add_u8(decoder);
        add_u8(1); /* answered DENIED, with a holder */
        add((struct bytes){vector->bytes, (uint32_t)vector->len});
        char part[64];
        snprintf(part, sizeof part, "%s-%u", row->name, versions[i]);
        write_seed("nlm", part, vector->name);
    }
}

static enum vector_verdict seed_of_vector(const char *file, const struct vector *vector)
{
    struct bytes bytes = {vector->bytes, (uint32_t)vector->len};
    int procedure = procedure_of(file);
    if (strncmp(file, "nlm_", 4) == 0) {
        if (vector->kind != VECTOR_RESULT)
            nlm_seeds(file, vector);
        return VECTOR_GOOD;
    }
    switch (vector->kind) {
    case VECTOR_ARGS:
    case VECTOR_GARBAGE:
        if (procedure >= 0) /* the portmapper's have no target that takes arguments */
            nsm_seed(procedure, bytes, vector->name);
        break;
    case VECTOR_CALL:
    case VECTOR_REFUSED:
        message_seeds(bytes, vector->name);
        break;
    case VECTOR_REPLY:
    case VECTOR_RESULT:
    case VECTOR_BAD_RESULT:
        break; /* nothing of ours reads them */
    }
    return VECTOR_GOOD;
}

static void value_seed(uint32_t mode, enum record_kind kind, uint32_t slot, struct bytes value,
                       const char *name)
{
    static const char *const modes[] = {"as-it-is", "repaired", "flipped"};
    add_u8(mode);
    add_u8((uint32_t)kind - RECORD_SERVER);
    if (kind != RECORD_SERVER)
        add_u32(slot);
    if (mode == 2)
        add_u16(77);
    add(value);
    write_seed("record", name, modes[mode]);
}

/* In every mode of fuzz_record. */
static void value_seeds(enum record_kind kind, uint32_t slot, struct bytes value, const char *name)
{
    for (uint32_t mode = 0; mode < 3; mode++)
        value_seed(mode, kind, slot, value, name);
}

/* Notices with a right checksum and one byte that no encoder writes. */
static void odd_notice_seeds(const struct record_notice *notice)
{
    static const struct {
        const char *name;
        uint32_t at;
        uint8_t byte;
    } rows[] = {
        {"notice-other-kind", 0, RECORD_REGISTRANT},
        {"notice-reserved", 1, 1},
        {"notice-format-0", 3, 0},
        {"notice-family", 16, 7},
        {"notice-long-name", 21, 0xff},
    };
    static uint8_t value[RECORD_VALUE_MAX];
    struct record_notice plain = *notice;
    plain.address = (struct address){0}; /* one byte: the family alone */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t len = record_put_notice(value, 1, &plain);
        value[rows[i].at] = rows[i].byte;
        value_seed(1, RECORD_NOTICE, 1, (struct bytes){value, len}, rows[i].name);
    }
}

/* Records of the lock manager. */
static void nlm_record_seeds(void)
{
    static uint8_t value[RECORD_VALUE_MAX];
    static const uint8_t fh[] = {1, 0, 7, 1, 0x42, 0, 0, 9};
    const struct record_of of = {.client_id = 17, .client = 2, .incarnation = 1, .state = 3};
    const struct address address = address_v4((const uint8_t[]){192, 0, 2, 17});
    uint32_t len = record_put_client(value, 2,
                                     &(struct record_client){.id = 17,
                                                             .registered_ns = 5,
                                                             .address = address,
                                                             .local = address,
                                                             .transport = TRANSPORT_TCP,
                                                             .versions = 1 << 4,
                                                             .grant_proc = 5,
                                                             .state_seen = 3,
                                                             .incarnation = 1,
                                                             .flags = RECORD_CLIENT_MONITORED,
                                                             .caller_name = bytes_of_text("cl")});
    value_seeds(RECORD_CLIENT, 2, (struct bytes){value, len}, "client");
    len = record_put_lock(value, 8,
                          &(struct record_lock){.of = of,
                                                .start = 10,
                                                .end = UINT64_MAX,
                                                .svid = 4711,
                                                .flags = RECORD_LOCK_EXCLUSIVE,
                                                .fh = {fh, sizeof fh},
                                                .oh = bytes_of_text("4711@cl")});
    value_seeds(RECORD_LOCK, 8, (struct bytes){value, len}, "lock");
    value_seeds(RECORD_LOCK, 8, (struct bytes){value, len - 1}, "lock-short");
    value[3] = 1; /* no lock was written by the format before */
    value_seeds(RECORD_LOCK, 8, (struct bytes){value, len}, "lock-format-1");
    len = record_put_waiter(value, 4,
                            &(struct record_waiter){.of = of,
                                                    .order = 6,
                                                    .cookie = 7,
                                                    .len = 20,
                                                    .local = address,
                                                    .offer = 8,
                                                    .svid = 4712,
                                                    .version = 4,
                                                    .transport = TRANSPORT_UDP,
                                                    .flags = RECORD_WAITER_MESSAGE,
                                                    .caller_name = bytes_of_text("cl"),
                                                    .fh = {fh, sizeof fh},
                                                    .oh = bytes_of_text("4712@cl")});
    value_seeds(RECORD_WAITER, 4, (struct bytes){value, len}, "waiter");
    len = record_put_share(
        value, 5,
        &(struct record_share){
            .of = of, .mode = 1, .access = 3, .fh = {fh, sizeof fh}, .oh = bytes_of_text("dos")});
    value_seeds(RECORD_SHARE, 5, (struct bytes){value, len}, "share");
}

/* Locks with a right checksum and one byte that no encoder writes. */
static void odd_lock_seeds(void)
{
    static const struct {
        const char *name;
        uint32_t at;
        uint8_t byte;
    } rows[] = {
        {"lock-no-incarnation", 23, 0}, {"lock-far-client", 16, 1}, {"lock-backwards", 43, 9},
        {"lock-flags", 67, 8},          {"lock-no-handle", 68, 0},  {"lock-long-handle", 68, 65},
    };
    static uint8_t value[RECORD_VALUE_MAX];
    const struct record_lock lock = {.of = {.incarnation = 1}, .end = 4, .fh = bytes_of_text("f")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t len = record_put_lock(value, 1, &lock);
        value[rows[i].at] = rows[i].byte;
        value_seed(1, RECORD_LOCK, 1, (struct bytes){value, len}, rows[i].name);
    }
}

/* A client of another protocol, as it is and with one byte that no encoder writes. */
static void tracked_seeds(void)
{
    static const struct {
        const char *name;
        uint32_t at;
        uint8_t byte;
    } rows[] = {
        {"tracked-no-state", 56, 0},   {"tracked-far-state", 56, 4},
        {"tracked-generation", 52, 0}, {"tracked-connected-deadline", 39, 1},
        {"tracked-protocol", 58, 'A'}, {"tracked-no-protocol", 57, 0},
        {"tracked-no-key", 61, 0},     {"tracked-long-key", 61, 65},
    };
    static uint8_t value[RECORD_VALUE_MAX];
    const struct record_tracked gone = {.id = 17,
                                        .registered_ns = 5,
                                        .server_epoch = 3,
                                        .deadline_ns = 9,
                                        .address = address_v4((const uint8_t[]){192, 0, 2, 17}),
                                        .window_s = 60,
                                        .ttl_s = 600,
                                        .generation = 2,
                                        .state = RECORD_TRACKED_DISCONNECTED,
                                        .protocol = bytes_of_text("smb"),
                                        .key = bytes_of_text("guid-1"),
                                        .bytes = bytes_of_text("h1 h2")};
    uint32_t len = record_put_tracked(value, 6, &gone);
    value_seeds(RECORD_TRACKED, 6, (struct bytes){value, len}, "tracked");
    const struct record_tracked here = {.generation = 1,
                                        .state = RECORD_TRACKED_CONNECTED,
                                        .protocol = bytes_of_text("smb"),
                                        .key = bytes_of_text("k")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        len = record_put_tracked(value, 1, &here);
        value[rows[i].at] = rows[i].byte;
        value_seed(1, RECORD_TRACKED, 1, (struct bytes){value, len}, rows[i].name);
    }
}

static void record_seeds(void)
{
    static uint8_t value[RECORD_VALUE_MAX];
    static const uint8_t v6[16] = {0xfe, 0x80, [15] = 1};
    struct record_server server = {
        .txn = 7, .epoch = 3, .next_id = 18, .state = 5, .restart_state = 5};
    uint32_t len = record_put_server(value, &server);
    value_seeds(RECORD_SERVER, 0, (struct bytes){value, len}, "server");
    value_seeds(RECORD_SERVER, 0, (struct bytes){value, len - 1}, "server-short");
    value[3]++;
    value_seeds(RECORD_SERVER, 0, (struct bytes){value, len}, "server-newer");
    value[3] = 1;
    value_seeds(RECORD_SERVER, 0, (struct bytes){value, len - 4}, "server-format-1");

    struct record_registrant registrant = {
        .id = 17,
        .registered_ns = UINT64_C(1700000000000000000),
        .server_epoch = 3,
        .address = address_v4((const uint8_t[]){192, 0, 2, 17}),
        .local = address_v6(v6, "eth2"),
        .port = 700,
        .transport = TRANSPORT_UDP,
        .my_prog = 100021,
        .my_vers = 4,
        .my_proc = 16,
        .told_state = 5,
        .mon_name = bytes_of_text("srv"),
        .my_name = bytes_of_text("cl1"),
    };
    len = record_put_registrant(value, 9, &registrant);
    value_seeds(RECORD_REGISTRANT, 9, (struct bytes){value, len}, "registrant");
    struct record_notice notice = {.heard_ns = 1,
                                   .address = registrant.address,
                                   .state = 8,
                                   .mon_name = bytes_of_text("client")};
    len = record_put_notice(value, 1, &notice);
    value_seeds(RECORD_NOTICE, 1, (struct bytes){value, len}, "notice");

    odd_notice_seeds(&notice);
    nlm_record_seeds();
    odd_lock_seeds();
    tracked_seeds();

    len = record_put_notice(value, 1, &notice);
    add_u8(3); /* a batch: two puts and a deletion */
    for (uint32_t i = 0; i < 3; i++) {
        add_u8(i);
        add_u8(i * 5);
        add_u16(i == 1 ? 0 : len);
        add((struct bytes){value, i == 1 ? 0 : len});
    }
    write_seed("record", "", "batch");
}

/* Histories for fuzz_server; its opening comment has the steps. */
static void history_seeds(void)
{
    static const struct {
        const char *name;
        uint8_t len, steps[60];
    } histories[] = {
        /* MON by two peers, stored, answered; UNMON by one; a crash before and after the store. */
        {"register-and-crash", 38, {2, 3, 1, 2, 1, 0, 7,    0, 0x11, 2, 2, 0, 9, 1, 2, 3, 4, 1, 3,
                                    3, 0, 7, 0, 6, 2, 0x86, 1, 4,    4, 0, 7, 0, 2, 3, 4, 6, 4, 4}},
        /* More registrations than the limit allows, and more answers than may wait. */
        {"over-the-limit", 56, {2,  3, 1, 2, 0,  7, 7,  0, 1, 2, 1, 8, 7, 0,  1, 2,  2, 9, 7,
                                0,  1, 2, 3, 10, 7, 0,  2, 3, 4, 1, 2, 4, 11, 7, 0,  1, 2, 5,
                                12, 7, 0, 1, 2,  6, 13, 7, 0, 2, 3, 4, 1, 2,  7, 14, 7, 0}},
        /* SM_NOTIFY about a host that is monitored, and SM_SIMU_CRASH from loopback. */
        {"notices", 33, {2, 3, 1, 2, 0, 0, 7, 0, 2, 3, 4, 0x11, 6,    1, 0, 0, 5,
                         2, 3, 4, 1, 5, 2, 0, 0, 0, 2, 3, 4,    0x86, 2, 3, 4}},
        /* The same call again: in progress, answered, and after the cache forgot it. */
        {"repeats", 39, {2, 3, 1, 2, 0,   0, 7, 0, 1, 2, 0, 0, 7, 0, 2, 3, 4, 1, 2, 0,
                         0, 7, 0, 5, 200, 1, 2, 0, 0, 7, 0, 2, 3, 4, 1, 4, 1, 0, 7}},
        /* Each stored record damaged in turn. */
        {"damage", 31, {2, 3, 1, 2, 0, 0, 7, 0, 1, 2,  1, 1, 7, 0, 2, 3,
                        7, 1, 0, 0, 9, 7, 0, 0, 0, 40, 2, 3, 4, 6, 4}},
        /* Answers are asked for at every moment at which they may not leave yet (P1). */
        {"gate", 27, {1, 1, 0, 0, 0, 0, 4, 2, 4, 1, 2, 1, 0, 7,
                      0, 4, 3, 4, 2, 4, 6, 4, 2, 4, 3, 4, 4}},
        /* A store without room, then one with room. */
        {"no-room", 22, {2, 0x83, 1, 2, 0, 0, 7, 0, 4, 2, 3, 1, 2, 1, 1, 7, 0, 2, 3, 4, 6, 4}},
    };
    for (size_t i = 0; i < sizeof histories / sizeof histories[0]; i++) {
        add((struct bytes){histories[i].steps, histories[i].len});
        write_seed("server", "history", histories[i].name);
    }
}

/* Histories for fuzz_core; its opening comment has the steps. */
static void core_history_seeds(void)
{
    static const struct {
        const char *name;
        uint8_t len, steps[60];
    } histories[] = {
        /* A lock, a waiter, UNLOCK, the offer, its callback answered GRANTED; a crash. */
        {"hand-over", 27, {0x1a, 0x10, 0x00, 0x05, 0,    0x30, 0x19, 0x05, 0,
                           0x1a, 3,    0x00, 0x05, 0,    0x3c, 0x1a, 0x0d, 0x0e,
                           0,    0x1a, 0xdf, 0x1a, 0x03, 0x19, 0x05, 0,    0x1a}},
        /* Callbacks are asked for at every moment at which they may not leave yet (P1). */
        {"gate", 24, {0x1a, 0x10, 0x00, 0x05, 0,    0x30, 0x19, 0x05, 0,    0x1a, 3,    0x00,
                      0x05, 0,    0x0d, 0x3c, 0x0d, 0x0a, 0x0d, 0x0b, 0x0d, 0x0e, 0x00, 0x1a}},
        /* The same by GRANTED_MSG and GRANTED_RES, which comes from elsewhere first. */
        {"by-message", 33, {0x1a, 0x10, 0x00, 0x05, 0,    0x70, 0x19, 0x05, 0, 0x1a, 3,
                            0x00, 0x05, 0,    0x3c, 0x1a, 0x0d, 0x0e, 0,    7, 0x02, 0,
                            0,    0x1a, 7,    0x01, 0,    0,    0x1a, 0xcf, 0, 0,    0x1a}},
        /* Callbacks that reach nobody: the waiter is passed over, and asks again (D13). */
        {"passed-over", 39, {0x1a, 0x10, 0x00, 0x05, 0,    0x30, 0x19, 0x05, 0,    0x1a,
                             3,    0x00, 0x05, 0,    0x3c, 0x1a, 0x0d, 0x2e, 0,    0x0f,
                             40,   0x3c, 0x1a, 0x0d, 0x2e, 0,    0x3c, 0x1a, 0x0f, 40,
                             0x3c, 0x30, 0x19, 0x05, 0,    0x3c, 0x1a, 0x0d, 0x1a}},
        /* Splits, merges, an upgrade and a downgrade of one owner; the batch is lost in the end. */
        {"pieces", 42, {0x1a, 0x10, 0x00, 0x0f, 0,    0x03, 0x00, 0x42, 0,    0x00, 0x00,
                        0x43, 0,    0x10, 0x00, 0x71, 0,    0x1a, 3,    0x00, 0x80, 0,
                        0,    0x00, 0x80, 0,    0x10, 0x00, 0x80, 0,    0x0a, 3,    0,
                        0x05, 0,    0xcf, 0,    0x1a, 0x1a, 0xdf, 0x3c, 0x1a}},
        /* A client that starts anew: by its state in a LOCK, by FREE_ALL, by SM_NOTIFY. */
        {"anew", 41, {0x1a, 0x10, 0x00, 0x05, 8, 0x10, 0x00, 0x85, 8, 4,    0x00, 0x0f, 8,   0x1a,
                      0x10, 0x00, 0x25, 24,   0, 0x00, 0x05, 24,   0, 0x3c, 0x1a, 8,    0,   0x3c,
                      0x1a, 9,    1,    0x00, 0, 9,    4,    0x00, 9, 0x3c, 0x1a, 0xdf, 0x1a}},
        /* Two who wait for each other, a waiter that cancels and comes back, and one in between. */
        {"circle", 48, {0x1a, 0x10, 0x00, 0x02, 0, 0x10, 0x19, 0x42, 0,    0x30, 0x00, 0x42,
                        0,    0x30, 0x19, 0x02, 0, 0x30, 0x2a, 0x42, 0,    0x12, 0x00, 0x42,
                        0,    0x30, 0x00, 0x42, 0, 0x1a, 3,    0x19, 0x42, 0,    0x3c, 0x1a,
                        0x0d, 0x32, 0x00, 0x42, 0, 0x0e, 1,    0x3c, 0x1a, 0x0d, 0xdf, 0x1a}},
    };
    for (size_t i = 0; i < sizeof histories / sizeof histories[0]; i++) {
        add((struct bytes){histories[i].steps, histories[i].len});
        write_seed("core", "history", histories[i].name);
    }
}

/* Streams that no vector holds. */
static void stream_seeds(void)
{
    add_u16(15);
    add_u8(1);
    add_u8(0);
    add((struct bytes){(const uint8_t *)"\0\0\0\2ab\0\0\0\0\x80\0\0\1c\x80\0\0\0", 19});
    write_seed("record_mark", "", "fragments-by-byte");
    add_u16(15);
    add_u8(0);
    add((struct bytes){(const uint8_t *)"\x80\0\0\x10"
                                        "0123456789abcdef\xc0\0\0\0",
                       24});
    write_seed("record_mark", "", "longest-then-1-gib");
    add_u16(15);
    add_u8(1);
    add_u8(4);
    add((struct bytes){(const uint8_t *)"\0\0\0\x0f"
                                        "0123456789abcde\x80\0\0\2xy",
                       25});
    write_seed("record_mark", "", "one-too-many-in-fragments");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_seeds VECTOR-DIRECTORY CORPUS-DIRECTORY\n");
        return 2;
    }
    corpus = argv[2];
    record_seeds();
    history_seeds();
    core_history_seeds();
    stream_seeds();
    return vector_run_directory(argv[1], seed_of_vector, NULL);
}
