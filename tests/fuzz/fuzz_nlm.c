/*
 * fuzz_nlm.c -- any bytes as any NLM body, in every version: what is accepted stays inside the
 * message and its limits, has a range that means something, is the same when a client writes it
 * again, and is refused one byte shorter or longer. What we would answer to it is then written and
 * read back: only statuses that the version has, a holder exactly behind DENIED, and the cookie and
 * the lock as they came.
 *
 * Input: version (1 byte), decoder (1 byte), status (1 byte), then the body.
 */
#include "codec/nlm_xdr.h"
#include "fuzz.h"

enum decoder { TEST, LOCK, CANCEL, UNLOCK, SHARE, RES, TEST_RES, FREE_ALL, UPCALL, DECODERS };

/* What any of them reads. */
struct body {
    struct nlm_args args;
    struct nlm_share_args share;
    struct nlm_res res;
    struct nlm_notify notify;
};

static bool get(enum decoder decoder, uint32_t version, const uint8_t *data, size_t len,
                struct body *ret)
{
    struct xdr_in in = xdr_in_of((struct bytes){data, (uint32_t)len});
    *ret = (struct body){0};
    switch (decoder) {
    case TEST:
        return nlm_xdr_get_test(&in, version, &ret->args);
    case LOCK:
        return nlm_xdr_get_lock(&in, version, &ret->args);
    case CANCEL:
        return nlm_xdr_get_cancel(&in, version, &ret->args);
    case UNLOCK:
        return nlm_xdr_get_unlock(&in, version, &ret->args);
    case SHARE:
        return nlm_xdr_get_share(&in, version, &ret->share);
    case RES:
        return nlm_xdr_get_res(&in, &ret->res);
    case TEST_RES:
        return nlm_xdr_get_test_res(&in, version, &ret->res);
    case FREE_ALL:
        return nlm_xdr_get_free_all(&in, &ret->notify);
    case UPCALL:
        return nlm_xdr_get_upcall(&in, &ret->notify);
    case DECODERS:
        break;
    }
    UNREACHABLE();
}

static void put_long(struct xdr_out *out, uint32_t version, uint64_t value)
{
    CHECK(version == 4 || value <= UINT32_MAX);
    if (version == 4)
        xdr_put_u64(out, value);
    else
        xdr_put_u32(out, (uint32_t)value);
}

/* As a client writes it. The holder of a TEST_RES is not kept and cannot be. */
static void put(struct xdr_out *out, enum decoder decoder, uint32_t version,
                const struct body *body)
{
    const struct nlm_lock *lock = &body->args.lock;
    if (decoder <= UNLOCK) {
        xdr_put_opaque(out, body->args.cookie);
        if (decoder == LOCK || decoder == CANCEL)
            xdr_put_u32(out, body->args.block);
        if (decoder != UNLOCK)
            xdr_put_u32(out, body->args.exclusive);
        xdr_put_opaque(out, lock->caller_name);
        xdr_put_opaque(out, lock->fh);
        xdr_put_opaque(out, lock->oh);
        xdr_put_u32(out, lock->svid);
        put_long(out, version, lock->offset);
        put_long(out, version, lock->len);
        if (decoder == LOCK) {
            xdr_put_u32(out, body->args.reclaim);
            xdr_put_u32(out, body->args.state);
        }
    } else if (decoder == SHARE) {
        xdr_put_opaque(out, body->share.cookie);
        xdr_put_opaque(out, body->share.caller_name);
        xdr_put_opaque(out, body->share.fh);
        xdr_put_opaque(out, body->share.oh);
        xdr_put_u32(out, body->share.mode);
        xdr_put_u32(out, body->share.access);
        xdr_put_u32(out, body->share.reclaim);
    } else if (decoder == RES || decoder == TEST_RES) {
        xdr_put_opaque(out, body->res.cookie);
        xdr_put_u32(out, body->res.stat);
    } else {
        xdr_put_opaque(out, body->notify.name);
        xdr_put_u32(out, body->notify.state);
        xdr_put_fixed(out, body->notify.priv);
    }
}

static void check_same(const struct body *a, const struct body *b)
{
    const struct nlm_lock *x = &a->args.lock, *y = &b->args.lock;
    CHECK(bytes_equal(a->args.cookie, b->args.cookie));
    CHECK(a->args.block == b->args.block && a->args.exclusive == b->args.exclusive);
    CHECK(a->args.reclaim == b->args.reclaim && a->args.state == b->args.state);
    CHECK(bytes_equal(x->caller_name, y->caller_name));
    CHECK(bytes_equal(x->fh, y->fh) && bytes_equal(x->oh, y->oh));
    CHECK(x->svid == y->svid && x->offset == y->offset && x->len == y->len);
    CHECK(x->range == y->range && x->start == y->start && x->end == y->end);
    CHECK(bytes_equal(a->share.cookie, b->share.cookie));
    CHECK(bytes_equal(a->share.caller_name, b->share.caller_name));
    CHECK(bytes_equal(a->share.fh, b->share.fh) && bytes_equal(a->share.oh, b->share.oh));
    CHECK(a->share.mode == b->share.mode && a->share.access == b->share.access);
    CHECK(a->share.reclaim == b->share.reclaim);
    CHECK(bytes_equal(a->res.cookie, b->res.cookie) && a->res.stat == b->res.stat);
    CHECK(bytes_equal(a->notify.name, b->notify.name) && a->notify.state == b->notify.state);
    CHECK(bytes_equal(a->notify.priv, b->notify.priv));
}

static void check_limits(enum decoder decoder, const struct body *body, const uint8_t *data,
                         size_t len)
{
    const struct bytes views[] = {
        body->args.cookie,  body->args.lock.caller_name, body->args.lock.fh, body->args.lock.oh,
        body->share.cookie, body->share.caller_name,     body->share.fh,     body->share.oh,
        body->res.cookie,   body->notify.name,           body->notify.priv,
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        CHECK(fuzz_is_inside(views[i], data, len));
        CHECK(views[i].len <= (decoder == FREE_ALL ? NLM_NOTIFY_NAME_MAX : NLM_NETOBJ_MAX));
    }
    CHECK(body->notify.priv.len == (decoder == UPCALL ? NLM_PRIV_LEN : 0));
    CHECK(body->share.mode <= 3 && body->share.access <= 3);
}

/* R-RNG-1, said otherwise than in the codec: in numbers that do not wrap. */
static void check_range(uint32_t version, const struct nlm_lock *lock)
{
    __extension__ typedef unsigned __int128 wide;
    const wide top = version == 4 ? UINT64_MAX : UINT32_MAX;
    bool to_end = lock->len == 0 || lock->len == top;
    wide last = (wide)lock->offset + lock->len - 1; /* means something unless to_end */
    bool too_big = version == 4 && (lock->offset > INT64_MAX || (!to_end && last > UINT64_MAX));
    if (too_big) {
        CHECK(lock->range == NLM_RANGE_TOO_BIG);
        CHECK(lock->start == 0 && lock->end == 0);
        return;
    }
    if (last > (version == 4 ? (wide)INT64_MAX : top))
        to_end = true;
    CHECK(lock->range == NLM_RANGE_GOOD);
    CHECK(lock->start == lock->offset);
    CHECK(lock->end == (to_end ? UINT64_MAX : (uint64_t)last));
}

static uint32_t expected_stat(uint32_t version, enum nlm_stat stat)
{
    static const uint32_t narrow[] = {0, 1, 2, 3, 4, 1, 2, 2, 2, 2};
    return version == 4 ? (uint32_t)stat : narrow[stat];
}

/* The answers to a lock request that was accepted. */
static void check_answers(uint32_t version, enum nlm_stat stat, const struct nlm_args *args)
{
    static uint8_t bytes[NLM_RESULT_MAX];
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    struct nlm_res res;
    nlm_xdr_put_res(&out, version, args->cookie, stat);
    CHECK(!out.overflowed);
    struct xdr_in in = xdr_in_of((struct bytes){bytes, xdr_out_len(&out)});
    CHECK(nlm_xdr_get_res(&in, &res));
    CHECK(res.stat == expected_stat(version, stat) && bytes_equal(res.cookie, args->cookie));

    uint32_t len = xdr_out_len(&out);
    out = xdr_out_of(bytes, sizeof bytes);
    nlm_xdr_put_share_res(&out, version, args->cookie, stat);
    CHECK(!out.overflowed);
    CHECK(xdr_out_len(&out) == len + 4);
    CHECK(load_be32(bytes + len - 4) == expected_stat(version, stat));
    CHECK(load_be32(bytes + len) == 0);

    if (stat == NLM_STAT_DEADLCK)
        return;
    const struct nlm_holder holder = {.exclusive = args->exclusive,
                                      .svid = args->lock.svid,
                                      .oh = args->lock.oh,
                                      .start = args->lock.start,
                                      .end = args->lock.end};
    out = xdr_out_of(bytes, sizeof bytes);
    nlm_xdr_put_test_res(&out, version, args->cookie, stat, &holder);
    CHECK(!out.overflowed);
    in = xdr_in_of((struct bytes){bytes, xdr_out_len(&out)});
    CHECK(nlm_xdr_get_test_res(&in, version, &res));
    CHECK(res.stat == expected_stat(version, stat) && bytes_equal(res.cookie, args->cookie));
    in = xdr_in_of((struct bytes){bytes, xdr_out_len(&out)});
    CHECK(nlm_xdr_get_res(&in, &res) == (stat != NLM_STAT_DENIED));
}

/* GRANTED says the lock as it was asked for. */
static void check_granted(uint32_t version, const struct nlm_args *args)
{
    static uint8_t bytes[NLM_GRANTED_MAX];
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    static const struct bytes cookie = {(const uint8_t *)"8 bytes.", 8};
    if (!nlm_xdr_is_handle(version, args->lock.fh))
        return;
    nlm_xdr_put_granted(&out, version, cookie, args->exclusive, &args->lock);
    CHECK(!out.overflowed);
    struct body echo = {0}, asked = {.args = {.exclusive = args->exclusive, .lock = args->lock}};
    CHECK(get(TEST, version, bytes, xdr_out_len(&out), &echo));
    CHECK(bytes_equal(echo.args.cookie, cookie));
    asked.args.cookie = cookie;
    check_same(&asked, &echo);
}

static void check_accepted(enum decoder decoder, uint32_t version, const uint8_t *data, size_t len,
                           const struct body *body)
{
    check_limits(decoder, body, data, len);
    /* One byte more is read as well, hence the room. */
    uint8_t *again = malloc(len + 1);
    CHECK(again != NULL);
    struct body second;
    memcpy(again, data, len);
    again[len] = 0;
    CHECK(!get(decoder, version, again, len + 1, &second));
    CHECK(!get(decoder, version, again, len - 1, &second));
    if (decoder != TEST_RES || body->res.stat != NLM_STAT_DENIED) {
        struct xdr_out out = xdr_out_of(again, (uint32_t)len);
        put(&out, decoder, version, body);
        CHECK(!out.overflowed);
        CHECK(xdr_out_len(&out) == len);
        CHECK(get(decoder, version, again, len, &second));
        check_same(body, &second);
    }
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t versions[] = {1, 3, 4};
    struct fuzz fuzz = {data, size};
    uint32_t version = versions[fuzz_u8(&fuzz) % 3];
    enum decoder decoder = (enum decoder)(fuzz_u8(&fuzz) % DECODERS);
    enum nlm_stat stat = (enum nlm_stat)(fuzz_u8(&fuzz) % (NLM_STAT_FAILED + 1));
    struct bytes rest = fuzz_slice(&fuzz, UINT16_MAX);
    uint8_t *copy = fuzz_copy(rest);
    struct body body;
    if (get(decoder, version, copy, rest.len, &body)) {
        check_accepted(decoder, version, copy, rest.len, &body);
        if (decoder <= UNLOCK) {
            check_range(version, &body.args.lock);
            check_answers(version, stat, &body.args);
            check_granted(version, &body.args);
        }
    }
    free(copy);
    return 0;
}
