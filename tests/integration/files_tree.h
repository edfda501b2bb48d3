/*
 * files_tree.h -- a model of a directory tree that one client works in: what is there, and what
 * every call must therefore answer.
 *
 * A step is chosen at random, sent as an NFS call, and its result judged: the status, the
 * attributes, the handle, the content. Names come from a small set, so that steps meet what is
 * there already. A step that was sent more than once, because the server died, is judged like one
 * that was sent once: that is what a client on a hard mount relies on.
 */
#ifndef INTEGRATION_FILES_TREE_H
#define INTEGRATION_FILES_TREE_H

#include "peer/peer_nfs.h"

enum {
    FILES_TREE_NODES = 40,
    FILES_TREE_NAMES = 80,
    FILES_TREE_SIZE = 49152, /* of the longest file */
    FILES_TREE_NAME_MAX = 8,
};

struct files_tree_node {
    bool is_used, has_mode;
    uint32_t type, mode;
    uint64_t size, fileid;
    struct peer_nfs_fh fh;
    bool has_mtime; /* a chosen one, and nothing has changed it since */
    struct peer_nfs_time mtime;
    bool has_verf; /* made by CREATE EXCLUSIVE, and no time was set since */
    uint8_t verf[PEER_NFS_VERF_LEN];
    char target[16]; /* of a symbolic link */
    uint8_t *bytes;  /* FILES_TREE_SIZE of them; zero behind the size */
};

struct files_tree_name {
    uint32_t directory, node;
    char text[FILES_TREE_NAME_MAX]; /* "": this one is free */
};

struct files_tree {
    uint32_t uid, gid;                              /* of everything in it */
    struct files_tree_node nodes[FILES_TREE_NODES]; /* 0: the root */
    struct files_tree_name names[FILES_TREE_NAMES];
};

struct files_tree_step {
    uint32_t procedure;
    uint32_t node, directory, to_directory; /* SETATTR, READ, ...; the others by name */
    char name[FILES_TREE_NAME_MAX], to_name[FILES_TREE_NAME_MAX], target[16];
    struct peer_nfs_sattr sattr;
    uint32_t how, stable, count;
    uint64_t offset;
    uint8_t verf[PEER_NFS_VERF_LEN];
    uint8_t data[16384];
};

/* The root as it is. False: no memory. */
bool files_tree_init(struct files_tree *tree, const struct peer_nfs_fh *fh,
                     const struct peer_nfs_attr *attr);
void files_tree_done(struct files_tree *tree);

void files_tree_choose(const struct files_tree *tree, uint64_t *seed, struct files_tree_step *ret);
void files_tree_args(const struct files_tree *tree, const struct files_tree_step *step,
                     struct peer_nfs_args *ret);
/* Judges the result and takes it into the model. NULL: it is right; else what is wrong, valid until
 * the next call. */
const char *files_tree_judge(struct files_tree *tree, const struct files_tree_step *step,
                             const struct peer_nfs_res *res);
/* The status that it must answer. */
uint32_t files_tree_expected(const struct files_tree *tree, const struct files_tree_step *step);
/* Does a node look like this? NULL, or what is wrong. */
const char *files_tree_compare(const struct files_tree *tree, uint32_t node,
                               const struct peer_nfs_attr *attr);
/* The name in that directory; NULL: it is not there. */
const struct files_tree_name *files_tree_find(const struct files_tree *tree, uint32_t directory,
                                              const char *text);

#endif
