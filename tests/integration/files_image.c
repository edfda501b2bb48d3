/*
 * files_image.c -- file systems of their own kind, in image files that this test mounts.
 *
 * Passing shows:
 *  (1) ext4 with 128-byte inodes, whose times are whole seconds: an EXCLUSIVE create of any user is
 *      repeated with success, whatever the 64 bits are, also after kill -9; another verifier is
 *      EXIST, and so is the same one when the client has set the times since; a time that does not
 *      fit is refused and changes nothing; a right that is taken away is gone at once;
 *  (2) ext4 that is frozen, as one whose disk does not answer: while as many clients as it wants
 *      hang in it, another export is served, and a reload works; the hanging one's
 *      calls are told to come again when there are too many, and all is well when it thaws;
 *  (3) an idle file keeps the server's machine from nothing: `remount,ro` is possible seconds after
 *      a file was written.
 *
 * It needs mkfs.ext4 and loop devices, in a mount namespace of its own; else it is skipped.
 */
#include "files_stage.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANGING = 24, HANGING_CALLS = 40, PATIENCE_MS = 30000, PAUSE_MS = 20 };

static struct files_stage stage;
static struct peer_link root_link, user_link;
static const char *coarse_path, *frozen_path, *plain_path;

/* ---- images ---- */

static void skip(const char *why)
{
    printf("skipped: %s\n", why);
    (void)harness_finish();
    exit(HARNESS_SKIPPED);
}

static void mount_image(const char *name, const char *inode_len, const char *path)
{
    const char *image = harness_path(name);
    int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 32 << 20) != 0)
        abort();
    close(fd);
    if (files_stage_run((const char *[]){"mkfs.ext4", "-q", "-F", "-I", inode_len, image, NULL}) !=
        0)
        skip("needs mkfs.ext4");
    if (files_stage_run((const char *[]){"mount", "-o", "loop", image, path, NULL}) != 0)
        skip("needs loop devices");
    if (chmod(path, 0777) != 0)
        abort();
}

/* ---- EXCLUSIVE ---- */

static void expect_create(uint32_t wanted, const char *why, struct peer_nfs_fh root,
                          const char *name, uint64_t verifier)
{
    uint8_t verf[PEER_NFS_VERF_LEN];
    for (int i = 0; i < PEER_NFS_VERF_LEN; i++)
        verf[i] = (uint8_t)(verifier >> (56 - 8 * i));
    struct peer_nfs_args args = {
        .fh = root, .name = peer_nfs_text(name), .how = PEER_NFS_EXCLUSIVE};
    memcpy(args.verf, verf, sizeof(verf));
    files_stage_expect(wanted, why, PEER_NFS_CREATE,
                       files_stage_ask(&user_link, PEER_NFS_CREATE, &args));
}

static void check_coarse(void)
{
    static const uint64_t verifiers[] = {0,
                                         1,
                                         UINT64_MAX,
                                         UINT64_C(1) << 63,
                                         UINT64_C(1) << 31,
                                         UINT64_C(0x7fffffff80000000),
                                         UINT64_C(0x123456789abcdef)};
    struct peer_nfs_fh root = files_stage_mount(&user_link, coarse_path);
    char name[32];
    for (uint32_t i = 0; i < sizeof(verifiers) / sizeof(verifiers[0]); i++) {
        snprintf(name, sizeof(name), "exclusive%u", i);
        expect_create(PEER_NFS_IS_OK, "EXCLUSIVE, coarse times", root, name, verifiers[i]);
        expect_create(PEER_NFS_IS_OK, "its repeat", root, name, verifiers[i]);
        for (uint32_t bit = 0; bit < 64; bit += 7)
            expect_create(PEER_NFS_IS_EXIST, "another verifier", root, name,
                          verifiers[i] ^ UINT64_C(1) << bit);
    }
    files_stage_crash(&stage);
    expect_create(PEER_NFS_IS_OK, "its repeat after kill -9", root, name, verifiers[6]);
    struct peer_nfs_fh fh = files_stage_lookup(&user_link, root, name);
    FILES_EXPECT(PEER_NFS_IS_OK, "times set by the client", &user_link, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_mode = true, .mode = 0600, .atime_how = 1, .mtime_how = 1});
    expect_create(PEER_NFS_IS_EXIST, "the same verifier later", root, name, verifiers[6]);
}

/* Its seconds have 31 bits: 2038 is the end. */
static void check_times(void)
{
    struct peer_nfs_fh root = files_stage_mount(&user_link, coarse_path);
    struct peer_nfs_fh fh = files_stage_create(&user_link, root, "times", 0600);
    static const struct {
        uint32_t seconds, status;
    } rows[] = {{INT32_MAX, PEER_NFS_IS_OK},
                {INT32_MAX + 1u, PEER_NFS_IS_INVAL},
                {UINT32_MAX, PEER_NFS_IS_INVAL}};
    for (uint32_t i = 0; i < 3; i++) {
        const struct peer_nfs_res *res = FILES_EXPECT(
            rows[i].status, "a time where seconds have 31 bits", &user_link, PEER_NFS_SETATTR,
            .fh = fh,
            .sattr = {.mtime_how = PEER_NFS_CLIENT_TIME, .mtime = {.seconds = rows[i].seconds}});
        HARNESS_EXPECT(res->wcc.after.mtime.seconds == INT32_MAX, "it is %u now",
                       res->wcc.after.mtime.seconds);
    }
}

/* All that happens to a file in one second has one time. */
static void check_rights(void)
{
    struct peer_nfs_fh root = files_stage_mount(&user_link, coarse_path);
    files_stage_put_local(coarse_path, "rights", "x", 0644);
    struct peer_nfs_fh fh = files_stage_lookup(&user_link, root, "rights");
    char path[512];
    snprintf(path, sizeof(path), "%s/rights", coarse_path);
    for (uint32_t i = 0; i < 10; i++) {
        HARNESS_EXPECT(chmod(path, 0644) == 0, "chmod");
        usleep(50000); /* long enough where times are fine */
        for (uint32_t n = 0; n < 3; n++)
            FILES_EXPECT(PEER_NFS_IS_OK, "it may", &user_link, PEER_NFS_READ, .fh = fh, .count = 1);
        HARNESS_EXPECT(chmod(path, 0600) == 0, "chmod");
        FILES_EXPECT(PEER_NFS_IS_ACCES, "a right that was taken away", &user_link, PEER_NFS_READ,
                     .fh = fh, .count = 1);
    }
}

/* ---- an idle file ---- */

static void check_remount(void)
{
    struct peer_nfs_fh root = files_stage_mount(&user_link, coarse_path);
    struct peer_nfs_fh fh = files_stage_create(&user_link, root, "written", 0644);
    FILES_EXPECT(PEER_NFS_IS_OK, "WRITE", &user_link, PEER_NFS_WRITE, .fh = fh, .count = 1,
                 .data = {"x", 1});
    const char *const words[] = {"mount", "-o", "remount,ro", coarse_path, NULL};
    int code = -1;
    for (uint32_t ms = 0; ms < PATIENCE_MS && (code = files_stage_run(words)) != 0; ms += PAUSE_MS)
        usleep(PAUSE_MS * 1000);
    HARNESS_EXPECT(code == 0, "remount,ro fails: a file is still open for writing");
    FILES_EXPECT(PEER_NFS_IS_ROFS, "read-only now", &user_link, PEER_NFS_WRITE, .fh = fh,
                 .count = 1, .data = {"y", 1});
}

/* ---- a file system that hangs ---- */

static int frozen_fd;

/* However the test ends, nothing stays frozen: a process of its own waits for our end. */
static void guard(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    if (fork() == 0) {
        char byte;
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setsid();
        close(ends[1]);
        while (read(ends[0], &byte, 1) > 0)
            continue;
        (void)ioctl(frozen_fd, FITHAW, 0);
        _exit(0);
    }
    close(ends[0]);
    if (fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0)
        abort();
}

static struct peer_link hanging[HANGING];

static void hang(struct peer_nfs_fh root)
{
    static struct peer_link_call call;
    char name[32];
    for (uint32_t i = 0; i < HANGING; i++) {
        files_stage_link(&hanging[i], 1000, 1000);
        HARNESS_EXPECT(peer_link_open(&hanging[i]) == 0, "connect");
    }
    for (uint32_t n = 0; n < HANGING_CALLS; n++)
        for (uint32_t i = 0; i < HANGING; i++) {
            snprintf(name, sizeof(name), "hanging-%u-%u", i, n);
            struct peer_nfs_args args = {.fh = root, .name = peer_nfs_text(name)};
            peer_nfs_begin(&hanging[i], &call, PEER_NFS_CREATE, &args);
            HARNESS_EXPECT(peer_link_send(&hanging[i], &call) == 0, "send");
        }
}

static void serve_others(struct peer_nfs_fh root, const char *why)
{
    struct peer_nfs_fh fh = files_stage_create(&user_link, root, "beside", 0644);
    FILES_EXPECT(PEER_NFS_IS_OK, why, &user_link, PEER_NFS_WRITE, .fh = fh, .count = 1,
                 .stable = PEER_NFS_FILE_SYNC, .data = {"x", 1});
    FILES_EXPECT(PEER_NFS_IS_OK, why, &user_link, PEER_NFS_REMOVE, .fh = root,
                 .name = peer_nfs_text("beside"));
}

/* So many calls of a connection are answered: how many with OK, how many are to come again. */
static void collect(struct peer_link *link, uint32_t count, uint32_t *ret_ok, uint32_t *ret_jukebox)
{
    struct packet_reply reply;
    for (uint32_t n = 0; n < count; n++) {
        if (!HARNESS_EXPECT(peer_link_receive(link, &reply) == 0 && reply.accepted, "no answer"))
            return;
        uint32_t status = reply.body_len < 4 ? UINT32_MAX : reply.body[2] * 256u + reply.body[3];
        *ret_ok += status == PEER_NFS_IS_OK;
        *ret_jukebox += status == PEER_NFS_IS_JUKEBOX;
    }
}

static void check_frozen(void)
{
    struct peer_nfs_fh root = files_stage_mount(&user_link, frozen_path);
    struct peer_nfs_fh other = files_stage_mount(&user_link, plain_path);
    uint32_t done = 0, again = 0;
    user_link.timeout_ms = PATIENCE_MS;
    guard();
    if (!HARNESS_EXPECT(ioctl(frozen_fd, FIFREEZE, 0) == 0, "cannot freeze"))
        return;
    hang(root);
    for (uint32_t i = 0; i < 50; i++)
        serve_others(other, "beside one that hangs");
    kill(stage.server.pid, SIGHUP);
    for (uint32_t ms = 0; ms < PATIENCE_MS && !harness_log_contains(&stage.server, "reloaded");
         ms += PAUSE_MS)
        usleep(PAUSE_MS * 1000);
    HARNESS_EXPECT(harness_log_contains(&stage.server, "reloaded"), "no reload while one hangs");
    serve_others(other, "after a reload beside one that hangs");
    collect(&hanging[0], 1, &done, &again);
    HARNESS_EXPECT(again == 1, "who waits for one that hangs is not told to come again");
    HARNESS_EXPECT(ioctl(frozen_fd, FITHAW, 0) == 0, "cannot thaw");
    for (uint32_t i = 0; i < HANGING; i++)
        collect(&hanging[i], HANGING_CALLS - (i == 0), &done, &again);
    printf("%u calls into a frozen file system: %u done when it thawed, %u told to come again\n",
           HANGING * HANGING_CALLS, done, again);
    HARNESS_EXPECT(done + again == HANGING * HANGING_CALLS && done > 0, "other answers");
    serve_others(root, "it is thawed");
    for (uint32_t i = 0; i < HANGING; i++)
        peer_link_done(&hanging[i]);
}

int main(void)
{
    files_stage_init(&stage, "files_image");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        skip("needs a mount namespace");
    coarse_path = files_stage_export(&stage, "coarse", "*(rw)");
    frozen_path = files_stage_export(&stage, "frozen", "*(rw)");
    plain_path = files_stage_export(&stage, "plain", "*(rw)");
    if (chmod(plain_path, 0777) != 0)
        return 1;
    mount_image("coarse.img", "128", coarse_path);
    mount_image("frozen.img", "256", frozen_path);
    frozen_fd = open(frozen_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files_stage_start(&stage)) {
        files_stage_link(&root_link, 0, 0);
        files_stage_link(&user_link, 1000, 1000);
        check_coarse();
        check_times();
        check_rights();
        check_remount();
        check_frozen();
        peer_link_done(&root_link);
        peer_link_done(&user_link);
    }
    close(frozen_fd);
    umount2(coarse_path, MNT_DETACH);
    umount2(frozen_path, MNT_DETACH);
    return files_stage_finish(&stage);
}
