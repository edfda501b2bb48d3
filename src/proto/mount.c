/*
 * mount.c -- the procedures of MOUNT version 3 (RFC 1813 appendix I) as a table.
 *
 * Like those of NFS they are executed behind the desk. None is cached: to mount twice is to mount,
 * and the list of mounts is a hint.
 */
#include "proto/mount.h"

#include "codec/mount_xdr.h"

static bool in_null(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    (void)ret;
    return xdr_in_done(in);
}

static const struct procedure mount_procedures[] = {
    [MOUNT_NULL] = {.name = "NULL", .decode = in_null, .flags = PROCEDURE_STATELESS},
    [MOUNT_MNT] = {.name = "MNT"},
    [MOUNT_DUMP] = {.name = "DUMP"},
    [MOUNT_UMNT] = {.name = "UMNT"},
    [MOUNT_UMNTALL] = {.name = "UMNTALL"},
    [MOUNT_EXPORT] = {.name = "EXPORT"},
};

static const struct program_version mount_versions[] = {
    {.number = MOUNT_VERSION,
     .procedures = mount_procedures,
     .procedure_count = MOUNT_PROCEDURE_COUNT},
};

const struct program mount_program = {
    .number = MOUNT_PROGRAM,
    .name = "MOUNT",
    .versions = mount_versions,
    .version_count = sizeof mount_versions / sizeof mount_versions[0],
    .record_max = MOUNT_RECORD_MAX,
    .is_away = true,
};
