/*
 * mounts.h -- who said that it mounted what: a hint for people (DUMP of MOUNT), never state.
 */
#ifndef FILE_MOUNTS_H
#define FILE_MOUNTS_H

#include "base/address.h"

enum { MOUNTS_MAX = 4096, MOUNTS_CLIENT_MAX = 64, MOUNTS_PATH_MAX = 1024 };

struct mounts;

struct mounts *mounts_new(void);
void mounts_free(struct mounts *mounts);
/* The oldest is forgotten when there are too many: of this client, or in all. */
void mounts_add(struct mounts *mounts, const struct address *from, const char *path);
void mounts_remove(struct mounts *mounts, const struct address *from, const char *path);
void mounts_remove_all(struct mounts *mounts, const struct address *from);
/* Of one directory and what is below it; NULL: all. */
uint32_t mounts_count(struct mounts *mounts, const char *directory);
/* One after the other, under a lock; visit returns false to stop. */
void mounts_each(struct mounts *mounts,
                 bool (*visit)(void *context, const struct address *from, const char *path),
                 void *context);

#endif
