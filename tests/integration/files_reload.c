/*
 * files_reload.c -- the file of exports is changed while the server runs, and SIGHUP has it read
 * anew.
 *
 * Passing shows: a client that loses its export is refused from then on, also with a handle that it
 * has; others go on; rights change; an export comes; with its line it is the same export as before,
 * and handles of then are good. A file with an error changes nothing, and the log names the error.
 */
#include "files_stage.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, PAUSE_MS = 10 };

static struct files_stage stage;
static const char *path, *second_path, *file_path;
static struct peer_link stranger, friend;
static struct peer_nfs_fh root;

/* Writes the file and tells the server. */
static void reload(const char *clients, const char *more)
{
    char text[1024];
    int len =
        snprintf(text, sizeof(text), "# exports of this test\n%s %s\n%s\n", path, clients, more);
    int fd = open(file_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, (size_t)len) != len) {
        perror(file_path);
        exit(1);
    }
    close(fd);
    if (stage.server.pid > 0)
        kill(stage.server.pid, SIGHUP);
}

/* Waits until a call answers so. */
static void await(uint32_t wanted, const char *why, struct peer_link *link, uint32_t procedure,
                  const struct peer_nfs_args *args)
{
    const struct peer_nfs_res *res = NULL;
    for (uint32_t ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        res = files_stage_ask(link, procedure, args);
        if (res->status == wanted)
            break;
        usleep(PAUSE_MS * 1000);
    }
    if (res)
        files_stage_expect(wanted, why, procedure, res);
}

static void check_clients(void)
{
    struct peer_nfs_args args = {.fh = root};
    FILES_EXPECT(PEER_NFS_IS_OK, "everybody", &stranger, PEER_NFS_GETATTR, .fh = root);
    reload("127.0.0.2(rw,no_root_squash)", "");
    await(PEER_NFS_IS_ACCES, "lost its export", &stranger, PEER_NFS_GETATTR, &args);
    FILES_EXPECT(PEER_NFS_IS_ACCES, "lost its export", &stranger, PEER_NFS_CREATE, .fh = root,
                 .name = peer_nfs_text("late"));
    FILES_EXPECT(PEER_NFS_IS_OK, "is named", &friend, PEER_NFS_CREATE, .fh = root,
                 .name = peer_nfs_text("by-friend"));
    reload("127.0.0.2(ro,no_root_squash)", "");
    args.sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0755};
    await(PEER_NFS_IS_ROFS, "may read only", &friend, PEER_NFS_SETATTR, &args);
    FILES_EXPECT(PEER_NFS_IS_OK, "may read", &friend, PEER_NFS_LOOKUP, .fh = root,
                 .name = peer_nfs_text("by-friend"));
}

static void check_error(void)
{
    reload("127.0.0.2(rw,bogus)", "");
    for (uint32_t ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        if (harness_log_contains(&stage.server, "bogus"))
            break;
        usleep(PAUSE_MS * 1000);
    }
    HARNESS_EXPECT(harness_log_contains(&stage.server, "bogus"), "the log does not name the error");
    HARNESS_EXPECT(harness_is_alive(&stage.server), "the server has ended");
    FILES_EXPECT(PEER_NFS_IS_ROFS, "nothing changed", &friend, PEER_NFS_REMOVE, .fh = root,
                 .name = peer_nfs_text("by-friend"));
    FILES_EXPECT(PEER_NFS_IS_OK, "nothing changed", &friend, PEER_NFS_GETATTR, .fh = root);
}

static void check_more(void)
{
    char line[512];
    struct peer_mount_res res = {0};
    struct peer_nfs_args args = {.fh = root};
    snprintf(line, sizeof(line), "%s *(rw,no_root_squash)", second_path);
    reload("*(rw,no_root_squash)", line);
    await(PEER_NFS_IS_OK, "has it again, and its old handle", &stranger, PEER_NFS_GETATTR, &args);
    HARNESS_EXPECT(peer_mount_call(&stranger, PEER_MOUNT_MNT, peer_nfs_text(second_path), &res) ==
                       PEER_NFS_IS_OK,
                   "a new export cannot be mounted");
    struct peer_nfs_fh second = res.fh;
    FILES_EXPECT(PEER_NFS_IS_OK, "a new export", &stranger, PEER_NFS_CREATE, .fh = second,
                 .name = peer_nfs_text("file"));
    reload("*(rw,no_root_squash)", "");
    args.fh = second;
    for (uint32_t ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        if (files_stage_ask(&stranger, PEER_NFS_GETATTR, &args)->status != PEER_NFS_IS_OK)
            break;
        usleep(PAUSE_MS * 1000);
    }
    uint32_t status = files_stage_ask(&stranger, PEER_NFS_GETATTR, &args)->status;
    HARNESS_EXPECT(status == PEER_NFS_IS_ACCES || status == PEER_NFS_IS_STALE,
                   "an export that is gone: %s", peer_nfs_status_text(status));
    FILES_EXPECT(PEER_NFS_IS_OK, "the other one stays", &stranger, PEER_NFS_GETATTR, .fh = root);
}

int main(void)
{
    files_stage_init(&stage, "files_reload");
    path = harness_path("files");
    second_path = harness_path("second");
    file_path = harness_path("exports");
    if (mkdir(path, 0755) != 0 || mkdir(second_path, 0755) != 0)
        return 1;
    reload("*(rw,no_root_squash)", "");
    files_stage_option(&stage, "--exports", file_path);
    if (files_stage_start(&stage)) {
        files_stage_link(&stranger, 0, 0);
        files_stage_link_from(&friend, "127.0.0.2");
        root = files_stage_mount(&stranger, path);
        check_clients();
        check_error();
        check_more();
        peer_link_done(&stranger);
        peer_link_done(&friend);
    }
    return files_stage_finish(&stage);
}
