/*
 * peer_nlm.c -- NLM versions 1, 3 and 4 as the tests speak it; see peer_nlm.h.
 *
 * One table says for each procedure what its arguments and its result look like; everything else
 * follows it. Reading and writing of a shape stand beside each other.
 */
#include "peer/peer_nlm.h"

#include <string.h>

enum shape {
    SHAPE_VOID,
    SHAPE_TEST,   /* cookie, exclusive, lock */
    SHAPE_LOCK,   /* cookie, block, exclusive, lock, reclaim, state */
    SHAPE_CANCEL, /* cookie, block, exclusive, lock */
    SHAPE_UNLOCK, /* cookie, lock */
    SHAPE_SHARE,  /* cookie, name, fh, oh, mode, access, reclaim */
    SHAPE_NAME,   /* name, state */
    SHAPE_STATUS, /* name, state, priv */
    SHAPE_RES,    /* cookie, status */
    SHAPE_TEST_RES,
    SHAPE_SHARE_RES, /* cookie, status, sequence */
};

static const struct {
    const char *name;
    enum shape args, res;
} procedures[PEER_NLM_PROCEDURES] = {
    [PEER_NLM_NULL] = {"NULL", SHAPE_VOID, SHAPE_VOID},
    [PEER_NLM_TEST] = {"TEST", SHAPE_TEST, SHAPE_TEST_RES},
    [PEER_NLM_LOCK] = {"LOCK", SHAPE_LOCK, SHAPE_RES},
    [PEER_NLM_CANCEL] = {"CANCEL", SHAPE_CANCEL, SHAPE_RES},
    [PEER_NLM_UNLOCK] = {"UNLOCK", SHAPE_UNLOCK, SHAPE_RES},
    [PEER_NLM_GRANTED] = {"GRANTED", SHAPE_TEST, SHAPE_RES},
    [PEER_NLM_TEST_MSG] = {"TEST_MSG", SHAPE_TEST, SHAPE_VOID},
    [PEER_NLM_LOCK_MSG] = {"LOCK_MSG", SHAPE_LOCK, SHAPE_VOID},
    [PEER_NLM_CANCEL_MSG] = {"CANCEL_MSG", SHAPE_CANCEL, SHAPE_VOID},
    [PEER_NLM_UNLOCK_MSG] = {"UNLOCK_MSG", SHAPE_UNLOCK, SHAPE_VOID},
    [PEER_NLM_GRANTED_MSG] = {"GRANTED_MSG", SHAPE_TEST, SHAPE_VOID},
    [PEER_NLM_TEST_RES] = {"TEST_RES", SHAPE_TEST_RES, SHAPE_TEST_RES},
    [PEER_NLM_LOCK_RES] = {"LOCK_RES", SHAPE_RES, SHAPE_RES},
    [PEER_NLM_CANCEL_RES] = {"CANCEL_RES", SHAPE_RES, SHAPE_RES},
    [PEER_NLM_UNLOCK_RES] = {"UNLOCK_RES", SHAPE_RES, SHAPE_RES},
    [PEER_NLM_GRANTED_RES] = {"GRANTED_RES", SHAPE_RES, SHAPE_RES},
    [PEER_NLM_SM_NOTIFY] = {"SM_NOTIFY", SHAPE_STATUS, SHAPE_VOID},
    [PEER_NLM_SHARE] = {"SHARE", SHAPE_SHARE, SHAPE_SHARE_RES},
    [PEER_NLM_UNSHARE] = {"UNSHARE", SHAPE_SHARE, SHAPE_SHARE_RES},
    [PEER_NLM_NM_LOCK] = {"NM_LOCK", SHAPE_LOCK, SHAPE_RES},
    [PEER_NLM_FREE_ALL] = {"FREE_ALL", SHAPE_NAME, SHAPE_VOID},
};

struct peer_nlm_bytes peer_nlm_bytes_of(const void *bytes, uint32_t len)
{
    struct peer_nlm_bytes kept = {.len = len > PEER_NLM_KEPT_MAX ? PEER_NLM_KEPT_MAX : len};
    if (kept.len > 0)
        memcpy(kept.at, bytes, kept.len);
    return kept;
}

struct peer_nlm_bytes peer_nlm_text(const char *text)
{
    return peer_nlm_bytes_of(text, (uint32_t)strlen(text));
}

bool peer_nlm_bytes_equal(const struct peer_nlm_bytes *a, const struct peer_nlm_bytes *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

const char *peer_nlm_procedure_text(uint32_t procedure)
{
    bool is_known = procedure < PEER_NLM_PROCEDURES && procedures[procedure].name;
    return is_known ? procedures[procedure].name : "?";
}

const char *peer_nlm_status_text(uint32_t status)
{
    static const char *const names[] = {
        "GRANTED", "DENIED", "DENIED_NOLOCKS", "BLOCKED", "DENIED_GRACE_PERIOD",
        "DEADLCK", "ROFS",   "STALE_FH",       "FBIG",    "FAILED"};
    return status < sizeof(names) / sizeof(names[0]) ? names[status] : "?";
}

enum peer_nlm_procedure peer_nlm_answer_to(uint32_t procedure)
{
    if (procedure < PEER_NLM_TEST_MSG || procedure > PEER_NLM_GRANTED_MSG)
        return PEER_NLM_NULL;
    return (enum peer_nlm_procedure)(procedure + PEER_NLM_TEST_RES - PEER_NLM_TEST_MSG);
}

/* ---- the parts ---- */

static void put_bytes(struct packet *packet, const struct peer_nlm_bytes *bytes)
{
    packet_put_opaque(packet, bytes->at, bytes->len);
}

static struct peer_nlm_bytes get_bytes(struct packet_reader *reader, uint32_t len_max)
{
    uint32_t len;
    const uint8_t *at = packet_get_opaque(reader, len_max, &len);
    return peer_nlm_bytes_of(at, len);
}

static bool get_bool(struct packet_reader *reader)
{
    uint32_t value = packet_get_u32(reader);
    if (value > 1)
        reader->failed = true;
    return value == 1;
}

/* Offsets and lengths: the one difference between the versions. */
static void put_length(struct packet *packet, uint32_t vers, uint64_t value)
{
    if (vers == 4)
        packet_put_u64(packet, value);
    else
        packet_put_u32(packet, (uint32_t)value);
}

static uint64_t get_length(struct packet_reader *reader, uint32_t vers)
{
    return vers == 4 ? packet_get_u64(reader) : packet_get_u32(reader);
}

static void put_lock(struct packet *packet, uint32_t vers, const struct peer_nlm_lock *lock)
{
    put_bytes(packet, &lock->caller_name);
    put_bytes(packet, &lock->fh);
    put_bytes(packet, &lock->oh);
    packet_put_u32(packet, lock->svid);
    put_length(packet, vers, lock->offset);
    put_length(packet, vers, lock->len);
}

static void get_lock(struct packet_reader *reader, uint32_t vers, struct peer_nlm_lock *ret)
{
    ret->caller_name = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    ret->fh = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    ret->oh = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    ret->svid = packet_get_u32(reader);
    ret->offset = get_length(reader, vers);
    ret->len = get_length(reader, vers);
}

static void put_share(struct packet *packet, const struct peer_nlm_args *args)
{
    put_bytes(packet, &args->lock.caller_name);
    put_bytes(packet, &args->lock.fh);
    put_bytes(packet, &args->lock.oh);
    packet_put_u32(packet, args->mode);
    packet_put_u32(packet, args->access);
    packet_put_u32(packet, args->reclaim);
}

static void get_share(struct packet_reader *reader, struct peer_nlm_args *ret)
{
    ret->lock.caller_name = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    ret->lock.fh = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    ret->lock.oh = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    ret->mode = packet_get_u32(reader);
    ret->access = packet_get_u32(reader);
    ret->reclaim = get_bool(reader);
}

/* ---- arguments ---- */

static bool has_lock(enum shape shape)
{
    return shape == SHAPE_TEST || shape == SHAPE_LOCK || shape == SHAPE_CANCEL ||
           shape == SHAPE_UNLOCK;
}

static enum shape args_of(uint32_t procedure)
{
    return procedure < PEER_NLM_PROCEDURES ? procedures[procedure].args : SHAPE_VOID;
}

static enum shape res_of(uint32_t procedure)
{
    return procedure < PEER_NLM_PROCEDURES ? procedures[procedure].res : SHAPE_VOID;
}

void peer_nlm_put_args(struct packet *packet, uint32_t vers, uint32_t procedure,
                       const struct peer_nlm_args *args)
{
    enum shape shape = args_of(procedure);
    if (shape == SHAPE_NAME || shape == SHAPE_STATUS) {
        put_bytes(packet, &args->lock.caller_name);
        packet_put_u32(packet, args->state);
        if (shape == SHAPE_STATUS)
            packet_put_bytes(packet, args->priv, sizeof(args->priv));
        return;
    }
    if (shape == SHAPE_SHARE || has_lock(shape))
        put_bytes(packet, &args->cookie);
    if (shape == SHAPE_SHARE)
        put_share(packet, args);
    if (shape == SHAPE_LOCK || shape == SHAPE_CANCEL)
        packet_put_u32(packet, args->block);
    if (has_lock(shape) && shape != SHAPE_UNLOCK)
        packet_put_u32(packet, args->exclusive);
    if (has_lock(shape))
        put_lock(packet, vers, &args->lock);
    if (shape == SHAPE_LOCK) {
        packet_put_u32(packet, args->reclaim);
        packet_put_u32(packet, args->state);
    }
}

bool peer_nlm_get_args(struct packet_reader *reader, uint32_t vers, uint32_t procedure,
                       struct peer_nlm_args *ret)
{
    struct peer_nlm_args args = {0};
    enum shape shape = args_of(procedure);
    if (shape == SHAPE_NAME || shape == SHAPE_STATUS) {
        args.lock.caller_name = get_bytes(reader, PEER_NLM_NAME_MAX);
        args.state = packet_get_u32(reader);
        const uint8_t *priv = NULL;
        if (shape == SHAPE_STATUS)
            priv = packet_get_fixed(reader, sizeof(args.priv));
        if (priv)
            memcpy(args.priv, priv, sizeof(args.priv));
    }
    if (shape == SHAPE_SHARE || has_lock(shape))
        args.cookie = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
    if (shape == SHAPE_SHARE)
        get_share(reader, &args);
    if (shape == SHAPE_LOCK || shape == SHAPE_CANCEL)
        args.block = get_bool(reader);
    if (has_lock(shape) && shape != SHAPE_UNLOCK)
        args.exclusive = get_bool(reader);
    if (has_lock(shape))
        get_lock(reader, vers, &args.lock);
    if (shape == SHAPE_LOCK) {
        args.reclaim = get_bool(reader);
        args.state = packet_get_u32(reader);
    }
    if (!packet_is_done(reader))
        return false;
    *ret = args;
    return true;
}

/* ---- results ---- */

void peer_nlm_put_res(struct packet *packet, uint32_t vers, uint32_t procedure,
                      const struct peer_nlm_res *res)
{
    enum shape shape = res_of(procedure);
    if (shape == SHAPE_VOID)
        return;
    put_bytes(packet, &res->cookie);
    packet_put_u32(packet, res->status);
    if (shape == SHAPE_SHARE_RES)
        packet_put_u32(packet, res->sequence);
    if (shape == SHAPE_TEST_RES && res->status == PEER_NLM_IS_DENIED) {
        packet_put_u32(packet, res->exclusive);
        packet_put_u32(packet, res->svid);
        put_bytes(packet, &res->oh);
        put_length(packet, vers, res->offset);
        put_length(packet, vers, res->len);
    }
}

bool peer_nlm_get_res(struct packet_reader *reader, uint32_t vers, uint32_t procedure,
                      struct peer_nlm_res *ret)
{
    struct peer_nlm_res res = {0};
    enum shape shape = res_of(procedure);
    if (shape != SHAPE_VOID) {
        res.cookie = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
        res.status = packet_get_u32(reader);
        if (res.status > (vers == 4 ? PEER_NLM_IS_FAILED : PEER_NLM_IS_GRACE))
            reader->failed = true; /* R-NLM-5: old versions have no such status */
    }
    if (shape == SHAPE_SHARE_RES)
        res.sequence = packet_get_u32(reader);
    if (shape == SHAPE_TEST_RES && res.status == PEER_NLM_IS_DENIED) {
        res.exclusive = get_bool(reader);
        res.svid = packet_get_u32(reader);
        res.oh = get_bytes(reader, PEER_NLM_NETOBJ_MAX);
        res.offset = get_length(reader, vers);
        res.len = get_length(reader, vers);
    }
    if (!packet_is_done(reader))
        return false;
    *ret = res;
    return true;
}

/* ---- whole calls ---- */

static void put_header(struct packet *call, uint32_t xid, uint32_t vers, uint32_t procedure)
{
    struct packet_call header = {.xid = xid,
                                 .prog = PEER_NLM_PROGRAM,
                                 .vers = vers,
                                 .proc = procedure,
                                 .auth = PACKET_AUTH_SYS};
    packet_clear(call);
    packet_put_call(call, &header);
}

void peer_nlm_put_call(struct packet *call, uint32_t xid, uint32_t vers, uint32_t procedure,
                       const struct peer_nlm_args *args)
{
    put_header(call, xid, vers, procedure);
    peer_nlm_put_args(call, vers, procedure, args);
}

void peer_nlm_put_res_call(struct packet *call, uint32_t xid, uint32_t vers, uint32_t procedure,
                           const struct peer_nlm_res *res)
{
    put_header(call, xid, vers, procedure);
    peer_nlm_put_res(call, vers, procedure, res);
}
