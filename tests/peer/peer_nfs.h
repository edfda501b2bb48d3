/*
 * peer_nfs.h -- NFS version 3 as a client speaks it (RFC 1813, program 100003): the arguments of
 * all 22 procedures written, their results read.
 *
 * One flat structure serves all arguments, another one all results; the procedure says which fields
 * are on the wire. There is room for more than the protocol allows, because a hostile client sends
 * that. What the reader accepts is exactly what RFC 1813 allows: booleans are 0 or 1, enums are
 * known, nothing is missing and nothing left over.
 */
#ifndef PEER_PEER_NFS_H
#define PEER_PEER_NFS_H

#include "peer/peer_link.h"

enum {
    PEER_NFS_PROGRAM = 100003,
    PEER_NFS_VERSION = 3,
    PEER_NFS_FH_MAX = 64,
    PEER_NFS_FH_KEPT_MAX = 128, /* what a peer_nfs_fh can hold */
    PEER_NFS_VERF_LEN = 8,
    PEER_NFS_DATA_MAX = 1024 * 1024,
    PEER_NFS_PROCEDURES = 22,
};

enum peer_nfs_procedure {
    PEER_NFS_NULL = 0,
    PEER_NFS_GETATTR = 1,
    PEER_NFS_SETATTR = 2,
    PEER_NFS_LOOKUP = 3,
    PEER_NFS_ACCESS = 4,
    PEER_NFS_READLINK = 5,
    PEER_NFS_READ = 6,
    PEER_NFS_WRITE = 7,
    PEER_NFS_CREATE = 8,
    PEER_NFS_MKDIR = 9,
    PEER_NFS_SYMLINK = 10,
    PEER_NFS_MKNOD = 11,
    PEER_NFS_REMOVE = 12,
    PEER_NFS_RMDIR = 13,
    PEER_NFS_RENAME = 14,
    PEER_NFS_LINK = 15,
    PEER_NFS_READDIR = 16,
    PEER_NFS_READDIRPLUS = 17,
    PEER_NFS_FSSTAT = 18,
    PEER_NFS_FSINFO = 19,
    PEER_NFS_PATHCONF = 20,
    PEER_NFS_COMMIT = 21,
};

/* nfsstat3; PEER_NFS_IS_NOTHING is ours: no answer came that could be read. */
enum peer_nfs_status {
    PEER_NFS_IS_OK = 0,
    PEER_NFS_IS_PERM = 1,
    PEER_NFS_IS_NOENT = 2,
    PEER_NFS_IS_IO = 5,
    PEER_NFS_IS_NXIO = 6,
    PEER_NFS_IS_ACCES = 13,
    PEER_NFS_IS_EXIST = 17,
    PEER_NFS_IS_XDEV = 18,
    PEER_NFS_IS_NODEV = 19,
    PEER_NFS_IS_NOTDIR = 20,
    PEER_NFS_IS_ISDIR = 21,
    PEER_NFS_IS_INVAL = 22,
    PEER_NFS_IS_FBIG = 27,
    PEER_NFS_IS_NOSPC = 28,
    PEER_NFS_IS_ROFS = 30,
    PEER_NFS_IS_MLINK = 31,
    PEER_NFS_IS_NAMETOOLONG = 63,
    PEER_NFS_IS_NOTEMPTY = 66,
    PEER_NFS_IS_DQUOT = 69,
    PEER_NFS_IS_STALE = 70,
    PEER_NFS_IS_REMOTE = 71,
    PEER_NFS_IS_BADHANDLE = 10001,
    PEER_NFS_IS_NOT_SYNC = 10002,
    PEER_NFS_IS_BAD_COOKIE = 10003,
    PEER_NFS_IS_NOTSUPP = 10004,
    PEER_NFS_IS_TOOSMALL = 10005,
    PEER_NFS_IS_SERVERFAULT = 10006,
    PEER_NFS_IS_BADTYPE = 10007,
    PEER_NFS_IS_JUKEBOX = 10008,
    PEER_NFS_IS_NOTHING = 99999,
};

enum peer_nfs_type {
    PEER_NFS_REG = 1,
    PEER_NFS_DIR = 2,
    PEER_NFS_BLK = 3,
    PEER_NFS_CHR = 4,
    PEER_NFS_LNK = 5,
    PEER_NFS_SOCK = 6,
    PEER_NFS_FIFO = 7,
};

enum { PEER_NFS_UNSTABLE = 0, PEER_NFS_DATA_SYNC = 1, PEER_NFS_FILE_SYNC = 2 };
enum { PEER_NFS_UNCHECKED = 0, PEER_NFS_GUARDED = 1, PEER_NFS_EXCLUSIVE = 2 };
enum { PEER_NFS_KEEP = 0, PEER_NFS_SERVER_TIME = 1, PEER_NFS_CLIENT_TIME = 2 };
enum {
    PEER_NFS_MAY_READ = 1,
    PEER_NFS_MAY_LOOKUP = 2,
    PEER_NFS_MAY_MODIFY = 4,
    PEER_NFS_MAY_EXTEND = 8,
    PEER_NFS_MAY_DELETE = 16,
    PEER_NFS_MAY_EXECUTE = 32,
};

struct peer_nfs_fh {
    uint32_t len;
    uint8_t at[PEER_NFS_FH_KEPT_MAX];
};

/* A name, a path, or any bytes in the caller's memory. */
struct peer_nfs_view {
    const void *at;
    uint32_t len;
};

struct peer_nfs_time {
    uint32_t seconds, nanoseconds;
};

struct peer_nfs_attr {
    uint32_t type, mode, nlink, uid, gid;
    uint64_t size, used;
    uint32_t rdev_major, rdev_minor;
    uint64_t fsid, fileid;
    struct peer_nfs_time atime, mtime, ctime;
};

struct peer_nfs_sattr {
    bool has_mode, has_uid, has_gid, has_size;
    uint32_t mode, uid, gid;
    uint64_t size;
    uint32_t atime_how, mtime_how;
    struct peer_nfs_time atime, mtime;
};

struct peer_nfs_args {
    struct peer_nfs_fh fh, to_fh;       /* RENAME, LINK: the directory of to_name */
    struct peer_nfs_view name, to_name; /* RENAME; LINK: only to_name */
    struct peer_nfs_sattr sattr;
    bool has_guard;
    struct peer_nfs_time guard;
    uint32_t access, count, dircount; /* READDIRPLUS: count is maxcount */
    uint64_t offset, cookie;
    uint32_t stable, how, type; /* WRITE; CREATE; MKNOD */
    struct peer_nfs_view data;  /* WRITE; `count` need not say its length */
    struct peer_nfs_view path;  /* SYMLINK */
    uint8_t verf[PEER_NFS_VERF_LEN];
    uint32_t rdev_major, rdev_minor;
};

struct peer_nfs_wcc {
    bool has_before, has_after;
    uint64_t before_size;
    struct peer_nfs_time before_mtime, before_ctime;
    struct peer_nfs_attr after;
};

struct peer_nfs_res {
    uint32_t status;
    bool has_attr, has_dir_attr, has_fh, eof;
    struct peer_nfs_attr attr, dir_attr;
    struct peer_nfs_wcc wcc, to_wcc; /* RENAME: of both directories */
    struct peer_nfs_fh fh;
    uint32_t access, count, committed;
    uint8_t verf[PEER_NFS_VERF_LEN];
    struct peer_nfs_view data;    /* READ, READLINK */
    struct packet_reader entries; /* READDIR, READDIRPLUS: for peer_nfs_next_entry */
    uint32_t entry_count;
    uint32_t body_len;  /* of the whole result */
    uint64_t fsstat[6]; /* bytes: all, free, ours; files: all, free, ours */
    uint32_t invarsec;
    uint32_t rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref, properties;
    uint64_t maxfilesize;
    struct peer_nfs_time time_delta;
    uint32_t linkmax, name_max;
    bool no_trunc, chown_restricted, case_insensitive, case_preserving;
};

struct peer_nfs_entry {
    uint64_t fileid, cookie;
    struct peer_nfs_view name;
    bool has_attr, has_fh; /* READDIRPLUS */
    struct peer_nfs_attr attr;
    struct peer_nfs_fh fh;
};

struct peer_nfs_view peer_nfs_text(const char *text);
bool peer_nfs_is_text(struct peer_nfs_view view, const char *text);
bool peer_nfs_same_fh(const struct peer_nfs_fh *a, const struct peer_nfs_fh *b);
/* "LOOKUP"; "NOENT"; "?" for what has no name. */
const char *peer_nfs_procedure_text(uint32_t procedure);
const char *peer_nfs_status_text(uint32_t status);

/* Appends the arguments; of WRITE all but the data itself. */
void peer_nfs_put_args(struct packet *packet, uint32_t procedure, const struct peer_nfs_args *args);
/* False: not a result of this procedure. Views point into what the reader reads. */
bool peer_nfs_get_res(struct packet_reader *reader, uint32_t procedure, struct peer_nfs_res *ret);
/* The entries of a listing, in their order; `is_plus` for READDIRPLUS. False: that was all. */
bool peer_nfs_next_entry(struct packet_reader *entries, bool is_plus, struct peer_nfs_entry *ret);

/* A call that can be sent more than once. */
void peer_nfs_begin(struct peer_link *link, struct peer_link_call *call, uint32_t procedure,
                    const struct peer_nfs_args *args);
/* Reads what came. False: an RPC error, or it cannot be read. */
bool peer_nfs_finish(const struct packet_reply *reply, uint32_t procedure,
                     struct peer_nfs_res *ret);
/* One call and its answer: the status. PEER_NFS_IS_NOTHING: there is none; *ret is empty then. */
uint32_t peer_nfs_call(struct peer_link *link, uint32_t procedure, const struct peer_nfs_args *args,
                       struct peer_nfs_res *ret);

#endif
