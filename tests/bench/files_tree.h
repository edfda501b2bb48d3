/*
 * files_tree.h -- the tree that load on files works in, and the file with its handles.
 *
 * One directory for each connection, and in it one file for each of its slots: c0/f0, c0/f1, ...
 * The handles are lines of hex digits: the root, then for each connection its directory and its
 * files.
 */
#ifndef BENCH_FILES_TREE_H
#define BENCH_FILES_TREE_H

#include "peer/peer_nfs.h"

struct files_tree {
    uint32_t connections, in_flight;
    struct peer_nfs_fh root;
    struct peer_nfs_fh *handles; /* of directories and files, in the order above */
};

/* Room for that many. False: no memory. */
bool files_tree_init(struct files_tree *tree, uint32_t connections, uint32_t in_flight);
struct peer_nfs_fh *files_tree_directory(const struct files_tree *tree, uint32_t connection);
struct peer_nfs_fh *files_tree_file(const struct files_tree *tree, uint32_t connection,
                                    uint32_t slot);

/* False: errno says why, or is 0 when the file has too few. */
bool files_tree_write(const struct files_tree *tree, const char *path);
bool files_tree_read(struct files_tree *tree, const char *path);

#endif
