/*
 * op_data.c -- READ, WRITE, COMMIT.
 *
 * Data goes from the file straight into the reply, and from the call straight into the file; the
 * data of a long READ not at all: its pages go into a pipe, and the reply says how many bytes of it
 * are there (decision 046). The data of a long WRITE may come in a pipe, and goes from there into
 * the file (decision 047).
 *
 * Verifier and stability: a WRITE takes the verifier before it writes, a COMMIT after it synced.
 * An error of writing back that falls in between changes it, and the client writes again. A WRITE
 * never claims more than was done: FILE_SYNC only after a sync of data and metadata, DATA_SYNC
 * after one of the data; also with `async`.
 */
#include "file/op_data.h"

#include "base/check.h"
#include "base/minmax.h"
#include "file/attributes.h"
#include "file/inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

/* A read on the server's thread is at most this long. */
enum { QUICK_READ_MAX = 65536 };

/* From this length on pages go through a pipe. */
enum { PIPED_MIN = 262144 };

/* Is it a file with data? */
static enum nfs_stat check_type(const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return NFS_OK;
    return S_ISDIR(st->st_mode) ? NFS_ISDIR : NFS_INVAL;
}

static bool is_owner(const struct call *call, const struct stat *st)
{
    return st->st_uid == call->identity.uid;
}

int op_data_open_for_writing(struct call *call, struct descriptor *descriptor,
                             const struct stat *st)
{
    if (!is_owner(call, st) && !resolve_may(call, descriptor, st, W_OK))
        return -EACCES;
    if (atomic_load(&descriptor->write_fd) < 0)
        identity_own();
    int fd = descriptor_for_writing(call_cache(call), descriptor);
    identity_assume(&call->identity);
    return fd;
}

/* Who may execute a file may read it: the client must load it. */
static int open_for_reading(struct call *call, struct descriptor *descriptor, const struct stat *st)
{
    if (!is_owner(call, st) && !resolve_may(call, descriptor, st, R_OK) &&
        !resolve_may(call, descriptor, st, X_OK))
        return -EACCES;
    if (descriptor_open_for_reading(descriptor) < 0)
        identity_own();
    int fd = descriptor_for_reading(call_cache(call), descriptor);
    identity_assume(&call->identity);
    return fd;
}

/* ---- READ ---- */

/* What there is to read of what was asked for; `st` is as of now. */
static uint32_t readable(const struct call *call, const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size, offset = call->args.offset;
    uint64_t rest = offset < size ? size - offset : 0;
    return (uint32_t)min_u64(rest, min_u32(call->args.count, call->payload_max));
}

static void put_data(struct call *call, const struct stat *st, uint32_t len)
{
    call->result.payload_len = len;
    call->result.eof = call->args.offset >= (uint64_t)st->st_size ||
                       call->args.offset + len >= (uint64_t)st->st_size;
    call->result.attr.is_there = true;
    attributes_of(call, st, &call->result.attr.attr);
    call->job.data_len = len;
}

/* Pages of the file, into a pipe: as many as go there. It may be full, because nobody reads from it
 * yet, and there are none of a file system that gives no pages away. */
static void read_into_pipe(struct call *call, int fd, uint32_t wanted)
{
    uint32_t *len = &call->job.pipe.len;
    if (wanted < PIPED_MIN || !call_take_pipe(call))
        return;
    while (*len < wanted) {
        off_t offset = (off_t)(call->args.offset + *len);
        ssize_t count = call_system(call)->splice(fd, &offset, call->pipe->write_fd, NULL,
                                                  wanted - *len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        *len += (uint32_t)count;
    }
    if (*len == 0)
        call_drop_pipe(call);
}

/* What is not in a pipe, into memory. How much there is in both, or -errno if that is nothing. */
static int64_t read_into_memory(const struct call *call, int fd, uint32_t wanted)
{
    uint32_t in_pipe = call->job.pipe.len, len = in_pipe;
    while (len < wanted) {
        ssize_t count = pread(fd, call_payload(call) + (len - in_pipe), wanted - len,
                              (off_t)(call->args.offset + len));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && len == 0)
            return -errno;
        if (count <= 0)
            break; /* it became shorter meanwhile */
        len += (uint32_t)count;
    }
    return len;
}

void op_read(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    call->result.attr.is_there = true;
    attributes_of(call, &st, &call->result.attr.attr);
    int fd = -1;
    if (call_fail(call, check_type(&st))->stat != NFS_OK)
        return;
    fd = open_for_reading(call, descriptor, &st);
    uint32_t wanted = readable(call, &st);
    if (fd >= 0)
        read_into_pipe(call, fd, wanted);
    int64_t len = fd >= 0 ? read_into_memory(call, fd, wanted) : fd;
    if (len < 0)
        (void)call_fail(call, call_stat_of((int)len));
    else if (fstat(descriptor->path_fd, &st) == 0)
        put_data(call, &st, (uint32_t)len);
    else
        (void)call_fail(call, NFS_STALE);
    if (call->result.stat != NFS_OK)
        call_drop_pipe(call);
}

bool op_try_read(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_cached(call, call->args.fh, &st);
    if (descriptor == NULL || !S_ISREG(st.st_mode))
        return false;
    int fd = descriptor_open_for_reading(descriptor);
    if (fd < 0 || (!is_owner(call, &st) && !resolve_may_cached(call, descriptor, &st, R_OK)))
        return false;
    uint32_t wanted = readable(call, &st);
    if (wanted > QUICK_READ_MAX || !call_may_read(call, wanted))
        return false;
    struct iovec place = {call_payload(call), wanted};
    ssize_t len = wanted == 0 ? 0
                              : preadv2(fd, &place, 1, (off_t)call->args.offset,
                                        call->export->is_memory ? 0 : RWF_NOWAIT);
    if (len != (ssize_t)wanted || fstat(descriptor->path_fd, &st) != 0)
        return false;
    put_data(call, &st, wanted);
    return true;
}

/* ---- WRITE ---- */

/* The next of `wanted` bytes: those in memory, then those in a pipe. Whatever keeps these from
 * going straight into the file, pwrite says what it is. */
static ssize_t write_some(struct call *call, int fd, uint32_t at, uint32_t wanted)
{
    const struct nfs_args *args = &call->args;
    uint32_t in_memory = wanted - inlet_len(call);
    if (at == in_memory) {
        uint32_t count = inlet_write(call, fd, args->offset + at);
        if (count > 0)
            return count;
        MARK("write_leaves_pipe");
        if (!inlet_empty(call)) {
            errno = EIO;
            return -1;
        }
        in_memory = wanted;
    }
    return call_system(call)->pwrite(fd, args->data.at + at, in_memory - at,
                                     (off_t)(args->offset + at));
}

static int write_all(struct call *call, int fd, uint32_t *ret_len)
{
    uint32_t len = 0,
             wanted = min_u32(call->args.data.len, NFS_DATA_MAX); /* the rest comes again */
    while (len < wanted) {
        ssize_t count = write_some(call, fd, len, wanted);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            *ret_len = len;
            return len > 0 ? 0 : count < 0 ? -errno : -EIO;
        }
        len += (uint32_t)count;
    }
    *ret_len = len;
    return 0;
}

static int write_locked(struct call *call, struct descriptor *descriptor, const struct stat *st)
{
    const struct nfs_args *args = &call->args;
    if (!call->rights->is_writable)
        return -EROFS;
    if (args->data.len != args->count)
        return -EINVAL;
    if (args->offset > INT64_MAX || args->offset + args->count > INT64_MAX)
        return -EFBIG;
    int fd = op_data_open_for_writing(call, descriptor, st);
    if (fd < 0)
        return fd;
    call_get_verifier(call, call->result.verf, &call->errors_before);
    int code = write_all(call, fd, &call->result.count);
    if (inlet_len(call) == 0)
        call_drop_pipe(call);
    /* Not before: a sync that runs meanwhile may miss what was written. */
    atomic_store(&descriptor->is_dirty, true);
    return code;
}

void op_write(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    CHECK(pthread_mutex_lock(&descriptor->mutex) == 0);
    if (fstat(descriptor->path_fd, &st) == 0)
        attributes_before(&st, &call->result.wcc.before);
    if (call_fail(call, check_type(&st))->stat == NFS_OK)
        call->result.stat = call_stat_of(write_locked(call, descriptor, &st));
    attributes_after(call, descriptor->path_fd, &call->result.wcc.after);
    CHECK(pthread_mutex_unlock(&descriptor->mutex) == 0);
    if (call->result.stat != NFS_OK)
        return;
    call->job.data_len = call->result.count;
    call->result.committed = call->args.stable;
    if (call->args.stable != NFS_UNSTABLE)
        call_must_sync(call, descriptor, call->args.stable == NFS_FILE_SYNC);
}

/* ---- COMMIT ---- */

/* Any client of the export may ask for it: it changes nothing, and the writer may have lost its
 * right to write meanwhile. Its verifier is taken when the sync is done (call_finish). */
void op_commit(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    attributes_unchanged(call, &st, &call->result.wcc);
    if (call_fail(call, check_type(&st))->stat == NFS_OK)
        call_must_sync(call, descriptor, true);
}
