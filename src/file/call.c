/*
 * call.c -- what every part asks of a call, and how a call ends; see call.h.
 */
#include "file/call.h"

#include "base/check.h"
#include "file/service.h"

#include <errno.h>

enum { QUICK_TURN_MAX = 1024 * 1024 }; /* bytes read on the server thread in one turn */

enum nfs_stat call_stat_of(int err)
{
    static const struct {
        int err;
        enum nfs_stat stat;
    } rows[] = {
        {0, NFS_OK},
        {EPERM, NFS_PERM},
        {ENOENT, NFS_NOENT},
        {EIO, NFS_IO},
        {ENXIO, NFS_NXIO},
        {EACCES, NFS_ACCES},
        {EBUSY, NFS_ACCES},   /* something is mounted there */
        {ETXTBSY, NFS_ACCES}, /* it runs on this machine */
        {EEXIST, NFS_EXIST},
        {EXDEV, NFS_XDEV},
        {ENODEV, NFS_NODEV},
        {ENOTDIR, NFS_NOTDIR},
        {EISDIR, NFS_ISDIR},
        {EINVAL, NFS_INVAL},
        {ELOOP, NFS_INVAL},
        {EFBIG, NFS_FBIG},
        {EOVERFLOW, NFS_FBIG},
        {ENOSPC, NFS_NOSPC},
        {EROFS, NFS_ROFS},
        {EMLINK, NFS_MLINK},
        {ENAMETOOLONG, NFS_NAMETOOLONG},
        {ENOTEMPTY, NFS_NOTEMPTY},
        {EDQUOT, NFS_DQUOT},
        {ESTALE, NFS_STALE},
        {EOPNOTSUPP, NFS_NOTSUPP},
        /* A lease is being broken, or there is no memory: not for long. */
        {EAGAIN, NFS_JUKEBOX},
        {ENOMEM, NFS_JUKEBOX},
        {EMFILE, NFS_JUKEBOX},
        {ENFILE, NFS_JUKEBOX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].err == (err < 0 ? -err : err))
            return rows[i].stat;
    return NFS_IO;
}

const struct file_system *call_system(const struct call *call)
{
    return call->service->system;
}

struct descriptor_cache *call_cache(const struct call *call)
{
    return call->service->descriptors;
}

bool call_may_read(const struct call *call, uint32_t len)
{
    struct file_service *service = call->service;
    service->quick_len += len;
    return service->quick_len <= QUICK_TURN_MAX;
}

bool call_take_pipe(struct call *call)
{
    CHECK(call->pipe == NULL);
    call->pipe = pipes_take(call->service->pipes);
    if (call->pipe == NULL)
        return false;
    call->job.pipe = (struct job_pipe){.fd = call->pipe->read_fd};
    return true;
}

void call_drop_pipe(struct call *call)
{
    if (call->pipe != NULL)
        pipes_give_back(call->service->pipes, call->pipe,
                        call->job.pipe.len == 0 && call->pipe->inlet.len == 0);
    call->pipe = NULL;
    call->job.pipe = (struct job_pipe){0};
}

const struct mac_key *call_key(const struct call *call)
{
    return &call->service->options.key;
}

/* 16 bits of the epoch, 24 of chance, 24 that count errors: two runs in a row never have the same,
 * nor does one on a store that was restored or lost, whose epochs come again. */
void call_get_verifier(const struct call *call, uint8_t ret[NFS_VERF_LEN], uint32_t *ret_errors)
{
    const struct file_options *options = &call->service->options;
    const uint64_t low = (1u << 24) - 1;
    uint32_t errors = atomic_load(&call->service->errors);
    store_be64(ret, options->epoch << 48 | (options->chance & low) << 24 | (errors & low));
    *ret_errors = errors;
}

bool call_has_own_groups(const struct call *call)
{
    return call->service->groups != NULL && call->credential.flavor == RPC_AUTH_SYS &&
           call->credential.uid != 0;
}

bool call_take_identity(struct call *call)
{
    if (call->has_identity)
        return true;
    identity_of(&call->credential, call->rights, call->service->options.seed, &call->identity);
    call->has_identity = !call_has_own_groups(call) || call->rights->squash == EXPORT_SQUASH_ALL ||
                         groups_get(call->service->groups, call->rights, &call->identity);
    return call->has_identity;
}

void call_must_sync(struct call *call, struct descriptor *descriptor, bool with_metadata)
{
    for (uint32_t i = 0; i < call->sync_count; i++)
        if (call->syncs[i].descriptor == descriptor) {
            call->syncs[i].with_metadata |= with_metadata;
            return;
        }
    CHECK(call->sync_count < CALL_SYNCS_MAX);
    struct call_sync *sync = &call->syncs[call->sync_count++];
    *sync =
        (struct call_sync){.call = call, .descriptor = descriptor, .with_metadata = with_metadata};
    list_init(&sync->link);
}

/* ---- the end of a call ---- */

void call_encode(struct call *call)
{
    enum nfs_procedure procedure = (enum nfs_procedure)call->procedure;
    struct nfs_result *result = &call->result;
    struct job *job = &call->job;
    job->status = (uint32_t)result->stat;
    if (result->stat != NFS_OK)
        job->data_len = 0;
    bool has_payload = result->stat == NFS_OK && nfs_results_has_payload(procedure);
    uint32_t head_len = has_payload ? nfs_results_payload_head_len(procedure, result) : 0;
    job->body = has_payload ? call_payload(call) - head_len : call->memory + JOB_HEADROOM;
    struct xdr_out out = xdr_out_of(job->body, has_payload ? head_len : NFS_HEAD_MAX);
    nfs_results_put(&out, procedure, result);
    CHECK(!out.overflowed);
    job->body_len = xdr_out_len(&out);
    if (!has_payload)
        return;
    CHECK(job->body_len == head_len);
    job->pipe.at = head_len;
    uint32_t padding = -result->payload_len & 3, in_memory = result->payload_len - job->pipe.len;
    memset(call_payload(call) + in_memory, 0, padding);
    job->body_len += in_memory + padding;
}

void call_found_removed(const struct call *call, uint32_t export_id,
                        const struct handle_object *object)
{
    struct nfs_fh fh;
    struct file_service *service = call->service;
    handle_make(&service->options.key, export_id, object, &fh);
    if (removed_add(&service->removed, &fh))
        service->options.wake(service->options.context);
}

void call_release_objects(struct call *call)
{
    for (uint32_t i = 0; i < call->object_count; i++)
        descriptor_release(call_cache(call), call->objects[i]);
    call->object_count = 0;
}

/* What the syncs say of a result that was good before them. */
static void judge(struct call *call)
{
    struct nfs_result *result = &call->result;
    if (result->stat != NFS_OK)
        return;
    if (call->sync_error != 0)
        result->stat = call_stat_of(call->sync_error);
    else if (call->procedure == NFS_COMMIT)
        call_get_verifier(call, result->verf, &call->errors_before);
    else if (call->procedure == NFS_WRITE && result->committed != NFS_UNSTABLE &&
             call->errors_before != atomic_load(&call->service->errors))
        result->stat = NFS_JUKEBOX;
}

void call_finish(struct call *call)
{
    if (call->program == NFS_PROGRAM) {
        judge(call);
        call_encode(call);
    }
    call_release_objects(call);
    call_hand_back(call);
}

void call_hand_back(struct call *call)
{
    struct file_service *service = call->service;
    CHECK(pthread_mutex_lock(&service->mutex) == 0);
    bool was_empty = list_is_empty(&service->finished);
    list_append(&service->finished, &call->link);
    CHECK(pthread_mutex_unlock(&service->mutex) == 0);
    if (was_empty)
        service->options.wake(service->options.context);
}
