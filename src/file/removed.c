/*
 * removed.c -- see removed.h.
 */
#include "file/removed.h"

#include "base/check.h"

#include <string.h>

void removed_init(struct removed *removed)
{
    CHECK(pthread_mutex_init(&removed->mutex, NULL) == 0);
}

void removed_done(struct removed *removed)
{
    CHECK(pthread_mutex_destroy(&removed->mutex) == 0);
}

static bool is_last(const struct removed *removed, const struct nfs_fh *fh)
{
    const struct nfs_fh *last =
        &removed->at[(removed->first + removed->count + REMOVED_MAX - 1) % REMOVED_MAX];
    return removed->count > 0 && last->len == fh->len && memcmp(last->data, fh->data, fh->len) == 0;
}

bool removed_add(struct removed *removed, const struct nfs_fh *fh)
{
    CHECK(pthread_mutex_lock(&removed->mutex) == 0);
    bool is_added = removed->count < REMOVED_MAX && !is_last(removed, fh);
    if (is_added)
        removed->at[(removed->first + removed->count++) % REMOVED_MAX] = *fh;
    CHECK(pthread_mutex_unlock(&removed->mutex) == 0);
    return is_added;
}

bool removed_take(struct removed *removed, struct nfs_fh *ret)
{
    CHECK(pthread_mutex_lock(&removed->mutex) == 0);
    bool is_there = removed->count > 0;
    if (is_there) {
        *ret = removed->at[removed->first];
        removed->first = (removed->first + 1) % REMOVED_MAX;
        removed->count--;
    }
    CHECK(pthread_mutex_unlock(&removed->mutex) == 0);
    return is_there;
}
