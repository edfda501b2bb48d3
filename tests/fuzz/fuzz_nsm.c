/*
 * fuzz_nsm.c -- any bytes as the arguments of any NSM procedure: what is accepted stays inside the
 * message and its limits, means the same when written again, and is refused one byte shorter or
 * longer.
 *
 * Input: procedure (1 byte), then the arguments.
 */
#include "codec/nsm_xdr.h"
#include "fuzz.h"
#include "proto/nsm.h"

static bool decode(const struct procedure *row, const uint8_t *args, size_t len,
                   struct request *ret)
{
    *ret = (struct request){0};
    struct xdr_in in = xdr_in_of((struct bytes){args, (uint32_t)len});
    return row->decode(&in, NSM_VERSION, ret);
}

static void put_my_id(struct xdr_out *out, const struct request *request)
{
    xdr_put_opaque(out, request->my_name);
    xdr_put_u32(out, request->my_prog);
    xdr_put_u32(out, request->my_vers);
    xdr_put_u32(out, request->my_proc);
}

/* The arguments of a request, as a client would write them. */
static void put_args(struct xdr_out *out, uint32_t procedure, const struct request *request)
{
    switch ((enum nsm_procedure)procedure) {
    case NSM_NULL:
    case NSM_SIMU_CRASH:
        break;
    case NSM_STAT:
        xdr_put_opaque(out, request->mon_name);
        break;
    case NSM_MON:
        xdr_put_opaque(out, request->mon_name);
        put_my_id(out, request);
        xdr_put_fixed(out, request->priv);
        break;
    case NSM_UNMON:
        xdr_put_opaque(out, request->mon_name);
        put_my_id(out, request);
        break;
    case NSM_UNMON_ALL:
        put_my_id(out, request);
        break;
    case NSM_NOTIFY:
        xdr_put_opaque(out, request->mon_name);
        xdr_put_u32(out, request->state);
        break;
    }
}

static void check_same(const struct request *a, const struct request *b)
{
    CHECK(a->kind == b->kind);
    CHECK(bytes_equal(a->mon_name, b->mon_name));
    CHECK(bytes_equal(a->my_name, b->my_name));
    CHECK(a->my_prog == b->my_prog);
    CHECK(a->my_vers == b->my_vers);
    CHECK(a->my_proc == b->my_proc);
    CHECK(bytes_equal(a->priv, b->priv));
    CHECK(a->state == b->state);
}

static void check_accepted(uint32_t procedure, const uint8_t *args, size_t len,
                           const struct request *request)
{
    const struct procedure *row = &nsm_program.versions[0].procedures[procedure];
    CHECK(fuzz_is_inside(request->mon_name, args, len));
    CHECK(fuzz_is_inside(request->my_name, args, len));
    CHECK(fuzz_is_inside(request->priv, args, len));
    CHECK(request->mon_name.len <= NSM_NAME_MAX);
    CHECK(request->my_name.len <= NSM_NAME_MAX);
    CHECK(request->priv.len == (procedure == NSM_MON ? NSM_PRIV_LEN : 0));

    /* One byte more is read as well, hence the room. */
    uint8_t *again = malloc(len + 1);
    CHECK(again != NULL);
    struct xdr_out out = xdr_out_of(again, (uint32_t)len);
    put_args(&out, procedure, request);
    CHECK(!out.overflowed);
    CHECK(xdr_out_len(&out) == len);
    struct request second;
    CHECK(decode(row, again, len, &second));
    check_same(request, &second);
    again[len] = 0;
    CHECK(!decode(row, again, len + 1, &second));
    CHECK(len == 0 || !decode(row, again, len - 1, &second));
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    uint32_t procedure = fuzz_u8(&fuzz) % nsm_program.versions[0].procedure_count;
    struct bytes args = fuzz_slice(&fuzz, UINT16_MAX);
    uint8_t *copy = fuzz_copy(args);
    struct request request;
    if (decode(&nsm_program.versions[0].procedures[procedure], copy, args.len, &request))
        check_accepted(procedure, copy, args.len, &request);
    free(copy);
    return 0;
}
