/*
 * files_cut.c -- the power is cut right after an answer.
 *
 * The file systems are images: ext4, ext4 without a journal, ext2. After each kind of change the
 * image is copied as it is, which is what a disk would have, the copy is repaired as at a boot, and
 * mounted. Passing shows that whatever was answered is there: every name, with its type, mode,
 * owner, links and size; and that what was removed is gone.
 *
 * It needs mkfs.ext4, mkfs.ext2, e2fsck and loop devices, in a mount namespace of its own; else it
 * is skipped.
 */
#include "files_stage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EACH = 3, IMAGE_LEN = 16 << 20, OWNER = 1234, OLD_TIME = 1000000 };

struct disk {
    const char *text, *name, *image_name, *maker, *features; /* of mkfs -O */
    const char *path, *image;
    struct peer_nfs_fh root, other;
};

static struct disk disks[] = {
    {.text = "ext4",
     .name = "ext4",
     .image_name = "1.img",
     .maker = "mkfs.ext4",
     .features = "has_journal"},
    {.text = "ext4 without a journal",
     .name = "bare",
     .image_name = "2.img",
     .maker = "mkfs.ext4",
     .features = "^has_journal"},
    {.text = "ext2",
     .name = "ext2",
     .image_name = "3.img",
     .maker = "mkfs.ext2",
     .features = "^has_journal"},
};
enum { DISKS = sizeof(disks) / sizeof(disks[0]) };

static struct files_stage stage;
static struct peer_link link_of_root;
static const char *copy, *copy_path;

static void let_go(void)
{
    for (uint32_t i = 0; i < DISKS; i++)
        (void)umount2(disks[i].path, MNT_DETACH);
}

static void skip(const char *why)
{
    printf("skipped: %s\n", why);
    let_go();
    (void)harness_finish();
    exit(HARNESS_SKIPPED);
}

static void mount_disk(struct disk *disk)
{
    disk->image = harness_path(disk->image_name);
    int fd = open(disk->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, IMAGE_LEN) != 0)
        abort();
    close(fd);
    const char *const make[] = {disk->maker, "-q", "-F", "-O", disk->features, disk->image, NULL};
    if (files_stage_run(make) != 0)
        skip("needs mkfs.ext4 and mkfs.ext2");
    if (files_stage_run((const char *[]){"mount", "-o", "loop", disk->image, disk->path, NULL}) !=
        0)
        skip("needs loop devices");
    /* What the test did itself is on the disk. */
    char other[600];
    snprintf(other, sizeof(other), "%s/other", disk->path);
    if (mkdir(other, 0777) != 0)
        abort();
    fd = open(other, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0)
        abort();
    close(fd);
}

/* ---- what is there ---- */

static bool look(const char *directory, const char *name, struct stat *ret)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return lstat(path, ret) == 0;
}

/* A time that a client has set; another one may be later on one of the two. */
static bool is_old(const struct stat *st)
{
    return st->st_mtime == OLD_TIME;
}

/* What `from` has, `to` has as well. */
static void compare(const char *from, const char *to, const struct disk *disk, const char *after)
{
    DIR *directory = opendir(from);
    if (!HARNESS_EXPECT(directory != NULL, "%s: no directory after %s", disk->text, after))
        return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat a, b;
        const char *name = entry->d_name;
        if (name[0] == '.' || strcmp(name, "lost+found") == 0 || !look(from, name, &a))
            continue;
        if (HARNESS_EXPECT(look(to, name, &b), "%s: after %s and a cut, %s is only in %s",
                           disk->text, after, name, from))
            HARNESS_EXPECT(a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
                               a.st_nlink == b.st_nlink &&
                               (S_ISDIR(a.st_mode) || a.st_size == b.st_size) &&
                               is_old(&a) == is_old(&b),
                           "%s: %s is another one after %s and a cut", disk->text, name, after);
    }
    closedir(directory);
}

static void compare_both(const struct disk *disk, const char *below, const char *after)
{
    char now[600], then[600];
    snprintf(now, sizeof(now), "%s%s", disk->path, below);
    snprintf(then, sizeof(then), "%s%s", copy_path, below);
    compare(now, then, disk, after);
    compare(then, now, disk, after);
}

/* The power is cut now. e2fsck says 1 when it had to repair. */
static void cut(const struct disk *disk, const char *after)
{
    if (!HARNESS_EXPECT(files_stage_run((const char *[]){"cp", disk->image, copy, NULL}) == 0,
                        "no copy"))
        return;
    int code = files_stage_run((const char *[]){"e2fsck", "-fy", copy, NULL});
    if (code == 127)
        skip("needs e2fsck");
    HARNESS_EXPECT(code == 0 || code == 1, "%s: e2fsck says %d after %s", disk->text, code, after);
    if (!HARNESS_EXPECT(
            files_stage_run((const char *[]){"mount", "-o", "loop,ro", copy, copy_path, NULL}) == 0,
            "%s: cannot be mounted after %s", disk->text, after))
        return;
    compare_both(disk, "", after);
    compare_both(disk, "/other", after);
    HARNESS_EXPECT(umount2(copy_path, 0) == 0, "umount");
}

/* ---- what is done ---- */

static const struct peer_nfs_sattr owned = {.has_mode = true,
                                            .mode = 02750,
                                            .has_uid = true,
                                            .uid = OWNER,
                                            .has_gid = true,
                                            .gid = OWNER,
                                            .mtime_how = PEER_NFS_CLIENT_TIME,
                                            .mtime = {OLD_TIME, 0}};
static const struct peer_nfs_sattr plain = {.has_mode = true, .mode = 0640};

static const struct kind {
    const char *text;
    uint32_t procedure;
    const char *name, *to; /* followed by a number */
    const struct peer_nfs_sattr *sattr;
    uint32_t how;
} kinds[] = {
    {"CREATE", PEER_NFS_CREATE, "file", "", &plain, PEER_NFS_UNCHECKED},
    {"CREATE with attributes", PEER_NFS_CREATE, "owned", "", &owned, PEER_NFS_GUARDED},
    {"CREATE, exclusive", PEER_NFS_CREATE, "exclusive", "", &plain, PEER_NFS_EXCLUSIVE},
    {"MKDIR", PEER_NFS_MKDIR, "directory", "", &plain, 0},
    {"MKDIR with attributes", PEER_NFS_MKDIR, "owned-directory", "", &owned, 0},
    {"SYMLINK", PEER_NFS_SYMLINK, "symlink", "", &plain, 0},
    {"MKNOD", PEER_NFS_MKNOD, "fifo", "", &plain, 0},
    {"LINK", PEER_NFS_LINK, "file", "link", &plain, 0},
    {"SETATTR", PEER_NFS_SETATTR, "exclusive", "", &owned, 0},
    {"RENAME", PEER_NFS_RENAME, "owned", "moved", &plain, 0},
    {"RENAME of a directory", PEER_NFS_RENAME, "owned-directory", "moved-too", &plain, 0},
    {"REMOVE", PEER_NFS_REMOVE, "fifo", "", &plain, 0},
    {"RMDIR", PEER_NFS_RMDIR, "directory", "", &plain, 0},
};

static void change(const struct disk *disk, const struct kind *kind, uint32_t i)
{
    char name[64], to[64];
    snprintf(name, sizeof(name), "%s%u", kind->name, i);
    snprintf(to, sizeof(to), "%s%u", kind->to, i);
    struct peer_nfs_args args = {.fh = disk->root,
                                 .name = peer_nfs_text(name),
                                 .to_fh = disk->other,
                                 .to_name = peer_nfs_text(to),
                                 .path = peer_nfs_text("target"),
                                 .type = PEER_NFS_FIFO,
                                 .how = kind->how,
                                 .sattr = *kind->sattr};
    if (kind->procedure == PEER_NFS_LINK || kind->procedure == PEER_NFS_SETATTR)
        args.fh = files_stage_lookup(&link_of_root, disk->root, name);
    files_stage_expect(PEER_NFS_IS_OK, kind->text, kind->procedure,
                       files_stage_ask(&link_of_root, kind->procedure, &args));
}

static void check_disk(struct disk *disk)
{
    disk->root = files_stage_mount(&link_of_root, disk->path);
    disk->other = files_stage_lookup(&link_of_root, disk->root, "other");
    for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (uint32_t i = 0; i < EACH; i++)
            change(disk, &kinds[k], i);
        cut(disk, kinds[k].text);
    }
}

int main(void)
{
    files_stage_init(&stage, "files_cut");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        skip("needs a mount namespace");
    copy = harness_path("copy.img");
    copy_path = harness_path("copy");
    if (mkdir(copy_path, 0755) != 0)
        abort();
    for (uint32_t i = 0; i < DISKS; i++)
        disks[i].path = files_stage_export(&stage, disks[i].name, "*(rw,no_root_squash)");
    for (uint32_t i = 0; i < DISKS; i++)
        mount_disk(&disks[i]);
    if (files_stage_start(&stage)) {
        files_stage_link(&link_of_root, 0, 0);
        for (uint32_t i = 0; i < DISKS; i++)
            check_disk(&disks[i]);
        peer_link_done(&link_of_root);
    }
    let_go();
    return files_stage_finish(&stage);
}
