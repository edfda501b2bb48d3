/*
 * remove_tree.h -- a test's directory goes with all that is in it.
 */
#ifndef UNIT_REMOVE_TREE_H
#define UNIT_REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>

static inline int remove_tree_one(const char *name, const struct stat *st, int type,
                                  struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(name);
}

static inline void remove_tree(const char *directory)
{
    (void)nftw(directory, remove_tree_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
