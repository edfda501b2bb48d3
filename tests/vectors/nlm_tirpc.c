/*
 * nlm_tirpc.c -- XDR routines that rpcgen makes from the system's nlm_prot.x, from its sm_inter.x
 * (the status of procedure 16) and from nlm4.x, behind the plain values of nlm_body.h.
 *
 * The types of versions 1 and 3 and those of version 4 have the same members, wider in the latter:
 * macros that do not name a type fill and read both.
 */
#include "nlm_tirpc.h"

#include "nlm4.h"
#include "nlm_prot.h"
#include "sm_inter.h"

#include <rpc/rpc.h>
#include <stdlib.h>
#include <string.h>

union any {
    nlm_testargs test;
    nlm_lockargs lock;
    nlm_cancargs cancel;
    nlm_unlockargs unlock;
    nlm_testres testres;
    nlm4_testargs test4;
    nlm4_lockargs lock4;
    nlm4_cancargs cancel4;
    nlm4_unlockargs unlock4;
    nlm4_testres testres4;
    nlm_shareargs share;
    nlm_res res;
    nlm_shareres shareres;
    nlm_notify notify;
    status upcall;
};

/* xdr_void has another type than every other routine. */
static bool_t no_body(XDR *xdrs, ...)
{
    (void)xdrs;
    return TRUE;
}

static xdrproc_t routine_of(bool wide, enum nlm_shape shape)
{
    switch (shape) {
    case NLM_SHAPE_VOID:
        return no_body;
    case NLM_SHAPE_TESTARGS:
        return wide ? (xdrproc_t)xdr_nlm4_testargs : (xdrproc_t)xdr_nlm_testargs;
    case NLM_SHAPE_LOCKARGS:
        return wide ? (xdrproc_t)xdr_nlm4_lockargs : (xdrproc_t)xdr_nlm_lockargs;
    case NLM_SHAPE_CANCARGS:
        return wide ? (xdrproc_t)xdr_nlm4_cancargs : (xdrproc_t)xdr_nlm_cancargs;
    case NLM_SHAPE_UNLOCKARGS:
        return wide ? (xdrproc_t)xdr_nlm4_unlockargs : (xdrproc_t)xdr_nlm_unlockargs;
    case NLM_SHAPE_TESTRES:
        return wide ? (xdrproc_t)xdr_nlm4_testres : (xdrproc_t)xdr_nlm_testres;
    case NLM_SHAPE_SHAREARGS:
        return (xdrproc_t)xdr_nlm_shareargs;
    case NLM_SHAPE_RES:
        return (xdrproc_t)xdr_nlm_res;
    case NLM_SHAPE_SHARERES:
        return (xdrproc_t)xdr_nlm_shareres;
    case NLM_SHAPE_NOTIFY:
        return (xdrproc_t)xdr_nlm_notify;
    case NLM_SHAPE_UPCALL:
        return (xdrproc_t)xdr_status;
    }
    abort();
}

/* An encoder does not write through these. */
static netobj netobj_of(const struct nlm_body_bytes *bytes)
{
    return (netobj){bytes->len, (char *)bytes->at};
}

static char *name_of(const struct nlm_body *body)
{
    return (char *)body->name.at;
}

static struct nlm_body_bytes bytes_of(const netobj *object)
{
    struct nlm_body_bytes bytes = {.len = object->n_len};
    if (object->n_len > NLM_BODY_BYTES_MAX)
        abort();
    if (object->n_len > 0)
        memcpy(bytes.at, object->n_bytes, object->n_len);
    return bytes;
}

static struct nlm_body_bytes bytes_of_name(const char *name)
{
    struct nlm_body_bytes bytes = {.len = (uint32_t)strlen(name)};
    if (bytes.len > NLM_BODY_BYTES_MAX)
        abort();
    memcpy(bytes.at, name, bytes.len);
    return bytes;
}

#define SET_RANGE(to, body)                                                                        \
    ((to).l_offset = (__typeof__((to).l_offset))(body)->offset,                                    \
     (to).l_len = (__typeof__((to).l_len))(body)->len)
#define SET_ALOCK(to, body)                                                                        \
    ((to).caller_name = name_of(body), (to).fh = netobj_of(&(body)->fh),                           \
     (to).oh = netobj_of(&(body)->oh), (to).svid = (int)(body)->svid, SET_RANGE(to, body))
#define SET_TEST(to, body)                                                                         \
    ((to).cookie = netobj_of(&(body)->cookie), (to).exclusive = (bool_t)(body)->exclusive,         \
     SET_ALOCK((to).alock, body))
#define SET_CANCEL(to, body) ((to).block = (bool_t)(body)->block, SET_TEST(to, body))
#define SET_LOCK(to, body)                                                                         \
    ((to).reclaim = (bool_t)(body)->reclaim, (to).state = (int)(body)->state, SET_CANCEL(to, body))
#define SET_UNLOCK(to, body) ((to).cookie = netobj_of(&(body)->cookie), SET_ALOCK((to).alock, body))

#define TAKE_RANGE(body, from) ((body)->offset = (from).l_offset, (body)->len = (from).l_len)
#define TAKE_ALOCK(body, from)                                                                     \
    ((body)->name = bytes_of_name((from).caller_name), (body)->fh = bytes_of(&(from).fh),          \
     (body)->oh = bytes_of(&(from).oh), (body)->svid = (uint32_t)(from).svid,                      \
     TAKE_RANGE(body, from))
#define TAKE_UNLOCK(body, from)                                                                    \
    ((body)->cookie = bytes_of(&(from).cookie), TAKE_ALOCK(body, (from).alock))
#define TAKE_TEST(body, from)                                                                      \
    ((body)->exclusive = (uint32_t)(from).exclusive, TAKE_UNLOCK(body, from))
#define TAKE_CANCEL(body, from) ((body)->block = (uint32_t)(from).block, TAKE_TEST(body, from))
#define TAKE_LOCK(body, from)                                                                      \
    ((body)->reclaim = (uint32_t)(from).reclaim, (body)->state = (uint32_t)(from).state,           \
     TAKE_CANCEL(body, from))
#define SET_HOLDER(to, body)                                                                       \
    ((to).exclusive = (bool_t)(body)->exclusive, (to).svid = (int)(body)->svid,                    \
     (to).oh = netobj_of(&(body)->oh), SET_RANGE(to, body))
#define TAKE_HOLDER(body, from)                                                                    \
    ((body)->exclusive = (uint32_t)(from).exclusive, (body)->svid = (uint32_t)(from).svid,         \
     (body)->oh = bytes_of(&(from).oh), TAKE_RANGE(body, from))

static void set_wide(enum nlm_shape shape, union any *any, const struct nlm_body *body)
{
    if (shape == NLM_SHAPE_TESTARGS)
        SET_TEST(any->test4, body);
    else if (shape == NLM_SHAPE_LOCKARGS)
        SET_LOCK(any->lock4, body);
    else if (shape == NLM_SHAPE_CANCARGS)
        SET_CANCEL(any->cancel4, body);
    else if (shape == NLM_SHAPE_UNLOCKARGS)
        SET_UNLOCK(any->unlock4, body);
    else if (shape == NLM_SHAPE_TESTRES) {
        any->testres4.cookie = netobj_of(&body->cookie);
        any->testres4.stat.stat = (nlm4_stats)body->stat;
        SET_HOLDER(any->testres4.stat.nlm4_testrply_u.holder, body);
    }
}

static void set_narrow(enum nlm_shape shape, union any *any, const struct nlm_body *body)
{
    if (shape == NLM_SHAPE_TESTARGS)
        SET_TEST(any->test, body);
    else if (shape == NLM_SHAPE_LOCKARGS)
        SET_LOCK(any->lock, body);
    else if (shape == NLM_SHAPE_CANCARGS)
        SET_CANCEL(any->cancel, body);
    else if (shape == NLM_SHAPE_UNLOCKARGS)
        SET_UNLOCK(any->unlock, body);
    else if (shape == NLM_SHAPE_TESTRES) {
        any->testres.cookie = netobj_of(&body->cookie);
        any->testres.stat.stat = (nlm_stats)body->stat;
        SET_HOLDER(any->testres.stat.nlm_testrply_u.holder, body);
    }
}

/* The shapes that are the same in every version. */
static void set_same(enum nlm_shape shape, union any *any, const struct nlm_body *body)
{
    if (shape == NLM_SHAPE_SHAREARGS) {
        any->share.cookie = netobj_of(&body->cookie);
        any->share.share.caller_name = name_of(body);
        any->share.share.fh = netobj_of(&body->fh);
        any->share.share.oh = netobj_of(&body->oh);
        any->share.share.mode = (fsh_mode)body->mode;
        any->share.share.access = (fsh_access)body->access;
        any->share.reclaim = (bool_t)body->reclaim;
    } else if (shape == NLM_SHAPE_RES) {
        any->res.cookie = netobj_of(&body->cookie);
        any->res.stat.stat = (nlm_stats)body->stat;
    } else if (shape == NLM_SHAPE_SHARERES) {
        any->shareres.cookie = netobj_of(&body->cookie);
        any->shareres.stat = (nlm_stats)body->stat;
        any->shareres.sequence = (int)body->sequence;
    } else if (shape == NLM_SHAPE_NOTIFY) {
        any->notify.name = name_of(body);
        any->notify.state = (int)body->state;
    } else if (shape == NLM_SHAPE_UPCALL) {
        any->upcall.mon_name = name_of(body);
        any->upcall.state = (int)body->state;
        memcpy(any->upcall.priv, body->priv, sizeof any->upcall.priv);
    }
}

static void take_wide(enum nlm_shape shape, struct nlm_body *body, const union any *any)
{
    if (shape == NLM_SHAPE_TESTARGS)
        TAKE_TEST(body, any->test4);
    else if (shape == NLM_SHAPE_LOCKARGS)
        TAKE_LOCK(body, any->lock4);
    else if (shape == NLM_SHAPE_CANCARGS)
        TAKE_CANCEL(body, any->cancel4);
    else if (shape == NLM_SHAPE_UNLOCKARGS)
        TAKE_UNLOCK(body, any->unlock4);
    else if (shape == NLM_SHAPE_TESTRES) {
        body->cookie = bytes_of(&any->testres4.cookie);
        body->stat = (uint32_t)any->testres4.stat.stat;
        if (any->testres4.stat.stat == NLM4_DENIED)
            TAKE_HOLDER(body, any->testres4.stat.nlm4_testrply_u.holder);
    }
}

static void take_narrow(enum nlm_shape shape, struct nlm_body *body, const union any *any)
{
    if (shape == NLM_SHAPE_TESTARGS)
        TAKE_TEST(body, any->test);
    else if (shape == NLM_SHAPE_LOCKARGS)
        TAKE_LOCK(body, any->lock);
    else if (shape == NLM_SHAPE_CANCARGS)
        TAKE_CANCEL(body, any->cancel);
    else if (shape == NLM_SHAPE_UNLOCKARGS)
        TAKE_UNLOCK(body, any->unlock);
    else if (shape == NLM_SHAPE_TESTRES) {
        body->cookie = bytes_of(&any->testres.cookie);
        body->stat = (uint32_t)any->testres.stat.stat;
        if (any->testres.stat.stat == nlm_denied)
            TAKE_HOLDER(body, any->testres.stat.nlm_testrply_u.holder);
    }
}

static void take_same(enum nlm_shape shape, struct nlm_body *body, const union any *any)
{
    if (shape == NLM_SHAPE_SHAREARGS) {
        body->cookie = bytes_of(&any->share.cookie);
        body->name = bytes_of_name(any->share.share.caller_name);
        body->fh = bytes_of(&any->share.share.fh);
        body->oh = bytes_of(&any->share.share.oh);
        body->mode = (uint32_t)any->share.share.mode;
        body->access = (uint32_t)any->share.share.access;
        body->reclaim = (uint32_t)any->share.reclaim;
    } else if (shape == NLM_SHAPE_RES) {
        body->cookie = bytes_of(&any->res.cookie);
        body->stat = (uint32_t)any->res.stat.stat;
    } else if (shape == NLM_SHAPE_SHARERES) {
        body->cookie = bytes_of(&any->shareres.cookie);
        body->stat = (uint32_t)any->shareres.stat;
        body->sequence = (uint32_t)any->shareres.sequence;
    } else if (shape == NLM_SHAPE_NOTIFY) {
        body->name = bytes_of_name(any->notify.name);
        body->state = (uint32_t)any->notify.state;
    } else if (shape == NLM_SHAPE_UPCALL) {
        body->name = bytes_of_name(any->upcall.mon_name);
        body->state = (uint32_t)any->upcall.state;
        memcpy(body->priv, any->upcall.priv, sizeof body->priv);
    }
}

bool nlm_tirpc_put(uint32_t version, enum nlm_shape shape, const struct nlm_body *body,
                   uint8_t *ret_bytes, size_t size, size_t *ret_len)
{
    bool wide = version == 4;
    union any any;
    memset(&any, 0, sizeof any);
    set_same(shape, &any, body);
    if (wide)
        set_wide(shape, &any, body);
    else
        set_narrow(shape, &any, body);
    XDR xdrs;
    xdrmem_create(&xdrs, (char *)ret_bytes, (u_int)size, XDR_ENCODE);
    if (!routine_of(wide, shape)(&xdrs, &any))
        return false;
    *ret_len = xdr_getpos(&xdrs);
    return true;
}

bool nlm_tirpc_get(uint32_t version, enum nlm_shape shape, const uint8_t *bytes, size_t len,
                   struct nlm_body *ret)
{
    bool wide = version == 4;
    union any any;
    memset(&any, 0, sizeof any);
    XDR xdrs;
    xdrmem_create(&xdrs, (char *)bytes, (u_int)len, XDR_DECODE);
    bool good = routine_of(wide, shape)(&xdrs, &any) && xdr_getpos(&xdrs) == len;
    memset(ret, 0, sizeof *ret);
    if (good) {
        take_same(shape, ret, &any);
        if (wide)
            take_wide(shape, ret, &any);
        else
            take_narrow(shape, ret, &any);
    }
    xdr_free(routine_of(wide, shape), &any);
    return good;
}

/* The shape of a vector and its versions; their number is returned. */
static unsigned describe(const char *file, const struct vector *vector, enum nlm_shape *ret_shape,
                         uint32_t ret_versions[static NLM_BODY_VERSIONS])
{
    const struct nlm_body_row *row = nlm_body_row_of_file(file);
    unsigned count = nlm_body_versions(vector->more, ret_versions);
    if (row == NULL || count == 0) {
        printf("Bail out! %s: %s: no procedure of NLM has this name, or no versions are named\n",
               file, vector->name);
        exit(99);
    }
    *ret_shape = vector->kind == VECTOR_RESULT ? row->result : row->args;
    return count;
}

bool nlm_tirpc_encode(const char *file, const struct vector *vector, uint8_t *ret_bytes,
                      size_t size, size_t *ret_len)
{
    static uint8_t first[VECTOR_BYTES_MAX];
    static struct nlm_body body;
    enum nlm_shape shape;
    uint32_t versions[NLM_BODY_VERSIONS];
    unsigned count = describe(file, vector, &shape, versions);
    size_t first_len = 0;
    bool is_result = vector->kind == VECTOR_RESULT;
    nlm_body_parse(shape, vector->text, is_result ? vector->text : vector->more, &body);
    for (unsigned i = 0; i < count; i++) {
        if (!nlm_tirpc_put(versions[i], shape, &body, ret_bytes, size, ret_len))
            return false;
        if (i > 0 && (*ret_len != first_len || memcmp(first, ret_bytes, first_len) != 0)) {
            vector_say("version %u writes it otherwise than %u", versions[i], versions[0]);
            return false;
        }
        if (*ret_len > sizeof first)
            return false;
        first_len = *ret_len;
        memcpy(first, ret_bytes, first_len);
    }
    return true;
}

bool nlm_tirpc_decode(const char *file, const struct vector *vector, size_t len, FILE *out)
{
    static char first[NLM_BODY_TEXT_MAX], text[NLM_BODY_TEXT_MAX];
    static struct nlm_body body;
    enum nlm_shape shape;
    uint32_t versions[NLM_BODY_VERSIONS];
    unsigned count = describe(file, vector, &shape, versions);
    bool first_good = false;
    for (unsigned i = 0; i < count; i++) {
        bool good = nlm_tirpc_get(versions[i], shape, vector->bytes, len, &body);
        nlm_body_print(shape, &body, vector->kind == VECTOR_RESULT, text);
        if (i > 0 && (good != first_good || strcmp(first, text) != 0)) {
            vector_say("version %u reads it otherwise than %u", versions[i], versions[0]);
            fputs("versions differ", out);
            /* Wrong, whatever was expected. */
            return vector->kind == VECTOR_GARBAGE || len < vector->len;
        }
        first_good = good;
        memcpy(first, text, sizeof first);
    }
    if (first_good)
        fputs(text, out);
    return first_good;
}
