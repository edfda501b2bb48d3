/*
 * test_nsm.c -- the NSM procedure table: which procedures there are, what each one's arguments
 * become, what each one's result is in bytes, and which are special. Metrics, logs and the
 * duplicate cache rely on these rows.
 */
#include "codec/nsm_xdr.h"
#include "codec/rpc_msg.h"
#include "proto/nsm.h"
#include "unit/test.h"

static uint8_t buffer[512];

static const struct procedure *row(enum nsm_procedure number)
{
    assert_true((uint32_t)number < nsm_program.versions[0].procedure_count);
    return &nsm_program.versions[0].procedures[number];
}

TEST(test_nsm__program)
{
    assert_int_equal(nsm_program.number, 100024);
    assert_int_equal(nsm_program.versions[0].number, 1);
    assert_int_equal(nsm_program.versions[nsm_program.version_count - 1].number, 1);
    assert_int_equal(nsm_program.versions[0].procedure_count, 7);
    assert_int_equal(nsm_program.record_max, 16 * 1024);
    const struct {
        const char *name;
        uint32_t flags;
    } rows[] = {
        {"NULL", PROCEDURE_STATELESS},   {"STAT", 0},
        {"MON", PROCEDURE_CACHED},       {"UNMON", PROCEDURE_CACHED},
        {"UNMON_ALL", PROCEDURE_CACHED}, {"SIMU_CRASH", PROCEDURE_CACHED},
        {"NOTIFY", PROCEDURE_CACHED},
    };
    for (uint32_t i = 0; i < nsm_program.versions[0].procedure_count; i++) {
        assert_string_equal(nsm_program.versions[0].procedures[i].name, rows[i].name);
        assert_int_equal(nsm_program.versions[0].procedures[i].flags, rows[i].flags);
        assert_non_null(nsm_program.versions[0].procedures[i].decode);
    }
}

/* Arguments of MON; the shorter bodies of the other procedures are cut from it. */
static uint32_t put_mon(void)
{
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, bytes_of_text("watched"));
    xdr_put_opaque(&out, bytes_of_text("watcher"));
    xdr_put_u32(&out, 100021);
    xdr_put_u32(&out, 4);
    xdr_put_u32(&out, 16);
    xdr_put_fixed(&out, bytes_of_text("0123456789abcdef"));
    assert_false(out.overflowed);
    return xdr_out_len(&out);
}

static bool decode(enum nsm_procedure number, const uint8_t *at, uint32_t len, struct request *ret)
{
    memset(ret, 0xee, sizeof *ret);
    struct xdr_in in = xdr_in_of((struct bytes){at, len});
    return row(number)->decode(&in, NSM_VERSION, ret);
}

static void assert_my_id(const struct request *request)
{
    assert_true(bytes_equal(request->my_name, bytes_of_text("watcher")));
    assert_int_equal(request->my_prog, 100021);
    assert_int_equal(request->my_vers, 4);
    assert_int_equal(request->my_proc, 16);
}

TEST(test_nsm__arguments_become_requests)
{
    const uint32_t len = put_mon(), name_len = 12, priv_len = 16;
    struct request request;
    struct bytes watched = bytes_of_text("watched");

    assert_true(decode(NSM_MON, buffer, len, &request));
    assert_int_equal(request.kind, REQUEST_NSM_MON);
    assert_true(bytes_equal(request.mon_name, watched));
    assert_my_id(&request);
    assert_true(bytes_equal(request.priv, bytes_of_text("0123456789abcdef")));

    assert_true(decode(NSM_UNMON, buffer, len - priv_len, &request));
    assert_int_equal(request.kind, REQUEST_NSM_UNMON);
    assert_true(bytes_equal(request.mon_name, watched));
    assert_my_id(&request);
    assert_int_equal(request.priv.len, 0);

    assert_true(decode(NSM_UNMON_ALL, buffer + name_len, len - name_len - priv_len, &request));
    assert_int_equal(request.kind, REQUEST_NSM_UNMON_ALL);
    assert_int_equal(request.mon_name.len, 0);
    assert_my_id(&request);

    assert_true(decode(NSM_STAT, buffer, name_len, &request));
    assert_int_equal(request.kind, REQUEST_NSM_STAT);
    assert_true(bytes_equal(request.mon_name, watched));

    store_be32(buffer + name_len, 0x80000003);
    assert_true(decode(NSM_NOTIFY, buffer, name_len + 4, &request));
    assert_int_equal(request.kind, REQUEST_NSM_NOTIFY);
    assert_true(bytes_equal(request.mon_name, watched));
    assert_int_equal(request.state, 0x80000003);

    assert_true(decode(NSM_SIMU_CRASH, buffer, 0, &request));
    assert_int_equal(request.kind, REQUEST_NSM_SIMU_CRASH);
    assert_true(decode(NSM_NULL, buffer, 0, &request));
}

TEST(test_nsm__left_over_bytes_are_garbage)
{
    const uint32_t len = put_mon();
    struct request request;
    for (uint32_t extra = 1; extra <= 8; extra++) {
        assert_false(decode(NSM_NULL, buffer, extra, &request));
        assert_false(decode(NSM_SIMU_CRASH, buffer, extra, &request));
        assert_false(decode(NSM_MON, buffer, len + extra, &request));
        assert_false(decode(NSM_UNMON, buffer, len - 16 + extra, &request));
        assert_false(decode(NSM_UNMON_ALL, buffer + 12, len - 12 - 16 + extra, &request));
        assert_false(decode(NSM_STAT, buffer, 12 + extra, &request));
        assert_false(decode(NSM_NOTIFY, buffer, 16 + extra, &request));
    }
}

static void assert_result(enum nsm_procedure number, bool refused, const char *bytes, uint32_t len)
{
    struct response response = {.refused = refused, .state = 0x01020307};
    struct xdr_out out = xdr_out_of(buffer, nsm_program.reply_max);
    assert_non_null(row(number)->encode);
    row(number)->encode(&out, NSM_VERSION, &response);
    assert_false(out.overflowed);
    assert_int_equal(xdr_out_len(&out), len);
    assert_memory_equal(buffer, bytes, len);
}

TEST(test_nsm__responses_become_results)
{
    assert_result(NSM_STAT, false, "\0\0\0\0\1\2\3\7", 8);
    assert_result(NSM_STAT, true, "\0\0\0\1\1\2\3\7", 8);
    assert_result(NSM_MON, false, "\0\0\0\0\1\2\3\7", 8);
    assert_result(NSM_MON, true, "\0\0\0\1\1\2\3\7", 8);
    /* R-NSM-2: one word, also when there was nothing to remove. */
    assert_result(NSM_UNMON, false, "\1\2\3\7", 4);
    assert_result(NSM_UNMON, true, "\1\2\3\7", 4);
    assert_result(NSM_UNMON_ALL, false, "\1\2\3\7", 4);
    assert_null(row(NSM_NULL)->encode);
    assert_null(row(NSM_SIMU_CRASH)->encode);
    assert_null(row(NSM_NOTIFY)->encode);
}

TEST(test_nsm__every_reply_fits)
{
    for (uint32_t i = 0; i < nsm_program.versions[0].procedure_count; i++) {
        struct response response = {.state = 7};
        struct xdr_out out = xdr_out_of(buffer, nsm_program.reply_max);
        rpc_msg_put_accepted(&out, 1, RPC_SUCCESS);
        if (nsm_program.versions[0].procedures[i].encode != NULL)
            nsm_program.versions[0].procedures[i].encode(&out, NSM_VERSION, &response);
        assert_false(out.overflowed);
    }
    struct xdr_out out = xdr_out_of(buffer, nsm_program.reply_max);
    rpc_msg_put_prog_mismatch(&out, 1, nsm_program.versions[0].number,
                              nsm_program.versions[nsm_program.version_count - 1].number);
    assert_false(out.overflowed);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
