/*
 * mount_xdr.h -- MOUNT version 3: arguments and results of its six procedures (RFC 1813 appendix I,
 * program 100005).
 */
#ifndef CODEC_MOUNT_XDR_H
#define CODEC_MOUNT_XDR_H

#include "codec/nfs_xdr.h"

enum {
    MOUNT_VERSION = 3,
    MOUNT_PATH_MAX = 1024, /* MNTPATHLEN */
    MOUNT_NAME_MAX = 255,  /* MNTNAMLEN */
    MOUNT_RECORD_MAX = 2048,
    MOUNT_FLAVORS_MAX = 4,
};

enum mount_procedure {
    MOUNT_NULL = 0,
    MOUNT_MNT = 1,
    MOUNT_DUMP = 2,
    MOUNT_UMNT = 3,
    MOUNT_UMNTALL = 4,
    MOUNT_EXPORT = 5,
};
enum { MOUNT_PROCEDURE_COUNT = 6 };

/* mountstat3. */
enum mount_stat {
    MOUNT_OK = 0,
    MOUNT_PERM = 1,
    MOUNT_NOENT = 2,
    MOUNT_IO = 5,
    MOUNT_ACCES = 13,
    MOUNT_NOTDIR = 20,
    MOUNT_INVAL = 22,
    MOUNT_NAMETOOLONG = 63,
    MOUNT_NOTSUPP = 10004,
    MOUNT_SERVERFAULT = 10006,
};

/* MNT and UMNT: a path. False: GARBAGE_ARGS; *ret is then untouched. The others have no arguments:
 * their path is empty. */
bool mount_xdr_get_args(struct xdr_in *in, enum mount_procedure procedure, struct bytes *ret_path);

/* MNT. The handle and the flavours are sent only with MOUNT_OK. */
struct mount_result {
    enum mount_stat stat;
    struct nfs_fh fh;
    uint32_t flavors[MOUNT_FLAVORS_MAX];
    uint32_t flavor_count;
};
void mount_xdr_put_mnt(struct xdr_out *out, const struct mount_result *result);

/* DUMP: each mount, then the end. */
void mount_xdr_put_mount(struct xdr_out *out, struct bytes hostname, struct bytes directory);
/* EXPORT: each directory, its groups (none: everybody), the end of the groups, at last the end. */
void mount_xdr_put_export(struct xdr_out *out, struct bytes directory);
void mount_xdr_put_group(struct xdr_out *out, struct bytes name);
/* The end of any of these lists. */
void mount_xdr_put_end(struct xdr_out *out);

#endif
