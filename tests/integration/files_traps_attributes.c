/*
 * files_traps_attributes.c -- traps of SETATTR and of the attributes in every answer; see
 * files_traps.h.
 */
#include "files_traps.h"

#include <stdio.h>
#include <sys/stat.h>

static void check_guard(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_fh fh = files_stage_create(link, traps->root, "guard", 0644);
    struct peer_nfs_time ctime =
        FILES_EXPECT(PEER_NFS_IS_OK, "guard", link, PEER_NFS_GETATTR, .fh = fh)->attr.ctime;
    struct peer_nfs_time later = {ctime.seconds + 1, ctime.nanoseconds};
    struct peer_nfs_time other = {ctime.seconds, (ctime.nanoseconds + 1) % 1000000000};
    FILES_EXPECT(PEER_NFS_IS_NOT_SYNC, "a guard with other seconds", link, PEER_NFS_SETATTR,
                 .fh = fh, .has_guard = true, .guard = later, .sattr = {.has_mode = true});
    FILES_EXPECT(PEER_NFS_IS_NOT_SYNC, "a guard with other nanoseconds", link, PEER_NFS_SETATTR,
                 .fh = fh, .has_guard = true, .guard = other, .sattr = {.has_mode = true});
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "a guard that fits", link, PEER_NFS_SETATTR, .fh = fh,
                     .has_guard = true, .guard = ctime, .sattr = {.has_mode = true, .mode = 0600});
    HARNESS_EXPECT(res->wcc.has_after && res->wcc.after.mode == 0600, "mode %o",
                   res->wcc.after.mode);
}

/* Seconds are unsigned: 2106 is the end, 1970 the beginning. */
static void check_times(struct files_traps *traps)
{
    static const struct peer_nfs_time times[] = {
        {0, 0}, {1, 999999999}, {INT32_MAX, 1}, {2147483648u, 5}};
    struct peer_link *link = traps->link;
    struct peer_nfs_fh fh = files_stage_create(link, traps->root, "times", 0644);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, "a time", link, PEER_NFS_SETATTR, .fh = fh,
                         .sattr = {.atime_how = PEER_NFS_CLIENT_TIME,
                                   .atime = times[i],
                                   .mtime_how = PEER_NFS_CLIENT_TIME,
                                   .mtime = times[i]});
        HARNESS_EXPECT(res->wcc.after.mtime.seconds == times[i].seconds &&
                           res->wcc.after.mtime.nanoseconds == times[i].nanoseconds &&
                           res->wcc.after.atime.seconds == times[i].seconds,
                       "%u.%09u becomes %u.%09u", times[i].seconds, times[i].nanoseconds,
                       res->wcc.after.mtime.seconds, res->wcc.after.mtime.nanoseconds);
    }
    const struct peer_nfs_res *res =
        FILES_ASK(link, PEER_NFS_SETATTR, .fh = fh,
                  .sattr = {.mtime_how = PEER_NFS_CLIENT_TIME, .mtime = {5, 1000000000}});
    HARNESS_EXPECT(res->status == PEER_NFS_IS_INVAL, "a second has fewer nanoseconds: %s",
                   peer_nfs_status_text(res->status));
}

static void check_sizes(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_fh fh = files_stage_create(link, traps->root, "sizes", 0644);
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "a sparse file", link, PEER_NFS_SETATTR, .fh = fh,
                     .sattr = {.has_size = true, .size = UINT64_C(1) << 33});
    HARNESS_EXPECT(res->wcc.after.size == UINT64_C(1) << 33 && res->wcc.after.used < 1 << 20,
                   "size %llu, used %llu", (unsigned long long)res->wcc.after.size,
                   (unsigned long long)res->wcc.after.used);
    res = FILES_ASK(link, PEER_NFS_SETATTR, .fh = fh,
                    .sattr = {.has_size = true, .size = UINT64_MAX});
    HARNESS_EXPECT(res->status == PEER_NFS_IS_INVAL || res->status == PEER_NFS_IS_FBIG,
                   "a size of 2^64: %s", peer_nfs_status_text(res->status));
    res = FILES_ASK(link, PEER_NFS_SETATTR, .fh = traps->root, .sattr = {.has_size = true});
    HARNESS_EXPECT(res->status == PEER_NFS_IS_ISDIR || res->status == PEER_NFS_IS_INVAL,
                   "the size of a directory: %s", peer_nfs_status_text(res->status));
    /* An empty SETATTR changes nothing and is answered. */
    FILES_EXPECT(PEER_NFS_IS_OK, "nothing to set", link, PEER_NFS_SETATTR, .fh = fh);
}

/* fileid and fsid are stable, and nlink is right; seen from here as well. */
static void check_identity(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct stat st;
    char path[512];
    struct peer_nfs_fh fh = files_stage_create(link, traps->root, "identity", 0644);
    struct peer_nfs_attr attr =
        FILES_EXPECT(PEER_NFS_IS_OK, "identity", link, PEER_NFS_GETATTR, .fh = fh)->attr;
    snprintf(path, sizeof(path), "%s/identity", traps->path);
    HARNESS_EXPECT(stat(path, &st) == 0 && st.st_ino == attr.fileid, "fileid %llu",
                   (unsigned long long)attr.fileid);
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "a second name", link, PEER_NFS_LINK, .fh = fh,
                     .to_fh = traps->root, .to_name = peer_nfs_text("identity-2"));
    HARNESS_EXPECT(res->attr.nlink == 2, "nlink %u with two names", res->attr.nlink);
    FILES_EXPECT(PEER_NFS_IS_OK, "one name goes", link, PEER_NFS_REMOVE, .fh = traps->root,
                 .name = peer_nfs_text("identity"));
    if (!files_stage_crash(traps->stage))
        return;
    res = FILES_EXPECT(PEER_NFS_IS_OK, "after a restart", link, PEER_NFS_GETATTR, .fh = fh);
    HARNESS_EXPECT(res->attr.nlink == 1 && res->attr.fileid == attr.fileid &&
                       res->attr.fsid == attr.fsid,
                   "nlink %u fileid %llu fsid %llx", res->attr.nlink,
                   (unsigned long long)res->attr.fileid, (unsigned long long)res->attr.fsid);
    struct peer_nfs_fh other = files_stage_mount(link, traps->other_path);
    res = FILES_EXPECT(PEER_NFS_IS_OK, "another export", link, PEER_NFS_GETATTR, .fh = other);
    HARNESS_EXPECT(res->attr.fsid != attr.fsid, "two exports have one fsid");
}

/* Before and after a change: what a client compares with its cache. */
static void check_wcc(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_fh fh = files_stage_create(link, traps->root, "wcc", 0644);
    struct peer_nfs_attr last =
        FILES_EXPECT(PEER_NFS_IS_OK, "wcc", link, PEER_NFS_GETATTR, .fh = fh)->attr;
    for (uint32_t i = 0; i < 3; i++) {
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, "wcc", link, PEER_NFS_WRITE, .fh = fh, .offset = 5 * i,
                         .count = 5, .data = {"abcde", 5}, .stable = PEER_NFS_FILE_SYNC);
        HARNESS_EXPECT(res->wcc.has_after && res->wcc.after.size == 5 * (i + 1),
                       "no attributes after a WRITE");
        if (res->wcc.has_before)
            HARNESS_EXPECT(res->wcc.before_size == last.size &&
                               res->wcc.before_ctime.seconds == last.ctime.seconds &&
                               res->wcc.before_ctime.nanoseconds == last.ctime.nanoseconds,
                           "the attributes before are not those after the last change");
        last = res->wcc.after;
    }
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_EXIST, "wcc of a failure", link, PEER_NFS_MKDIR, .fh = traps->root,
                     .name = peer_nfs_text("wcc"));
    HARNESS_EXPECT(res->wcc.has_after, "a failed MKDIR has no attributes of the directory");
    res = FILES_EXPECT(PEER_NFS_IS_NOENT, "LOOKUP of nothing", link, PEER_NFS_LOOKUP,
                       .fh = traps->root, .name = peer_nfs_text("nothing"));
    HARNESS_EXPECT(res->has_dir_attr, "a failed LOOKUP has no attributes of the directory");
}

void files_traps_attributes(struct files_traps *traps)
{
    check_guard(traps);
    check_times(traps);
    check_sizes(traps);
    check_identity(traps);
    check_wcc(traps);
}
