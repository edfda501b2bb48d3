/*
 * service.h -- the insides of the file service, for file.c and the parts that it is made of.
 */
#ifndef FILE_SERVICE_H
#define FILE_SERVICE_H

#include "file/call.h"
#include "file/call_memory.h"
#include "file/groups.h"
#include "file/lane.h"
#include "file/mounts.h"
#include "file/ofd.h"
#include "file/pool.h"
#include "file/removed.h"
#include "file/syncer.h"

struct file_service {
    struct file_options options;
    const struct file_system *system;
    struct job_desk desk;
    struct export_table *exports; /* of calls from now on */
    struct descriptor_cache *descriptors;
    struct mounts *mounts;
    struct paths *paths;
    struct groups *groups; /* NULL: the wire's are used */
    struct lane_list *lanes;
    struct lane common;    /* of calls that touch no file system */
    atomic_bool is_shared; /* there are several file systems: none may take all there is */
    struct pool *pool;
    struct pipes *pipes;
    struct lock_guard *lock_guard; /* the server thread's */
    struct ofd *ofd;               /* the same; NULL: programs do not see locks */
    struct removed removed;
    struct syncer *syncer;
    struct upkeep *upkeep;
    struct call_memory memory; /* the server thread's */
    uint32_t quick_len;        /* the same: bytes that were read on it in this turn */
    atomic_uint errors;        /* syncs that failed: part of the verifier */
    atomic_ullong error_ns;    /* monotonic: when the last of them did; 0: none */
    atomic_ullong refused;
    atomic_ullong repeats; /* of calls that an earlier run began */

    pthread_mutex_t mutex; /* guards what follows */
    struct list finished;  /* oldest first */
};

void file_count_error(struct file_service *service);
/* Since the last one; 0: there was none. */
uint64_t file_error_age_ns(struct file_service *service);
/* To the pool. */
void file_queue(struct file_service *service, struct call *call);
/* Finishes a call that was not executed: not now. */
void file_refuse(struct call *call);
/* A call as a request says, with room for its arguments and so much payload; NULL: no room now. */
struct call *file_take_call(struct file_service *service, const struct job_request *request,
                            uint32_t payload_max);
/* To the pool, when it is known who its caller is. False: its file system has no room for it. */
bool file_begin(struct file_service *service, struct call *call);
void file_give_back(struct file_service *service, struct call *call);

/* Whose file system a call is for. */
struct lane *lane_of_call(struct call *call);
/* One call more there. False: it has too much already. */
bool lane_enter(struct file_service *service, struct call *call);
void lane_leave(const struct call *call);

#endif
