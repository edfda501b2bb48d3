/*
 * peer_nfs.c -- NFS version 3 as a client speaks it: names and whole calls, and arguments; see
 * peer_nfs.h. Results are read in peer_nfs_res.c.
 *
 * Written from RFC 1813, without a look at src/codec.
 */
#include "peer/peer_nfs.h"

#include <string.h>

struct peer_nfs_view peer_nfs_text(const char *text)
{
    return (struct peer_nfs_view){text, (uint32_t)strlen(text)};
}

bool peer_nfs_is_text(struct peer_nfs_view view, const char *text)
{
    return view.len == strlen(text) && memcmp(view.at, text, view.len) == 0;
}

bool peer_nfs_same_fh(const struct peer_nfs_fh *a, const struct peer_nfs_fh *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

const char *peer_nfs_procedure_text(uint32_t procedure)
{
    static const char *const names[PEER_NFS_PROCEDURES] = {
        "NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",   "WRITE",
        "CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME", "LINK",
        "READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT"};
    return procedure < PEER_NFS_PROCEDURES ? names[procedure] : "?";
}

static const struct {
    uint32_t status;
    const char *name;
} statuses[] = {
    {0, "OK"},
    {1, "PERM"},
    {2, "NOENT"},
    {5, "IO"},
    {6, "NXIO"},
    {13, "ACCES"},
    {17, "EXIST"},
    {18, "XDEV"},
    {19, "NODEV"},
    {20, "NOTDIR"},
    {21, "ISDIR"},
    {22, "INVAL"},
    {27, "FBIG"},
    {28, "NOSPC"},
    {30, "ROFS"},
    {31, "MLINK"},
    {63, "NAMETOOLONG"},
    {66, "NOTEMPTY"},
    {69, "DQUOT"},
    {70, "STALE"},
    {71, "REMOTE"},
    {10001, "BADHANDLE"},
    {10002, "NOT_SYNC"},
    {10003, "BAD_COOKIE"},
    {10004, "NOTSUPP"},
    {10005, "TOOSMALL"},
    {10006, "SERVERFAULT"},
    {10007, "BADTYPE"},
    {10008, "JUKEBOX"},
    {PEER_NFS_IS_NOTHING, "no answer"},
};

const char *peer_nfs_status_text(uint32_t status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i].status == status)
            return statuses[i].name;
    return "?";
}

static void put_view(struct packet *packet, struct peer_nfs_view view)
{
    packet_put_opaque(packet, view.at, view.len);
}

static void put_fh(struct packet *packet, const struct peer_nfs_fh *fh)
{
    packet_put_opaque(packet, fh->at, fh->len);
}

static void put_time(struct packet *packet, struct peer_nfs_time time)
{
    packet_put_u32(packet, time.seconds);
    packet_put_u32(packet, time.nanoseconds);
}

static void put_optional(struct packet *packet, bool is_there, uint32_t value)
{
    packet_put_u32(packet, is_there);
    if (is_there)
        packet_put_u32(packet, value);
}

static void put_sattr(struct packet *packet, const struct peer_nfs_sattr *sattr)
{
    put_optional(packet, sattr->has_mode, sattr->mode);
    put_optional(packet, sattr->has_uid, sattr->uid);
    put_optional(packet, sattr->has_gid, sattr->gid);
    packet_put_u32(packet, sattr->has_size);
    if (sattr->has_size)
        packet_put_u64(packet, sattr->size);
    packet_put_u32(packet, sattr->atime_how);
    if (sattr->atime_how == PEER_NFS_CLIENT_TIME)
        put_time(packet, sattr->atime);
    packet_put_u32(packet, sattr->mtime_how);
    if (sattr->mtime_how == PEER_NFS_CLIENT_TIME)
        put_time(packet, sattr->mtime);
}

static void put_create(struct packet *packet, const struct peer_nfs_args *args)
{
    packet_put_u32(packet, args->how);
    if (args->how == PEER_NFS_EXCLUSIVE)
        packet_put_bytes(packet, args->verf, sizeof(args->verf));
    else
        put_sattr(packet, &args->sattr);
}

static void put_mknod(struct packet *packet, const struct peer_nfs_args *args)
{
    packet_put_u32(packet, args->type);
    if (args->type == PEER_NFS_CHR || args->type == PEER_NFS_BLK || args->type == PEER_NFS_SOCK ||
        args->type == PEER_NFS_FIFO)
        put_sattr(packet, &args->sattr);
    if (args->type == PEER_NFS_CHR || args->type == PEER_NFS_BLK) {
        packet_put_u32(packet, args->rdev_major);
        packet_put_u32(packet, args->rdev_minor);
    }
}

static void put_listing(struct packet *packet, uint32_t procedure, const struct peer_nfs_args *args)
{
    packet_put_u64(packet, args->cookie);
    packet_put_bytes(packet, args->verf, sizeof(args->verf));
    if (procedure == PEER_NFS_READDIRPLUS)
        packet_put_u32(packet, args->dircount);
    packet_put_u32(packet, args->count);
}

static void put_setattr(struct packet *packet, const struct peer_nfs_args *args)
{
    put_sattr(packet, &args->sattr);
    packet_put_u32(packet, args->has_guard);
    if (args->has_guard)
        put_time(packet, args->guard);
}

static void put_range(struct packet *packet, uint32_t procedure, const struct peer_nfs_args *args)
{
    packet_put_u64(packet, args->offset);
    packet_put_u32(packet, args->count);
    if (procedure != PEER_NFS_WRITE)
        return;
    packet_put_u32(packet, args->stable);
    packet_put_u32(packet, args->data.len);
}

static bool has_name(uint32_t procedure)
{
    return procedure == PEER_NFS_LOOKUP || procedure == PEER_NFS_RENAME ||
           (procedure >= PEER_NFS_CREATE && procedure <= PEER_NFS_RMDIR);
}

void peer_nfs_put_args(struct packet *packet, uint32_t procedure, const struct peer_nfs_args *args)
{
    if (procedure == PEER_NFS_NULL)
        return;
    put_fh(packet, &args->fh);
    if (has_name(procedure))
        put_view(packet, args->name);
    if (procedure == PEER_NFS_SETATTR)
        put_setattr(packet, args);
    if (procedure == PEER_NFS_ACCESS)
        packet_put_u32(packet, args->access);
    if (procedure == PEER_NFS_READ || procedure == PEER_NFS_WRITE || procedure == PEER_NFS_COMMIT)
        put_range(packet, procedure, args);
    if (procedure == PEER_NFS_CREATE)
        put_create(packet, args);
    if (procedure == PEER_NFS_MKDIR || procedure == PEER_NFS_SYMLINK)
        put_sattr(packet, &args->sattr);
    if (procedure == PEER_NFS_SYMLINK)
        put_view(packet, args->path);
    if (procedure == PEER_NFS_MKNOD)
        put_mknod(packet, args);
    if (procedure == PEER_NFS_RENAME || procedure == PEER_NFS_LINK) {
        put_fh(packet, &args->to_fh);
        put_view(packet, args->to_name);
    }
    if (procedure == PEER_NFS_READDIR || procedure == PEER_NFS_READDIRPLUS)
        put_listing(packet, procedure, args);
}

void peer_nfs_begin(struct peer_link *link, struct peer_link_call *call, uint32_t procedure,
                    const struct peer_nfs_args *args)
{
    peer_link_begin(link, call, PEER_NFS_PROGRAM, PEER_NFS_VERSION, procedure);
    peer_nfs_put_args(&call->head, procedure, args);
    if (procedure == PEER_NFS_WRITE) {
        call->data = args->data.at;
        call->data_len = args->data.len;
    }
}

bool peer_nfs_finish(const struct packet_reply *reply, uint32_t procedure, struct peer_nfs_res *ret)
{
    struct packet_reader reader = {reply->body, reply->body_len, false};
    return reply->accepted && reply->status == PACKET_SUCCESS &&
           peer_nfs_get_res(&reader, procedure, ret);
}

uint32_t peer_nfs_call(struct peer_link *link, uint32_t procedure, const struct peer_nfs_args *args,
                       struct peer_nfs_res *ret)
{
    static _Thread_local struct peer_link_call call;
    struct packet_reply reply;
    *ret = (struct peer_nfs_res){.status = PEER_NFS_IS_NOTHING};
    peer_nfs_begin(link, &call, procedure, args);
    if (peer_link_exchange(link, &call, &reply) == 0)
        (void)peer_nfs_finish(&reply, procedure, ret); /* what cannot be read is no answer */
    return ret->status;
}
