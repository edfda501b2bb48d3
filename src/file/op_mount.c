/*
 * op_mount.c -- the procedures of MOUNT: MNT, DUMP, UMNT, UMNTALL, EXPORT.
 *
 * MNT of an exported directory, or of one below it, answers its handle. What lies outside every
 * export, or in one that does not list the client, is ACCES, whether it exists or not: a client
 * that may not look does not learn that either.
 */
#include "base/check.h"
#include "file/call.h"
#include "file/mounts.h"
#include "file/service.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static enum mount_stat stat_of(int err)
{
    switch (err) {
    case -ENOENT:
        return MOUNT_NOENT;
    case -ENOTDIR:
        return MOUNT_NOTDIR;
    case -ENAMETOOLONG:
        return MOUNT_NAMETOOLONG;
    case -EIO:
        return MOUNT_IO;
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        return MOUNT_SERVERFAULT;
    default: /* a symbolic link, another file system, no permission */
        return MOUNT_ACCES;
    }
}

/* Without double and trailing slashes. False: not a path that can be mounted. */
static bool clean_path(struct bytes path, char ret[MOUNT_PATH_MAX + 1])
{
    uint32_t len = 0;
    if (path.len == 0 || path.at[0] != '/' || memchr(path.at, 0, path.len) != NULL)
        return false;
    for (uint32_t i = 0; i < path.len; i++)
        if (path.at[i] != '/' || len == 0 || ret[len - 1] != '/')
            ret[len++] = (char)path.at[i];
    while (len > 1 && ret[len - 1] == '/')
        len--;
    ret[len] = 0;
    return true;
}

const struct export *op_mount_export(const struct call *call)
{
    char path[MOUNT_PATH_MAX + 1];
    const char *rest;
    return call->procedure == MOUNT_MNT && clean_path(call->path, path)
               ? export_table_find_path(call->exports, path, &rest)
               : NULL;
}

static enum mount_stat open_path(struct call *call, const char *path, struct nfs_fh *ret)
{
    const char *rest;
    const struct export *export = export_table_find_path(call->exports, path, &rest);
    if (export == NULL || export_rights_of(export, &call->from, call->port) == NULL)
        return MOUNT_ACCES;
    identity_own();
    int fd = resolve_open_at(export->root_fd, *rest == 0 ? "." : rest, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return stat_of(fd);
    struct handle_object object;
    struct stat st;
    int code = handle_object_of(fd, &object);
    bool is_gone = fstat(fd, &st) == 0 && st.st_nlink == 0; /* we have it open, and nobody else */
    (void)close(fd);
    if (is_gone)
        return MOUNT_NOENT;
    if (code != 0)
        return MOUNT_SERVERFAULT;
    handle_make(call_key(call), export->id, &object, ret);
    return MOUNT_OK;
}

static void mnt(struct call *call, struct xdr_out *out)
{
    char path[MOUNT_PATH_MAX + 1];
    struct mount_result result = {
        .stat = MOUNT_ACCES, .flavors = {RPC_AUTH_SYS, RPC_AUTH_NONE}, .flavor_count = 2};
    if (clean_path(call->path, path))
        result.stat = open_path(call, path, &result.fh);
    if (result.stat == MOUNT_OK)
        mounts_add(call->service->mounts, &call->from, path);
    call->job.status = (uint32_t)result.stat;
    mount_xdr_put_mnt(out, &result);
}

/* ---- lists: what does not fit is left out, and the end is always there ---- */

enum { LIST_END_LEN = 8 };

static bool has_room(const struct xdr_out *out, size_t len)
{
    return (size_t)(out->end - out->at) >= len + LIST_END_LEN;
}

static bool put_mount(void *context, const struct address *from, const char *path)
{
    struct xdr_out *out = context;
    char host[ADDRESS_TEXT_MAX];
    address_text(from, host);
    if (!has_room(out, 4 + 4 + strlen(host) + 3 + 4 + strlen(path) + 3))
        return false;
    mount_xdr_put_mount(out, bytes_of_text(host), bytes_of_text(path));
    return true;
}

static bool is_everybody(const struct export *export)
{
    for (uint32_t i = 0; i < export->rule_count; i++)
        if (export->rules[i].client.kind == EXPORT_EVERYBODY)
            return true;
    return false;
}

static void put_export(struct xdr_out *out, const struct export *export)
{
    if (!has_room(out, 4 + 4 + strlen(export->directory) + 3 + 4))
        return;
    mount_xdr_put_export(out, bytes_of_text(export->directory));
    for (uint32_t i = 0; !is_everybody(export) && i < export->rule_count; i++) {
        const char *name = export->rules[i].client.name;
        if (has_room(out, 4 + 4 + strlen(name) + 3 + 4))
            mount_xdr_put_group(out, bytes_of_text(name));
    }
    mount_xdr_put_end(out);
}

void op_mount(struct call *call)
{
    struct xdr_out out = xdr_out_of(call->memory + JOB_HEADROOM, NFS_HEAD_MAX + call->payload_max);
    char path[MOUNT_PATH_MAX + 1];
    switch ((enum mount_procedure)call->procedure) {
    case MOUNT_NULL:
        break;
    case MOUNT_MNT:
        mnt(call, &out);
        break;
    case MOUNT_DUMP:
        mounts_each(call->service->mounts, put_mount, &out);
        mount_xdr_put_end(&out);
        break;
    case MOUNT_UMNT:
        if (clean_path(call->path, path))
            mounts_remove(call->service->mounts, &call->from, path);
        break;
    case MOUNT_UMNTALL:
        mounts_remove_all(call->service->mounts, &call->from);
        break;
    case MOUNT_EXPORT:
        for (uint32_t i = 0; i < call->exports->count; i++)
            put_export(&out, &call->exports->exports[i]);
        mount_xdr_put_end(&out);
        break;
    }
    CHECK(!out.overflowed);
    call->job.body = call->memory + JOB_HEADROOM;
    call->job.body_len = xdr_out_len(&out);
}

/* MOUNT has no status for "not now"; only MNT has one at all. */
void op_mount_refuse(struct call *call)
{
    struct mount_result result = {.stat = MOUNT_SERVERFAULT};
    struct xdr_out out = xdr_out_of(call->memory + JOB_HEADROOM, NFS_HEAD_MAX);
    if (call->procedure == MOUNT_MNT)
        mount_xdr_put_mnt(&out, &result);
    else if (call->procedure == MOUNT_DUMP || call->procedure == MOUNT_EXPORT)
        mount_xdr_put_end(&out);
    call->job.body = call->memory + JOB_HEADROOM;
    call->job.body_len = xdr_out_len(&out);
    call->job.status = MOUNT_SERVERFAULT;
}
