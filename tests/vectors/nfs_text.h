/*
 * nfs_text.h -- arguments of NFS and MOUNT as text, and results from text, with the structures of
 * src/codec.
 *
 * A handle is hex, `-` when it is empty or not there. Attributes are the 15 numbers of fattr3 in
 * their order with commas between them, a time as SECONDS.NANOSECONDS, and `-` when they are not
 * there.
 */
#ifndef VECTORS_NFS_TEXT_H
#define VECTORS_NFS_TEXT_H

#include "base/text.h"
#include "codec/mount_xdr.h"
#include "codec/nfs_args.h"
#include "codec/nfs_results.h"

void nfs_text_add_args(struct text *text, enum nfs_procedure procedure,
                       const struct nfs_args *args);
void nfs_text_put_result(struct xdr_out *out, enum nfs_procedure procedure, const char *text);

void nfs_text_add_mount_args(struct text *text, enum mount_procedure procedure, struct bytes path);
void nfs_text_put_mount_result(struct xdr_out *out, enum mount_procedure procedure,
                               const char *text);

#endif
