/*
 * nfs_xdr.c -- the data types that NFS version 3's arguments and results share (RFC 1813 section
 * 2.5 and 2.6).
 *
 *   nfstime3      u32 seconds; u32 nseconds
 *   fattr3        u32 type, mode, nlink, uid, gid; u64 size, used; u32 major, minor; u64 fsid,
 *                 fileid; nfstime3 atime, mtime, ctime
 *   post_op_attr  bool; fattr3 if true
 *   pre_op_attr   bool; u64 size, nfstime3 mtime, ctime if true
 *   wcc_data      pre_op_attr; post_op_attr
 *   sattr3        bool [u32 mode]; bool [u32 uid]; bool [u32 gid]; bool [u64 size];
 *                 u32 how [atime]; u32 how [mtime]
 */
#include "codec/nfs_xdr.h"

#include "base/check.h"

struct nfs_time nfs_xdr_get_time(struct xdr_in *in)
{
    struct nfs_time time = {0};
    time.seconds = xdr_get_u32(in);
    time.nseconds = xdr_get_u32(in);
    return time;
}

static bool is_time_how(enum nfs_time_how how)
{
    switch (how) {
    case NFS_TIME_KEEP:
    case NFS_TIME_SERVER:
    case NFS_TIME_CLIENT:
        return true;
    }
    return false;
}

static enum nfs_time_how get_time_how(struct xdr_in *in, struct nfs_time *ret_time)
{
    enum nfs_time_how how = (enum nfs_time_how)xdr_get_u32(in);
    if (!is_time_how(how)) {
        xdr_in_fail(in);
        return NFS_TIME_KEEP;
    }
    if (how == NFS_TIME_CLIENT)
        *ret_time = nfs_xdr_get_time(in);
    return how;
}

struct nfs_sattr nfs_xdr_get_sattr(struct xdr_in *in)
{
    struct nfs_sattr sattr = {0};
    sattr.set_mode = xdr_get_bool(in);
    sattr.mode = sattr.set_mode ? xdr_get_u32(in) : 0;
    sattr.set_uid = xdr_get_bool(in);
    sattr.uid = sattr.set_uid ? xdr_get_u32(in) : 0;
    sattr.set_gid = xdr_get_bool(in);
    sattr.gid = sattr.set_gid ? xdr_get_u32(in) : 0;
    sattr.set_size = xdr_get_bool(in);
    sattr.size = sattr.set_size ? xdr_get_u64(in) : 0;
    sattr.atime_how = get_time_how(in, &sattr.atime);
    sattr.mtime_how = get_time_how(in, &sattr.mtime);
    return sattr;
}

void nfs_xdr_put_time(struct xdr_out *out, struct nfs_time time)
{
    xdr_put_u32(out, time.seconds);
    xdr_put_u32(out, time.nseconds);
}

void nfs_xdr_put_attr(struct xdr_out *out, const struct nfs_attr *attr)
{
    xdr_put_u32(out, (uint32_t)attr->type);
    xdr_put_u32(out, attr->mode);
    xdr_put_u32(out, attr->nlink);
    xdr_put_u32(out, attr->uid);
    xdr_put_u32(out, attr->gid);
    xdr_put_u64(out, attr->size);
    xdr_put_u64(out, attr->used);
    xdr_put_u32(out, attr->rdev_major);
    xdr_put_u32(out, attr->rdev_minor);
    xdr_put_u64(out, attr->fsid);
    xdr_put_u64(out, attr->fileid);
    nfs_xdr_put_time(out, attr->atime);
    nfs_xdr_put_time(out, attr->mtime);
    nfs_xdr_put_time(out, attr->ctime);
}

void nfs_xdr_put_post_attr(struct xdr_out *out, const struct nfs_post_attr *attr)
{
    xdr_put_u32(out, attr->is_there);
    if (attr->is_there)
        nfs_xdr_put_attr(out, &attr->attr);
}

void nfs_xdr_put_wcc(struct xdr_out *out, const struct nfs_wcc *wcc)
{
    xdr_put_u32(out, wcc->before.is_there);
    if (wcc->before.is_there) {
        xdr_put_u64(out, wcc->before.size);
        nfs_xdr_put_time(out, wcc->before.mtime);
        nfs_xdr_put_time(out, wcc->before.ctime);
    }
    nfs_xdr_put_post_attr(out, &wcc->after);
}

void nfs_xdr_put_fh(struct xdr_out *out, const struct nfs_fh *fh)
{
    CHECK(fh->len <= NFS_FH_MAX);
    xdr_put_opaque(out, (struct bytes){fh->data, fh->len});
}

void nfs_xdr_put_post_fh(struct xdr_out *out, const struct nfs_fh *fh)
{
    xdr_put_u32(out, fh != NULL);
    if (fh != NULL)
        nfs_xdr_put_fh(out, fh);
}

#define STAT_NAME(name)                                                                            \
    case NFS_##name:                                                                               \
        return #name

const char *nfs_xdr_stat_name(enum nfs_stat stat)
{
    switch (stat) {
        STAT_NAME(OK);
        STAT_NAME(PERM);
        STAT_NAME(NOENT);
        STAT_NAME(IO);
        STAT_NAME(NXIO);
        STAT_NAME(ACCES);
        STAT_NAME(EXIST);
        STAT_NAME(XDEV);
        STAT_NAME(NODEV);
        STAT_NAME(NOTDIR);
        STAT_NAME(ISDIR);
        STAT_NAME(INVAL);
        STAT_NAME(FBIG);
        STAT_NAME(NOSPC);
        STAT_NAME(ROFS);
        STAT_NAME(MLINK);
        STAT_NAME(NAMETOOLONG);
        STAT_NAME(NOTEMPTY);
        STAT_NAME(DQUOT);
        STAT_NAME(STALE);
        STAT_NAME(REMOTE);
        STAT_NAME(BADHANDLE);
        STAT_NAME(NOT_SYNC);
        STAT_NAME(BAD_COOKIE);
        STAT_NAME(NOTSUPP);
        STAT_NAME(TOOSMALL);
        STAT_NAME(SERVERFAULT);
        STAT_NAME(BADTYPE);
        STAT_NAME(JUKEBOX);
    }
    return "?";
}
