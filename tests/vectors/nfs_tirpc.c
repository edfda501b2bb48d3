/*
 * nfs_tirpc.c -- see nfs_tirpc.h.
 */
#include "nfs_tirpc.h"

#include "nfs3.h"

#include <rpc/rpc.h>
#include <stdlib.h>
#include <string.h>

/* xdr_void has another type than every other routine. */
static bool_t no_body(XDR *xdrs, ...)
{
    (void)xdrs;
    return TRUE;
}

#define ROUTINE(name) ((xdrproc_t)xdr_##name)

static const struct {
    const char *file;
    xdrproc_t args, result;
} rows[] = {
    {"nfs_null.txt", no_body, no_body},
    {"nfs_getattr.txt", ROUTINE(n3_fh), ROUTINE(n3_getattr_res)},
    {"nfs_setattr.txt", ROUTINE(n3_setattr_args), ROUTINE(n3_wcc_res)},
    {"nfs_lookup.txt", ROUTINE(n3_dirop), ROUTINE(n3_lookup_res)},
    {"nfs_access.txt", ROUTINE(n3_access_args), ROUTINE(n3_access_res)},
    {"nfs_readlink.txt", ROUTINE(n3_fh), ROUTINE(n3_readlink_res)},
    {"nfs_read.txt", ROUTINE(n3_range_args), ROUTINE(n3_read_res)},
    {"nfs_write.txt", ROUTINE(n3_write_args), ROUTINE(n3_write_res)},
    {"nfs_create.txt", ROUTINE(n3_create_args), ROUTINE(n3_made_res)},
    {"nfs_mkdir.txt", ROUTINE(n3_mkdir_args), ROUTINE(n3_made_res)},
    {"nfs_symlink.txt", ROUTINE(n3_symlink_args), ROUTINE(n3_made_res)},
    {"nfs_mknod.txt", ROUTINE(n3_mknod_args), ROUTINE(n3_made_res)},
    {"nfs_remove.txt", ROUTINE(n3_dirop), ROUTINE(n3_wcc_res)},
    {"nfs_rmdir.txt", ROUTINE(n3_dirop), ROUTINE(n3_wcc_res)},
    {"nfs_rename.txt", ROUTINE(n3_rename_args), ROUTINE(n3_rename_res)},
    {"nfs_link.txt", ROUTINE(n3_link_args), ROUTINE(n3_link_res)},
    {"nfs_readdir.txt", ROUTINE(n3_readdir_args), ROUTINE(n3_readdir_res)},
    {"nfs_readdirplus.txt", ROUTINE(n3_readdirplus_args), ROUTINE(n3_readdirplus_res)},
    {"nfs_fsstat.txt", ROUTINE(n3_fh), ROUTINE(n3_fsstat_res)},
    {"nfs_fsinfo.txt", ROUTINE(n3_fh), ROUTINE(n3_fsinfo_res)},
    {"nfs_pathconf.txt", ROUTINE(n3_fh), ROUTINE(n3_pathconf_res)},
    {"nfs_commit.txt", ROUTINE(n3_range_args), ROUTINE(n3_commit_res)},
    {"mount_null.txt", no_body, no_body},
    {"mount_mnt.txt", ROUTINE(m3_path), ROUTINE(m3_mnt_res)},
    {"mount_dump.txt", no_body, ROUTINE(m3_mounts)},
    {"mount_umnt.txt", ROUTINE(m3_path), no_body},
    {"mount_umntall.txt", no_body, no_body},
    {"mount_export.txt", no_body, ROUTINE(m3_exports)},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

bool nfs_tirpc_owns(const char *file)
{
    return strncmp(file, "nfs_", 4) == 0 || strncmp(file, "mount_", 6) == 0;
}

/* Room for any of them. */
union body {
    n3_setattr_args setattr;
    n3_create_args create;
    n3_mknod_args mknod;
    n3_rename_args rename;
    n3_made_res made;
    n3_rename_res renamed;
    n3_readdirplus_res listed;
    n3_fsinfo_res fsinfo;
    m3_mnt_res mnt;
};

/* Reads the first `len` bytes, all of them, and writes what it read. False: refused. */
static bool translate(xdrproc_t routine, const struct vector *vector, size_t len,
                      uint8_t *ret_bytes, size_t *ret_len)
{
    union body body;
    XDR in, out;
    memset(&body, 0, sizeof body);
    char *copy = malloc(len + 1);
    if (copy == NULL)
        exit(99);
    memcpy(copy, vector->bytes, len);
    xdrmem_create(&in, copy, (u_int)len, XDR_DECODE);
    bool good = routine(&in, &body) && xdr_getpos(&in) == len;
    xdrmem_create(&out, (char *)ret_bytes, VECTOR_BYTES_MAX, XDR_ENCODE);
    if (good && !routine(&out, &body))
        abort();
    *ret_len = xdr_getpos(&out);
    xdr_free(routine, &body);
    free(copy);
    return good;
}

static enum vector_verdict compare(xdrproc_t routine, const struct vector *vector)
{
    static uint8_t bytes[VECTOR_BYTES_MAX];
    size_t len;
    bool expected = vector->kind == VECTOR_ARGS || vector->kind == VECTOR_RESULT;
    bool good = translate(routine, vector, vector->len, bytes, &len);
    if (good != expected) {
        vector_say("libtirpc %s it", good ? "accepts" : "refuses");
        return VECTOR_BAD;
    }
    if (!expected)
        return VECTOR_GOOD;
    if (vector->oracle == VECTOR_BOTH_WAYS &&
        (len != vector->len || memcmp(bytes, vector->bytes, len) != 0)) {
        vector_say("libtirpc writes %zu other bytes", len);
        return VECTOR_BAD;
    }
    for (size_t cut = 0; cut < vector->len; cut++)
        if (translate(routine, vector, cut, bytes, &len)) {
            vector_say("libtirpc accepts the first %zu of %zu bytes", cut, vector->len);
            return VECTOR_BAD;
        }
    return VECTOR_GOOD;
}

enum vector_verdict nfs_tirpc_check(const char *file, const struct vector *vector)
{
    bool is_args = vector->kind == VECTOR_ARGS || vector->kind == VECTOR_GARBAGE;
    for (int i = 0; i < ROW_COUNT; i++)
        if (strcmp(file, rows[i].file) == 0)
            return compare(is_args ? rows[i].args : rows[i].result, vector);
    vector_say("name it nfs_<procedure>.txt or mount_<procedure>.txt");
    return VECTOR_BAD;
}
