/*
 * descriptor_parts.h -- the insides of the descriptor cache, for descriptor.c and
 * descriptor_close.c.
 */
#ifndef FILE_DESCRIPTOR_PARTS_H
#define FILE_DESCRIPTOR_PARTS_H

#include "base/check.h"
#include "file/descriptor.h"

struct descriptor_cache {
    pthread_mutex_t mutex; /* guards the links, and who uses what; never held over a close */
    struct descriptor **buckets;
    uint32_t bucket_count; /* a power of two */
    struct list unused;    /* oldest first */
    struct list writers;
    struct list over;                   /* lanes that have files to be closed */
    atomic_uint open_count, over_count; /* descriptors; and of these, those to be closed */
    atomic_uint pinned_count;           /* descriptors: beyond files_max */
    atomic_uint now;                    /* ticks */
    uint32_t files_max;
    uint64_t seed;
    const struct file_system *system;
    struct keeper *keeper;
    struct descriptor_owner owner;
};

static inline void descriptor_lock(struct descriptor_cache *cache)
{
    CHECK(pthread_mutex_lock(&cache->mutex) == 0);
}

static inline void descriptor_unlock(struct descriptor_cache *cache)
{
    CHECK(pthread_mutex_unlock(&cache->mutex) == 0);
}

/* Nobody finds it any more. The mutex is held, as for what follows. */
void descriptor_uncache(struct descriptor_cache *cache, struct descriptor *descriptor);
/* Nobody uses it, and nobody finds it. */
void descriptor_set_over(struct descriptor_cache *cache, struct descriptor *descriptor);
/* Uncached, and over as soon as nobody uses it. */
void descriptor_retire(struct descriptor_cache *cache, struct descriptor *descriptor);
/* How many descriptors it has. */
uint32_t descriptor_count_in(const struct descriptor *descriptor);

#endif
