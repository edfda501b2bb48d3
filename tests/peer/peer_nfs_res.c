/*
 * peer_nfs_res.c -- the results of NFS version 3, read; see peer_nfs.h.
 *
 * Written from RFC 1813, without a look at src/codec. A listing is walked once to know that it is
 * well-formed; who wants the entries walks it again.
 */
#include "peer/peer_nfs.h"

#include <string.h>

static bool get_bool(struct packet_reader *reader)
{
    uint32_t value = packet_get_u32(reader);
    if (value > 1)
        reader->failed = true;
    return value == 1;
}

static uint32_t get_enum(struct packet_reader *reader, uint32_t least, uint32_t most)
{
    uint32_t value = packet_get_u32(reader);
    if (value < least || value > most)
        reader->failed = true;
    return value;
}

static struct peer_nfs_time get_time(struct packet_reader *reader)
{
    struct peer_nfs_time time = {.seconds = packet_get_u32(reader)};
    time.nanoseconds = packet_get_u32(reader);
    if (time.nanoseconds >= 1000000000)
        reader->failed = true;
    return time;
}

static struct peer_nfs_attr get_attr(struct packet_reader *reader)
{
    struct peer_nfs_attr attr = {.type = get_enum(reader, PEER_NFS_REG, PEER_NFS_FIFO)};
    attr.mode = get_enum(reader, 0, 07777);
    attr.nlink = packet_get_u32(reader);
    attr.uid = packet_get_u32(reader);
    attr.gid = packet_get_u32(reader);
    attr.size = packet_get_u64(reader);
    attr.used = packet_get_u64(reader);
    attr.rdev_major = packet_get_u32(reader);
    attr.rdev_minor = packet_get_u32(reader);
    attr.fsid = packet_get_u64(reader);
    attr.fileid = packet_get_u64(reader);
    attr.atime = get_time(reader);
    attr.mtime = get_time(reader);
    attr.ctime = get_time(reader);
    return attr;
}

static void get_post_attr(struct packet_reader *reader, bool *ret_has, struct peer_nfs_attr *ret)
{
    *ret_has = get_bool(reader);
    if (*ret_has)
        *ret = get_attr(reader);
}

static void get_fh(struct packet_reader *reader, struct peer_nfs_fh *ret)
{
    const uint8_t *at = packet_get_opaque(reader, PEER_NFS_FH_MAX, &ret->len);
    if (at)
        memcpy(ret->at, at, ret->len);
}

static void get_post_fh(struct packet_reader *reader, bool *ret_has, struct peer_nfs_fh *ret)
{
    *ret_has = get_bool(reader);
    if (*ret_has)
        get_fh(reader, ret);
}

static struct peer_nfs_wcc get_wcc(struct packet_reader *reader)
{
    struct peer_nfs_wcc wcc = {.has_before = get_bool(reader)};
    if (wcc.has_before) {
        wcc.before_size = packet_get_u64(reader);
        wcc.before_mtime = get_time(reader);
        wcc.before_ctime = get_time(reader);
    }
    get_post_attr(reader, &wcc.has_after, &wcc.after);
    return wcc;
}

static void get_verf(struct packet_reader *reader, uint8_t *verf)
{
    const uint8_t *at = packet_get_fixed(reader, PEER_NFS_VERF_LEN);
    if (at)
        memcpy(verf, at, PEER_NFS_VERF_LEN);
}

static struct peer_nfs_view get_view(struct packet_reader *reader, uint32_t len_max)
{
    struct peer_nfs_view view;
    view.at = packet_get_opaque(reader, len_max, &view.len);
    return view;
}

/* One entry behind its "there is one". */
static void get_entry(struct packet_reader *reader, bool is_plus, struct peer_nfs_entry *ret)
{
    *ret = (struct peer_nfs_entry){.fileid = packet_get_u64(reader)};
    ret->name = get_view(reader, 255);
    ret->cookie = packet_get_u64(reader);
    if (is_plus) {
        get_post_attr(reader, &ret->has_attr, &ret->attr);
        get_post_fh(reader, &ret->has_fh, &ret->fh);
    }
}

bool peer_nfs_next_entry(struct packet_reader *entries, bool is_plus, struct peer_nfs_entry *ret)
{
    if (entries->failed || !get_bool(entries))
        return false;
    get_entry(entries, is_plus, ret);
    return !entries->failed;
}

static void get_listing(struct packet_reader *reader, bool is_plus, struct peer_nfs_res *res)
{
    struct peer_nfs_entry entry;
    get_verf(reader, res->verf);
    res->entries = *reader;
    while (!reader->failed && get_bool(reader)) {
        get_entry(reader, is_plus, &entry);
        res->entry_count++;
    }
    res->eof = get_bool(reader);
}

static void get_fsinfo(struct packet_reader *reader, struct peer_nfs_res *res)
{
    res->rtmax = packet_get_u32(reader);
    res->rtpref = packet_get_u32(reader);
    res->rtmult = packet_get_u32(reader);
    res->wtmax = packet_get_u32(reader);
    res->wtpref = packet_get_u32(reader);
    res->wtmult = packet_get_u32(reader);
    res->dtpref = packet_get_u32(reader);
    res->maxfilesize = packet_get_u64(reader);
    res->time_delta.seconds = packet_get_u32(reader);
    res->time_delta.nanoseconds = packet_get_u32(reader);
    res->properties = packet_get_u32(reader);
}

static void get_fsstat(struct packet_reader *reader, struct peer_nfs_res *res)
{
    for (uint32_t i = 0; i < 6; i++)
        res->fsstat[i] = packet_get_u64(reader);
    res->invarsec = packet_get_u32(reader);
}

static void get_pathconf(struct packet_reader *reader, struct peer_nfs_res *res)
{
    res->linkmax = packet_get_u32(reader);
    res->name_max = packet_get_u32(reader);
    res->no_trunc = get_bool(reader);
    res->chown_restricted = get_bool(reader);
    res->case_insensitive = get_bool(reader);
    res->case_preserving = get_bool(reader);
}

/* What SETATTR, WRITE, COMMIT, REMOVE, RMDIR and RENAME have, whatever came of them. */
static void get_changed(struct packet_reader *reader, uint32_t procedure, struct peer_nfs_res *res)
{
    res->wcc = get_wcc(reader);
    if (procedure == PEER_NFS_RENAME)
        res->to_wcc = get_wcc(reader);
    if (res->status != PEER_NFS_IS_OK)
        return;
    if (procedure == PEER_NFS_WRITE) {
        res->count = packet_get_u32(reader);
        res->committed = get_enum(reader, PEER_NFS_UNSTABLE, PEER_NFS_FILE_SYNC);
    }
    if (procedure == PEER_NFS_WRITE || procedure == PEER_NFS_COMMIT)
        get_verf(reader, res->verf);
}

static void get_created(struct packet_reader *reader, struct peer_nfs_res *res)
{
    if (res->status == PEER_NFS_IS_OK) {
        get_post_fh(reader, &res->has_fh, &res->fh);
        get_post_attr(reader, &res->has_attr, &res->attr);
    }
    res->wcc = get_wcc(reader);
}

static void get_lookup(struct packet_reader *reader, struct peer_nfs_res *res)
{
    if (res->status == PEER_NFS_IS_OK) {
        res->has_fh = true;
        get_fh(reader, &res->fh);
        get_post_attr(reader, &res->has_attr, &res->attr);
    }
    get_post_attr(reader, &res->has_dir_attr, &res->dir_attr);
}

/* READ, READLINK, ACCESS, listings and the file system's: attributes first, more when OK. */
static void get_looked(struct packet_reader *reader, uint32_t procedure, struct peer_nfs_res *res)
{
    get_post_attr(reader, &res->has_attr, &res->attr);
    if (procedure == PEER_NFS_LINK)
        res->wcc = get_wcc(reader);
    if (res->status != PEER_NFS_IS_OK)
        return;
    if (procedure == PEER_NFS_ACCESS)
        res->access = packet_get_u32(reader);
    if (procedure == PEER_NFS_READLINK)
        res->data = get_view(reader, 4096);
    if (procedure == PEER_NFS_READ) {
        res->count = packet_get_u32(reader);
        res->eof = get_bool(reader);
        res->data = get_view(reader, PEER_NFS_DATA_MAX);
        if (res->count != res->data.len)
            reader->failed = true;
    }
    if (procedure == PEER_NFS_READDIR || procedure == PEER_NFS_READDIRPLUS)
        get_listing(reader, procedure == PEER_NFS_READDIRPLUS, res);
    if (procedure == PEER_NFS_FSSTAT)
        get_fsstat(reader, res);
    if (procedure == PEER_NFS_FSINFO)
        get_fsinfo(reader, res);
    if (procedure == PEER_NFS_PATHCONF)
        get_pathconf(reader, res);
}

static void get_body(struct packet_reader *reader, uint32_t procedure, struct peer_nfs_res *res)
{
    switch ((enum peer_nfs_procedure)procedure) {
    case PEER_NFS_NULL:
        break;
    case PEER_NFS_GETATTR:
        res->has_attr = res->status == PEER_NFS_IS_OK;
        if (res->has_attr)
            res->attr = get_attr(reader);
        break;
    case PEER_NFS_LOOKUP:
        get_lookup(reader, res);
        break;
    case PEER_NFS_CREATE:
    case PEER_NFS_MKDIR:
    case PEER_NFS_SYMLINK:
    case PEER_NFS_MKNOD:
        get_created(reader, res);
        break;
    case PEER_NFS_SETATTR:
    case PEER_NFS_WRITE:
    case PEER_NFS_REMOVE:
    case PEER_NFS_RMDIR:
    case PEER_NFS_RENAME:
    case PEER_NFS_COMMIT:
        get_changed(reader, procedure, res);
        break;
    case PEER_NFS_ACCESS:
    case PEER_NFS_READLINK:
    case PEER_NFS_READ:
    case PEER_NFS_LINK:
    case PEER_NFS_READDIR:
    case PEER_NFS_READDIRPLUS:
    case PEER_NFS_FSSTAT:
    case PEER_NFS_FSINFO:
    case PEER_NFS_PATHCONF:
        get_looked(reader, procedure, res);
        break;
    }
}

bool peer_nfs_get_res(struct packet_reader *reader, uint32_t procedure, struct peer_nfs_res *ret)
{
    struct peer_nfs_res res = {.body_len = reader->left};
    if (procedure >= PEER_NFS_PROCEDURES)
        return false;
    if (procedure != PEER_NFS_NULL)
        res.status = packet_get_u32(reader);
    if (strcmp(peer_nfs_status_text(res.status), "?") == 0 || res.status == PEER_NFS_IS_NOTHING)
        return false;
    get_body(reader, procedure, &res);
    if (!packet_is_done(reader))
        return false;
    *ret = res;
    return true;
}
