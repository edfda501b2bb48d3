/*
 * attributes.h -- a file's attributes on their way out, and what a client wants to set.
 */
#ifndef FILE_ATTRIBUTES_H
#define FILE_ATTRIBUTES_H

#include "file/call.h"

/* fileid is the inode, fsid the export's number: both stay over restarts. */
void attributes_of(const struct call *call, const struct stat *st, struct nfs_attr *ret);
/* As of now; left out if the kernel does not say. */
void attributes_after(const struct call *call, int fd, struct nfs_post_attr *ret);
void attributes_before(const struct stat *st, struct nfs_pre_attr *ret);
/* Both of one look: of a call that changes nothing, so that no change of others lies between. */
void attributes_unchanged(const struct call *call, const struct stat *st, struct nfs_wcc *ret);

/* May it be set at all: times that the kernel takes. */
bool attributes_are_valid(const struct nfs_sattr *sattr);
/*
 * Sets owner, mode and times of whatever the descriptor names, as the thread's identity. Size is
 * not among them. 0 or -errno.
 */
int attributes_set(const struct call *call, int fd, bool is_link, const struct nfs_sattr *sattr);
/* Times like those of a file system that keeps no single nanoseconds. There, the verifier of an
 * EXCLUSIVE CREATE is an extended attribute of this name. */
#define ATTRIBUTES_VERIFIER "user.holdfast.createverf"
bool attributes_are_coarse(const struct stat *st);
/* Would the object differ from one that was just made with this mode by the caller? */
bool attributes_need_setting(const struct call *call, const struct nfs_sattr *sattr);

#endif
