/*
 * files_disk.c -- a file system that is full, one that goes away, and one that takes its place.
 *
 * Passing shows, on small tmpfs in a mount namespace of this test:
 *  (1) a full one: what a WRITE says was written is there, then NOSPC; without room for an inode
 *      CREATE, MKDIR, SYMLINK and MKNOD answer NOSPC; nothing else is touched, and what REMOVE
 *      frees can be used again;
 *  (2) one that is unmounted under the server: it serves what it has open, and the kernel keeps the
 *      file system for as long;
 *  (3) after a reload or a restart the directory is what is there now: handles of the file system
 *      that went are STALE, also the root's, also with a COMMIT that was due; nothing of one file
 *      system is found in the other.
 */
#include "files_stage.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 65536, PATIENCE_MS = 10000, PAUSE_MS = 10 };

static struct files_stage stage;
static struct peer_link link_of_root;
static const char *full_path, *gone_path;
static uint8_t chunk[CHUNK];

static bool mount_at(const char *path, const char *options)
{
    return HARNESS_EXPECT(mount("tmpfs", path, "tmpfs", 0, options) == 0 && chmod(path, 0777) == 0,
                          "cannot mount %s", path);
}

/* Writes until there is no room; the bytes that were taken. */
static uint64_t fill(struct peer_nfs_fh fh)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        const struct peer_nfs_res *res =
            FILES_ASK(&link_of_root, PEER_NFS_WRITE, .fh = fh, .offset = taken, .count = CHUNK,
                      .data = {chunk, CHUNK}, .stable = i % 3);
        if (res->status != PEER_NFS_IS_OK) {
            HARNESS_EXPECT(res->status == PEER_NFS_IS_NOSPC, "a full file system: %s",
                           peer_nfs_status_text(res->status));
            HARNESS_EXPECT(res->wcc.has_after && res->wcc.after.size == taken,
                           "size %llu after %llu bytes were taken",
                           (unsigned long long)res->wcc.after.size, (unsigned long long)taken);
            return taken;
        }
        HARNESS_EXPECT(res->count > 0 && res->count <= CHUNK, "%u bytes were taken", res->count);
        taken += res->count;
    }
    HARNESS_EXPECT(false, "it is never full");
    return taken;
}

static void check_bytes(struct peer_nfs_fh fh, uint64_t size, const char *why)
{
    for (uint64_t at = 0; at < size;) {
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, why, &link_of_root, PEER_NFS_READ, .fh = fh, .offset = at,
                         .count = CHUNK);
        if (!HARNESS_EXPECT(res->data.len > 0 &&
                                memcmp(res->data.at, chunk + at % CHUNK, res->data.len) == 0,
                            "%s: other bytes at %llu", why, (unsigned long long)at))
            return;
        at += res->data.len;
    }
}

static void check_full(void)
{
    struct peer_nfs_fh root = files_stage_mount(&link_of_root, full_path);
    struct peer_nfs_fh kept = files_stage_create(&link_of_root, root, "kept", 0644);
    FILES_EXPECT(PEER_NFS_IS_OK, "set-up", &link_of_root, PEER_NFS_WRITE, .fh = kept,
                 .count = CHUNK, .data = {chunk, CHUNK}, .stable = PEER_NFS_FILE_SYNC);
    struct peer_nfs_fh big = files_stage_create(&link_of_root, root, "big", 0644);
    uint64_t taken = fill(big);
    FILES_EXPECT(PEER_NFS_IS_OK, "COMMIT of what was taken", &link_of_root, PEER_NFS_COMMIT,
                 .fh = big);
    check_bytes(big, taken - taken % CHUNK, "what was taken");
    check_bytes(kept, CHUNK, "another file");
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "FSSTAT", &link_of_root, PEER_NFS_FSSTAT, .fh = root);
    HARNESS_EXPECT(res->fsstat[2] < CHUNK, "%llu bytes are free",
                   (unsigned long long)res->fsstat[2]);
    FILES_EXPECT(PEER_NFS_IS_OK, "REMOVE", &link_of_root, PEER_NFS_REMOVE, .fh = root,
                 .name = peer_nfs_text("big"));
    FILES_EXPECT(PEER_NFS_IS_OK, "what was freed", &link_of_root, PEER_NFS_WRITE, .fh = kept,
                 .offset = CHUNK, .count = CHUNK, .data = {chunk, CHUNK});
}

static void check_inodes(void)
{
    static const uint32_t makers[] = {PEER_NFS_CREATE, PEER_NFS_MKDIR, PEER_NFS_SYMLINK,
                                      PEER_NFS_MKNOD};
    struct peer_nfs_fh root = files_stage_mount(&link_of_root, full_path);
    uint32_t status = PEER_NFS_IS_OK;
    char name[16];
    for (uint32_t i = 0; i < 100 && status == PEER_NFS_IS_OK; i++) {
        snprintf(name, sizeof(name), "inode%u", i);
        status = FILES_ASK(&link_of_root, PEER_NFS_CREATE, .fh = root, .name = peer_nfs_text(name),
                           .how = i % 3)
                     ->status;
    }
    HARNESS_EXPECT(status == PEER_NFS_IS_NOSPC, "no inode is left: %s",
                   peer_nfs_status_text(status));
    for (uint32_t i = 0; i < 4; i++) {
        FILES_EXPECT(PEER_NFS_IS_NOSPC, "no inode is left", &link_of_root, makers[i], .fh = root,
                     .name = peer_nfs_text("more"), .path = peer_nfs_text("target"),
                     .type = PEER_NFS_FIFO, .how = PEER_NFS_GUARDED);
        FILES_EXPECT(PEER_NFS_IS_NOENT, "and nothing half made", &link_of_root, PEER_NFS_LOOKUP,
                     .fh = root, .name = peer_nfs_text("more"));
    }
}

/* Waits until MNT gives the root of what is there now. */
static struct peer_nfs_fh await_other_root(struct peer_nfs_fh before)
{
    struct peer_nfs_fh root = before;
    for (uint32_t ms = 0; ms < PATIENCE_MS && peer_nfs_same_fh(&root, &before); ms += PAUSE_MS) {
        usleep(PAUSE_MS * 1000);
        root = files_stage_mount(&link_of_root, gone_path);
    }
    HARNESS_EXPECT(!peer_nfs_same_fh(&root, &before), "after a reload it is the same directory");
    return root;
}

static void expect_stale(struct peer_nfs_fh root, struct peer_nfs_fh fh, const char *why)
{
    FILES_EXPECT(PEER_NFS_IS_STALE, why, &link_of_root, PEER_NFS_GETATTR, .fh = fh);
    FILES_EXPECT(PEER_NFS_IS_STALE, why, &link_of_root, PEER_NFS_WRITE, .fh = fh, .count = 1,
                 .data = {"x", 1});
    FILES_EXPECT(PEER_NFS_IS_STALE, why, &link_of_root, PEER_NFS_COMMIT, .fh = fh);
    FILES_EXPECT(PEER_NFS_IS_STALE, why, &link_of_root, PEER_NFS_LOOKUP, .fh = root,
                 .name = peer_nfs_text("file"));
    FILES_EXPECT(PEER_NFS_IS_STALE, why, &link_of_root, PEER_NFS_CREATE, .fh = root,
                 .name = peer_nfs_text("late"), .how = PEER_NFS_GUARDED);
}

static void check_gone(void)
{
    struct peer_nfs_fh root = files_stage_mount(&link_of_root, gone_path);
    struct peer_nfs_fh fh = files_stage_create(&link_of_root, root, "file", 0644);
    FILES_EXPECT(PEER_NFS_IS_OK, "set-up", &link_of_root, PEER_NFS_WRITE, .fh = fh, .count = CHUNK,
                 .data = {chunk, CHUNK}, .stable = PEER_NFS_UNSTABLE);
    HARNESS_EXPECT(umount2(gone_path, MNT_DETACH) == 0, "umount");
    check_bytes(fh, CHUNK, "the server has it open");
    FILES_EXPECT(PEER_NFS_IS_OK, "the server has it open", &link_of_root, PEER_NFS_CREATE,
                 .fh = root, .name = peer_nfs_text("other"), .how = PEER_NFS_GUARDED);

    kill(stage.server.pid, SIGHUP);
    struct peer_nfs_fh below = await_other_root(root);
    expect_stale(root, fh, "of a file system that is gone");
    FILES_EXPECT(PEER_NFS_IS_OK, "what is there now", &link_of_root, PEER_NFS_LOOKUP, .fh = below,
                 .name = peer_nfs_text("below"));
    FILES_EXPECT(PEER_NFS_IS_NOENT, "what was there", &link_of_root, PEER_NFS_LOOKUP, .fh = below,
                 .name = peer_nfs_text("file"));

    if (!mount_at(gone_path, "size=1m") || !files_stage_crash(&stage))
        return;
    struct peer_nfs_fh third = files_stage_mount(&link_of_root, gone_path);
    expect_stale(root, fh, "of a file system that is gone, after a restart");
    FILES_EXPECT(PEER_NFS_IS_NOENT, "covered by a mount", &link_of_root, PEER_NFS_LOOKUP,
                 .fh = third, .name = peer_nfs_text("below"));
    HARNESS_EXPECT(umount2(gone_path, MNT_DETACH) == 0, "umount");
}

int main(void)
{
    files_stage_init(&stage, "files_disk");
    for (uint32_t i = 0; i < CHUNK; i++)
        chunk[i] = (uint8_t)(i * 31 + i / 256);
    full_path = files_stage_export(&stage, "full", "*(rw,no_root_squash)");
    gone_path = files_stage_export(&stage, "gone", "*(rw,no_root_squash)");
    files_stage_put_local(gone_path, "below", "x", 0644);
    HARNESS_EXPECT(unshare(CLONE_NEWNS) == 0 &&
                       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0,
                   "a mount namespace");
    if (mount_at(full_path, "size=4m,nr_inodes=20") && mount_at(gone_path, "size=1m") &&
        files_stage_start(&stage)) {
        files_stage_link(&link_of_root, 0, 0);
        check_full();
        check_inodes();
        check_gone();
        peer_link_done(&link_of_root);
    }
    (void)umount2(full_path, MNT_DETACH); /* or the directory would stay behind */
    (void)umount2(gone_path, MNT_DETACH);
    return files_stage_finish(&stage);
}
