/*
 * file.c -- see file.h: the desk, and what happens to a call between its two ends.
 *
 *                      try, on the server's thread
 *   submit --+----------------------------------------------------> JOB_DONE
 *            |        +-> groups (--groups server, first time)
 *            +--------+----> pool: execute --+-------------------> finished --> next --> release
 *                                            +--> syncer (F-DUR) --^
 *
 * Always true:
 *  (1) A call that may block runs on a thread of ours, never on the server's.
 *  (2) With `sync`, what an OK says is on disk when it leaves; a WRITE never claims a stability
 *      that an error of another sync may have undone: it is answered JUKEBOX and comes again.
 *  (3) When there is no room for one more call, the answer is JUKEBOX, not silence.
 *  (4) A file system that hangs keeps its lane: a part of the threads and of the room, and never
 *      all (lane.h).
 */
#include "file/file.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "base/units.h"
#include "file/arguments.h"
#include "file/inlet.h"
#include "file/lock_guard.h"
#include "file/lone.h"
#include "file/once.h"
#include "file/service.h"
#include "file/upkeep.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SYNC_THREADS = 8 };

struct operation {
    call_execute_fn execute;
    call_try_fn try_now; /* NULL: it always may block */
};

static const struct operation operations[NFS_PROCEDURE_COUNT] = {
    [NFS_GETATTR] = {op_getattr, op_try_getattr},
    [NFS_SETATTR] = {op_setattr, NULL},
    [NFS_LOOKUP] = {op_lookup, op_try_lookup},
    [NFS_ACCESS] = {op_access, op_try_access},
    [NFS_READLINK] = {op_readlink, NULL},
    [NFS_READ] = {op_read, op_try_read},
    [NFS_WRITE] = {op_write, NULL},
    [NFS_CREATE] = {op_create, NULL},
    [NFS_MKDIR] = {op_mkdir, NULL},
    [NFS_SYMLINK] = {op_symlink, NULL},
    [NFS_MKNOD] = {op_mknod, NULL},
    [NFS_REMOVE] = {op_remove, NULL},
    [NFS_RMDIR] = {op_rmdir, NULL},
    [NFS_RENAME] = {op_rename, NULL},
    [NFS_LINK] = {op_link, NULL},
    [NFS_READDIR] = {op_readdir, NULL},
    [NFS_READDIRPLUS] = {op_readdir, NULL},
    [NFS_FSSTAT] = {op_fsstat, NULL},
    [NFS_FSINFO] = {op_fsinfo, NULL},
    [NFS_PATHCONF] = {op_pathconf, NULL},
    [NFS_COMMIT] = {op_commit, NULL},
};

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void file_count_error(struct file_service *service)
{
    atomic_store(&service->error_ns, now_ns());
    atomic_fetch_add(&service->errors, 1);
}

uint64_t file_error_age_ns(struct file_service *service)
{
    uint64_t then_ns = atomic_load(&service->error_ns); /* before it is later */
    return then_ns == 0 ? 0 : now_ns() - then_ns;
}

static void count_error(void *context)
{
    file_count_error(context);
}

static void queue_closing(void *context, struct lane *lane)
{
    struct file_service *service = context;
    pool_add(service->pool, &lane->calls, POOL_OWN, &lane->closing);
}

/* ---- threads of the pool ---- */

static void begin(void *context)
{
    (void)context;
    identity_begin_thread();
    identity_own();
}

/* What failed for want of a descriptor has changed nothing, and is tried once more. */
static void operate(struct call *call, call_execute_fn execute_fn)
{
    execute_fn(call);
    if (call->result.stat != NFS_JUKEBOX)
        return;
    identity_own();
    call_release_objects(call);
    if (!descriptor_make_room(call_cache(call), call->lane))
        return;
    call->result = (struct nfs_result){0};
    call->sync_count = 0;
    execute_fn(call);
}

static void execute(void *context, struct pool_lane *pool_lane, struct list *work)
{
    struct file_service *service = context;
    struct lane *lane = LIST_ELEMENT(pool_lane, struct lane, calls);
    if (work == &lane->closing) {
        descriptor_close_lane(service->descriptors, lane);
        return;
    }
    struct call *call = LIST_ELEMENT(work, struct call, link);
    if (call->program == MOUNT_PROGRAM)
        op_mount(call);
    else if (call->program == LOCK_GUARD_PROGRAM)
        operate(call, lock_guard_execute);
    else
        operate(call, operations[call->procedure].execute);
    once_finish(call);
    identity_own();
    /* What a REMOVE frees is free when it is answered. */
    bool frees = call->program == NFS_PROGRAM &&
                 (call->procedure == NFS_REMOVE || call->procedure == NFS_RENAME);
    if (frees)
        descriptor_sweep(service->descriptors, lane);
    if (call->sync_count > 0 && call->result.stat == NFS_OK)
        syncer_add(service->syncer, call);
    else
        call_finish(call);
    if (!frees)
        descriptor_trim(service->descriptors, lane);
}

void file_queue(struct file_service *service, struct call *call)
{
    const struct bytes from = {(const uint8_t *)&call->from, sizeof call->from};
    uint32_t caller = 1 + (uint32_t)(hash_bytes(service->options.seed, from) % (POOL_CALLERS - 1));
    pool_add(service->pool, &call->lane->calls, caller, &call->link);
}

static void put_refusal(struct call *call)
{
    atomic_fetch_add(&call->service->refused, 1);
    call->result = (struct nfs_result){.stat = NFS_JUKEBOX};
    if (call->program == NFS_PROGRAM)
        call_encode(call);
    else if (call->program == MOUNT_PROGRAM)
        op_mount_refuse(call);
}

void file_refuse(struct call *call)
{
    put_refusal(call);
    call_hand_back(call);
}

static void groups_are_there(void *context, struct list *work)
{
    file_queue(context, LIST_ELEMENT(work, struct call, link));
}

/* ---- the desk ---- */

static void fill(struct file_service *service, struct call *call, const struct job_request *request)
{
    call->service = service;
    call->job.token = request->token;
    call->program = request->program;
    call->procedure = request->procedure;
    call->xid = request->xid;
    call->body = request->args;
    call->from = request->from->address;
    call->port = request->from->port;
    call->credential = *request->credential;
    call->credential.machine = (struct bytes){0};
    call->exports = export_table_keep(service->exports);
}

struct call *file_take_call(struct file_service *service, const struct job_request *request,
                            uint32_t payload_max)
{
    uint32_t copy_len = request->lent != NULL ? 0 : request->args.len;
    struct call *call = call_memory_take(&service->memory, payload_max, copy_len);
    if (call != NULL)
        fill(service, call, request);
    return call;
}

/* No room: not now. */
static enum job_verdict refuse(struct file_service *service, const struct job_request *request,
                               struct job **ret)
{
    struct call *call = call_memory_take_spare(&service->memory);
    CHECK(call != NULL); /* as everywhere: without four kilobytes nothing works */
    fill(service, call, request);
    put_refusal(call);
    *ret = &call->job;
    return JOB_DONE;
}

static bool try_now(struct call *call)
{
    call_try_fn try_fn = call->program == NFS_PROGRAM ? operations[call->procedure].try_now : NULL;
    bool is_done = try_fn != NULL && try_fn(call);
    if (is_done)
        call_encode(call);
    else
        call->result = (struct nfs_result){0};
    call_release_objects(call);
    call->has_identity = false;
    return is_done;
}

bool file_begin(struct file_service *service, struct call *call)
{
    if (!lane_enter(service, call))
        return false;
    if (call_has_own_groups(call) && !groups_are_known(service->groups, call->credential.uid))
        groups_ask(service->groups, call->credential.uid, &call->link);
    else
        file_queue(service, call);
    return true;
}

void file_give_back(struct file_service *service, struct call *call)
{
    lane_leave(call);
    call_drop_pipe(call);
    export_table_drop(call->exports);
    call_memory_give_back(&service->memory, call);
}

static void release(void *context, struct job *job)
{
    file_give_back(context, (struct call *)(void *)job);
}

static enum job_verdict submit(void *context, const struct job_request *request, struct job **ret)
{
    struct file_service *service = context;
    struct nfs_args args;
    struct bytes path = {0};
    if (!arguments_decode(request, &args, &path))
        return JOB_GARBAGE;
    struct call *call = file_take_call(service, request, arguments_payload(request, &args));
    if (call == NULL)
        return refuse(service, request, ret);
    *ret = &call->job;
    if (request->program == NFS_PROGRAM) {
        call->args = args;
        if (request->procedure == NFS_NULL) {
            call->job.body = call->memory + JOB_HEADROOM;
            return JOB_DONE;
        }
    }
    call->path = path;
    if (try_now(call))
        return JOB_DONE;
    if (request->program == NFS_PROGRAM &&
        lone_execute(call, lane_of_call(call), operations[call->procedure].execute))
        return lone_finish(call);
    if (arguments_keep(call, request) && file_begin(service, call))
        return JOB_LATER;
    release(service, &call->job);
    return refuse(service, request, ret);
}

static struct call *next_finished(struct file_service *service)
{
    struct call *call = NULL;
    CHECK(pthread_mutex_lock(&service->mutex) == 0);
    if (!list_is_empty(&service->finished)) {
        call = LIST_ELEMENT(service->finished.next, struct call, link);
        list_remove(&call->link);
    }
    CHECK(pthread_mutex_unlock(&service->mutex) == 0);
    return call;
}

static struct job *next(void *context)
{
    struct file_service *service = context;
    struct call *call = next_finished(service);
    for (; call != NULL && call->program == LOCK_GUARD_PROGRAM; call = next_finished(service)) {
        lock_guard_finish(service->lock_guard, call);
        file_give_back(service, call);
    }
    if (call != NULL)
        return &call->job;
    service->quick_len = 0; /* all is collected: the turn ends */
    if (service->ofd != NULL)
        ofd_tick(service->ofd);
    return NULL;
}

static uint64_t room(void *context)
{
    const struct call_memory *memory = &((const struct file_service *)context)->memory;
    return memory->bytes < memory->bytes_max ? memory->bytes_max - memory->bytes : 0;
}

/* ---- life ---- */

static bool start(struct file_service *service, const struct export_line *lines, uint32_t count,
                  struct text *why)
{
    const struct file_options *options = &service->options;
    if (!identity_check(why))
        return false;
    service->lanes = lane_list_new();
    service->exports = service->lanes == NULL ? NULL : file_prepare(service, lines, count, why);
    if (service->exports == NULL)
        return false;
    atomic_store(&service->is_shared, lane_list_count(service->lanes) > 1);
    const struct descriptor_owner owner = {
        .failed = count_error, .close = queue_closing, .context = service};
    service->descriptors =
        descriptor_cache_new(options->limits.files_max, options->seed, service->system, &owner);
    if (service->descriptors != NULL)
        descriptor_cache_set_keeper(service->descriptors, options->keeper);
    service->mounts = mounts_new();
    service->lock_guard = lock_guard_new();
    bool has_ofd = true;
    if (options->limits.mirrored_max > 0) {
        service->ofd = ofd_new(service, options->limits.mirrored_max);
        has_ofd = service->ofd != NULL;
    }
    service->paths = paths_new(options->seed, options->wake, options->context);
    service->syncer = syncer_new(SYNC_THREADS, service);
    service->pipes = pipes_new(options->limits.pipes_max);
    if (service->pipes != NULL)
        service->pool = pool_new(options->limits.threads, begin, execute, service);
    bool has_groups = true;
    if (options->groups_of_server) {
        service->groups = groups_new(groups_are_there, service);
        has_groups = service->groups != NULL;
    }
    if (service->descriptors != NULL && service->mounts != NULL && service->syncer != NULL &&
        service->pool != NULL && service->paths != NULL && service->lock_guard != NULL &&
        has_groups && has_ofd)
        service->upkeep = upkeep_new(service);
    if (service->upkeep != NULL)
        return true;
    text_add(why, "cannot start the threads of the file service; raise the limit of threads "
                  "(TasksMax=, ulimit -u) or of memory");
    return false;
}

struct file_service *file_new(const struct file_options *options, const struct export_line *lines,
                              uint32_t count, struct text *ret_why)
{
    struct file_service *service = calloc(1, sizeof *service);
    if (service == NULL) {
        text_add(ret_why, "out of memory");
        return NULL;
    }
    service->options = *options;
    service->system = options->system != NULL ? options->system : &file_system_real;
    service->desk = (struct job_desk){.submit = submit,
                                      .next = next,
                                      .release = release,
                                      .room = room,
                                      .open_inlet = inlet_open,
                                      .close_inlet = inlet_close,
                                      .context = service};
    CHECK(pthread_mutex_init(&service->mutex, NULL) == 0);
    removed_init(&service->removed);
    list_init(&service->finished);
    lane_init(&service->common);
    call_memory_init(&service->memory, options->limits.calls_max, options->limits.bytes_max);
    if (start(service, lines, count, ret_why))
        return service;
    file_free(service);
    return NULL;
}

void file_free(struct file_service *service)
{
    if (service == NULL)
        return;
    upkeep_free(service->upkeep);
    paths_free(service->paths);
    groups_free(service->groups);
    pool_free(service->pool);
    syncer_free(service->syncer);
    for (struct job *job = next(service); job != NULL; job = next(service))
        release(service, job);
    keeper_leave(service->options.keeper);
    ofd_free(service->ofd);
    descriptor_cache_free(service->descriptors);
    mounts_free(service->mounts);
    lock_guard_free(service->lock_guard);
    export_table_drop(service->exports);
    lane_list_free(service->lanes);
    pipes_free(service->pipes);
    call_memory_done(&service->memory);
    removed_done(&service->removed);
    CHECK(pthread_mutex_destroy(&service->mutex) == 0);
    free(service);
}

const struct job_desk *file_desk(struct file_service *service)
{
    return &service->desk;
}

enum guard_verdict file_judge_lock(struct file_service *service,
                                   const struct guard_question *question)
{
    return lock_guard_judge(service, question);
}

const struct local_locks *file_local_locks(struct file_service *service)
{
    return service->ofd == NULL ? NULL : ofd_local(service->ofd);
}

/* A reload may bring it back, with the locks of its files. */
static bool is_not_exported(const void *context, uint32_t export_id)
{
    return export_table_find(context, export_id) == NULL;
}

void file_open_locks(struct file_service *service)
{
    if (service->ofd != NULL)
        ofd_begin_start(service->ofd);
}

void file_serve_locks(struct file_service *service)
{
    if (service->ofd == NULL)
        return;
    ofd_end_start(service->ofd);
    keeper_drop_rest(service->options.keeper, is_not_exported, service->exports);
}

bool file_next_removed(struct file_service *service, struct nfs_fh *ret)
{
    return removed_take(&service->removed, ret);
}

struct export_table *file_prepare(const struct file_service *service,
                                  const struct export_line *lines, uint32_t count,
                                  struct text *ret_why)
{
    struct export_table *table =
        export_table_new(lines, count, &service->options.key, export_table_resolve, ret_why);
    if (table == NULL || export_table_take_lanes(table, service->lanes))
        return table;
    text_add(ret_why, "out of memory");
    export_table_drop(table);
    return NULL;
}

void file_take(struct file_service *service, struct export_table *exports)
{
    export_table_drop(service->exports);
    service->exports = exports;
    atomic_store(&service->is_shared, lane_list_count(service->lanes) > 1);
    descriptor_forget_others(service->descriptors, exports);
}

void file_drop(struct export_table *exports)
{
    export_table_drop(exports);
}

const struct export_table *file_exports(const struct file_service *service)
{
    return service->exports;
}
