/*
 * bad_input.c -- messages that no honest client sends, each with its documented answer.
 *
 * Passing proves (P5, P6, R-NSM-1, R-NSM-2, R-NSM-4, R-NSM-5, R-NLM-1, R-NLM-4, R-NLM-5, R-DRC-5),
 * over TCP and UDP:
 *  (1) every cut and every extension of the arguments of every procedure, of NSM and of NLM in all
 *      its versions, is GARBAGE_ARGS;
 *  (2) names that R-NSM-1 refuses are STAT_FAIL for SM_MON and SM_STAT, void for SM_NOTIFY, and the
 *      state for SM_UNMON; 1,024 bytes are a name, 1,025 are GARBAGE_ARGS;
 *      handles of a length that the version does not have, and ranges beyond every file, have a
 *      status in the words of that version; UNLOCK of them is GRANTED all the same;
 *  (3) unknown program, version, procedure, RPC version and credential get their RPC error;
 *  (4) what is not a call (replies, cut headers, nothing at all) gets silence;
 *  (5) a call is the same call in one fragment or in many, with empty ones between;
 *  (6) datagrams of every size up to 9,000 are answered, larger ones harm nobody;
 *  (7) random bytes, damaged calls, results of nothing, and UNLOCK and FREE_ALL in another's name
 *      change nothing: an honest client is served and the lock of a witness stands after each step,
 *      and in the end exactly what was accepted is in the store.
 *
 * HOLDFAST_GARBAGE (2000) random messages.
 */
#include "bad_input_nlm.h"
#include "talk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_LEN  40 /* a call header with AUTH_NONE */
#define PATIENCE_MS 30000

static const struct talk_expected garbage = {.accepted = true, .status = PACKET_GARBAGE_ARGS};
static const struct peer_nsm_id some_id = {"monitored", "monitor", 100021, 3, 16};
static const uint8_t some_priv[PEER_NSM_PRIV_LEN] = {1};
static const char *const procedure_names[PEER_NSM_PROCEDURES] = {
    "SM_NULL", "SM_STAT", "SM_MON", "SM_UNMON", "SM_UNMON_ALL", "SM_SIMU_CRASH", "SM_NOTIFY"};

static void put_procedure(struct packet *call, uint32_t procedure)
{
    switch ((enum peer_nsm_procedure)procedure) {
    case PEER_NSM_NULL:
        peer_nsm_put_null(call, 0);
        break;
    case PEER_NSM_STAT:
        peer_nsm_put_stat(call, 0, "monitored");
        break;
    case PEER_NSM_MON:
        peer_nsm_put_mon(call, 0, &some_id, some_priv);
        break;
    case PEER_NSM_UNMON:
        peer_nsm_put_unmon(call, 0, &some_id);
        break;
    case PEER_NSM_UNMON_ALL:
        peer_nsm_put_unmon_all(call, 0, &some_id);
        break;
    case PEER_NSM_SIMU_CRASH:
        peer_nsm_put_simu_crash(call, 0);
        break;
    case PEER_NSM_NOTIFY:
        peer_nsm_put_notify(call, 0, "monitored", 5);
        break;
    }
}

static void cut_bodies(struct talk *talk)
{
    static struct packet call;
    for (uint32_t procedure = 0; procedure < PEER_NSM_PROCEDURES; procedure++) {
        put_procedure(&call, procedure);
        uint32_t whole = call.len;
        for (uint32_t len = HEADER_LEN; len <= whole + 8; len++) {
            char what[64];
            if (len == whole)
                continue;
            snprintf(what, sizeof(what), "%s with %u of %u bytes", procedure_names[procedure], len,
                     whole);
            memset(call.bytes + whole, 0, 8);
            call.len = len;
            packet_set_xid(&call, talk_next_xid(talk));
            talk_demand_error(talk, &call, &garbage, what);
        }
    }
}

/* Every procedure that takes a name, with this one. */
static void try_name(struct talk *talk, const char *name, uint32_t len, const char *what)
{
    static struct packet call;
    for (uint32_t procedure = PEER_NSM_STAT; procedure <= PEER_NSM_NOTIFY; procedure++) {
        if (procedure == PEER_NSM_UNMON_ALL || procedure == PEER_NSM_SIMU_CRASH)
            continue;
        peer_nsm_put_header(&call, talk_next_xid(talk), (enum peer_nsm_procedure)procedure);
        packet_put_opaque(&call, name, len);
        if (procedure == PEER_NSM_NOTIFY) {
            packet_put_u32(&call, 5);
        } else if (procedure != PEER_NSM_STAT) {
            packet_put_text(&call, "monitor");
            packet_put_u32(&call, 100021);
            packet_put_u32(&call, 3);
            packet_put_u32(&call, 16);
        }
        if (procedure == PEER_NSM_MON)
            packet_put_bytes(&call, some_priv, sizeof(some_priv));
        if (len > 1024)
            talk_demand_error(talk, &call, &garbage, what);
        else if (procedure == PEER_NSM_STAT || procedure == PEER_NSM_MON)
            talk_demand_res(talk, &call, PEER_NSM_STAT_FAIL, what);
        else if (procedure == PEER_NSM_UNMON)
            talk_demand_state(talk, &call, what);
        else
            talk_demand_void(talk, &call, what);
    }
}

static void bad_names(struct talk *talk)
{
    static char long_name[1100];
    static struct packet call;
    memset(long_name, 'n', sizeof(long_name));
    try_name(talk, "a/b", 3, "name with '/'");
    try_name(talk, "/etc/passwd", 11, "name that is a path");
    try_name(talk, ".hidden", 7, "name with leading '.'");
    try_name(talk, "..", 2, "name '..'");
    try_name(talk, "", 0, "empty name");
    try_name(talk, "ev\0il", 5, "name with NUL");
    try_name(talk, "\0", 1, "name that is NUL");
    try_name(talk, "new\nline", 8, "name with a line feed");
    try_name(talk, "\x1b[2J", 4, "name with an escape sequence");
    try_name(talk, "del\x7f", 4, "name with DEL");
    try_name(talk, long_name, 1025, "name of 1,025 bytes");
    try_name(talk, long_name, 1100, "name of 1,100 bytes");

    /* The length word lies: nothing that long is there. */
    static const uint32_t lies[] = {1024, 1025, 65536, 0x7fffffff, 0xffffffff, 0xfffffffc};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        peer_nsm_put_header(&call, talk_next_xid(talk), PEER_NSM_STAT);
        packet_put_u32(&call, lies[i]);
        packet_put_bytes(&call, "abcd", 4);
        talk_demand_error(talk, &call, &garbage, "a length that is not there");
    }

    /* The longest names there are, in both places, are served and removed again. */
    long_name[1024] = '\0';
    struct peer_nsm_id id = {long_name, long_name, 100021, 3, 16};
    peer_nsm_put_mon(&call, talk_next_xid(talk), &id, some_priv);
    talk_demand_res(talk, &call, PEER_NSM_STAT_SUCC, "names of 1,024 bytes");
    peer_nsm_put_unmon(&call, talk_next_xid(talk), &id);
    talk_demand_state(talk, &call, "names of 1,024 bytes");
}

static void bad_callbacks(struct talk *talk)
{
    static const struct {
        uint32_t prog, res;
    } programs[] = {{100000, 1}, {100003, 1}, {100005, 1}, {100020, 1},
                    {100022, 1}, {100099, 1}, {100021, 0}, {100024, 0},
                    {99999, 0},  {100100, 0}, {0, 0},      {0x20000000, 0}};
    static struct packet call;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        char what[64];
        struct peer_nsm_id id = {"callback", "callback", programs[i].prog, 1, 1};
        snprintf(what, sizeof(what), "SM_MON with my_prog %u", programs[i].prog);
        peer_nsm_put_mon(&call, talk_next_xid(talk), &id, some_priv);
        talk_demand_res(talk, &call, programs[i].res, what);
        peer_nsm_put_unmon(&call, talk_next_xid(talk), &id);
        talk_demand_state(talk, &call, what);
    }
}

static void unknown_calls(struct talk *talk)
{
    static const struct {
        uint32_t prog, vers, proc;
        struct talk_expected expected;
    } calls[] = {
        {0, 1, 0, {true, PACKET_PROG_UNAVAIL, 0, 0, 0}},
        {100000, 2, 0, {true, PACKET_PROG_UNAVAIL, 0, 0, 0}},
        {100023, 1, 0, {true, PACKET_PROG_UNAVAIL, 0, 0, 0}},
        {0xffffffff, 1, 0, {true, PACKET_PROG_UNAVAIL, 0, 0, 0}},
        {100024, 0, 0, {true, PACKET_PROG_MISMATCH, 1, 1, 0}},
        {100024, 2, 0, {true, PACKET_PROG_MISMATCH, 1, 1, 0}},
        {100024, 3, 77, {true, PACKET_PROG_MISMATCH, 1, 1, 0}},
        {100024, 0xffffffff, 0, {true, PACKET_PROG_MISMATCH, 1, 1, 0}},
        {100024, 1, 7, {true, PACKET_PROC_UNAVAIL, 0, 0, 0}},
        {100024, 1, 8, {true, PACKET_PROC_UNAVAIL, 0, 0, 0}},
        {100024, 1, 256, {true, PACKET_PROC_UNAVAIL, 0, 0, 0}},
        {100024, 1, 0x7fffffff, {true, PACKET_PROC_UNAVAIL, 0, 0, 0}},
        {100024, 1, 0x80000000, {true, PACKET_PROC_UNAVAIL, 0, 0, 0}},
        {100024, 1, 0xffffffff, {true, PACKET_PROC_UNAVAIL, 0, 0, 0}},
    };
    static struct packet call;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        char what[80];
        struct packet_call header = {talk_next_xid(talk), calls[i].prog, calls[i].vers,
                                     calls[i].proc, PACKET_AUTH_NONE};
        snprintf(what, sizeof(what), "program %u version %u procedure %u", calls[i].prog,
                 calls[i].vers, calls[i].proc);
        packet_clear(&call);
        packet_put_call(&call, &header);
        talk_demand_error(talk, &call, &calls[i].expected, what);
    }
    static const uint32_t versions[] = {0, 1, 3, 0x7fffffff, 0xffffffff};
    static const struct talk_expected mismatch = {false, PACKET_RPC_MISMATCH, 2, 2, 0};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        static struct packet word;
        peer_nsm_put_null(&call, talk_next_xid(talk));
        packet_clear(&word);
        packet_put_u32(&word, versions[i]);
        memcpy(call.bytes + 8, word.bytes, 4);
        talk_demand_error(talk, &call, &mismatch, "another RPC version");
        call.len = 12; /* that version may have any header it likes */
        packet_set_xid(&call, talk_next_xid(talk));
        talk_demand_error(talk, &call, &mismatch, "another RPC version and nothing else");
    }
}

/* A NULL call with this credential. */
static void put_credential(struct packet *call, uint32_t xid, uint32_t flavor,
                           const struct packet *body)
{
    peer_nsm_put_null(call, xid);
    call->len = 24;
    packet_put_u32(call, flavor);
    packet_put_opaque(call, body->bytes, body->len);
    packet_put_u32(call, 0);
    packet_put_u32(call, 0);
}

/* AUTH_SYS with a machine name of this length and so many groups, of which `present` are there. */
static void put_auth_sys(struct packet *body, uint32_t machine_len, uint32_t groups,
                         uint32_t present)
{
    static const char machine[300];
    packet_clear(body);
    packet_put_u32(body, 1);
    packet_put_opaque(body, machine, machine_len);
    packet_put_u32(body, 0);
    packet_put_u32(body, 0);
    packet_put_u32(body, groups);
    for (uint32_t i = 0; i < present; i++)
        packet_put_u32(body, i);
}

static void bad_credentials(struct talk *talk)
{
    static const uint32_t flavors[] = {2, 3, 4, 6, 390000, 0xffffffff};
    static const struct {
        uint32_t machine_len, groups, present;
    } malformed[] = {{256, 0, 0}, {4, 17, 17}, {4, 2, 1}, {4, 0, 1}, {4, 0xffffffff, 0}};
    static const struct talk_expected rejected = {false, PACKET_AUTH_ERROR, 0, 0, 2};
    static const struct talk_expected bad = {false, PACKET_AUTH_ERROR, 0, 0, 1};
    static struct packet call, body;
    packet_clear(&body);
    for (size_t i = 0; i < sizeof(flavors) / sizeof(flavors[0]); i++) {
        put_credential(&call, talk_next_xid(talk), flavors[i], &body);
        talk_demand_error(talk, &call, &rejected, "an unknown credential flavour");
    }
    put_credential(&call, talk_next_xid(talk), 1, &body);
    talk_demand_error(talk, &call, &bad, "an empty AUTH_SYS");
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        put_auth_sys(&body, malformed[i].machine_len, malformed[i].groups, malformed[i].present);
        put_credential(&call, talk_next_xid(talk), 1, &body);
        talk_demand_error(talk, &call, &bad, "a malformed AUTH_SYS");
    }
    /* The largest legal ones are served. */
    put_auth_sys(&body, 255, 16, 16);
    put_credential(&call, talk_next_xid(talk), 1, &body);
    talk_demand_void(talk, &call, "the largest AUTH_SYS");
    body.len = 400;
    put_credential(&call, talk_next_xid(talk), 0, &body);
    talk_demand_void(talk, &call, "AUTH_NONE with a body of 400 bytes");
    body.len = 404;
    put_credential(&call, talk_next_xid(talk), 0, &body);
    talk_demand_error(talk, &call, &bad, "a credential of 404 bytes");
}

static void not_calls(struct talk *talk)
{
    static struct packet message;
    for (uint32_t len = 0; len < HEADER_LEN; len++) {
        peer_nsm_put_null(&message, talk_next_xid(talk));
        talk_demand_silence(talk, message.bytes, len, "a header that is cut short");
    }
    for (uint32_t type = 1; type <= 3; type++) {
        peer_nsm_put_null(&message, talk_next_xid(talk));
        message.bytes[7] = (uint8_t)type;
        talk_demand_silence(talk, message.bytes, message.len, "a message that is no call");
    }
    packet_clear(&message); /* a reply such as the server itself sends */
    packet_put_u32(&message, talk_next_xid(talk));
    packet_put_u32(&message, 1);
    for (int i = 0; i < 4; i++)
        packet_put_u32(&message, 0);
    talk_demand_silence(talk, message.bytes, message.len, "a reply");
}

/* Sends the call in fragments of this size with `empties` empty ones before each. */
static void send_fragments(struct talk *talk, const struct packet *call, uint32_t size,
                           uint32_t empties, bool empty_last)
{
    static struct packet stream;
    packet_clear(&stream);
    for (uint32_t at = 0; at < call->len; at += size) {
        uint32_t len = call->len - at < size ? call->len - at : size;
        bool is_last = at + len == call->len && !empty_last;
        for (uint32_t i = 0; i < empties; i++)
            packet_put_u32(&stream, 0);
        packet_put_u32(&stream, len | (is_last ? UINT32_C(0x80000000) : 0));
        packet_put_bytes(&stream, call->bytes + at, len);
    }
    if (empty_last)
        packet_put_u32(&stream, UINT32_C(0x80000000));
    HARNESS_EXPECT(dial_send(talk->tcp, stream.bytes, stream.len, PATIENCE_MS) == 0, "fragments");
}

static void fragments(struct talk *talk)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 7, 39, 41, 1000};
    static struct packet call, answer;
    struct packet_reply reply;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint32_t variant = 0; variant < 4; variant++) {
            uint32_t res, state, xid = talk_next_xid(talk);
            peer_nsm_put_stat(&call, xid, "a.name.of.some.length.example");
            send_fragments(talk, &call, sizes[i], variant % 2 * 3, variant / 2 == 1);
            int len = dial_receive_record(talk->tcp, &answer, PATIENCE_MS);
            HARNESS_EXPECT(len > 0 && packet_get_reply(answer.bytes, (uint32_t)len, &reply) &&
                               reply.xid == xid && peer_nsm_get_stat_res(&reply, &res, &state) &&
                               res == PEER_NSM_STAT_SUCC,
                           "fragments of %u bytes, variant %u: %d", sizes[i], variant, len);
        }
    }
    /* 1,000 empty fragments, then an empty record, then silence before the next call. */
    static const uint8_t empties[4000];
    HARNESS_EXPECT(dial_send(talk->tcp, empties, sizeof(empties), PATIENCE_MS) == 0, "empties");
    talk_demand_silence(talk, empties, 0, "an empty record");
}

static void datagram_sizes(struct talk *talk)
{
    static struct packet call;
    static const uint8_t filling[9000];
    for (uint32_t size = HEADER_LEN; size <= 9000; size += size < 200 ? 1 : 97) {
        if (size + 97 > 9000)
            size = 9000;
        peer_nsm_put_null(&call, talk_next_xid(talk));
        packet_put_bytes(&call, filling, size - HEADER_LEN);
        if (size == HEADER_LEN)
            talk_demand_void(talk, &call, "a call of 40 bytes");
        else
            talk_demand_error(talk, &call, &garbage, "a call with bytes behind it");
    }
    static const uint32_t too_large[] = {9001, 9004, 12000, 16384, 16385, 32000, 65507};
    for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
        peer_nsm_put_null(&call, talk_next_xid(talk));
        memset(call.bytes + call.len, 0, sizeof(call.bytes) - call.len);
        HARNESS_EXPECT(dial_send(talk->udp, call.bytes, too_large[i], PATIENCE_MS) == 0,
                       "a datagram of %u bytes", too_large[i]);
    }
}

static void random_bytes(struct talk *talk, uint64_t seed)
{
    static struct packet message;
    uint32_t count = harness_number("HOLDFAST_GARBAGE", 2000);
    for (uint32_t i = 0; i < count; i++) {
        /* Random bytes, or a good call with a few bytes changed: never SM_MON, which may succeed.
         */
        uint32_t procedure = (uint32_t)(harness_random(&seed) % PEER_NSM_PROCEDURES);
        put_procedure(&message, procedure == PEER_NSM_MON ? (uint32_t)PEER_NSM_STAT : procedure);
        packet_set_xid(&message, talk_next_xid(talk));
        if (i % 4 == 1)
            bad_input_nlm_damaged(talk, &seed, &message);
        if (i % 2 == 0)
            message.len = (uint32_t)(harness_random(&seed) % 300);
        uint32_t changes = i % 2 == 0 ? message.len : 1 + (uint32_t)(harness_random(&seed) % 4);
        for (uint32_t change = 0; change < changes; change++) {
            uint64_t dice = harness_random(&seed);
            uint32_t at = i % 2 == 0 ? change : (uint32_t)(dice % message.len);
            message.bytes[at] ^= (uint8_t)(dice >> 32);
        }
        (void)dial_send(talk->udp, message.bytes, message.len, PATIENCE_MS);
        if (i % 8 != 0)
            continue;
        struct dial_route route = harness_route(talk->server, false);
        int fd = dial_open(&route, PATIENCE_MS);
        if (!HARNESS_EXPECT(fd >= 0, "connection %u: %s", i, strerror(-fd)))
            return;
        if (i % 16 == 0)
            (void)dial_send(fd, message.bytes, message.len, PATIENCE_MS);
        else
            (void)dial_send_record(fd, message.bytes, message.len, PATIENCE_MS);
        close(fd);
    }
}

/* From a port that is not privileged, SM_SIMU_CRASH is answered and does nothing (R-NSM-4). */
static void unprivileged_crash(struct talk *talk)
{
    static struct packet call;
    peer_nsm_put_simu_crash(&call, talk_next_xid(talk));
    talk_demand_void(talk, &call, "SM_SIMU_CRASH from an unprivileged port");
    talk_demand_service(talk, "after SM_SIMU_CRASH"); /* with the same state */
}

static void count_record(void *context, const struct harness_record *record)
{
    uint32_t *count = context;
    if (record->is_server)
        return;
    (*count)++;
    HARNESS_EXPECT(strcmp(record->mon_name, "witness.example") == 0, "%s is stored",
                   record->mon_name);
}

static void run(struct talk *talk)
{
    static struct packet call;
    static const struct {
        const char *name;
        void (*run)(struct talk *talk);
    } steps[] = {{"cut_bodies", cut_bodies},
                 {"bad_names", bad_names},
                 {"bad_callbacks", bad_callbacks},
                 {"unknown_calls", unknown_calls},
                 {"not_calls", not_calls},
                 {"bad_credentials", bad_credentials},
                 {"fragments", fragments},
                 {"datagram_sizes", datagram_sizes},
                 {"unprivileged_crash", unprivileged_crash},
                 {"NLM cut_bodies", bad_input_nlm_cut_bodies},
                 {"NLM unknown_calls", bad_input_nlm_unknown_calls},
                 {"NLM bad_values", bad_input_nlm_bad_values},
                 {"NLM statuses", bad_input_nlm_statuses},
                 {"NLM lenient", bad_input_nlm_lenient},
                 {"NLM strangers", bad_input_nlm_strangers}};
    struct peer_nsm_id witness = {"witness.example", "witness", 100021, 3, 16};
    peer_nsm_put_mon(&call, talk_next_xid(talk), &witness, some_priv);
    talk_demand_res(talk, &call, PEER_NSM_STAT_SUCC, "the witness");
    talk_demand_service(talk, "at the start");
    bad_input_nlm_begin(talk);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        steps[i].run(talk);
        talk_demand_service(talk, steps[i].name);
        bad_input_nlm_demand_witness(talk, steps[i].name);
    }
    random_bytes(talk, harness_seed() | 1);
    /* Old answers may wait in the socket; a new one starts afresh. */
    const struct harness_server *server = talk->server;
    talk_close(talk);
    if (talk_open(talk, server)) {
        talk_demand_service(talk, "after random bytes");
        bad_input_nlm_demand_witness(talk, "after random bytes");
    }
}

static void count_lock(void *context, const char *line)
{
    uint32_t *count = context;
    *count += strncmp(line, "lock ", 5) == 0 || strncmp(line, "share ", 6) == 0;
}

int main(void)
{
    struct talk talk;
    uint32_t stored = 0, locks = 0;
    harness_init("bad_input");
    struct harness_server server = {.listen = "127.0.0.1", .store = harness_path("store")};
    if (!harness_start(&server))
        return harness_finish();
    if (talk_open(&talk, &server))
        run(&talk);
    talk_close(&talk);
    printf("%u log lines\n", harness_log_lines(&server));
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    harness_dump(server.store, count_record, &stored);
    HARNESS_EXPECT(stored == 1, "%u registrants are stored, the witness is one", stored);
    if (harness_dump_lines(server.store, count_lock, &locks))
        HARNESS_EXPECT(locks == 1, "%u locks and shares are stored, the witness has one", locks);
    return harness_finish();
}
