/*
 * lane.h -- what one file system has of the service: threads, calls in flight, files to be closed.
 *
 * A file system that hangs must not take what the others need. Exports of one file system share a
 * lane, because they hang together. It lives as long as an export or an open file of it.
 */
#ifndef FILE_LANE_H
#define FILE_LANE_H

#include "file/pool.h"

#include <stdatomic.h>
#include <sys/types.h>

struct lane {
    struct pool_lane calls, syncs;
    atomic_bool is_stuck; /* all its threads have been in the kernel for seconds */

    /* The server's thread's. */
    uint32_t call_count; /* in flight, with the memory they have */
    uint64_t bytes;

    /* The descriptor cache's, under its mutex. */
    struct list over; /* its files that are to be closed */
    atomic_uint over_count;
    struct list over_link; /* among the lanes that have such */
    struct list closing;   /* work for `calls`: close them */
    bool is_closing_queued;

    /* The list's, under its mutex. */
    dev_t device;
    uint32_t references;
    struct list link;
    struct lane_list *lanes;
};

struct lane_list;

/* NULL: no memory. */
struct lane_list *lane_list_new(void);
/* All were dropped. */
void lane_list_free(struct lane_list *lanes);

/* The lane of a file system, with one more reference; NULL: no memory. From any thread. */
struct lane *lane_get(struct lane_list *lanes, dev_t device);
struct lane *lane_keep(struct lane *lane);
void lane_drop(struct lane *lane);

/* One that is of no file system, and in no list. */
void lane_init(struct lane *lane);

/* How many are used. */
uint32_t lane_list_count(struct lane_list *lanes);
/* One after the other, under the list's mutex. */
void lane_list_each(struct lane_list *lanes, void (*visit)(void *context, struct lane *lane),
                    void *context);

#endif
