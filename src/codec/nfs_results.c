/*
 * nfs_results.c -- what NFS version 3 answers (RFC 1813 section 3.3, procedure by procedure).
 *
 * Every result is a status and, behind it, one of two bodies: that of success and that of failure.
 *
 *                  success                                          failure
 *   GETATTR        fattr3                                           -
 *   SETATTR        wcc                                              wcc
 *   LOOKUP         fh; post_op_attr obj; post_op_attr dir           post_op_attr dir
 *   ACCESS         post_op_attr; u32 access                         post_op_attr
 *   READLINK       post_op_attr; string path                        post_op_attr
 *   READ           post_op_attr; u32 count; bool eof; opaque data   post_op_attr
 *   WRITE          wcc; u32 count; u32 committed; opaque verf[8]    wcc
 *   CREATE, MKDIR, SYMLINK, MKNOD
 *                  post_op_fh; post_op_attr; wcc dir                wcc dir
 *   REMOVE, RMDIR  wcc dir                                          wcc dir
 *   RENAME         wcc from; wcc to                                 wcc from; wcc to
 *   LINK           post_op_attr; wcc dir                            post_op_attr; wcc dir
 *   READDIR, READDIRPLUS
 *                  post_op_attr; opaque verf[8]; entries            post_op_attr
 *   FSSTAT, FSINFO, PATHCONF
 *                  post_op_attr; numbers                            post_op_attr
 *   COMMIT         wcc; opaque verf[8]                              wcc
 *
 * Entries are a list: a 1 in front of each, a 0 behind the last, and whether that is the end.
 */
#include "codec/nfs_results.h"

#include "base/check.h"

static void put_made(struct xdr_out *out, const struct nfs_result *r)
{
    if (r->stat == NFS_OK) {
        nfs_xdr_put_post_fh(out, r->has_fh ? &r->fh : NULL);
        nfs_xdr_put_post_attr(out, &r->attr);
    }
    nfs_xdr_put_wcc(out, &r->wcc);
}

static void put_lookup(struct xdr_out *out, const struct nfs_result *r)
{
    if (r->stat == NFS_OK) {
        CHECK(r->has_fh);
        nfs_xdr_put_fh(out, &r->fh);
        nfs_xdr_put_post_attr(out, &r->attr);
    }
    nfs_xdr_put_post_attr(out, &r->dir_attr);
}

static void put_verf(struct xdr_out *out, const struct nfs_result *r)
{
    xdr_put_fixed(out, (struct bytes){r->verf, NFS_VERF_LEN});
}

static void put_write(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_wcc(out, &r->wcc);
    if (r->stat != NFS_OK)
        return;
    xdr_put_u32(out, r->count);
    xdr_put_u32(out, (uint32_t)r->committed);
    put_verf(out, r);
}

static void put_read(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat != NFS_OK)
        return;
    xdr_put_u32(out, r->payload_len); /* count */
    xdr_put_u32(out, r->eof);
    xdr_put_u32(out, r->payload_len); /* of the data */
}

static void put_fsstat(struct xdr_out *out, const struct nfs_fsstat *fs)
{
    xdr_put_u64(out, fs->tbytes);
    xdr_put_u64(out, fs->fbytes);
    xdr_put_u64(out, fs->abytes);
    xdr_put_u64(out, fs->tfiles);
    xdr_put_u64(out, fs->ffiles);
    xdr_put_u64(out, fs->afiles);
    xdr_put_u32(out, fs->invarsec);
}

static void put_fsinfo(struct xdr_out *out, const struct nfs_fsinfo *fs)
{
    xdr_put_u32(out, fs->rtmax);
    xdr_put_u32(out, fs->rtpref);
    xdr_put_u32(out, fs->rtmult);
    xdr_put_u32(out, fs->wtmax);
    xdr_put_u32(out, fs->wtpref);
    xdr_put_u32(out, fs->wtmult);
    xdr_put_u32(out, fs->dtpref);
    xdr_put_u64(out, fs->maxfilesize);
    nfs_xdr_put_time(out, fs->time_delta);
    xdr_put_u32(out, fs->properties);
}

static void put_pathconf(struct xdr_out *out, const struct nfs_pathconf *conf)
{
    xdr_put_u32(out, conf->linkmax);
    xdr_put_u32(out, conf->name_max);
    xdr_put_u32(out, conf->no_trunc);
    xdr_put_u32(out, conf->chown_restricted);
    xdr_put_u32(out, conf->case_insensitive);
    xdr_put_u32(out, conf->case_preserving);
}

static void put_fsstat_result(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat == NFS_OK)
        put_fsstat(out, &r->fsstat);
}

static void put_fsinfo_result(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat == NFS_OK)
        put_fsinfo(out, &r->fsinfo);
}

static void put_pathconf_result(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat == NFS_OK)
        put_pathconf(out, &r->pathconf);
}

static void put_getattr(struct xdr_out *out, const struct nfs_result *r)
{
    if (r->stat != NFS_OK)
        return;
    CHECK(r->attr.is_there);
    nfs_xdr_put_attr(out, &r->attr.attr);
}

static void put_access(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat == NFS_OK)
        xdr_put_u32(out, r->access);
}

static void put_readlink(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat == NFS_OK)
        xdr_put_u32(out, r->payload_len);
}

static void put_listing(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    if (r->stat == NFS_OK)
        put_verf(out, r);
}

static void put_changed(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_wcc(out, &r->wcc);
}

static void put_rename(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_wcc(out, &r->wcc);
    nfs_xdr_put_wcc(out, &r->to_wcc);
}

static void put_link(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_post_attr(out, &r->attr);
    nfs_xdr_put_wcc(out, &r->wcc);
}

static void put_commit(struct xdr_out *out, const struct nfs_result *r)
{
    nfs_xdr_put_wcc(out, &r->wcc);
    if (r->stat == NFS_OK)
        put_verf(out, r);
}

static void (*const putters[NFS_PROCEDURE_COUNT])(struct xdr_out *out,
                                                  const struct nfs_result *r) = {
    [NFS_NULL] = NULL, /* void */
    [NFS_GETATTR] = put_getattr,
    [NFS_SETATTR] = put_changed,
    [NFS_LOOKUP] = put_lookup,
    [NFS_ACCESS] = put_access,
    [NFS_READLINK] = put_readlink,
    [NFS_READ] = put_read,
    [NFS_WRITE] = put_write,
    [NFS_CREATE] = put_made,
    [NFS_MKDIR] = put_made,
    [NFS_SYMLINK] = put_made,
    [NFS_MKNOD] = put_made,
    [NFS_REMOVE] = put_changed,
    [NFS_RMDIR] = put_changed,
    [NFS_RENAME] = put_rename,
    [NFS_LINK] = put_link,
    [NFS_READDIR] = put_listing,
    [NFS_READDIRPLUS] = put_listing,
    [NFS_FSSTAT] = put_fsstat_result,
    [NFS_FSINFO] = put_fsinfo_result,
    [NFS_PATHCONF] = put_pathconf_result,
    [NFS_COMMIT] = put_commit,
};

void nfs_results_put(struct xdr_out *out, enum nfs_procedure procedure,
                     const struct nfs_result *result)
{
    CHECK((uint32_t)procedure < NFS_PROCEDURE_COUNT);
    if (putters[procedure] == NULL)
        return;
    xdr_put_u32(out, (uint32_t)result->stat);
    putters[procedure](out, result);
}

bool nfs_results_has_payload(enum nfs_procedure procedure)
{
    return procedure == NFS_READ || procedure == NFS_READLINK || procedure == NFS_READDIR ||
           procedure == NFS_READDIRPLUS;
}

uint32_t nfs_results_payload_head_len(enum nfs_procedure procedure, const struct nfs_result *result)
{
    CHECK(nfs_results_has_payload(procedure));
    uint32_t len = 4 + 4 + (result->attr.is_there ? (uint32_t)NFS_ATTR_LEN : 0);
    if (result->stat != NFS_OK)
        return len;
    if (procedure == NFS_READ)
        return len + 12;
    return len + (procedure == NFS_READLINK ? 4 : (uint32_t)NFS_VERF_LEN);
}

static uint32_t padded(uint32_t len)
{
    return (len + 3) & ~UINT32_C(3);
}

uint32_t nfs_results_entry_len(enum nfs_procedure procedure, const struct nfs_entry *entry)
{
    uint32_t len = NFS_ENTRY_LEN + padded(entry->name.len);
    if (procedure != NFS_READDIRPLUS)
        return len;
    len += 4 + (entry->attr != NULL ? (uint32_t)NFS_ATTR_LEN : 0);
    return len + 4 + (entry->fh != NULL ? 4 + padded(entry->fh->len) : 0);
}

uint32_t nfs_results_dircount_len(const struct nfs_entry *entry)
{
    return NFS_ENTRY_LEN - 4 + padded(entry->name.len);
}

void nfs_results_put_entry(struct xdr_out *out, enum nfs_procedure procedure,
                           const struct nfs_entry *entry)
{
    xdr_put_u32(out, 1);
    xdr_put_u64(out, entry->fileid);
    xdr_put_opaque(out, entry->name);
    xdr_put_u64(out, entry->cookie);
    if (procedure != NFS_READDIRPLUS)
        return;
    xdr_put_u32(out, entry->attr != NULL);
    if (entry->attr != NULL)
        nfs_xdr_put_attr(out, entry->attr);
    nfs_xdr_put_post_fh(out, entry->fh);
}

void nfs_results_put_entries_end(struct xdr_out *out, bool eof)
{
    xdr_put_u32(out, 0);
    xdr_put_u32(out, eof);
}
