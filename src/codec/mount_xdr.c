/*
 * mount_xdr.c -- MOUNT version 3 (RFC 1813 appendix I).
 *
 *   MNT      string path<1024>     -> u32 status; of OK: opaque fh<64>; u32 flavors<>
 *   DUMP     -                     -> list of: string hostname<255>; string directory<1024>
 *   UMNT     string path<1024>     -> void
 *   UMNTALL  -                     -> void
 *   EXPORT   -                     -> list of: string directory<1024>; list of: string name<255>
 *
 * A list has a 1 in front of each element and a 0 at its end.
 */
#include "codec/mount_xdr.h"

#include "base/check.h"

bool mount_xdr_get_args(struct xdr_in *in, enum mount_procedure procedure, struct bytes *ret_path)
{
    struct bytes path = {0};
    switch (procedure) {
    case MOUNT_MNT:
    case MOUNT_UMNT:
        path = xdr_get_opaque(in, MOUNT_PATH_MAX);
        break;
    case MOUNT_NULL:
    case MOUNT_DUMP:
    case MOUNT_UMNTALL:
    case MOUNT_EXPORT:
        break;
    }
    if (!xdr_in_done(in))
        return false;
    *ret_path = path;
    return true;
}

void mount_xdr_put_mnt(struct xdr_out *out, const struct mount_result *result)
{
    xdr_put_u32(out, (uint32_t)result->stat);
    if (result->stat != MOUNT_OK)
        return;
    CHECK(result->flavor_count <= MOUNT_FLAVORS_MAX);
    nfs_xdr_put_fh(out, &result->fh);
    xdr_put_u32(out, result->flavor_count);
    for (uint32_t i = 0; i < result->flavor_count; i++)
        xdr_put_u32(out, result->flavors[i]);
}

void mount_xdr_put_mount(struct xdr_out *out, struct bytes hostname, struct bytes directory)
{
    xdr_put_u32(out, 1);
    xdr_put_opaque(out, hostname);
    xdr_put_opaque(out, directory);
}

void mount_xdr_put_export(struct xdr_out *out, struct bytes directory)
{
    xdr_put_u32(out, 1);
    xdr_put_opaque(out, directory);
}

void mount_xdr_put_group(struct xdr_out *out, struct bytes name)
{
    xdr_put_u32(out, 1);
    xdr_put_opaque(out, name);
}

void mount_xdr_put_end(struct xdr_out *out)
{
    xdr_put_u32(out, 0);
}
