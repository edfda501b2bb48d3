/*
 * bad_input_nlm.c -- messages to the lock manager that no honest client sends; see bad_input.c.
 *
 * Results of messages (TEST_MSG and so on) come back as calls of the server to the socket that sent
 * them, over UDP: they are skipped, because only replies are looked at.
 */
#include "bad_input_nlm.h"

#include "peer/peer_nlm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define FH_LEN      32
#define BODY_AT     40 /* behind a header with AUTH_NONE */

static const struct talk_expected garbage = {.accepted = true, .status = PACKET_GARBAGE_ARGS};
static const uint32_t versions[] = {4, 3, 1};

static bool has_procedure(uint32_t vers, uint32_t procedure)
{
    return procedure <= PEER_NLM_SM_NOTIFY ||
           (vers != 1 && procedure >= PEER_NLM_SHARE && procedure <= PEER_NLM_FREE_ALL);
}

static bool is_res(uint32_t procedure)
{
    return procedure >= PEER_NLM_TEST_RES && procedure <= PEER_NLM_GRANTED_RES;
}

/* Arguments that are good, of a client and a file that nobody else here has. */
static struct peer_nlm_args *good_args(void)
{
    static struct peer_nlm_args args;
    memset(&args, 0, sizeof(args));
    args.cookie = peer_nlm_bytes_of("cook", 4);
    args.exclusive = true;
    args.lock.caller_name = peer_nlm_text("bad");
    args.lock.fh = peer_nlm_text("a file of bad input.............");
    args.lock.oh = peer_nlm_text("oh");
    args.lock.svid = 1;
    args.lock.len = 5;
    return &args;
}

static void put(struct packet *call, uint32_t xid, uint32_t vers, uint32_t procedure,
                const struct peer_nlm_args *args)
{
    struct packet_call header = {
        .xid = xid, .prog = PEER_NLM_PROGRAM, .vers = vers, .proc = procedure};
    struct peer_nlm_res res = {.cookie = args->cookie, .status = PEER_NLM_IS_DENIED};
    packet_clear(call);
    packet_put_call(call, &header);
    if (is_res(procedure))
        peer_nlm_put_res(call, vers, procedure, &res);
    else
        peer_nlm_put_args(call, vers, procedure, args);
}

/* ---- the witness ---- */

static int ask(struct talk *talk, uint32_t procedure, const struct peer_nlm_args *args,
               struct peer_nlm_res *ret)
{
    static struct packet call, answer;
    struct packet_reply reply;
    struct dial_route route = harness_route(talk->server, false);
    put(&call, talk_next_xid(talk), 4, procedure, args);
    int result = dial_call(&route, &call, PATIENCE_MS, &answer, &reply);
    struct packet_reader body = {reply.body, reply.body_len, false};
    if (result < 0 || !reply.accepted || reply.status != PACKET_SUCCESS)
        return result < 0 ? result : -EPROTO;
    return peer_nlm_get_res(&body, 4, procedure, ret) ? (int)ret->status : -EBADMSG;
}

static struct peer_nlm_args *witness_args(void)
{
    struct peer_nlm_args *args = good_args();
    args->lock.caller_name = peer_nlm_text("witness");
    args->lock.fh = peer_nlm_text("the file of the witness.........");
    args->lock.svid = 77;
    return args;
}

void bad_input_nlm_begin(struct talk *talk)
{
    static struct peer_nlm_res res;
    int status = ask(talk, PEER_NLM_LOCK, witness_args(), &res);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "the lock of the witness: %d", status);
}

void bad_input_nlm_demand_witness(struct talk *talk, const char *what)
{
    static struct peer_nlm_res res;
    struct peer_nlm_args *args = witness_args();
    args->lock.svid = 78;
    int status = ask(talk, PEER_NLM_TEST, args, &res);
    HARNESS_EXPECT(status == PEER_NLM_IS_DENIED && res.svid == 77 && res.len == 5,
                   "%s: TEST of the witness: %d, svid %u", what, status, res.svid);
}

/* ---- the steps ---- */

void bad_input_nlm_cut_bodies(struct talk *talk)
{
    static struct packet call;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        for (uint32_t procedure = 0; procedure < PEER_NLM_PROCEDURES; procedure++) {
            if (!has_procedure(versions[i], procedure))
                continue;
            put(&call, 0, versions[i], procedure, good_args());
            uint32_t whole = call.len;
            for (uint32_t len = BODY_AT; len <= whole + 8; len++) {
                char what[96];
                if (len == whole)
                    continue;
                snprintf(what, sizeof(what), "%s of version %u with %u of %u bytes",
                         peer_nlm_procedure_text(procedure), versions[i], len, whole);
                memset(call.bytes + whole, 0, 8);
                call.len = len;
                packet_set_xid(&call, talk_next_xid(talk));
                talk_demand_error(talk, &call, &garbage, what);
            }
        }
}

void bad_input_nlm_unknown_calls(struct talk *talk)
{
    static struct packet call;
    static const uint32_t procedures[] = {17, 18, 19, 24, 25, 255, 0x7fffffff, 0xffffffff};
    static const struct talk_expected unavailable = {.accepted = true,
                                                     .status = PACKET_PROC_UNAVAIL};
    static const struct talk_expected mismatch = {
        .accepted = true, .status = PACKET_PROG_MISMATCH, .low = 1, .high = 4};
    static const uint32_t others[] = {0, 2, 5, 0xffffffff};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        for (size_t j = 0; j < sizeof(procedures) / sizeof(procedures[0]); j++) {
            put(&call, talk_next_xid(talk), versions[i], PEER_NLM_NULL, good_args());
            call.bytes[20] = (uint8_t)(procedures[j] >> 24);
            call.bytes[21] = (uint8_t)(procedures[j] >> 16);
            call.bytes[22] = (uint8_t)(procedures[j] >> 8);
            call.bytes[23] = (uint8_t)procedures[j];
            talk_demand_error(talk, &call, &unavailable, "an unknown procedure of NLM");
        }
    for (uint32_t procedure = PEER_NLM_SHARE; procedure <= PEER_NLM_FREE_ALL; procedure++) {
        put(&call, talk_next_xid(talk), 1, procedure, good_args());
        talk_demand_error(talk, &call, &unavailable, "a procedure that version 1 does not have");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        put(&call, talk_next_xid(talk), others[i], PEER_NLM_NULL, good_args());
        talk_demand_error(talk, &call, &mismatch, "a version of NLM that there is not");
    }
}

void bad_input_nlm_bad_values(struct talk *talk)
{
    static struct packet call;
    static const uint32_t lengths[] = {1025, 1028, 65536, 0x7fffffff, 0xfffffffc, 0xffffffff};
    static const struct {
        const char *what;
        uint32_t procedure, at; /* the last byte of the word */
        uint8_t value;
    } words[] = {
        {"SHARE with mode 4", PEER_NLM_SHARE, 8 + 8 + 36 + 8 + 3, 4},
        {"SHARE with access 4", PEER_NLM_SHARE, 8 + 8 + 36 + 8 + 4 + 3, 4},
        {"UNSHARE with mode 255", PEER_NLM_UNSHARE, 8 + 8 + 36 + 8 + 3, 255},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        put(&call, talk_next_xid(talk), 4, words[i].procedure, good_args());
        call.bytes[BODY_AT + words[i].at] = words[i].value;
        talk_demand_error(talk, &call, &garbage, words[i].what);
    }
    for (uint32_t procedure = PEER_NLM_TEST; procedure < PEER_NLM_PROCEDURES; procedure++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            if (!has_procedure(4, procedure))
                continue;
            put(&call, talk_next_xid(talk), 4, procedure, good_args());
            for (uint32_t k = 0; k < 4; k++) /* the first word of all of them is a length */
                call.bytes[BODY_AT + k] = (uint8_t)(lengths[i] >> (24 - 8 * k));
            talk_demand_error(talk, &call, &garbage, "a length that is not there");
        }
}

/* The status of one call over both; `ret` of the last. */
static void demand_status(struct talk *talk, uint32_t vers, uint32_t procedure,
                          const struct peer_nlm_args *args, uint32_t expected, const char *what)
{
    static struct packet call, answer;
    static struct peer_nlm_res res;
    for (int is_udp = 0; is_udp < 2; is_udp++) {
        struct packet_reply reply = {0};
        struct dial_route route = harness_route(talk->server, is_udp);
        put(&call, talk_next_xid(talk), vers, procedure, args);
        int result = dial_call(&route, &call, PATIENCE_MS, &answer, &reply);
        struct packet_reader body = {reply.body, reply.body_len, false};
        bool is_read = result == 0 && reply.accepted && reply.status == PACKET_SUCCESS &&
                       peer_nlm_get_res(&body, vers, procedure, &res);
        HARNESS_EXPECT(is_read && res.status == expected &&
                           peer_nlm_bytes_equal(&res.cookie, &args->cookie),
                       "%s in version %u: %s, %s", what, vers,
                       result < 0 ? strerror(-result) : packet_reply_text(&reply),
                       peer_nlm_status_text(res.status));
    }
}

/* What can be read and cannot be done has a status, in the words of the version (R-NLM-1, 5, 7). */
void bad_input_nlm_statuses(struct talk *talk)
{
    static const uint32_t handles[] = {0, 1, 31, 32, 33, 64, 65, 1024};
    for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
        uint32_t vers = versions[v];
        for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
            struct peer_nlm_args *args = good_args();
            bool is_good = vers == 4 ? handles[i] >= 1 && handles[i] <= 64 : handles[i] == FH_LEN;
            uint32_t refused = vers == 4 ? PEER_NLM_IS_STALE_FH : PEER_NLM_IS_NOLOCKS;
            args->lock.fh.len = handles[i];
            uint32_t expected = is_good ? PEER_NLM_IS_GRANTED : refused;
            demand_status(talk, vers, PEER_NLM_TEST, args, expected, "TEST of a handle");
            demand_status(talk, vers, PEER_NLM_LOCK, args, expected, "LOCK of a handle");
            demand_status(talk, vers, PEER_NLM_UNLOCK, args, PEER_NLM_IS_GRANTED, "its UNLOCK");
            demand_status(talk, vers, PEER_NLM_CANCEL, args, PEER_NLM_IS_GRANTED, "its CANCEL");
        }
        struct peer_nlm_args *args = good_args();
        args->cookie.len = PEER_NLM_NETOBJ_MAX; /* and everything else as long as it may be */
        args->lock.oh.len = args->lock.caller_name.len = PEER_NLM_NETOBJ_MAX;
        memset(args->lock.caller_name.at, 'n', PEER_NLM_NETOBJ_MAX);
        demand_status(talk, vers, PEER_NLM_LOCK, args, PEER_NLM_IS_GRANTED, "a LOCK of 4 KiB");
        demand_status(talk, vers, PEER_NLM_UNLOCK, args, PEER_NLM_IS_GRANTED, "its UNLOCK");
        args = good_args();
        args->cookie.len = args->lock.oh.len = args->lock.caller_name.len = 0;
        demand_status(talk, vers, PEER_NLM_LOCK, args, PEER_NLM_IS_GRANTED, "a LOCK of nobody");
        demand_status(talk, vers, PEER_NLM_UNLOCK, args, PEER_NLM_IS_GRANTED, "its UNLOCK");
    }
    static const struct {
        uint64_t offset, len;
        uint32_t expected;
    } ranges[] = {
        {UINT64_C(1) << 63, 1, PEER_NLM_IS_FBIG}, {UINT64_MAX, 0, PEER_NLM_IS_FBIG},
        {2, UINT64_MAX - 1, PEER_NLM_IS_GRANTED}, {2, UINT64_MAX, PEER_NLM_IS_GRANTED},
        {INT64_MAX, 1, PEER_NLM_IS_GRANTED},      {INT64_MAX, 2, PEER_NLM_IS_GRANTED},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct peer_nlm_args *args = good_args();
        args->lock.offset = ranges[i].offset;
        args->lock.len = ranges[i].len;
        demand_status(talk, 4, PEER_NLM_LOCK, args, ranges[i].expected, "LOCK of a range");
        demand_status(talk, 4, PEER_NLM_UNLOCK, args, PEER_NLM_IS_GRANTED, "its UNLOCK");
    }
}

static void demand_void_from(struct talk *talk, const char *source, uint32_t procedure,
                             const struct peer_nlm_args *args, const char *what)
{
    static struct packet call, answer;
    struct packet_reply reply;
    struct dial_route route = harness_route(talk->server, false);
    (void)dial_endpoint_parse(source, 0, &route.source);
    put(&call, talk_next_xid(talk), 4, procedure, args);
    int result = dial_call(&route, &call, PATIENCE_MS, &answer, &reply);
    HARNESS_EXPECT(result == 0 && peer_nsm_is_void(&reply), "%s: %s", what,
                   result < 0 ? strerror(-result) : packet_reply_text(&reply));
}

/* As libtirpc reads them: a boolean that is not zero is true, padding is not looked at. */
void bad_input_nlm_lenient(struct talk *talk)
{
    static struct packet call, answer;
    static struct peer_nlm_res res;
    struct packet_reply reply = {0};
    struct dial_route route = harness_route(talk->server, false);
    struct peer_nlm_args *args = good_args();
    args->exclusive = false;
    put(&call, talk_next_xid(talk), 4, PEER_NLM_LOCK, args);
    call.bytes[BODY_AT + 8 + 4 + 3] = 2;     /* exclusive, behind cookie and block */
    call.bytes[BODY_AT + 8 + 8 + 4 + 3] = 7; /* behind the three bytes of caller_name */
    int result = dial_call(&route, &call, PATIENCE_MS, &answer, &reply);
    struct packet_reader body = {reply.body, reply.body_len, false};
    HARNESS_EXPECT(result == 0 && peer_nlm_get_res(&body, 4, PEER_NLM_LOCK, &res) &&
                       res.status == PEER_NLM_IS_GRANTED,
                   "LOCK with exclusive 2: %s", packet_reply_text(&reply));
    args->lock.svid++;
    int status = ask(talk, PEER_NLM_TEST, args, &res);
    HARNESS_EXPECT(status == PEER_NLM_IS_DENIED && res.exclusive, "TEST of it: %d", status);
    status = ask(talk, PEER_NLM_UNLOCK, good_args(), &res);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "its UNLOCK: %d", status);
}

/* P5, R-NLM-4: results of nothing, and calls in another's name. */
void bad_input_nlm_strangers(struct talk *talk)
{
    static struct peer_nlm_res res;
    for (uint32_t procedure = PEER_NLM_TEST_RES; procedure <= PEER_NLM_GRANTED_RES; procedure++)
        for (uint32_t len = 0; len <= 8; len += 4) {
            struct peer_nlm_args *args = good_args();
            args->cookie = peer_nlm_bytes_of("\0\0\0\1\0\0\0\1", len);
            demand_void_from(talk, "127.0.0.1", procedure, args, "a result of nothing");
        }
    demand_void_from(talk, "127.0.0.9", PEER_NLM_FREE_ALL, witness_args(), "FREE_ALL by another");
    demand_void_from(talk, "127.0.0.1", PEER_NLM_FREE_ALL, good_args(), "FREE_ALL of nobody");
    struct peer_nlm_args *args = witness_args();
    args->lock.caller_name = peer_nlm_text("another");
    args->lock.len = 0;
    int status = ask(talk, PEER_NLM_UNLOCK, args, &res);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "UNLOCK by another: %d", status);
}

void bad_input_nlm_damaged(struct talk *talk, uint64_t *seed, struct packet *ret)
{
    uint64_t dice = harness_random(seed);
    uint32_t vers = versions[dice % 3], procedure = (uint32_t)(dice >> 8) % PEER_NLM_PROCEDURES;
    struct peer_nlm_args *args = good_args();
    if (!has_procedure(vers, procedure) || procedure == PEER_NLM_FREE_ALL)
        procedure = PEER_NLM_TEST;
    if (procedure == PEER_NLM_LOCK || procedure == PEER_NLM_LOCK_MSG ||
        procedure == PEER_NLM_NM_LOCK || procedure == PEER_NLM_SHARE ||
        procedure == PEER_NLM_UNSHARE) /* one bit away from SHARE */
        args->lock.fh.len = 0;
    put(ret, talk_next_xid(talk), vers, procedure, args);
}
