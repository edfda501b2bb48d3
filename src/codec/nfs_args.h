/*
 * nfs_args.h -- the arguments of the 22 procedures of NFS version 3 (RFC 1813 section 3.3).
 *
 * One shape holds them all; what a procedure does not have is zero. The decoder takes the whole
 * argument body and fails when it is cut short, too long, has bytes left over, or has a number in
 * it that its enum does not. Views point into the message.
 */
#ifndef CODEC_NFS_ARGS_H
#define CODEC_NFS_ARGS_H

#include "codec/nfs_xdr.h"

/* createmode3. */
enum nfs_create { NFS_UNCHECKED = 0, NFS_GUARDED = 1, NFS_EXCLUSIVE = 2 };

struct nfs_args {
    struct bytes fh;   /* of the object or, with a name, of the directory; at most NFS_FH_MAX */
    struct bytes name; /* LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR; RENAME: from */
    struct bytes to_fh, to_name; /* RENAME: to; LINK: the new name */
    struct nfs_sattr sattr;      /* SETATTR, CREATE unless exclusive, MKDIR, SYMLINK, MKNOD */
    bool has_guard;              /* SETATTR: only if ctime is this */
    struct nfs_time guard;
    uint32_t access;        /* ACCESS: the bits asked for */
    uint64_t offset;        /* READ, WRITE, COMMIT */
    uint32_t count;         /* READ, WRITE, COMMIT, READDIR; READDIRPLUS: maxcount */
    uint32_t dircount;      /* READDIRPLUS */
    enum nfs_stable stable; /* WRITE */
    struct bytes data;      /* WRITE; `count` says its length once more, and need not agree */
    enum nfs_create create;
    struct bytes verf;  /* CREATE EXCLUSIVE; READDIR, READDIRPLUS: cookieverf; NFS_VERF_LEN bytes */
    uint64_t cookie;    /* READDIR, READDIRPLUS */
    struct bytes path;  /* SYMLINK: what it points to */
    enum nfs_type type; /* MKNOD */
    uint32_t rdev_major, rdev_minor; /* MKNOD of a device */
};

/* False: GARBAGE_ARGS; *ret is then untouched. */
bool nfs_args_get(struct xdr_in *in, enum nfs_procedure procedure, struct nfs_args *ret);

#endif
