/*
 * nfs_results.h -- the results of the 22 procedures of NFS version 3 (RFC 1813 section 3.3).
 *
 * One shape holds them all; a procedure's encoder reads only what its result has. A result is a
 * head, at most NFS_HEAD_MAX bytes, and, of READ, READLINK, READDIR and READDIRPLUS, a payload
 * behind it: bytes of the file or of the link, or entries. The payload is never copied here:
 *
 *     |<-- NFS_HEAD_MAX -->|<-- payload_len -->|<- padding ->|
 *     |    [ head written  |  read from disk   |   zeros     |
 *     |     so that it ends here]              |             |
 *
 * Read a file straight to where the payload belongs, then write the head in front of it, once it is
 * known what it says. Entries are written there by nfs_results_put_entry.
 */
#ifndef CODEC_NFS_RESULTS_H
#define CODEC_NFS_RESULTS_H

#include "codec/nfs_xdr.h"

enum {
    /* The longest head: CREATE with everything in it. */
    NFS_HEAD_MAX = 4 + NFS_POST_FH_MAX + NFS_POST_ATTR_MAX + NFS_WCC_MAX,
    /* One entry of READDIR without its name, and the end of the list. */
    NFS_ENTRY_LEN = 4 + 8 + 4 + 8,
    NFS_ENTRIES_END_LEN = 8,
    /* What READDIR and READDIRPLUS have in front of their entries. */
    NFS_DIR_HEAD_MAX = 4 + NFS_POST_ATTR_MAX + NFS_VERF_LEN,
};

/* FSF of FSINFO. */
enum { NFS_FSF_LINK = 1, NFS_FSF_SYMLINK = 2, NFS_FSF_HOMOGENEOUS = 8, NFS_FSF_CANSETTIME = 16 };

struct nfs_fsstat {
    uint64_t tbytes, fbytes, abytes, tfiles, ffiles, afiles;
    uint32_t invarsec;
};

struct nfs_fsinfo {
    uint32_t rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref;
    uint64_t maxfilesize;
    struct nfs_time time_delta;
    uint32_t properties;
};

struct nfs_pathconf {
    uint32_t linkmax, name_max;
    bool no_trunc, chown_restricted, case_insensitive, case_preserving;
};

struct nfs_result {
    enum nfs_stat stat;
    /*
     * The object: GETATTR (there whenever OK), LOOKUP, ACCESS, READLINK, READ, CREATE, MKDIR,
     * SYMLINK, MKNOD, LINK, READDIR, READDIRPLUS (the directory), FSSTAT, FSINFO, PATHCONF. After a
     * failure it is sent by those that have it then: ACCESS, READLINK, READ, LINK, READDIR,
     * READDIRPLUS, FSSTAT, FSINFO, PATHCONF.
     */
    struct nfs_post_attr attr;
    struct nfs_post_attr dir_attr; /* LOOKUP, sent also after a failure */
    /* SETATTR, WRITE, COMMIT: the file; CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR: the
     * directory; RENAME: the directory it leaves; LINK: the directory. Always sent. */
    struct nfs_wcc wcc;
    struct nfs_wcc to_wcc; /* RENAME: the directory it enters */
    bool has_fh;           /* CREATE, MKDIR, SYMLINK, MKNOD: may be left out; LOOKUP must have it */
    struct nfs_fh fh;
    uint32_t access;            /* ACCESS: the bits granted */
    uint32_t count;             /* WRITE: bytes written */
    enum nfs_stable committed;  /* WRITE */
    uint8_t verf[NFS_VERF_LEN]; /* WRITE, COMMIT; READDIR, READDIRPLUS: cookieverf */
    uint32_t payload_len; /* READ, READLINK, READDIR, READDIRPLUS: what stands behind the head */
    bool eof;             /* READ; a listing says it in its entries' end */
    struct nfs_fsstat fsstat;
    struct nfs_fsinfo fsinfo;
    struct nfs_pathconf pathconf;
};

/* Has an OK result of it a payload? */
bool nfs_results_has_payload(enum nfs_procedure procedure);

/* The head, all of it but for a payload. NULL has nothing to write. */
void nfs_results_put(struct xdr_out *out, enum nfs_procedure procedure,
                     const struct nfs_result *result);

/* Of a procedure that has a payload: the bytes of nfs_results_put, which is how far in front of the
 * payload it starts. */
uint32_t nfs_results_payload_head_len(enum nfs_procedure procedure,
                                      const struct nfs_result *result);

/* entry3 and entryplus3. */
struct nfs_entry {
    uint64_t fileid, cookie;
    struct bytes name;
    const struct nfs_attr *attr; /* READDIRPLUS; NULL: not known */
    const struct nfs_fh *fh;     /* READDIRPLUS; NULL: not known */
};

/* What an entry takes: counted against `count`, or against `maxcount` of READDIRPLUS. */
uint32_t nfs_results_entry_len(enum nfs_procedure procedure, const struct nfs_entry *entry);
/* And what of it counts against `dircount`: fileid, name and cookie. */
uint32_t nfs_results_dircount_len(const struct nfs_entry *entry);
void nfs_results_put_entry(struct xdr_out *out, enum nfs_procedure procedure,
                           const struct nfs_entry *entry);
/* After the last one: NFS_ENTRIES_END_LEN bytes. */
void nfs_results_put_entries_end(struct xdr_out *out, bool eof);

#endif
