/*
 * nfs_tirpc.h -- rpcgen and libtirpc as seen by the vectors of NFS and MOUNT (nfs_*.txt and
 * mount_*.txt).
 *
 * What our nfs3.x makes of the bytes of a vector must be those bytes again, all of them, and no
 * prefix of them may do; what we refuse it refuses.
 */
#ifndef VECTORS_NFS_TIRPC_H
#define VECTORS_NFS_TIRPC_H

#include "vector.h"

bool nfs_tirpc_owns(const char *file);
/* On VECTOR_BAD it has printed why. */
enum vector_verdict nfs_tirpc_check(const char *file, const struct vector *vector);

#endif
