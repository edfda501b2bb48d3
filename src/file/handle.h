/*
 * handle.h -- file handles: which file of which export, and proof that we said so.
 *
 *   0        1      2     3   4           8                8 + len, padded   + 8
 *   | version | type | len | 0 | export id | kernel's handle | MAC             |
 *
 * The kernel's handle names an inode and its generation, so that it survives restarts, reboots and
 * renames, and is not reused. The MAC is over all that is in front of it: nobody reaches a file by
 * guessing.
 */
#ifndef FILE_HANDLE_H
#define FILE_HANDLE_H

#include "base/mac.h"
#include "codec/nfs_xdr.h"

enum {
    HANDLE_VERSION = 1,
    HANDLE_OBJECT_MAX = 40, /* so that all of it has 56 bytes at most */
    HANDLE_MAX = 56,
};

/* A file inside its file system. All bytes count in comparisons: those behind `len` are zero. */
struct handle_object {
    uint8_t type, len;
    uint8_t bytes[HANDLE_OBJECT_MAX];
};

/* Of an open descriptor. 0, -EOVERFLOW: longer than we carry, or -errno. */
__attribute__((warn_unused_result)) int handle_object_of(int fd, struct handle_object *ret);
/* Of a name in a directory, which is not followed; what is mounted on it is, and has another mount
 * id than the directory. */
__attribute__((warn_unused_result)) int
handle_object_at(int directory_fd, const char *name, struct handle_object *ret, int *ret_mount_id);

void handle_make(const struct mac_key *key, uint32_t export_id, const struct handle_object *object,
                 struct nfs_fh *ret);
/* False: not one of ours. */
bool handle_read(const struct mac_key *key, struct bytes fh, uint32_t *ret_export_id,
                 struct handle_object *ret);

/* Opens it with O_PATH, whatever it is. A descriptor, or -errno; -ESTALE: it is gone. Needs
 * CAP_DAC_READ_SEARCH. */
__attribute__((warn_unused_result)) int handle_open(int root_fd,
                                                    const struct handle_object *object);

#endif
