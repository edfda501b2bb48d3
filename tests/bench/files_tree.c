/*
 * files_tree.c -- see files_tree.h.
 */
#include "bench/files_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t count_of(const struct files_tree *tree)
{
    return tree->connections * (1 + tree->in_flight);
}

bool files_tree_init(struct files_tree *tree, uint32_t connections, uint32_t in_flight)
{
    *tree = (struct files_tree){.connections = connections, .in_flight = in_flight};
    tree->handles = calloc(count_of(tree), sizeof(tree->handles[0]));
    return tree->handles != NULL;
}

struct peer_nfs_fh *files_tree_directory(const struct files_tree *tree, uint32_t connection)
{
    return &tree->handles[connection * (1 + tree->in_flight)];
}

struct peer_nfs_fh *files_tree_file(const struct files_tree *tree, uint32_t connection,
                                    uint32_t slot)
{
    return files_tree_directory(tree, connection) + 1 + slot;
}

static bool write_one(FILE *file, const struct peer_nfs_fh *fh)
{
    for (uint32_t i = 0; i < fh->len; i++)
        fprintf(file, "%02x", fh->at[i]);
    return fprintf(file, "\n") == 1;
}

bool files_tree_write(const struct files_tree *tree, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool is_written = write_one(file, &tree->root);
    for (uint32_t i = 0; is_written && i < count_of(tree); i++)
        is_written = write_one(file, &tree->handles[i]);
    return fclose(file) == 0 && is_written;
}

static bool read_one(FILE *file, struct peer_nfs_fh *ret)
{
    char line[2 * PEER_NFS_FH_MAX + 2];
    unsigned byte;
    ret->len = 0;
    if (!fgets(line, sizeof(line), file))
        return false;
    while (ret->len < PEER_NFS_FH_MAX && sscanf(line + 2 * ret->len, "%2x", &byte) == 1)
        ret->at[ret->len++] = (uint8_t)byte;
    return ret->len > 0;
}

bool files_tree_read(struct files_tree *tree, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_read = read_one(file, &tree->root);
    for (uint32_t i = 0; is_read && i < count_of(tree); i++)
        is_read = read_one(file, &tree->handles[i]);
    fclose(file);
    errno = 0;
    return is_read;
}
