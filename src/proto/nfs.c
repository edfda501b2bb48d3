/*
 * nfs.c -- the procedures of NFS version 3 (RFC 1813 section 3) as a table.
 *
 * Calls are decoded, executed and encoded behind the desk (job.h). A row says what the RPC server
 * must know before: is it harmless to execute the call twice? If not, the duplicate request cache
 * keeps its reply, and knows what it changes: a directory and a name in it, or a file. WRITE is
 * harmless; its reply would be as well answered from the cache, but a megabyte would have to be
 * summed up first.
 *
 * READ, READDIR and READDIRPLUS say in their last word how long their result may be. A WRITE ends
 * with its data, which nobody looks at: a repeat is not known by it, as it is executed again.
 */
#include "proto/nfs.h"

#include "codec/nfs_xdr.h"

static bool in_null(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    (void)ret;
    return xdr_in_done(in);
}

/* The first `items` opaques of the arguments, which stand at their beginning. */
static struct bytes leading(struct bytes args, uint32_t items)
{
    struct xdr_in in = xdr_in_of(args);
    for (uint32_t i = 0; i < items; i++)
        (void)xdr_get_opaque(&in, NFS_STRING_MAX);
    return (struct bytes){args.at, args.len - xdr_in_rest(&in).len};
}

static struct bytes subject_object(struct bytes args)
{
    return leading(args, 1);
}

static struct bytes subject_name(struct bytes args)
{
    return leading(args, 2);
}

/* LINK: the new name, behind the file's handle. */
static struct bytes subject_link(struct bytes args)
{
    struct xdr_in in = xdr_in_of(args);
    (void)xdr_get_opaque(&in, NFS_FH_MAX);
    return xdr_in_rest(&in);
}

static uint32_t weigh_count(struct bytes args)
{
    uint32_t count = args.len >= 4 ? load_be32(args.at + args.len - 4) : 0;
    return count < NFS_DATA_MAX ? count : NFS_DATA_MAX;
}

/* Only of calls that are as they should be: no padding, nothing behind it, and not too long. */
static uint32_t data_of_write(struct bytes args, uint32_t len)
{
    struct xdr_in in = xdr_in_of(args);
    (void)xdr_get_opaque(&in, NFS_FH_MAX);
    (void)xdr_get_u64(&in); /* offset */
    uint32_t count = xdr_get_u32(&in);
    (void)xdr_get_u32(&in); /* stable */
    uint32_t data_len = xdr_get_u32(&in), at = args.len - xdr_in_rest(&in).len;
    if (!xdr_in_ok(&in) || data_len > NFS_DATA_MAX || data_len % 4 != 0)
        return 0;
    return count == data_len && len - at == data_len ? at : 0;
}

#define CHANGES(title, what)                                                                       \
    {                                                                                              \
        .name = (title), .flags = PROCEDURE_CACHED, .subject = (what)                              \
    }

static const struct procedure nfs_procedures[] = {
    [NFS_NULL] = {.name = "NULL", .decode = in_null, .flags = PROCEDURE_STATELESS},
    [NFS_GETATTR] = {.name = "GETATTR"},
    [NFS_SETATTR] = CHANGES("SETATTR", subject_object),
    [NFS_LOOKUP] = {.name = "LOOKUP"},
    [NFS_ACCESS] = {.name = "ACCESS"},
    [NFS_READLINK] = {.name = "READLINK"},
    [NFS_READ] = {.name = "READ", .weigh = weigh_count},
    [NFS_WRITE] = {.name = "WRITE", .data_at = data_of_write},
    [NFS_CREATE] = CHANGES("CREATE", subject_name),
    [NFS_MKDIR] = CHANGES("MKDIR", subject_name),
    [NFS_SYMLINK] = CHANGES("SYMLINK", subject_name),
    [NFS_MKNOD] = CHANGES("MKNOD", subject_name),
    [NFS_REMOVE] = CHANGES("REMOVE", subject_name),
    [NFS_RMDIR] = CHANGES("RMDIR", subject_name),
    [NFS_RENAME] = CHANGES("RENAME", subject_name),
    [NFS_LINK] = CHANGES("LINK", subject_link),
    [NFS_READDIR] = {.name = "READDIR", .weigh = weigh_count},
    [NFS_READDIRPLUS] = {.name = "READDIRPLUS", .weigh = weigh_count},
    [NFS_FSSTAT] = {.name = "FSSTAT"},
    [NFS_FSINFO] = {.name = "FSINFO"},
    [NFS_PATHCONF] = {.name = "PATHCONF"},
    [NFS_COMMIT] = {.name = "COMMIT"},
};

static const struct program_version nfs_versions[] = {
    {.number = NFS_VERSION, .procedures = nfs_procedures, .procedure_count = NFS_PROCEDURE_COUNT},
};

const struct program nfs_program = {
    .number = NFS_PROGRAM,
    .name = "NFS",
    .versions = nfs_versions,
    .version_count = sizeof nfs_versions / sizeof nfs_versions[0],
    .record_max = NFS_RECORD_MAX,
    .is_away = true,
    .is_stream_only = true,
};
