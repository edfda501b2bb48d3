/*
 * nlm_xdr.c -- NLM bodies of versions 1, 3 and 4 (Open Group C702 chapters 10 and 14; RFC 1813
 * appendix II; RFC 4506 for the encoding).
 *
 *   alock       string caller_name<1024>; netobj fh; netobj oh; int svid; offset; len
 *   testargs    netobj cookie; bool exclusive; alock
 *   lockargs    netobj cookie; bool block; bool exclusive; alock; bool reclaim; int state
 *   cancargs    netobj cookie; bool block; bool exclusive; alock
 *   unlockargs  netobj cookie; alock
 *   shareargs   netobj cookie; string caller_name<1024>; netobj fh; netobj oh; enum mode;
 *               enum access; bool reclaim
 *   holder      bool exclusive; int svid; netobj oh; offset; len
 *   res         netobj cookie; enum stat
 *   testres     netobj cookie; enum stat; holder, only when stat is DENIED
 *   shareres    netobj cookie; enum stat; int sequence
 *   notify      string name<1025>; int state
 *   status      string name<1024>; int state; opaque priv[16]
 *
 * offset and len are 32 bits in versions 1 and 3 and 64 in version 4: the one difference on the
 * wire, and get_offset and put_offset are the one place that knows it.
 *
 * Always true:
 *  (1) A decoded range is GOOD with start <= end and start at most INT64_MAX, or TOO_BIG with both
 *      0. In versions 1 and 3 it is always GOOD: what does not fit ends at the end of the file.
 *  (2) Versions 1 and 3 are sent no status above 4 (R-NLM-5).
 *  (3) A testres has a holder exactly when the status in front of it is DENIED (R-NLM-6).
 *
 * Netobjs and names are only measured. What a handle may be has an answer of its own (R-NLM-1) and
 * is asked with nlm_xdr_is_handle; a cookie of no bytes is a cookie and goes back as it came.
 */
#include "codec/nlm_xdr.h"

#include "base/check.h"

enum { MODE_MAX = 3 }; /* of the deny mode and of the access: two bits, read and write */

bool nlm_xdr_is_version(uint32_t version)
{
    return version == 1 || version == 3 || version == 4;
}

/* Version 4, and not 1 or 3. The table of procedures has no other. */
static bool is_wide(uint32_t version)
{
    CHECK(nlm_xdr_is_version(version));
    return version == 4;
}

bool nlm_xdr_is_handle(uint32_t version, struct bytes fh)
{
    if (is_wide(version))
        return fh.len >= 1 && fh.len <= NLM_FH_V4_MAX;
    return fh.len == NLM_FH_V3_LEN;
}

static uint64_t get_offset(struct xdr_in *in, uint32_t version)
{
    return is_wide(version) ? xdr_get_u64(in) : xdr_get_u32(in);
}

static void put_offset(struct xdr_out *out, uint32_t version, uint64_t value)
{
    if (is_wide(version))
        xdr_put_u64(out, value);
    else
        xdr_put_u32(out, value <= UINT32_MAX ? (uint32_t)value : UINT32_MAX);
}

/*
 * R-RNG-1. A length of all ones means the end of the file to illumos; Linux takes a range that
 * leaves 32 bits as one to the end. In 64 bits a last byte that no file can have is the end too,
 * but one that does not even fit in the number is a mistake of the sender's, as is such a start.
 */
static void set_range(struct nlm_lock *lock, uint32_t version)
{
    uint64_t top = is_wide(version) ? UINT64_MAX : UINT32_MAX;
    uint64_t last_max = is_wide(version) ? (uint64_t)INT64_MAX : UINT32_MAX;
    lock->range = NLM_RANGE_GOOD;
    lock->start = lock->offset;
    lock->end = UINT64_MAX;
    bool too_big = lock->offset > last_max;
    if (!too_big && lock->len != 0 && lock->len != top) {
        if (lock->len - 1 <= last_max - lock->offset)
            lock->end = lock->offset + (lock->len - 1);
        else
            too_big = is_wide(version) && lock->len - 1 > UINT64_MAX - lock->offset;
    }
    if (too_big) {
        lock->range = NLM_RANGE_TOO_BIG;
        lock->start = lock->end = 0;
    }
}

static struct nlm_lock get_alock(struct xdr_in *in, uint32_t version)
{
    struct nlm_lock lock = {0};
    lock.caller_name = xdr_get_opaque(in, NLM_NAME_MAX);
    lock.fh = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    lock.oh = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    lock.svid = xdr_get_u32(in);
    lock.offset = get_offset(in, version);
    lock.len = get_offset(in, version);
    set_range(&lock, version);
    return lock;
}

bool nlm_xdr_get_test(struct xdr_in *in, uint32_t version, struct nlm_args *ret)
{
    struct nlm_args args = {0};
    args.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.exclusive = xdr_get_bool(in);
    args.lock = get_alock(in, version);
    if (!xdr_in_done(in))
        return false;
    *ret = args;
    return true;
}

bool nlm_xdr_get_lock(struct xdr_in *in, uint32_t version, struct nlm_args *ret)
{
    struct nlm_args args = {0};
    args.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.block = xdr_get_bool(in);
    args.exclusive = xdr_get_bool(in);
    args.lock = get_alock(in, version);
    args.reclaim = xdr_get_bool(in);
    args.state = xdr_get_u32(in);
    if (!xdr_in_done(in))
        return false;
    *ret = args;
    return true;
}

bool nlm_xdr_get_cancel(struct xdr_in *in, uint32_t version, struct nlm_args *ret)
{
    struct nlm_args args = {0};
    args.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.block = xdr_get_bool(in);
    args.exclusive = xdr_get_bool(in);
    args.lock = get_alock(in, version);
    if (!xdr_in_done(in))
        return false;
    *ret = args;
    return true;
}

bool nlm_xdr_get_unlock(struct xdr_in *in, uint32_t version, struct nlm_args *ret)
{
    struct nlm_args args = {0};
    args.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.lock = get_alock(in, version);
    if (!xdr_in_done(in))
        return false;
    *ret = args;
    return true;
}

bool nlm_xdr_get_share(struct xdr_in *in, uint32_t version, struct nlm_share_args *ret)
{
    CHECK(nlm_xdr_is_version(version)); /* 3 and 4 write it alike; 1 does not have it */
    struct nlm_share_args args = {0};
    args.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.caller_name = xdr_get_opaque(in, NLM_NAME_MAX);
    args.fh = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.oh = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    args.mode = xdr_get_u32(in);
    args.access = xdr_get_u32(in);
    args.reclaim = xdr_get_bool(in);
    if (!xdr_in_done(in) || args.mode > MODE_MAX || args.access > MODE_MAX)
        return false;
    *ret = args;
    return true;
}

bool nlm_xdr_get_res(struct xdr_in *in, struct nlm_res *ret)
{
    struct nlm_res res = {0};
    res.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    res.stat = xdr_get_u32(in);
    if (!xdr_in_done(in))
        return false;
    *ret = res;
    return true;
}

bool nlm_xdr_get_test_res(struct xdr_in *in, uint32_t version, struct nlm_res *ret)
{
    struct nlm_res res = {0};
    res.cookie = xdr_get_opaque(in, NLM_NETOBJ_MAX);
    res.stat = xdr_get_u32(in);
    if (res.stat == NLM_STAT_DENIED) {
        (void)xdr_get_bool(in); /* the holder: its shape is checked, nobody asks what it says */
        (void)xdr_get_u32(in);
        (void)xdr_get_opaque(in, NLM_NETOBJ_MAX);
        (void)get_offset(in, version);
        (void)get_offset(in, version);
    }
    if (!xdr_in_done(in))
        return false;
    *ret = res;
    return true;
}

bool nlm_xdr_get_free_all(struct xdr_in *in, struct nlm_notify *ret)
{
    struct nlm_notify notify = {0};
    notify.name = xdr_get_opaque(in, NLM_NOTIFY_NAME_MAX);
    notify.state = xdr_get_u32(in);
    if (!xdr_in_done(in))
        return false;
    *ret = notify;
    return true;
}

bool nlm_xdr_get_upcall(struct xdr_in *in, struct nlm_notify *ret)
{
    struct nlm_notify notify = {0};
    notify.name = xdr_get_opaque(in, NLM_NAME_MAX);
    notify.state = xdr_get_u32(in);
    notify.priv = xdr_get_fixed(in, NLM_PRIV_LEN);
    if (!xdr_in_done(in))
        return false;
    *ret = notify;
    return true;
}

/*
 * R-NLM-5, as Linux maps: a client of version 1 or 3 that meets DENIED_NOLOCKS reports that there
 * are no locks to be had; DENIED would have it look for a conflict that is not there.
 */
static enum nlm_stat map_down(uint32_t version, enum nlm_stat stat)
{
    if (is_wide(version))
        return stat;
    switch (stat) {
    case NLM_STAT_GRANTED:
    case NLM_STAT_DENIED:
    case NLM_STAT_DENIED_NOLOCKS:
    case NLM_STAT_BLOCKED:
    case NLM_STAT_DENIED_GRACE_PERIOD:
        return stat;
    case NLM_STAT_DEADLCK:
        return NLM_STAT_DENIED;
    case NLM_STAT_ROFS:
    case NLM_STAT_STALE_FH:
    case NLM_STAT_FBIG:
    case NLM_STAT_FAILED:
        return NLM_STAT_DENIED_NOLOCKS;
    }
    UNREACHABLE();
}

void nlm_xdr_put_res(struct xdr_out *out, uint32_t version, struct bytes cookie, enum nlm_stat stat)
{
    xdr_put_opaque(out, cookie);
    xdr_put_u32(out, (uint32_t)map_down(version, stat));
}

/* R-NLM-6: a holder whose last byte 32 bits cannot say holds to the end, as far as 1 and 3 know. */
static void put_holder(struct xdr_out *out, uint32_t version, const struct nlm_holder *holder)
{
    uint64_t last_max = is_wide(version) ? UINT64_MAX - 1 : UINT32_MAX;
    uint64_t len = holder->end <= last_max ? holder->end - holder->start + 1 : 0;
    CHECK(holder->start <= holder->end);
    xdr_put_u32(out, holder->exclusive);
    xdr_put_u32(out, holder->svid);
    xdr_put_opaque(out, holder->oh);
    put_offset(out, version, holder->start);
    /* All 2^32 bytes that there are to versions 1 and 3: one more than a length can say. */
    put_offset(out, version, !is_wide(version) && len > UINT32_MAX ? 0 : len);
}

void nlm_xdr_put_test_res(struct xdr_out *out, uint32_t version, struct bytes cookie,
                          enum nlm_stat stat, const struct nlm_holder *holder)
{
    /* Nobody waits in a TEST, so nothing can deadlock; and mapped down it would want a holder. */
    CHECK(stat != NLM_STAT_DEADLCK);
    xdr_put_opaque(out, cookie);
    xdr_put_u32(out, (uint32_t)map_down(version, stat));
    if (stat == NLM_STAT_DENIED)
        put_holder(out, version, holder);
}

void nlm_xdr_put_share_res(struct xdr_out *out, uint32_t version, struct bytes cookie,
                           enum nlm_stat stat)
{
    nlm_xdr_put_res(out, version, cookie, stat);
    xdr_put_u32(out, 0); /* sequence: no server gives it a meaning */
}

void nlm_xdr_put_granted(struct xdr_out *out, uint32_t version, struct bytes cookie, bool exclusive,
                         const struct nlm_lock *lock)
{
    xdr_put_opaque(out, cookie);
    xdr_put_u32(out, exclusive);
    xdr_put_opaque(out, lock->caller_name);
    xdr_put_opaque(out, lock->fh);
    xdr_put_opaque(out, lock->oh);
    xdr_put_u32(out, lock->svid);
    put_offset(out, version, lock->offset);
    put_offset(out, version, lock->len);
}
