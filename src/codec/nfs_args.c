/*
 * nfs_args.c -- what NFS version 3 is asked (RFC 1813 section 3.3, procedure by procedure).
 *
 *   diropargs3    opaque dir<64>; string name<>
 *   GETATTR, READLINK, FSSTAT, FSINFO, PATHCONF   opaque object<64>
 *   SETATTR       object; sattr3; bool [nfstime3 ctime]
 *   LOOKUP, REMOVE, RMDIR                         diropargs3
 *   ACCESS        object; u32 access
 *   READ          file; u64 offset; u32 count
 *   WRITE         file; u64 offset; u32 count; u32 stable; opaque data<>
 *   CREATE        diropargs3; u32 how; sattr3, or of EXCLUSIVE opaque verf[8]
 *   MKDIR         diropargs3; sattr3
 *   SYMLINK       diropargs3; sattr3; string path<>
 *   MKNOD         diropargs3; u32 type; of CHR and BLK: sattr3, u32 major, minor; of SOCK and FIFO:
 *                 sattr3; of other types: nothing
 *   RENAME        diropargs3 from; diropargs3 to
 *   LINK          file; diropargs3
 *   READDIR       dir; u64 cookie; opaque verf[8]; u32 count
 *   READDIRPLUS   dir; u64 cookie; opaque verf[8]; u32 dircount; u32 maxcount
 *   COMMIT        file; u64 offset; u32 count
 */
#include "codec/nfs_args.h"

#include "base/check.h"

static struct bytes get_fh(struct xdr_in *in)
{
    return xdr_get_opaque(in, NFS_FH_MAX);
}

static void get_dirop(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    args->name = xdr_get_opaque(in, NFS_STRING_MAX);
}

static void get_dirop_to(struct xdr_in *in, struct nfs_args *args)
{
    args->to_fh = get_fh(in);
    args->to_name = xdr_get_opaque(in, NFS_STRING_MAX);
}

static void get_setattr(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    args->sattr = nfs_xdr_get_sattr(in);
    args->has_guard = xdr_get_bool(in);
    if (args->has_guard)
        args->guard = nfs_xdr_get_time(in);
}

static enum nfs_stable get_stable(struct xdr_in *in)
{
    enum nfs_stable stable = (enum nfs_stable)xdr_get_u32(in);
    switch (stable) {
    case NFS_UNSTABLE:
    case NFS_DATA_SYNC:
    case NFS_FILE_SYNC:
        return stable;
    }
    xdr_in_fail(in);
    return NFS_UNSTABLE;
}

static void get_write(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    args->offset = xdr_get_u64(in);
    args->count = xdr_get_u32(in);
    args->stable = get_stable(in);
    args->data = xdr_get_opaque(in, NFS_RECORD_MAX);
}

static void get_create(struct xdr_in *in, struct nfs_args *args)
{
    get_dirop(in, args);
    args->create = (enum nfs_create)xdr_get_u32(in);
    switch (args->create) {
    case NFS_UNCHECKED:
    case NFS_GUARDED:
        args->sattr = nfs_xdr_get_sattr(in);
        return;
    case NFS_EXCLUSIVE:
        args->verf = xdr_get_fixed(in, NFS_VERF_LEN);
        return;
    }
    xdr_in_fail(in);
}

/* What MKNOD cannot make has nothing behind its type, and BADTYPE for an answer. */
static void get_mknod(struct xdr_in *in, struct nfs_args *args)
{
    get_dirop(in, args);
    args->type = (enum nfs_type)xdr_get_u32(in);
    switch (args->type) {
    case NFS_TYPE_CHR:
    case NFS_TYPE_BLK:
        args->sattr = nfs_xdr_get_sattr(in);
        args->rdev_major = xdr_get_u32(in);
        args->rdev_minor = xdr_get_u32(in);
        return;
    case NFS_TYPE_SOCK:
    case NFS_TYPE_FIFO:
        args->sattr = nfs_xdr_get_sattr(in);
        return;
    case NFS_TYPE_REG:
    case NFS_TYPE_DIR:
    case NFS_TYPE_LNK:
        return;
    }
    xdr_in_fail(in);
}

static void get_listing(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    args->cookie = xdr_get_u64(in);
    args->verf = xdr_get_fixed(in, NFS_VERF_LEN);
}

static void get_readdir(struct xdr_in *in, struct nfs_args *args)
{
    get_listing(in, args);
    args->count = xdr_get_u32(in);
}

static void get_readdirplus(struct xdr_in *in, struct nfs_args *args)
{
    get_listing(in, args);
    args->dircount = xdr_get_u32(in);
    args->count = xdr_get_u32(in);
}

static void get_range(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    args->offset = xdr_get_u64(in);
    args->count = xdr_get_u32(in);
}

static void get_access(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    args->access = xdr_get_u32(in);
}

static void get_mkdir(struct xdr_in *in, struct nfs_args *args)
{
    get_dirop(in, args);
    args->sattr = nfs_xdr_get_sattr(in);
}

static void get_symlink(struct xdr_in *in, struct nfs_args *args)
{
    get_mkdir(in, args);
    args->path = xdr_get_opaque(in, NFS_STRING_MAX);
}

static void get_rename(struct xdr_in *in, struct nfs_args *args)
{
    get_dirop(in, args);
    get_dirop_to(in, args);
}

static void get_link(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
    get_dirop_to(in, args);
}

static void get_object(struct xdr_in *in, struct nfs_args *args)
{
    args->fh = get_fh(in);
}

static void get_nothing(struct xdr_in *in, struct nfs_args *args)
{
    (void)in, (void)args;
}

static void (*const getters[NFS_PROCEDURE_COUNT])(struct xdr_in *in, struct nfs_args *args) = {
    [NFS_NULL] = get_nothing,  [NFS_GETATTR] = get_object,  [NFS_SETATTR] = get_setattr,
    [NFS_LOOKUP] = get_dirop,  [NFS_ACCESS] = get_access,   [NFS_READLINK] = get_object,
    [NFS_READ] = get_range,    [NFS_WRITE] = get_write,     [NFS_CREATE] = get_create,
    [NFS_MKDIR] = get_mkdir,   [NFS_SYMLINK] = get_symlink, [NFS_MKNOD] = get_mknod,
    [NFS_REMOVE] = get_dirop,  [NFS_RMDIR] = get_dirop,     [NFS_RENAME] = get_rename,
    [NFS_LINK] = get_link,     [NFS_READDIR] = get_readdir, [NFS_READDIRPLUS] = get_readdirplus,
    [NFS_FSSTAT] = get_object, [NFS_FSINFO] = get_object,   [NFS_PATHCONF] = get_object,
    [NFS_COMMIT] = get_range,
};

bool nfs_args_get(struct xdr_in *in, enum nfs_procedure procedure, struct nfs_args *ret)
{
    struct nfs_args args = {0};
    CHECK((uint32_t)procedure < NFS_PROCEDURE_COUNT);
    getters[procedure](in, &args);
    if (!xdr_in_done(in))
        return false;
    *ret = args;
    return true;
}
