/*
 * test_nlm.c -- the NLM procedure table in each version: which procedures there are, what each
 * one's arguments become, what each one's result is, and which are special.
 *
 * Arguments are written and results are read with the tests' own XDR, byte for byte in
 * tests/vectors. What a procedure does is the core's business.
 */
#include "codec/nlm_xdr.h"
#include "codec/rpc_msg.h"
#include "peer/peer_nlm.h"
#include "proto/nlm.h"
#include "unit/test.h"

static struct packet packet;
static struct peer_nlm_args args;
static uint8_t buffer[4096];

static const uint32_t versions[] = {1, 3, 4};
#define VERSION_COUNT (sizeof versions / sizeof versions[0])

enum { LAST_V1 = 16, LAST = 23 };

static const struct procedure *row(uint32_t vers, uint32_t number)
{
    for (uint32_t i = 0; i < nlm_program.version_count; i++) {
        const struct program_version *version = &nlm_program.versions[i];
        if (version->number == vers && number < version->procedure_count &&
            version->procedures[number].name != NULL)
            return &version->procedures[number];
    }
    return NULL;
}

TEST(test_nlm__program)
{
    assert_int_equal(nlm_program.number, 100021);
    assert_string_equal(nlm_program.name, "NLM");
    assert_int_equal(nlm_program.version_count, 3);
    for (uint32_t i = 0; i < VERSION_COUNT; i++)
        assert_int_equal(nlm_program.versions[i].number, versions[i]);
    assert_int_equal(nlm_program.record_max, 16 * 1024);
}

/* Every number in every version: there or not, its name, its flags, where its result goes. */
TEST(test_nlm__rows)
{
    enum { STATELESS = PROCEDURE_STATELESS, CACHED = PROCEDURE_CACHED, MSG = PROCEDURE_MESSAGE };
    static const struct {
        uint32_t flags, result_proc;
        bool has_result;
    } rows[LAST + 1] = {
        [0] = {STATELESS, 0, false},    [1] = {0, 0, true},
        [2] = {CACHED, 0, true},        [3] = {CACHED, 0, true},
        [4] = {CACHED, 0, true},        [5] = {0, 0, true},
        [6] = {MSG, 11, true},          [7] = {MSG | CACHED, 12, true},
        [8] = {MSG | CACHED, 13, true}, [9] = {MSG | CACHED, 14, true},
        [10] = {MSG, 15, true},         [11] = {STATELESS, 0, false},
        [12] = {STATELESS, 0, false},   [13] = {STATELESS, 0, false},
        [14] = {STATELESS, 0, false},   [15] = {0, 0, false},
        [16] = {STATELESS, 0, false},   [20] = {CACHED, 0, true},
        [21] = {CACHED, 0, true},       [22] = {CACHED, 0, true},
        [23] = {CACHED, 0, false},
    };
    for (uint32_t i = 0; i < VERSION_COUNT; i++)
        for (uint32_t number = 0; number < 40; number++) {
            const struct procedure *procedure = row(versions[i], number);
            bool is_there =
                number <= LAST_V1 || (versions[i] > 1 && number >= 20 && number <= LAST);
            assert_int_equal(procedure != NULL, is_there);
            if (!is_there)
                continue;
            assert_string_equal(procedure->name, peer_nlm_procedure_text(number));
            assert_int_equal(procedure->flags, rows[number].flags);
            assert_int_equal(procedure->result_proc, rows[number].result_proc);
            assert_int_equal(procedure->encode != NULL, rows[number].has_result);
            assert_non_null(procedure->decode);
            assert_null(procedure->respond);
            if (procedure->flags & PROCEDURE_MESSAGE)
                assert_int_equal(procedure->result_proc, peer_nlm_answer_to(number));
        }
}

/* Arguments in which every field has a value of its own. */
static void fill_args(uint32_t vers)
{
    static uint8_t fh[64];
    for (uint32_t i = 0; i < sizeof fh; i++)
        fh[i] = (uint8_t)(0x80 + i);
    args = (struct peer_nlm_args){
        .cookie = peer_nlm_bytes_of("\1\2\0\4\5", 5),
        .block = true,
        .exclusive = true,
        .reclaim = true,
        .state = 0x80000005,
        .lock = {.caller_name = peer_nlm_text("client.example"),
                 .fh = peer_nlm_bytes_of(fh, vers == 4 ? 64 : 32),
                 .oh = peer_nlm_bytes_of("7@c\0", 4),
                 .svid = 0xfffffff7,
                 .offset = 100,
                 .len = 50},
        .mode = 2,
        .access = 3,
    };
}

static bool decode(uint32_t vers, uint32_t number, struct request *ret)
{
    memset(ret, 0xee, sizeof *ret);
    packet_clear(&packet);
    peer_nlm_put_args(&packet, vers, number, &args);
    struct xdr_in in = xdr_in_of((struct bytes){packet.bytes, packet.len});
    return row(vers, number)->decode(&in, vers, ret);
}

static void assert_bytes(struct bytes bytes, const struct peer_nlm_bytes *expected)
{
    assert_int_equal(bytes.len, expected->len);
    assert_memory_equal(bytes.at, expected->at, expected->len);
}

/* What every lock procedure has. */
static void assert_lock(const struct request *request, uint32_t vers, enum request_kind kind,
                        bool is_message)
{
    assert_int_equal(request->kind, kind);
    assert_bytes(request->cookie, &args.cookie);
    assert_bytes(request->lock.caller_name, &args.lock.caller_name);
    assert_bytes(request->lock.fh, &args.lock.fh);
    assert_bytes(request->lock.oh, &args.lock.oh);
    assert_int_equal(request->lock.svid, args.lock.svid);
    assert_int_equal(request->lock.offset, 100);
    assert_int_equal(request->lock.len, 50);
    assert_int_equal(request->lock.start, 100);
    assert_int_equal(request->lock.end, 149);
    assert_false(request->lock.is_too_big);
    assert_false(request->lock.is_bad_handle);
    assert_int_equal(request->lock.version, vers);
    assert_int_equal(request->lock.is_message, is_message);
    assert_int_equal(request->lock.mode, 0);
    assert_int_equal(request->lock.access, 0);
    assert_int_equal(request->mon_name.len, 0);
}

static void assert_flags(const struct request *request, bool block, bool exclusive, bool reclaim,
                         uint32_t state)
{
    assert_int_equal(request->lock.block, block);
    assert_int_equal(request->lock.exclusive, exclusive);
    assert_int_equal(request->lock.reclaim, reclaim);
    assert_int_equal(request->lock.state, state);
}

TEST(test_nlm__lock_arguments_become_requests)
{
    static const struct {
        uint32_t number, message;
        enum request_kind kind;
        bool block, exclusive, reclaim, has_state;
    } rows[] = {
        {1, 6, REQUEST_NLM_TEST, false, true, false, false},
        {2, 7, REQUEST_NLM_LOCK, true, true, true, true},
        {3, 8, REQUEST_NLM_CANCEL, true, true, false, false},
        {4, 9, REQUEST_NLM_UNLOCK, false, false, false, false},
        {5, 10, REQUEST_NLM_GRANTED, false, true, false, false},
    };
    struct request request;
    for (uint32_t v = 0; v < VERSION_COUNT; v++) {
        uint32_t vers = versions[v];
        fill_args(vers);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            for (uint32_t is_message = 0; is_message < 2; is_message++) {
                assert_true(decode(vers, is_message ? rows[i].message : rows[i].number, &request));
                assert_lock(&request, vers, rows[i].kind, is_message);
                assert_flags(&request, rows[i].block, rows[i].exclusive, rows[i].reclaim,
                             rows[i].has_state ? args.state : 0);
                assert_false(request.lock.is_unmonitored);
            }
        args.block = args.exclusive = args.reclaim = false;
        assert_true(decode(vers, PEER_NLM_LOCK, &request));
        assert_flags(&request, false, false, false, args.state);
    }
}

TEST(test_nlm__nm_lock_is_unmonitored_and_never_waits)
{
    struct request request;
    for (uint32_t v = 1; v < VERSION_COUNT; v++) {
        fill_args(versions[v]);
        assert_true(decode(versions[v], PEER_NLM_NM_LOCK, &request));
        assert_lock(&request, versions[v], REQUEST_NLM_LOCK, false);
        assert_flags(&request, false, true, true, args.state);
        assert_true(request.lock.is_unmonitored);
    }
}

TEST(test_nlm__share_and_free_all)
{
    struct request request;
    for (uint32_t v = 1; v < VERSION_COUNT; v++) {
        uint32_t vers = versions[v];
        fill_args(vers);
        for (uint32_t number = PEER_NLM_SHARE; number <= PEER_NLM_UNSHARE; number++) {
            assert_true(decode(vers, number, &request));
            assert_int_equal(request.kind,
                             number == PEER_NLM_SHARE ? REQUEST_NLM_SHARE : REQUEST_NLM_UNSHARE);
            assert_bytes(request.cookie, &args.cookie);
            assert_bytes(request.lock.caller_name, &args.lock.caller_name);
            assert_bytes(request.lock.fh, &args.lock.fh);
            assert_bytes(request.lock.oh, &args.lock.oh);
            assert_int_equal(request.lock.mode, 2);
            assert_int_equal(request.lock.access, 3);
            assert_true(request.lock.reclaim);
            assert_false(request.lock.is_unmonitored);
            assert_false(request.lock.is_bad_handle);
            assert_int_equal(request.lock.version, vers);
            assert_int_equal(request.lock.state, 0);
            assert_int_equal(request.lock.svid, 0);
        }
        assert_true(decode(vers, PEER_NLM_FREE_ALL, &request));
        assert_int_equal(request.kind, REQUEST_NLM_FREE_ALL);
        assert_bytes(request.mon_name, &args.lock.caller_name);
        assert_int_equal(request.state, args.state);
        assert_int_equal(request.cookie.len, 0);
        assert_int_equal(request.lock.version, vers);
    }
}

static bool decode_res(uint32_t vers, uint32_t number, const struct peer_nlm_res *res,
                       struct request *ret)
{
    packet_clear(&packet);
    peer_nlm_put_res(&packet, vers, number, res);
    struct xdr_in in = xdr_in_of((struct bytes){packet.bytes, packet.len});
    return row(vers, number)->decode(&in, vers, ret);
}

TEST(test_nlm__results_sent_to_us)
{
    struct request request;
    struct peer_nlm_res res = {.cookie = peer_nlm_bytes_of("12345678", 8),
                               .status = 1,
                               .svid = 9,
                               .oh = peer_nlm_text("oh")};
    for (uint32_t v = 0; v < VERSION_COUNT; v++) {
        uint32_t vers = versions[v];
        for (uint32_t number = PEER_NLM_TEST_RES; number <= PEER_NLM_UNLOCK_RES; number++)
            assert_true(decode_res(vers, number, &res, &request));
        /* Numbers that we do not know are the core's to judge. */
        for (res.status = 0; res.status < 12; res.status++) {
            memset(&request, 0xee, sizeof request);
            assert_true(decode_res(vers, PEER_NLM_GRANTED_RES, &res, &request));
            assert_int_equal(request.kind, REQUEST_NLM_GRANTED_RES);
            assert_bytes(request.cookie, &res.cookie);
            assert_int_equal(request.lock.status, res.status);
            assert_int_equal(request.lock.version, vers);
        }
        res.status = 1;
        fill_args(vers);
        assert_true(decode(vers, PEER_NLM_SM_NOTIFY, &request));
    }
}

/* Handles and ranges that mean nothing decode: the answer depends on the procedure. */
TEST(test_nlm__impossible_handles_and_ranges)
{
    static const struct {
        uint32_t vers, fh_len;
        bool is_bad;
    } handles[] = {
        {1, 32, false}, {1, 31, true}, {1, 33, true},   {1, 0, true},
        {3, 32, false}, {3, 64, true}, {4, 1, false},   {4, 64, false},
        {4, 0, true},   {4, 65, true}, {4, 1024, true},
    };
    static const uint8_t zeros[1024];
    struct request request;
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        fill_args(handles[i].vers);
        args.lock.fh = peer_nlm_bytes_of(zeros, handles[i].fh_len);
        static const uint32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 21, 22};
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++) {
            if (row(handles[i].vers, numbers[j]) == NULL)
                continue;
            assert_true(decode(handles[i].vers, numbers[j], &request));
            assert_int_equal(request.lock.is_bad_handle, handles[i].is_bad);
        }
    }
    fill_args(4);
    args.lock.offset = UINT64_C(1) << 63;
    assert_true(decode(4, PEER_NLM_LOCK, &request));
    assert_true(request.lock.is_too_big);
    assert_int_equal(request.lock.offset, UINT64_C(1) << 63); /* as sent, whatever it means */
    assert_int_equal(request.lock.len, 50);
}

TEST(test_nlm__garbage)
{
    struct request request;
    for (uint32_t v = 0; v < VERSION_COUNT; v++)
        for (uint32_t number = 0; number <= LAST; number++) {
            const struct procedure *procedure = row(versions[v], number);
            if (procedure == NULL)
                continue;
            fill_args(versions[v]);
            struct peer_nlm_res res = {.cookie = args.cookie};
            packet_clear(&packet);
            if (number >= PEER_NLM_TEST_RES && number <= PEER_NLM_GRANTED_RES)
                peer_nlm_put_res(&packet, versions[v], number, &res);
            else if (number != PEER_NLM_NULL)
                peer_nlm_put_args(&packet, versions[v], number, &args);
            uint32_t len = packet.len;
            packet_put_u32(&packet, 0);
            for (uint32_t cut = 0; cut <= packet.len; cut++) {
                struct xdr_in in = xdr_in_of((struct bytes){packet.bytes, cut});
                assert_int_equal(procedure->decode(&in, versions[v], &request), cut == len);
            }
        }
}

/* Encodes a response and reads it back. */
static struct peer_nlm_res encode(uint32_t vers, uint32_t number, const struct response *response)
{
    const struct procedure *procedure = row(vers, number);
    struct xdr_out out = xdr_out_of(buffer, nlm_program.reply_max - RPC_CALL_HEADER_LEN);
    procedure->encode(&out, vers, response);
    assert_false(out.overflowed);
    struct packet_reader reader = {buffer, xdr_out_len(&out), false};
    struct peer_nlm_res res;
    uint32_t read_as = procedure->result_proc != 0 ? procedure->result_proc : number;
    assert_true(peer_nlm_get_res(&reader, vers, read_as, &res));
    return res;
}

TEST(test_nlm__responses_become_results)
{
    static const uint32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 21, 22};
    static const struct {
        enum lock_status status;
        uint32_t v4, older;
    } statuses[] = {
        {LOCK_GRANTED, 0, 0},      {LOCK_DENIED, 1, 1},  {LOCK_NO_RESOURCES, 2, 2},
        {LOCK_BLOCKED, 3, 3},      {LOCK_GRACE, 4, 4},   {LOCK_DEADLOCK, 5, 1},
        {LOCK_STALE_HANDLE, 7, 2}, {LOCK_TOO_BIG, 8, 2},
    };
    const struct response like = {
        .cookie = bytes_of_text("a cookie of any length"),
        .holder = {.exclusive = true,
                   .svid = 77,
                   .oh = {(const uint8_t *)"7\0@", 3},
                   .start = 10,
                   .end = UINT64_MAX},
    };
    for (uint32_t v = 0; v < VERSION_COUNT; v++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            for (size_t j = 0; j < sizeof statuses / sizeof statuses[0]; j++) {
                bool is_test = numbers[i] == PEER_NLM_TEST || numbers[i] == PEER_NLM_TEST_MSG;
                if (row(versions[v], numbers[i]) == NULL ||
                    (is_test && statuses[j].status == LOCK_DEADLOCK)) /* nobody waits in a TEST */
                    continue;
                struct response response = like;
                response.status = statuses[j].status;
                struct peer_nlm_res res = encode(versions[v], numbers[i], &response);
                assert_bytes(like.cookie, &res.cookie);
                assert_int_equal(res.status, versions[v] == 4 ? statuses[j].v4 : statuses[j].older);
                if (!is_test || statuses[j].status != LOCK_DENIED)
                    continue;
                assert_true(res.exclusive);
                assert_int_equal(res.svid, 77);
                assert_bytes(like.holder.oh, &res.oh);
                assert_int_equal(res.offset, 10);
                assert_int_equal(res.len, 0); /* to the end of the file */
            }
}

/* The longest result, in an answer and in a call of our own, fits what the program says. */
TEST(test_nlm__the_longest_result_fits)
{
    static const uint8_t bytes[1024];
    struct response response = {.cookie = {bytes, sizeof bytes},
                                .status = LOCK_DENIED,
                                .holder = {.oh = {bytes, sizeof bytes}, .end = 5}};
    for (uint32_t v = 0; v < VERSION_COUNT; v++) {
        struct peer_nlm_res res = encode(versions[v], PEER_NLM_TEST_MSG, &response);
        assert_int_equal(res.cookie.len, 1024);
        assert_int_equal(res.oh.len, 1024);
    }
    struct xdr_out out = xdr_out_of(buffer, nlm_program.reply_max);
    rpc_msg_put_call(&out, 1, 100021, 4, NLM_TEST_RES);
    assert_int_equal(xdr_out_len(&out), RPC_CALL_HEADER_LEN);
    row(4, PEER_NLM_TEST_MSG)->encode(&out, 4, &response);
    assert_false(out.overflowed);
    assert_int_equal(xdr_out_len(&out), nlm_program.reply_max);
    assert_true((int)RPC_REPLY_HEADER_MAX <= (int)RPC_CALL_HEADER_LEN);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
