/*
 * nfs_vectors.h -- the vectors of programs 100003 and 100005: nfs_<procedure>.txt and
 * mount_<procedure>.txt.
 */
#ifndef VECTORS_NFS_VECTORS_H
#define VECTORS_NFS_VECTORS_H

#include "vector.h"

bool nfs_vectors_own(const char *file);
/* On false it has printed why. */
bool nfs_vectors_check(const char *file, const struct vector *vector);
/* True when every procedure had vectors of its arguments and of its result. */
bool nfs_vectors_are_complete(void);

#endif
