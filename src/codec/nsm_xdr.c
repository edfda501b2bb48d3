/*
 * nsm_xdr.c -- NSM version 1 bodies (Open Group C702 chapter 11; RFC 4506 for the encoding).
 *
 *   sm_name      string mon_name<1024>
 *   my_id        string my_name<1024>; int my_prog; int my_vers; int my_proc
 *   mon_id       string mon_name<1024>; my_id
 *   mon          mon_id; opaque priv[16]
 *   stat_chge    string mon_name<1024>; int state
 *   sm_stat_res  enum res; int state
 *   sm_stat      int state
 *
 * Decoders are straight lines: the cursor remembers the first failure, and one test at the end
 * covers it together with bytes left over. Names are only measured here; which characters a name
 * may have is decided where an answer to it exists (R-NSM-1: STAT_FAIL, not GARBAGE_ARGS).
 *
 * The protocol's ints are carried as uint32_t: program numbers use the full range, and the state -1
 * that goes with STAT_FAIL is 0xffffffff on the wire.
 */
#include "codec/nsm_xdr.h"

#include "base/check.h"

static struct nsm_my_id get_my_id(struct xdr_in *in)
{
    struct nsm_my_id my_id = {0};
    my_id.my_name = xdr_get_opaque(in, NSM_NAME_MAX);
    my_id.my_prog = xdr_get_u32(in);
    my_id.my_vers = xdr_get_u32(in);
    my_id.my_proc = xdr_get_u32(in);
    return my_id;
}

static struct nsm_mon_id get_mon_id(struct xdr_in *in)
{
    struct nsm_mon_id mon_id = {0};
    mon_id.mon_name = xdr_get_opaque(in, NSM_NAME_MAX);
    mon_id.my_id = get_my_id(in);
    return mon_id;
}

bool nsm_xdr_get_name(struct xdr_in *in, struct bytes *ret_mon_name)
{
    struct bytes mon_name = xdr_get_opaque(in, NSM_NAME_MAX);
    if (!xdr_in_done(in))
        return false;
    *ret_mon_name = mon_name;
    return true;
}

bool nsm_xdr_get_my_id(struct xdr_in *in, struct nsm_my_id *ret)
{
    struct nsm_my_id my_id = get_my_id(in);
    if (!xdr_in_done(in))
        return false;
    *ret = my_id;
    return true;
}

bool nsm_xdr_get_mon_id(struct xdr_in *in, struct nsm_mon_id *ret)
{
    struct nsm_mon_id mon_id = get_mon_id(in);
    if (!xdr_in_done(in))
        return false;
    *ret = mon_id;
    return true;
}

bool nsm_xdr_get_mon(struct xdr_in *in, struct nsm_mon *ret)
{
    struct nsm_mon mon = {0};
    mon.mon_id = get_mon_id(in);
    mon.priv = xdr_get_fixed(in, NSM_PRIV_LEN);
    if (!xdr_in_done(in))
        return false;
    *ret = mon;
    return true;
}

bool nsm_xdr_get_stat_chge(struct xdr_in *in, struct nsm_stat_chge *ret)
{
    struct nsm_stat_chge change = {0};
    change.mon_name = xdr_get_opaque(in, NSM_NAME_MAX);
    change.state = xdr_get_u32(in);
    if (!xdr_in_done(in))
        return false;
    *ret = change;
    return true;
}

void nsm_xdr_put_stat_res(struct xdr_out *out, enum nsm_result result, uint32_t state)
{
    xdr_put_u32(out, (uint32_t)result);
    xdr_put_u32(out, state);
}

void nsm_xdr_put_stat(struct xdr_out *out, uint32_t state)
{
    xdr_put_u32(out, state);
}

void nsm_xdr_put_status(struct xdr_out *out, struct bytes mon_name, uint32_t state,
                        struct bytes priv)
{
    CHECK(priv.len == NSM_PRIV_LEN);
    xdr_put_opaque(out, mon_name);
    xdr_put_u32(out, state);
    xdr_put_fixed(out, priv);
}

void nsm_xdr_put_stat_chge(struct xdr_out *out, struct bytes mon_name, uint32_t state)
{
    xdr_put_opaque(out, mon_name);
    xdr_put_u32(out, state);
}
