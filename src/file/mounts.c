/*
 * mounts.c -- see mounts.h.
 *
 * A list in the order of coming, guarded by one mutex: MNT and UMNT are rare.
 */
#include "file/mounts.h"

#include "base/check.h"
#include "base/list.h"

#include <pthread.h>
#include <stdlib.h>

struct mount {
    struct list link;
    struct address from;
    char path[MOUNTS_PATH_MAX];
};

struct mounts {
    pthread_mutex_t mutex;
    struct list all; /* oldest first */
    uint32_t count;
};

struct mounts *mounts_new(void)
{
    struct mounts *mounts = calloc(1, sizeof *mounts);
    if (mounts == NULL)
        return NULL;
    CHECK(pthread_mutex_init(&mounts->mutex, NULL) == 0);
    list_init(&mounts->all);
    return mounts;
}

static void drop(struct mounts *mounts, struct mount *mount)
{
    list_remove(&mount->link);
    mounts->count--;
    free(mount);
}

void mounts_free(struct mounts *mounts)
{
    if (mounts == NULL)
        return;
    for (struct list *at = mounts->all.next, *next; at != &mounts->all; at = next) {
        next = at->next;
        free(LIST_ELEMENT(at, struct mount, link));
    }
    CHECK(pthread_mutex_destroy(&mounts->mutex) == 0);
    free(mounts);
}

/* Removes those of an address: of one path, or all. The mutex is held. */
static void remove_of(struct mounts *mounts, const struct address *from, const char *path)
{
    for (struct list *at = mounts->all.next, *next; at != &mounts->all; at = next) {
        struct mount *mount = LIST_ELEMENT(at, struct mount, link);
        next = at->next;
        if (address_equal(&mount->from, from) && (path == NULL || strcmp(mount->path, path) == 0))
            drop(mounts, mount);
    }
}

/* One client cannot fill the list: its oldest makes room. The mutex is held. */
static void bound_client(struct mounts *mounts, const struct address *from)
{
    struct mount *oldest = NULL;
    uint32_t count = 0;
    for (struct list *at = mounts->all.next; at != &mounts->all; at = at->next) {
        struct mount *mount = LIST_ELEMENT(at, struct mount, link);
        if (!address_equal(&mount->from, from))
            continue;
        oldest = oldest == NULL ? mount : oldest;
        count++;
    }
    if (count >= MOUNTS_CLIENT_MAX)
        drop(mounts, oldest);
}

void mounts_add(struct mounts *mounts, const struct address *from, const char *path)
{
    size_t len = strlen(path);
    struct mount *mount = len < MOUNTS_PATH_MAX ? calloc(1, sizeof *mount) : NULL;
    if (mount == NULL)
        return;
    mount->from = *from;
    memcpy(mount->path, path, len + 1);
    CHECK(pthread_mutex_lock(&mounts->mutex) == 0);
    remove_of(mounts, from, path);
    bound_client(mounts, from);
    if (mounts->count == MOUNTS_MAX)
        drop(mounts, LIST_ELEMENT(mounts->all.next, struct mount, link));
    list_append(&mounts->all, &mount->link);
    mounts->count++;
    CHECK(pthread_mutex_unlock(&mounts->mutex) == 0);
}

void mounts_remove(struct mounts *mounts, const struct address *from, const char *path)
{
    CHECK(pthread_mutex_lock(&mounts->mutex) == 0);
    remove_of(mounts, from, path);
    CHECK(pthread_mutex_unlock(&mounts->mutex) == 0);
}

void mounts_remove_all(struct mounts *mounts, const struct address *from)
{
    mounts_remove(mounts, from, NULL);
}

void mounts_each(struct mounts *mounts,
                 bool (*visit)(void *context, const struct address *from, const char *path),
                 void *context)
{
    CHECK(pthread_mutex_lock(&mounts->mutex) == 0);
    for (struct list *at = mounts->all.next; at != &mounts->all; at = at->next) {
        const struct mount *mount = LIST_ELEMENT(at, struct mount, link);
        if (!visit(context, &mount->from, mount->path))
            break;
    }
    CHECK(pthread_mutex_unlock(&mounts->mutex) == 0);
}

struct counting {
    const char *directory;
    uint32_t count;
};

static bool count_one(void *context, const struct address *from, const char *path)
{
    struct counting *counting = context;
    (void)from;
    size_t len = counting->directory == NULL ? 0 : strlen(counting->directory);
    if (len == 0 || (strncmp(path, counting->directory, len) == 0 &&
                     (path[len] == 0 || path[len] == '/' || len == 1)))
        counting->count++;
    return true;
}

uint32_t mounts_count(struct mounts *mounts, const char *directory)
{
    struct counting counting = {.directory = directory};
    mounts_each(mounts, count_one, &counting);
    return counting.count;
}
