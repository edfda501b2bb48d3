/*
 * fuzz_nfs.c -- any bytes as the arguments of any NFS procedure: what is accepted stays inside the
 * message and its limits, means the same when a client writes it again, and is refused one byte
 * shorter or longer. What a server answers that can say no more than a status is then written for
 * every status: it begins with the status and fits where replies are built.
 *
 * Input: procedure (1 byte), then the arguments.
 */
#include "codec/nfs_args.h"
#include "codec/nfs_results.h"
#include "fuzz.h"

static bool get(enum nfs_procedure procedure, const uint8_t *data, size_t len, struct nfs_args *ret)
{
    struct xdr_in in = xdr_in_of((struct bytes){data, (uint32_t)len});
    return nfs_args_get(&in, procedure, ret);
}

static void put_time(struct xdr_out *out, struct nfs_time time)
{
    xdr_put_u32(out, time.seconds);
    xdr_put_u32(out, time.nseconds);
}

static void put_sattr(struct xdr_out *out, const struct nfs_sattr *sattr)
{
    const struct {
        bool is_set;
        uint32_t value;
    } words[] = {
        {sattr->set_mode, sattr->mode}, {sattr->set_uid, sattr->uid}, {sattr->set_gid, sattr->gid}};
    for (size_t i = 0; i < 3; i++) {
        xdr_put_u32(out, words[i].is_set);
        if (words[i].is_set)
            xdr_put_u32(out, words[i].value);
    }
    xdr_put_u32(out, sattr->set_size);
    if (sattr->set_size)
        xdr_put_u64(out, sattr->size);
    xdr_put_u32(out, (uint32_t)sattr->atime_how);
    if (sattr->atime_how == NFS_TIME_CLIENT)
        put_time(out, sattr->atime);
    xdr_put_u32(out, (uint32_t)sattr->mtime_how);
    if (sattr->mtime_how == NFS_TIME_CLIENT)
        put_time(out, sattr->mtime);
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
    bool is_device = args->type == NFS_TYPE_CHR || args->type == NFS_TYPE_BLK;
    xdr_put_u32(out, (uint32_t)args->type);
    if (is_device || args->type == NFS_TYPE_SOCK || args->type == NFS_TYPE_FIFO)
        put_sattr(out, &args->sattr);
    if (is_device) {
        xdr_put_u32(out, args->rdev_major);
        xdr_put_u32(out, args->rdev_minor);
    }
}

static void put_setattr(struct xdr_out *out, const struct nfs_args *args)
{
    put_sattr(out, &args->sattr);
    xdr_put_u32(out, args->has_guard);
    if (args->has_guard)
        put_time(out, args->guard);
}

static void put_range(struct xdr_out *out, enum nfs_procedure procedure,
                      const struct nfs_args *args)
{
    xdr_put_u64(out, args->offset);
    xdr_put_u32(out, args->count);
    if (procedure == NFS_WRITE) {
        xdr_put_u32(out, (uint32_t)args->stable);
        xdr_put_opaque(out, args->data);
    }
}

static void put_listing(struct xdr_out *out, enum nfs_procedure procedure,
                        const struct nfs_args *args)
{
    xdr_put_u64(out, args->cookie);
    xdr_put_fixed(out, args->verf);
    if (procedure == NFS_READDIRPLUS)
        xdr_put_u32(out, args->dircount);
    xdr_put_u32(out, args->count);
}

/* As a client writes it. */
static void put(struct xdr_out *out, enum nfs_procedure procedure, const struct nfs_args *args)
{
    bool has_name = procedure == NFS_LOOKUP || procedure == NFS_RENAME ||
                    (procedure >= NFS_CREATE && procedure <= NFS_RMDIR);
    if (procedure == NFS_NULL)
        return;
    xdr_put_opaque(out, args->fh);
    if (has_name)
        xdr_put_opaque(out, args->name);
    if (procedure == NFS_SETATTR)
        put_setattr(out, args);
    if (procedure == NFS_ACCESS)
        xdr_put_u32(out, args->access);
    if (procedure == NFS_READ || procedure == NFS_WRITE || procedure == NFS_COMMIT)
        put_range(out, procedure, args);
    if (procedure == NFS_CREATE)
        put_create(out, args);
    if (procedure == NFS_MKDIR || procedure == NFS_SYMLINK)
        put_sattr(out, &args->sattr);
    if (procedure == NFS_SYMLINK)
        xdr_put_opaque(out, args->path);
    if (procedure == NFS_MKNOD)
        put_mknod(out, args);
    if (procedure == NFS_RENAME || procedure == NFS_LINK) {
        xdr_put_opaque(out, args->to_fh);
        xdr_put_opaque(out, args->to_name);
    }
    if (procedure == NFS_READDIR || procedure == NFS_READDIRPLUS)
        put_listing(out, procedure, args);
}

static void check_sattr(const struct nfs_sattr *a, const struct nfs_sattr *b)
{
    CHECK(a->set_mode == b->set_mode && a->mode == b->mode);
    CHECK(a->set_uid == b->set_uid && a->uid == b->uid);
    CHECK(a->set_gid == b->set_gid && a->gid == b->gid);
    CHECK(a->set_size == b->set_size && a->size == b->size);
    CHECK(a->atime_how == b->atime_how && a->atime.seconds == b->atime.seconds);
    CHECK(a->mtime_how == b->mtime_how && a->mtime.seconds == b->mtime.seconds);
    CHECK(a->atime.nseconds == b->atime.nseconds && a->mtime.nseconds == b->mtime.nseconds);
}

static void check_same(const struct nfs_args *a, const struct nfs_args *b)
{
    CHECK(bytes_equal(a->fh, b->fh) && bytes_equal(a->name, b->name));
    CHECK(bytes_equal(a->to_fh, b->to_fh) && bytes_equal(a->to_name, b->to_name));
    check_sattr(&a->sattr, &b->sattr);
    CHECK(a->has_guard == b->has_guard && a->guard.seconds == b->guard.seconds);
    CHECK(a->guard.nseconds == b->guard.nseconds && a->access == b->access);
    CHECK(a->offset == b->offset && a->count == b->count && a->dircount == b->dircount);
    CHECK(a->stable == b->stable && bytes_equal(a->data, b->data));
    CHECK(a->create == b->create && bytes_equal(a->verf, b->verf) && a->cookie == b->cookie);
    CHECK(bytes_equal(a->path, b->path) && a->type == b->type);
    CHECK(a->rdev_major == b->rdev_major && a->rdev_minor == b->rdev_minor);
}

static void check_limits(const struct nfs_args *args, const uint8_t *data, size_t len)
{
    const struct bytes views[] = {args->fh,   args->name, args->to_fh, args->to_name,
                                  args->data, args->verf, args->path};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        CHECK(fuzz_is_inside(views[i], data, len));
    CHECK(args->fh.len <= NFS_FH_MAX && args->to_fh.len <= NFS_FH_MAX);
    CHECK(args->name.len <= NFS_STRING_MAX && args->to_name.len <= NFS_STRING_MAX);
    CHECK(args->path.len <= NFS_STRING_MAX && args->data.len <= NFS_DATA_MAX);
    CHECK(args->verf.len == 0 || args->verf.len == NFS_VERF_LEN);
    CHECK((uint32_t)args->stable <= NFS_FILE_SYNC && (uint32_t)args->create <= NFS_EXCLUSIVE);
}

static void check_accepted(enum nfs_procedure procedure, const uint8_t *data, size_t len,
                           const struct nfs_args *args)
{
    check_limits(args, data, len);
    uint8_t *again = malloc(len + 1); /* one byte more is read as well */
    CHECK(again != NULL);
    struct nfs_args second;
    if (len > 0)
        memcpy(again, data, len);
    again[len] = 0;
    CHECK(!get(procedure, again, len + 1, &second));
    CHECK(len == 0 || !get(procedure, again, len - 1, &second));
    struct xdr_out out = xdr_out_of(again, (uint32_t)len);
    put(&out, procedure, args);
    CHECK(!out.overflowed);
    CHECK(xdr_out_len(&out) == len);
    CHECK(get(procedure, again, len, &second));
    check_same(args, &second);
    free(again);
}

static void check_refusal(enum nfs_procedure procedure)
{
    static const enum nfs_stat stats[] = {NFS_PERM, NFS_NOENT, NFS_IO, NFS_STALE, NFS_JUKEBOX};
    static uint8_t bytes[NFS_HEAD_MAX];
    for (size_t i = 0; procedure != NFS_NULL && i < sizeof stats / sizeof stats[0]; i++) {
        struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
        nfs_results_put(&out, procedure, &(struct nfs_result){.stat = stats[i]});
        CHECK(!out.overflowed);
        CHECK(xdr_out_len(&out) >= 4 && xdr_out_len(&out) % 4 == 0);
        CHECK(load_be32(bytes) == (uint32_t)stats[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    enum nfs_procedure procedure = (enum nfs_procedure)(fuzz_u8(&fuzz) % NFS_PROCEDURE_COUNT);
    struct bytes rest = fuzz_slice(&fuzz, UINT16_MAX);
    uint8_t *copy = fuzz_copy(rest);
    struct nfs_args args;
    if (get(procedure, copy, rest.len, &args))
        check_accepted(procedure, copy, rest.len, &args);
    check_refusal(procedure);
    free(copy);
    return 0;
}
