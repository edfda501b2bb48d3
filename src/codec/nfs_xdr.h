/*
 * nfs_xdr.h -- NFS version 3: its numbers, and the data types that arguments and results share
 * (RFC 1813, program 100003). nfs_args.h has the arguments, nfs_results.h the results.
 *
 * Handles and names that arrive are views of the message; a handle that leaves is a value, because
 * the server makes it.
 */
#ifndef CODEC_NFS_XDR_H
#define CODEC_NFS_XDR_H

#include "base/programs.h"
#include "codec/xdr.h"

enum {
    NFS_VERSION = 3,
    NFS_PORT = 2049,
    NFS_FH_MAX = 64,
    NFS_VERF_LEN = 8,           /* createverf3, writeverf3, cookieverf3 */
    NFS_DATA_MAX = 1024 * 1024, /* of one READ or WRITE: rtmax and wtmax */
    /* A name or a path as it is read. RFC 1813 has no limit; what is longer than the file system
     * allows has a status of its own, NAMETOOLONG, and is therefore not refused here. */
    NFS_STRING_MAX = 8192,
    /* Longest call: WRITE, with the longest credential and verifier in front. */
    NFS_RECORD_MAX = NFS_DATA_MAX + 4096,
};

enum nfs_procedure {
    NFS_NULL = 0,
    NFS_GETATTR = 1,
    NFS_SETATTR = 2,
    NFS_LOOKUP = 3,
    NFS_ACCESS = 4,
    NFS_READLINK = 5,
    NFS_READ = 6,
    NFS_WRITE = 7,
    NFS_CREATE = 8,
    NFS_MKDIR = 9,
    NFS_SYMLINK = 10,
    NFS_MKNOD = 11,
    NFS_REMOVE = 12,
    NFS_RMDIR = 13,
    NFS_RENAME = 14,
    NFS_LINK = 15,
    NFS_READDIR = 16,
    NFS_READDIRPLUS = 17,
    NFS_FSSTAT = 18,
    NFS_FSINFO = 19,
    NFS_PATHCONF = 20,
    NFS_COMMIT = 21,
};
enum { NFS_PROCEDURE_COUNT = 22 };

/* nfsstat3. */
enum nfs_stat {
    NFS_OK = 0,
    NFS_PERM = 1,
    NFS_NOENT = 2,
    NFS_IO = 5,
    NFS_NXIO = 6,
    NFS_ACCES = 13,
    NFS_EXIST = 17,
    NFS_XDEV = 18,
    NFS_NODEV = 19,
    NFS_NOTDIR = 20,
    NFS_ISDIR = 21,
    NFS_INVAL = 22,
    NFS_FBIG = 27,
    NFS_NOSPC = 28,
    NFS_ROFS = 30,
    NFS_MLINK = 31,
    NFS_NAMETOOLONG = 63,
    NFS_NOTEMPTY = 66,
    NFS_DQUOT = 69,
    NFS_STALE = 70,
    NFS_REMOTE = 71,
    NFS_BADHANDLE = 10001,
    NFS_NOT_SYNC = 10002,
    NFS_BAD_COOKIE = 10003,
    NFS_NOTSUPP = 10004,
    NFS_TOOSMALL = 10005,
    NFS_SERVERFAULT = 10006,
    NFS_BADTYPE = 10007,
    NFS_JUKEBOX = 10008,
};

/* ftype3. */
enum nfs_type {
    NFS_TYPE_REG = 1,
    NFS_TYPE_DIR = 2,
    NFS_TYPE_BLK = 3,
    NFS_TYPE_CHR = 4,
    NFS_TYPE_LNK = 5,
    NFS_TYPE_SOCK = 6,
    NFS_TYPE_FIFO = 7,
};

/* A handle that the server made. */
struct nfs_fh {
    uint32_t len;
    uint8_t data[NFS_FH_MAX];
};

/* nfstime3. */
struct nfs_time {
    uint32_t seconds, nseconds;
};

/* fattr3. */
struct nfs_attr {
    enum nfs_type type;
    uint32_t mode; /* the 12 bits of permission; the type is elsewhere */
    uint32_t nlink, uid, gid;
    uint64_t size, used;
    uint32_t rdev_major, rdev_minor;
    uint64_t fsid, fileid;
    struct nfs_time atime, mtime, ctime;
};

/* post_op_attr. */
struct nfs_post_attr {
    bool is_there;
    struct nfs_attr attr;
};

/* pre_op_attr: what a client compares with what it has cached. */
struct nfs_pre_attr {
    bool is_there;
    uint64_t size;
    struct nfs_time mtime, ctime;
};

/* wcc_data. */
struct nfs_wcc {
    struct nfs_pre_attr before;
    struct nfs_post_attr after;
};

/* time_how. */
enum nfs_time_how {
    NFS_TIME_KEEP = 0,
    NFS_TIME_SERVER = 1,
    NFS_TIME_CLIENT = 2, /* the time is in the call */
};

/* sattr3: what is to be set, and to what. */
struct nfs_sattr {
    bool set_mode, set_uid, set_gid, set_size;
    uint32_t mode, uid, gid;
    uint64_t size;
    enum nfs_time_how atime_how, mtime_how;
    struct nfs_time atime, mtime; /* of NFS_TIME_CLIENT, else 0 */
};

/* stable_how: asked for in a WRITE, reached in its result. */
enum nfs_stable { NFS_UNSTABLE = 0, NFS_DATA_SYNC = 1, NFS_FILE_SYNC = 2 };

/* Bits of ACCESS. */
enum {
    NFS_ACCESS_READ = 0x01,
    NFS_ACCESS_LOOKUP = 0x02,
    NFS_ACCESS_MODIFY = 0x04,
    NFS_ACCESS_EXTEND = 0x08,
    NFS_ACCESS_DELETE = 0x10,
    NFS_ACCESS_EXECUTE = 0x20,
};

/* Lengths on the wire. */
enum {
    NFS_ATTR_LEN = 84,
    NFS_POST_ATTR_MAX = 4 + NFS_ATTR_LEN,
    NFS_WCC_MAX = 4 + 24 + NFS_POST_ATTR_MAX,
    NFS_POST_FH_MAX = 4 + 4 + NFS_FH_MAX,
};

/* Fails the cursor on a time_how that RFC 1813 does not know. */
struct nfs_sattr nfs_xdr_get_sattr(struct xdr_in *in);
struct nfs_time nfs_xdr_get_time(struct xdr_in *in);

void nfs_xdr_put_time(struct xdr_out *out, struct nfs_time time);
void nfs_xdr_put_attr(struct xdr_out *out, const struct nfs_attr *attr);
void nfs_xdr_put_post_attr(struct xdr_out *out, const struct nfs_post_attr *attr);
void nfs_xdr_put_wcc(struct xdr_out *out, const struct nfs_wcc *wcc);
void nfs_xdr_put_fh(struct xdr_out *out, const struct nfs_fh *fh);
/* post_op_fh3; NULL: none. */
void nfs_xdr_put_post_fh(struct xdr_out *out, const struct nfs_fh *fh);

/* "NOENT": for log lines and metrics; a number that is unknown has
 * the name "?". */
const char *nfs_xdr_stat_name(enum nfs_stat stat);

#endif
