/*
 * nlm_ours.c -- codec/nlm_xdr.c behind the plain values of nlm_body.h.
 *
 * A decoder gets its output filled with a pattern first, so that a field it forgets to write does
 * not look like a zero.
 */
#include "nlm_ours.h"

#include "codec/nlm_xdr.h"

#include <stdlib.h>

static struct nlm_body_bytes copy(struct bytes bytes)
{
    struct nlm_body_bytes copied = {.len = bytes.len};
    if (bytes.len > NLM_BODY_BYTES_MAX)
        abort();
    if (bytes.len > 0)
        memcpy(copied.at, bytes.at, bytes.len);
    return copied;
}

static struct bytes view(const struct nlm_body_bytes *bytes)
{
    return (struct bytes){bytes->at, bytes->len};
}

static bool get_args(struct xdr_in *in, uint32_t version, enum nlm_shape shape,
                     struct nlm_body *ret)
{
    struct nlm_args args;
    memset(&args, 0xee, sizeof args);
    bool good = shape == NLM_SHAPE_TESTARGS     ? nlm_xdr_get_test(in, version, &args)
                : shape == NLM_SHAPE_LOCKARGS   ? nlm_xdr_get_lock(in, version, &args)
                : shape == NLM_SHAPE_CANCARGS   ? nlm_xdr_get_cancel(in, version, &args)
                : shape == NLM_SHAPE_UNLOCKARGS ? nlm_xdr_get_unlock(in, version, &args)
                                                : false;
    if (good) {
        ret->cookie = copy(args.cookie);
        ret->block = args.block;
        ret->exclusive = args.exclusive;
        ret->reclaim = args.reclaim;
        ret->state = args.state;
        ret->name = copy(args.lock.caller_name);
        ret->fh = copy(args.lock.fh);
        ret->oh = copy(args.lock.oh);
        ret->svid = args.lock.svid;
        ret->offset = args.lock.offset;
        ret->len = args.lock.len;
    }
    return good;
}

static bool get_share(struct xdr_in *in, uint32_t version, struct nlm_body *ret)
{
    struct nlm_share_args args;
    memset(&args, 0xee, sizeof args);
    if (!nlm_xdr_get_share(in, version, &args))
        return false;
    ret->cookie = copy(args.cookie);
    ret->name = copy(args.caller_name);
    ret->fh = copy(args.fh);
    ret->oh = copy(args.oh);
    ret->mode = args.mode;
    ret->access = args.access;
    ret->reclaim = args.reclaim;
    return true;
}

static bool get_res(struct xdr_in *in, uint32_t version, enum nlm_shape shape, struct nlm_body *ret)
{
    struct nlm_res res;
    memset(&res, 0xee, sizeof res);
    if (shape == NLM_SHAPE_RES ? !nlm_xdr_get_res(in, &res)
                               : !nlm_xdr_get_test_res(in, version, &res))
        return false;
    ret->cookie = copy(res.cookie);
    ret->stat = res.stat;
    return true;
}

static bool get_notify(struct xdr_in *in, enum nlm_shape shape, struct nlm_body *ret)
{
    struct nlm_notify notify;
    memset(&notify, 0xee, sizeof notify);
    bool upcall = shape == NLM_SHAPE_UPCALL;
    if (upcall ? !nlm_xdr_get_upcall(in, &notify) : !nlm_xdr_get_free_all(in, &notify))
        return false;
    ret->name = copy(notify.name);
    ret->state = notify.state;
    if (notify.priv.len != (upcall ? sizeof ret->priv : 0))
        abort();
    if (upcall)
        memcpy(ret->priv, notify.priv.at, sizeof ret->priv);
    return true;
}

bool nlm_ours_get(uint32_t version, enum nlm_shape shape, struct bytes data, struct nlm_body *ret)
{
    struct xdr_in in = xdr_in_of(data);
    memset(ret, 0, sizeof *ret);
    switch (shape) {
    case NLM_SHAPE_VOID:
        return xdr_in_done(&in);
    case NLM_SHAPE_TESTARGS:
    case NLM_SHAPE_LOCKARGS:
    case NLM_SHAPE_CANCARGS:
    case NLM_SHAPE_UNLOCKARGS:
        return get_args(&in, version, shape, ret);
    case NLM_SHAPE_SHAREARGS:
        return get_share(&in, version, ret);
    case NLM_SHAPE_RES:
    case NLM_SHAPE_TESTRES:
        return get_res(&in, version, shape, ret);
    case NLM_SHAPE_NOTIFY:
    case NLM_SHAPE_UPCALL:
        return get_notify(&in, shape, ret);
    case NLM_SHAPE_SHARERES:
        break; /* nothing of ours reads it */
    }
    abort();
}

bool nlm_ours_writes(enum nlm_shape shape)
{
    return shape == NLM_SHAPE_VOID || shape == NLM_SHAPE_RES || shape == NLM_SHAPE_TESTRES ||
           shape == NLM_SHAPE_SHARERES || shape == NLM_SHAPE_TESTARGS;
}

void nlm_ours_put(uint32_t version, enum nlm_shape shape, struct xdr_out *out,
                  const struct nlm_body *body)
{
    enum nlm_stat stat = (enum nlm_stat)body->stat;
    struct nlm_holder holder = {
        .exclusive = body->exclusive != 0,
        .svid = body->svid,
        .oh = view(&body->oh),
        .start = body->offset,
        .end = body->len != 0 ? body->offset + body->len - 1 : UINT64_MAX,
    };
    struct nlm_lock lock = {
        .caller_name = view(&body->name),
        .fh = view(&body->fh),
        .oh = view(&body->oh),
        .svid = body->svid,
        .offset = body->offset,
        .len = body->len,
    };
    if (shape == NLM_SHAPE_VOID)
        return;
    if (shape == NLM_SHAPE_RES)
        nlm_xdr_put_res(out, version, view(&body->cookie), stat);
    else if (shape == NLM_SHAPE_TESTRES)
        nlm_xdr_put_test_res(out, version, view(&body->cookie), stat, &holder);
    else if (shape == NLM_SHAPE_SHARERES)
        nlm_xdr_put_share_res(out, version, view(&body->cookie), stat);
    else if (shape == NLM_SHAPE_TESTARGS)
        nlm_xdr_put_granted(out, version, view(&body->cookie), body->exclusive != 0, &lock);
    else
        abort();
}
