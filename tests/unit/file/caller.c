/*
 * caller.c -- see caller.h.
 */
#include "caller.h"

#include "../test.h"
#include "file/identity.h"
#include "file/intent.h"
#include "unit/remove_tree.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

static void wake(void *context)
{
    uint64_t one = 1;
    ssize_t len = write(*(int *)context, &one, sizeof one);
    (void)len;
}

static int wake_fd = -1;

static void start_service(struct caller *caller, const char *export_options)
{
    char line[160], why[512] = "";
    struct text text;
    struct export_line parsed;
    text_init(&text, why, sizeof why);
    (void)snprintf(line, sizeof line, "%s *(%s)", caller->directory, export_options);
    assert_int_equal(export_line_parse(line, &parsed, &text), 0);
    caller->service = file_new(&caller->options, &parsed, 1, &text);
    export_line_done(&parsed);
    if (caller->service == NULL)
        fail_msg("%s", why);
    assert_int_equal(caller_mount(caller, caller->directory, &caller->root), MOUNT_OK);
}

void caller_start(struct caller *caller, const char *export_options)
{
    char why[512];
    struct text text;
    text_init(&text, why, sizeof why);
    if (!identity_check(&text)) {
        print_message("# skipped: %s\n", why);
        skip();
    }
    *caller = (struct caller){.options = {
                                  .limits = {.threads = 4,
                                             .files_max = 64,
                                             .pipes_max = 4,
                                             .mirrored_max = 8,
                                             .calls_max = 256,
                                             .bytes_max = 64 << 20},
                                  .key = {{0x0123456789abcdef, 0xfedcba9876543210}},
                                  .epoch = 1,
                                  .seed = 42,
                                  .wake = wake,
                                  .context = &wake_fd,
                              }};
    if (wake_fd < 0)
        wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const char *parent = getenv("TMPDIR");
    (void)snprintf(caller->directory, sizeof caller->directory, "%s/file-XXXXXX",
                   parent != NULL && strlen(parent) < 40 ? parent : "/tmp");
    assert_non_null(mkdtemp(caller->directory));
    assert_int_equal(chmod(caller->directory, 0777), 0);
    const uint8_t loopback[4] = {127, 0, 0, 1};
    caller->peer =
        (struct peer){.address = address_v4(loopback), .port = 700, .transport = TRANSPORT_TCP};
    caller_be(caller, 1000, 1000);
    start_service(caller, export_options);
}

void caller_restart(struct caller *caller, const char *export_options)
{
    file_free(caller->service);
    caller->options.epoch++;
    if (caller->store[0] != 0) {
        char note[512] = "";
        struct text text;
        text_init(&text, note, sizeof note);
        intent_ring_close(caller->options.intents);
        caller->options.intents = intent_ring_open(caller->store, &caller->options.key, &text);
        assert_string_equal(note, "");
    }
    start_service(caller, export_options);
}

void caller_keep_intents(struct caller *caller, const char *export_options)
{
    (void)snprintf(caller->store, sizeof caller->store, "/tmp/intents-XXXXXX");
    assert_non_null(mkdtemp(caller->store));
    caller_restart(caller, export_options);
}

void caller_stop(struct caller *caller)
{
    file_free(caller->service);
    free(caller->payload);
    intent_ring_close(caller->options.intents);
    if (caller->store[0] != 0)
        remove_tree(caller->store);
    if (caller->directory[0] != 0)
        remove_tree(caller->directory);
    *caller = (struct caller){0};
}

void caller_be(struct caller *caller, uint32_t uid, uint32_t gid)
{
    caller->credential = (struct rpc_credential){.flavor = RPC_AUTH_SYS, .uid = uid, .gid = gid};
}

/* ---- arguments ---- */

static void put_time(struct xdr_out *out, enum nfs_time_how how, struct nfs_time time)
{
    xdr_put_u32(out, (uint32_t)how);
    if (how == NFS_TIME_CLIENT)
        nfs_xdr_put_time(out, time);
}

static void put_sattr(struct xdr_out *out, const struct nfs_sattr *sattr)
{
    const struct {
        bool is_set;
        uint32_t value;
    } words[] = {
        {sattr->set_mode, sattr->mode}, {sattr->set_uid, sattr->uid}, {sattr->set_gid, sattr->gid}};
    for (int i = 0; i < 3; i++) {
        xdr_put_u32(out, words[i].is_set);
        if (words[i].is_set)
            xdr_put_u32(out, words[i].value);
    }
    xdr_put_u32(out, sattr->set_size);
    if (sattr->set_size)
        xdr_put_u64(out, sattr->size);
    put_time(out, sattr->atime_how, sattr->atime);
    put_time(out, sattr->mtime_how, sattr->mtime);
}

static void put_create(struct xdr_out *out, const struct nfs_args *args)
{
    xdr_put_u32(out, (uint32_t)args->create);
    if (args->create == NFS_EXCLUSIVE)
        xdr_put_fixed(out, args->verf);
    else
        put_sattr(out, &args->sattr);
}

static void put_mknod(struct xdr_out *out, const struct nfs_args *args)
{
    xdr_put_u32(out, (uint32_t)args->type);
    if (args->type == NFS_TYPE_REG || args->type == NFS_TYPE_DIR || args->type == NFS_TYPE_LNK)
        return;
    put_sattr(out, &args->sattr);
    if (args->type == NFS_TYPE_CHR || args->type == NFS_TYPE_BLK) {
        xdr_put_u32(out, args->rdev_major);
        xdr_put_u32(out, args->rdev_minor);
    }
}

static void put_listing(struct xdr_out *out, enum nfs_procedure procedure,
                        const struct nfs_args *args)
{
    static const uint8_t zero[NFS_VERF_LEN];
    xdr_put_u64(out, args->cookie);
    xdr_put_fixed(out, args->verf.len == 0 ? (struct bytes){zero, sizeof zero} : args->verf);
    if (procedure == NFS_READDIRPLUS)
        xdr_put_u32(out, args->dircount);
    xdr_put_u32(out, args->count);
}

static void put_rest(struct xdr_out *out, enum nfs_procedure procedure, const struct nfs_args *args)
{
    switch ((uint32_t)procedure) {
    case NFS_SETATTR:
        put_sattr(out, &args->sattr);
        xdr_put_u32(out, args->has_guard);
        if (args->has_guard)
            nfs_xdr_put_time(out, args->guard);
        break;
    case NFS_ACCESS:
        xdr_put_u32(out, args->access);
        break;
    case NFS_READ:
    case NFS_COMMIT:
        xdr_put_u64(out, args->offset);
        xdr_put_u32(out, args->count);
        break;
    case NFS_WRITE:
        xdr_put_u64(out, args->offset);
        xdr_put_u32(out, args->count);
        xdr_put_u32(out, (uint32_t)args->stable);
        xdr_put_opaque(out, args->data);
        break;
    case NFS_CREATE:
        put_create(out, args);
        break;
    case NFS_MKDIR:
        put_sattr(out, &args->sattr);
        break;
    case NFS_SYMLINK:
        put_sattr(out, &args->sattr);
        xdr_put_opaque(out, args->path);
        break;
    case NFS_MKNOD:
        put_mknod(out, args);
        break;
    case NFS_READDIR:
    case NFS_READDIRPLUS:
        put_listing(out, procedure, args);
        break;
    case NFS_RENAME:
    case NFS_LINK:
        xdr_put_opaque(out, args->to_fh);
        xdr_put_opaque(out, args->to_name);
        break;
    default: /* a handle, and perhaps a name */
        break;
    }
}

static bool has_name(enum nfs_procedure procedure)
{
    return procedure == NFS_LOOKUP || procedure == NFS_RENAME ||
           (procedure >= NFS_CREATE && procedure <= NFS_RMDIR);
}

/* In this memory, which is lent or is not. */
static struct job *submit(struct caller *caller, enum nfs_procedure procedure,
                          const struct nfs_args *args, struct job_memory *memory, bool is_lent)
{
    uint8_t *buffer = memory->at;
    struct xdr_out out = xdr_out_of(buffer, memory->len);
    xdr_put_opaque(&out, args->fh);
    if (has_name(procedure))
        xdr_put_opaque(&out, args->name);
    put_rest(&out, procedure, args);
    struct job_request request = {.program = NFS_PROGRAM,
                                  .procedure = (uint32_t)procedure,
                                  .xid = caller->xid,
                                  .from = &caller->peer,
                                  .credential = &caller->credential,
                                  .args = {buffer, xdr_out_len(&out)},
                                  .lent = is_lent ? memory : NULL};
    const struct job_desk *desk = file_desk(caller->service);
    struct job *job = NULL;
    assert_false(out.overflowed);
    enum job_verdict verdict = desk->submit(desk->context, &request, &job);
    if (memory->at == buffer)
        memset(buffer, 0xee, memory->len); /* the views of it are dead */
    assert_int_not_equal(verdict, JOB_GARBAGE);
    return verdict == JOB_DONE ? job : NULL;
}

struct job *caller_submit(struct caller *caller, enum nfs_procedure procedure,
                          const struct nfs_args *args)
{
    uint32_t max = NFS_DATA_MAX + 65536;
    struct job_memory memory = {.at = malloc(max), .len = max};
    assert_non_null(memory.at);
    struct job *job = submit(caller, procedure, args, &memory, false);
    free(memory.at);
    return job;
}

struct job *caller_submit_lent(struct caller *caller, enum nfs_procedure procedure,
                               const struct nfs_args *args, struct job_memory *lent)
{
    return submit(caller, procedure, args, lent, true);
}

struct job *caller_wait(struct caller *caller)
{
    const struct job_desk *desk = file_desk(caller->service);
    for (;;) {
        struct job *job = desk->next(desk->context);
        if (job != NULL)
            return job;
        struct pollfd fd = {.fd = wake_fd, .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 60000), 1);
        uint64_t count;
        assert_int_equal(read(wake_fd, &count, sizeof count), sizeof count);
    }
}

/* ---- results ---- */

static struct nfs_time get_time(struct xdr_in *in)
{
    struct nfs_time time = {xdr_get_u32(in), 0};
    time.nseconds = xdr_get_u32(in);
    return time;
}

static void get_attr(struct xdr_in *in, struct nfs_attr *ret)
{
    ret->type = (enum nfs_type)xdr_get_u32(in);
    ret->mode = xdr_get_u32(in);
    ret->nlink = xdr_get_u32(in);
    ret->uid = xdr_get_u32(in);
    ret->gid = xdr_get_u32(in);
    ret->size = xdr_get_u64(in);
    ret->used = xdr_get_u64(in);
    ret->rdev_major = xdr_get_u32(in);
    ret->rdev_minor = xdr_get_u32(in);
    ret->fsid = xdr_get_u64(in);
    ret->fileid = xdr_get_u64(in);
    ret->atime = get_time(in);
    ret->mtime = get_time(in);
    ret->ctime = get_time(in);
}

static void get_post(struct xdr_in *in, struct nfs_post_attr *ret)
{
    ret->is_there = xdr_get_bool(in);
    if (ret->is_there)
        get_attr(in, &ret->attr);
}

static void get_wcc(struct xdr_in *in, struct nfs_wcc *ret)
{
    ret->before.is_there = xdr_get_bool(in);
    if (ret->before.is_there) {
        ret->before.size = xdr_get_u64(in);
        ret->before.mtime = get_time(in);
        ret->before.ctime = get_time(in);
    }
    get_post(in, &ret->after);
}

static void get_fh(struct xdr_in *in, struct nfs_fh *ret)
{
    struct bytes fh = xdr_get_opaque(in, NFS_FH_MAX);
    ret->len = fh.len;
    if (fh.len > 0)
        memcpy(ret->data, fh.at, fh.len);
}

static void get_made(struct xdr_in *in, struct nfs_result *r)
{
    if (r->stat == NFS_OK) {
        r->has_fh = xdr_get_bool(in);
        if (r->has_fh)
            get_fh(in, &r->fh);
        get_post(in, &r->attr);
    }
    get_wcc(in, &r->wcc);
}

static void get_verf(struct xdr_in *in, struct nfs_result *r)
{
    struct bytes verf = xdr_get_fixed(in, NFS_VERF_LEN);
    if (verf.len == NFS_VERF_LEN)
        memcpy(r->verf, verf.at, NFS_VERF_LEN);
}

static void keep_payload(struct caller *caller, struct bytes data)
{
    free(caller->payload);
    caller->payload = malloc(data.len + 1);
    assert_non_null(caller->payload);
    memcpy(caller->payload, data.at, data.len);
    caller->payload[data.len] = 0;
    caller->payload_len = data.len;
}

static void get_ok(struct caller *caller, enum nfs_procedure procedure, struct xdr_in *in,
                   struct nfs_result *r)
{
    switch ((uint32_t)procedure) {
    case NFS_READ:
        r->count = xdr_get_u32(in);
        r->eof = xdr_get_bool(in);
        keep_payload(caller, xdr_get_opaque(in, NFS_DATA_MAX));
        assert_int_equal(r->count, caller->payload_len);
        break;
    case NFS_READLINK:
        keep_payload(caller, xdr_get_opaque(in, 8192));
        break;
    case NFS_ACCESS:
        r->access = xdr_get_u32(in);
        break;
    case NFS_READDIR:
    case NFS_READDIRPLUS:
        get_verf(in, r);
        keep_payload(caller, xdr_in_rest(in));
        *in = xdr_in_of((struct bytes){0});
        break;
    default: /* numbers of the file system */
        keep_payload(caller, xdr_in_rest(in));
        *in = xdr_in_of((struct bytes){0});
        break;
    }
}

static void get_result(struct caller *caller, enum nfs_procedure procedure, struct xdr_in *in,
                       struct nfs_result *r)
{
    switch ((uint32_t)procedure) {
    case NFS_GETATTR:
        if (r->stat == NFS_OK)
            get_attr(in, &r->attr.attr);
        break;
    case NFS_LOOKUP:
        if (r->stat == NFS_OK) {
            get_fh(in, &r->fh);
            get_post(in, &r->attr);
        }
        get_post(in, &r->dir_attr);
        break;
    case NFS_CREATE:
    case NFS_MKDIR:
    case NFS_SYMLINK:
    case NFS_MKNOD:
        get_made(in, r);
        break;
    case NFS_SETATTR:
    case NFS_REMOVE:
    case NFS_RMDIR:
        get_wcc(in, &r->wcc);
        break;
    case NFS_WRITE:
    case NFS_COMMIT:
        get_wcc(in, &r->wcc);
        if (r->stat == NFS_OK && procedure == NFS_WRITE) {
            r->count = xdr_get_u32(in);
            r->committed = (enum nfs_stable)xdr_get_u32(in);
        }
        if (r->stat == NFS_OK)
            get_verf(in, r);
        break;
    case NFS_RENAME:
        get_wcc(in, &r->wcc);
        get_wcc(in, &r->to_wcc);
        break;
    case NFS_LINK:
        get_post(in, &r->attr);
        get_wcc(in, &r->wcc);
        break;
    default:
        get_post(in, &r->attr);
        if (r->stat == NFS_OK)
            get_ok(caller, procedure, in, r);
        break;
    }
}

/* All of the body, with what is in the pipe; to be freed. */
static uint8_t *whole_body(struct job *job, uint32_t *ret_len)
{
    uint32_t at = job->pipe.at, piped = job->pipe.len, end = at + piped;
    uint8_t *whole = malloc(job->body_len + piped);
    assert_non_null(whole);
    *ret_len = job->body_len + piped;
    if (piped == 0) {
        memcpy(whole, job->body, job->body_len);
        return whole;
    }
    memcpy(whole, job->body, at);
    for (; job->pipe.len > 0; at = end - job->pipe.len) {
        ssize_t len = read(job->pipe.fd, whole + at, job->pipe.len);
        assert_true(len > 0);
        job->pipe.len -= (uint32_t)len;
    }
    memcpy(whole + end, job->body + job->pipe.at, job->body_len - job->pipe.at);
    return whole;
}

enum nfs_stat caller_take(struct caller *caller, enum nfs_procedure procedure, struct job *job)
{
    uint32_t len;
    uint8_t *body = whole_body(job, &len);
    struct xdr_in in = xdr_in_of((struct bytes){body, len});
    struct nfs_result result = {.stat = (enum nfs_stat)xdr_get_u32(&in)};
    get_result(caller, procedure, &in, &result);
    assert_true(xdr_in_done(&in));
    assert_int_equal(job->status, result.stat);
    free(body);
    caller->result = result;
    const struct job_desk *desk = file_desk(caller->service);
    desk->release(desk->context, job);
    return result.stat;
}

enum nfs_stat caller_call(struct caller *caller, enum nfs_procedure procedure,
                          const struct nfs_args *args)
{
    struct job *job = caller_submit(caller, procedure, args);
    return caller_take(caller, procedure, job != NULL ? job : caller_wait(caller));
}

enum mount_stat caller_mount(struct caller *caller, const char *path, struct nfs_fh *ret)
{
    uint8_t buffer[2048];
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    xdr_put_opaque(&out, bytes_of_text(path));
    struct job_request request = {.program = MOUNT_PROGRAM,
                                  .procedure = MOUNT_MNT,
                                  .from = &caller->peer,
                                  .credential = &caller->credential,
                                  .args = {buffer, xdr_out_len(&out)}};
    const struct job_desk *desk = file_desk(caller->service);
    struct job *job = NULL;
    if (desk->submit(desk->context, &request, &job) == JOB_LATER)
        job = caller_wait(caller);
    struct xdr_in in = xdr_in_of((struct bytes){job->body, job->body_len});
    enum mount_stat stat = (enum mount_stat)xdr_get_u32(&in);
    if (stat == MOUNT_OK && ret != NULL)
        get_fh(&in, ret);
    desk->release(desk->context, job);
    return stat;
}

/* ---- often used ---- */

struct bytes caller_bytes(const struct nfs_fh *fh)
{
    return (struct bytes){fh->data, fh->len};
}

enum nfs_stat caller_lookup(struct caller *caller, const struct nfs_fh *directory, const char *name,
                            struct nfs_fh *ret)
{
    enum nfs_stat stat =
        caller_call(caller, NFS_LOOKUP,
                    &(struct nfs_args){.fh = caller_bytes(directory), .name = bytes_of_text(name)});
    if (stat == NFS_OK && ret != NULL)
        *ret = caller->result.fh;
    return stat;
}

static enum nfs_stat make(struct caller *caller, enum nfs_procedure procedure,
                          const struct nfs_args *args, struct nfs_fh *ret)
{
    enum nfs_stat stat = caller_call(caller, procedure, args);
    if (stat == NFS_OK && ret != NULL)
        *ret = caller->result.fh;
    return stat;
}

enum nfs_stat caller_create(struct caller *caller, const struct nfs_fh *directory, const char *name,
                            uint32_t mode, struct nfs_fh *ret)
{
    return make(caller, NFS_CREATE,
                &(struct nfs_args){.fh = caller_bytes(directory),
                                   .name = bytes_of_text(name),
                                   .create = NFS_GUARDED,
                                   .sattr = {.set_mode = true, .mode = mode}},
                ret);
}

enum nfs_stat caller_mkdir(struct caller *caller, const struct nfs_fh *directory, const char *name,
                           uint32_t mode, struct nfs_fh *ret)
{
    return make(caller, NFS_MKDIR,
                &(struct nfs_args){.fh = caller_bytes(directory),
                                   .name = bytes_of_text(name),
                                   .sattr = {.set_mode = true, .mode = mode}},
                ret);
}

enum nfs_stat caller_write(struct caller *caller, const struct nfs_fh *file, uint64_t offset,
                           const char *data, enum nfs_stable stable)
{
    struct bytes bytes = bytes_of_text(data);
    return caller_call(caller, NFS_WRITE,
                       &(struct nfs_args){.fh = caller_bytes(file),
                                          .offset = offset,
                                          .count = bytes.len,
                                          .stable = stable,
                                          .data = bytes});
}

enum nfs_stat caller_read(struct caller *caller, const struct nfs_fh *file, uint64_t offset,
                          uint32_t count)
{
    return caller_call(
        caller, NFS_READ,
        &(struct nfs_args){.fh = caller_bytes(file), .offset = offset, .count = count});
}

enum nfs_stat caller_getattr(struct caller *caller, const struct nfs_fh *file)
{
    return caller_call(caller, NFS_GETATTR, &(struct nfs_args){.fh = caller_bytes(file)});
}

const char *caller_path(const struct caller *caller, const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", caller->directory, name);
    return path;
}

bool caller_reload(struct caller *caller, const char *line, struct text *why)
{
    struct export_line parsed;
    assert_int_equal(export_line_parse(line, &parsed, why), 0);
    struct export_table *exports = file_prepare(caller->service, &parsed, 1, why);
    export_line_done(&parsed);
    if (exports != NULL)
        file_take(caller->service, exports);
    return exports != NULL;
}
