/*
 * test_rpc_msg.c -- what rpc_msg makes of every kind of call, the bytes of every reply header, the
 * calls that we make, and what it makes of every kind of answer to them.
 *
 * Calls are built word by word here, so that one word at a time can be wrong; the vectors check the
 * same functions against bytes that another implementation made.
 */
#include "codec/rpc_msg.h"
#include "unit/test.h"

struct draft {
    uint8_t bytes[2048];
    uint32_t len;
};

static void word(struct draft *draft, uint32_t value)
{
    store_be32(draft->bytes + draft->len, value);
    draft->len += 4;
}

/* An authenticator whose body is `len` zero bytes. */
static void auth(struct draft *draft, uint32_t flavor, uint32_t len)
{
    word(draft, flavor);
    word(draft, len);
    memset(draft->bytes + draft->len, 0, (len + 3) / 4 * 4);
    draft->len += (len + 3) / 4 * 4;
}

static void call_words(struct draft *draft, uint32_t type, uint32_t rpcvers)
{
    *draft = (struct draft){0};
    word(draft, 0xa1b2c3d4);
    word(draft, type);
    word(draft, rpcvers);
    word(draft, 100024);
    word(draft, 1);
    word(draft, 6);
}

static struct bytes whole(const struct draft *draft)
{
    return (struct bytes){draft->bytes, draft->len};
}

/* The result for an exact copy, so that reading too far is seen by the sanitizer build. */
static enum rpc_call_result get(struct bytes message, struct rpc_call *ret)
{
    uint8_t *copy = malloc(message.len + (message.len == 0));
    assert_non_null(copy);
    memcpy(copy, message.at, message.len);
    *ret = (struct rpc_call){.xid = 99, .prog = 99};
    enum rpc_call_result result = rpc_msg_get_call((struct bytes){copy, message.len}, ret);
    if (result == RPC_CALL_OK)
        ret->args.at = message.at + (ret->args.at - copy);
    ret->credential.machine.at = NULL;
    free(copy);
    return result;
}

TEST(test_rpc_msg__plain_call)
{
    struct draft draft;
    struct rpc_call call;
    call_words(&draft, 0, 2);
    auth(&draft, 0, 0);
    auth(&draft, 0, 0);
    uint32_t header_len = draft.len;
    word(&draft, 0x01020304);
    assert_int_equal(get(whole(&draft), &call), RPC_CALL_OK);
    assert_int_equal(call.xid, 0xa1b2c3d4);
    assert_int_equal(call.prog, 100024);
    assert_int_equal(call.vers, 1);
    assert_int_equal(call.proc, 6);
    assert_int_equal(call.credential.flavor, RPC_AUTH_NONE);
    assert_ptr_equal(call.args.at, draft.bytes + header_len);
    assert_int_equal(call.args.len, 4);

    /* A header that is cut anywhere gets no answer; one without arguments is whole. */
    for (uint32_t len = 0; len < header_len; len++)
        assert_int_equal(get((struct bytes){draft.bytes, len}, &call), RPC_CALL_DROP);
    assert_int_equal(get((struct bytes){draft.bytes, header_len}, &call), RPC_CALL_OK);
    assert_int_equal(call.args.len, 0);
}

TEST(test_rpc_msg__only_calls_are_answered)
{
    const uint32_t types[] = {1, 2, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct draft draft;
        struct rpc_call call;
        call_words(&draft, types[i], 2);
        auth(&draft, 0, 0);
        auth(&draft, 0, 0);
        assert_int_equal(get(whole(&draft), &call), RPC_CALL_DROP);
        call_words(&draft, types[i], 3); /* the type is judged before the version */
        assert_int_equal(get(whole(&draft), &call), RPC_CALL_DROP);
    }
}

TEST(test_rpc_msg__other_rpc_versions)
{
    const uint32_t versions[] = {0, 1, 3, UINT32_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct draft draft;
        struct rpc_call call;
        call_words(&draft, 0, versions[i]);
        /* Whatever is behind the version word, it is not looked at. */
        for (uint32_t len = 12; len <= draft.len; len++) {
            struct bytes part = {draft.bytes, len};
            assert_int_equal(get(part, &call), RPC_CALL_RPC_MISMATCH);
            assert_int_equal(call.xid, 0xa1b2c3d4);
            assert_int_equal(call.prog, 99); /* only the xid is set */
        }
        for (uint32_t len = 0; len < 12; len++)
            assert_int_equal(get((struct bytes){draft.bytes, len}, &call), RPC_CALL_DROP);
    }
}

TEST(test_rpc_msg__authenticators_have_a_longest_body)
{
    const struct {
        uint32_t cred_len, verf_len;
        enum rpc_call_result result;
    } rows[] = {
        {400, 400, RPC_CALL_OK},     {1, 399, RPC_CALL_OK},         {401, 0, RPC_CALL_BAD_CRED},
        {0, 401, RPC_CALL_BAD_VERF}, {404, 404, RPC_CALL_BAD_CRED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct draft draft;
        struct rpc_call call;
        call_words(&draft, 0, 2);
        auth(&draft, 0, rows[i].cred_len);
        auth(&draft, 0, rows[i].verf_len);
        assert_int_equal(get(whole(&draft), &call), rows[i].result);
        assert_int_equal(call.xid, 0xa1b2c3d4);
    }
}

TEST(test_rpc_msg__verifiers_are_skipped)
{
    const uint32_t flavors[] = {0, 1, 2, 3, 6, 0x12345678};
    for (size_t i = 0; i < sizeof flavors / sizeof flavors[0]; i++) {
        struct draft draft;
        struct rpc_call call;
        call_words(&draft, 0, 2);
        auth(&draft, 0, 0);
        auth(&draft, flavors[i], 20);
        assert_int_equal(get(whole(&draft), &call), RPC_CALL_OK);
    }
}

TEST(test_rpc_msg__unknown_flavours_are_rejected)
{
    const uint32_t flavors[] = {2, 3, 4, 5, 6, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof flavors / sizeof flavors[0]; i++) {
        struct draft draft;
        struct rpc_call call;
        call_words(&draft, 0, 2);
        auth(&draft, flavors[i], 24);
        auth(&draft, 0, 0);
        assert_int_equal(get(whole(&draft), &call), RPC_CALL_REJECTED);
        assert_int_equal(call.xid, 0xa1b2c3d4);
        assert_int_equal(call.prog, 99);
        /* A header that is not whole is not an RPC message, whatever its flavour. */
        struct bytes cut = {draft.bytes, draft.len - 1};
        assert_int_equal(get(cut, &call), RPC_CALL_DROP);
    }
}

/* An AUTH_SYS body with these lengths; `claimed` groups are announced, `groups` are there. */
static void auth_sys(struct draft *draft, uint32_t machine_len, uint32_t claimed, uint32_t groups,
                     uint32_t extra)
{
    word(draft, 1);
    uint32_t len_at = draft->len;
    word(draft, 0);
    uint32_t start = draft->len;
    word(draft, 0x5eed); /* stamp */
    word(draft, machine_len);
    uint32_t padded = (machine_len + 3) / 4 * 4;
    memset(draft->bytes + draft->len, 'm', padded);
    draft->len += padded;
    word(draft, 1000); /* uid */
    word(draft, 100);  /* gid */
    word(draft, claimed);
    for (uint32_t i = 0; i < groups; i++)
        word(draft, i);
    uint32_t body_len = draft->len - start + extra;
    store_be32(draft->bytes + len_at, body_len);
    memset(draft->bytes + draft->len, 0, 8);
    draft->len = start + (body_len + 3) / 4 * 4;
}

TEST(test_rpc_msg__auth_sys)
{
    const struct {
        uint32_t machine_len, claimed, groups, extra;
        enum rpc_call_result result;
    } rows[] = {
        {0, 0, 0, 0, RPC_CALL_OK},
        {3, 1, 1, 0, RPC_CALL_OK},
        {255, 16, 16, 0, RPC_CALL_OK}, /* the largest */
        {256, 0, 0, 0, RPC_CALL_BAD_CRED},
        {3, 17, 17, 0, RPC_CALL_BAD_CRED},
        {3, UINT32_MAX, 1, 0, RPC_CALL_BAD_CRED},
        {3, 2, 1, 0, RPC_CALL_BAD_CRED}, /* a group is missing */
        {3, 1, 2, 0, RPC_CALL_BAD_CRED}, /* one too many */
        {3, 0, 0, 1, RPC_CALL_BAD_CRED}, /* one byte left over */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct draft draft;
        struct rpc_call call;
        call_words(&draft, 0, 2);
        auth_sys(&draft, rows[i].machine_len, rows[i].claimed, rows[i].groups, rows[i].extra);
        auth(&draft, 0, 0);
        assert_int_equal(get(whole(&draft), &call), rows[i].result);
        assert_int_equal(call.xid, 0xa1b2c3d4);
        if (rows[i].result != RPC_CALL_OK) {
            assert_int_equal(call.prog, 99);
            continue;
        }
        assert_int_equal(call.credential.flavor, RPC_AUTH_SYS);
        assert_int_equal(call.credential.machine.len, rows[i].machine_len);
        assert_int_equal(call.credential.uid, 1000);
        assert_int_equal(call.credential.gid, 100);
        assert_int_equal(call.args.len, 0);
    }
}

TEST(test_rpc_msg__auth_sys_body_is_cut_anywhere)
{
    struct draft full;
    struct rpc_call call;
    call_words(&full, 0, 2);
    auth_sys(&full, 5, 2, 2, 0);
    const uint32_t body_at = 24 + 8, body_len = full.len - body_at;
    for (uint32_t len = 0; len < body_len; len++) {
        struct draft draft = full;
        store_be32(draft.bytes + 28, len);
        draft.len = body_at + (len + 3) / 4 * 4;
        auth(&draft, 0, 0);
        assert_int_equal(get(whole(&draft), &call), RPC_CALL_BAD_CRED);
    }
}

static void assert_reply(struct xdr_out *out, const uint32_t *words, uint32_t count)
{
    assert_false(out->overflowed);
    assert_int_equal(xdr_out_len(out), 4 * count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(load_be32(out->start + 4 * i), words[i]);
}

TEST(test_rpc_msg__reply_headers)
{
    uint8_t buffer[RPC_REPLY_HEADER_MAX];
    const enum rpc_accept_stat stats[] = {RPC_SUCCESS, RPC_PROG_UNAVAIL, RPC_PROC_UNAVAIL,
                                          RPC_GARBAGE_ARGS, RPC_SYSTEM_ERR};
    const uint32_t numbers[] = {0, 1, 3, 4, 5}; /* RFC 5531 section 9 */
    for (size_t i = 0; i < sizeof stats / sizeof stats[0]; i++) {
        struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
        rpc_msg_put_accepted(&out, 7, stats[i]);
        assert_reply(&out, (const uint32_t[]){7, 1, 0, 0, 0, numbers[i]}, 6);
    }
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    rpc_msg_put_prog_mismatch(&out, 7, 1, 4);
    assert_reply(&out, (const uint32_t[]){7, 1, 0, 0, 0, 2, 1, 4}, 8);
    assert_int_equal(xdr_out_len(&out), RPC_REPLY_HEADER_MAX);

    out = xdr_out_of(buffer, sizeof buffer);
    rpc_msg_put_rpc_mismatch(&out, 7);
    assert_reply(&out, (const uint32_t[]){7, 1, 1, 0, 2, 2}, 6);

    out = xdr_out_of(buffer, sizeof buffer);
    rpc_msg_put_auth_error(&out, 7, RPC_AUTH_BADCRED);
    assert_reply(&out, (const uint32_t[]){7, 1, 1, 1, 1}, 5);
    out = xdr_out_of(buffer, sizeof buffer);
    rpc_msg_put_auth_error(&out, 7, RPC_AUTH_REJECTEDCRED);
    assert_reply(&out, (const uint32_t[]){7, 1, 1, 1, 2}, 5);
}

TEST(test_rpc_msg__calls_that_we_make)
{
    uint8_t buffer[64];
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    rpc_msg_put_call(&out, 0xa1b2c3d4, 100021, 4, 10);
    assert_reply(&out, (const uint32_t[]){0xa1b2c3d4, 0, 2, 100021, 4, 10, 0, 0, 0, 0}, 10);
    /* And our own reader takes it. */
    struct rpc_call call;
    assert_int_equal(get((struct bytes){buffer, xdr_out_len(&out)}, &call), RPC_CALL_OK);
    assert_int_equal(call.proc, 10);
    assert_int_equal(call.args.len, 0);
}

/* The result for an exact copy; views are turned into views of the original. */
static bool get_answer(struct bytes message, struct rpc_answer *ret)
{
    uint8_t *copy = malloc(message.len + (message.len == 0));
    assert_non_null(copy);
    if (message.len > 0)
        memcpy(copy, message.at, message.len);
    bool is_good = rpc_msg_get_answer((struct bytes){copy, message.len}, ret);
    if (is_good && ret->results.len > 0)
        ret->results.at = message.at + (ret->results.at - copy);
    free(copy);
    return is_good;
}

TEST(test_rpc_msg__answers)
{
    const struct {
        uint32_t words[8], count;
        uint32_t whole; /* words without which it is no answer */
        enum rpc_answer_stat stat;
        uint32_t results_len;
    } rows[] = {
        {{7, 1, 0, 0, 0, 0}, 6, 6, RPC_ANSWER_SUCCESS, 0},
        {{7, 1, 0, 0, 0, 0, 42, 43}, 8, 6, RPC_ANSWER_SUCCESS, 8},
        {{7, 1, 0, 2, 4, 0xffffffff, 0, 42}, 8, 7, RPC_ANSWER_SUCCESS, 4}, /* with a verifier */
        {{7, 1, 0, 0, 0, 2, 1, 4}, 8, 6, RPC_ANSWER_PROG_MISMATCH, 0},
        {{7, 1, 0, 0, 0, 1}, 6, 6, RPC_ANSWER_ERROR, 0}, /* PROG_UNAVAIL */
        {{7, 1, 0, 0, 0, 3}, 6, 6, RPC_ANSWER_ERROR, 0}, /* PROC_UNAVAIL */
        {{7, 1, 0, 0, 0, 4}, 6, 6, RPC_ANSWER_ERROR, 0}, /* GARBAGE_ARGS */
        {{7, 1, 0, 0, 0, 5}, 6, 6, RPC_ANSWER_ERROR, 0}, /* SYSTEM_ERR */
        {{7, 1, 1, 0, 2, 2}, 6, 4, RPC_ANSWER_ERROR, 0}, /* RPC_MISMATCH */
        {{7, 1, 1, 1, 1}, 5, 4, RPC_ANSWER_ERROR, 0},    /* AUTH_ERROR */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct draft draft = {0};
        for (uint32_t j = 0; j < rows[i].count; j++)
            word(&draft, rows[i].words[j]);
        struct rpc_answer answer = {0};
        assert_true(get_answer(whole(&draft), &answer));
        assert_int_equal(answer.xid, 7);
        assert_int_equal(answer.stat, rows[i].stat);
        if (answer.stat == RPC_ANSWER_SUCCESS) {
            assert_int_equal(answer.results.len, rows[i].results_len);
            if (answer.results.len > 0)
                assert_int_equal(load_be32(answer.results.at), 42);
        }
        for (uint32_t len = 0; len < 4 * rows[i].whole; len++)
            assert_false(get_answer((struct bytes){draft.bytes, len}, &answer));
        assert_true(get_answer((struct bytes){draft.bytes, 4 * rows[i].whole}, &answer));
    }
}

TEST(test_rpc_msg__what_is_no_answer)
{
    struct draft draft;
    struct rpc_answer answer = {.xid = 99};
    call_words(&draft, 0, 2); /* a call */
    auth(&draft, 0, 0);
    auth(&draft, 0, 0);
    assert_false(get_answer(whole(&draft), &answer));
    const uint32_t bad[][6] = {
        {7, 2, 0, 0, 0, 0},                                /* neither call nor reply */
        {7, 1, 2, 0, 0, 0},                                /* neither accepted nor denied */
        {7, 1, 0xffffffff, 0, 0, 0}, {7, 1, 0, 0, 401, 0}, /* a verifier that is too long */
        {7, 1, 0, 0, 0xffffffff, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        draft = (struct draft){0};
        for (uint32_t j = 0; j < 6; j++)
            word(&draft, bad[i][j]);
        draft.len += 500; /* as many zeros as it could want */
        assert_false(get_answer(whole(&draft), &answer));
    }
    assert_int_equal(answer.xid, 99); /* untouched */
}

TEST_MAIN(NULL, NULL, NULL, NULL)
