/*
 * files_traps_handles.c -- traps of handles: what is gone is STALE, what was never given out is
 * BADHANDLE, whatever the procedure; see files_traps.h.
 */
#include "files_traps.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Every procedure with a handle answers with this status. */
static void expect_everywhere(struct files_traps *traps, const char *why, uint32_t wanted,
                              const struct peer_nfs_fh *fh)
{
    for (uint32_t procedure = PEER_NFS_GETATTR; procedure <= PEER_NFS_COMMIT; procedure++)
        FILES_EXPECT(wanted, why, traps->link, procedure, .fh = *fh, .to_fh = *fh,
                     .name = peer_nfs_text("a"), .to_name = peer_nfs_text("b"), .dircount = 4096,
                     .count = procedure == PEER_NFS_WRITE ? 0 : 4096, .type = PEER_NFS_FIFO,
                     .path = peer_nfs_text("p"));
}

/* A bit of a good handle is turned over: all of them are proven. */
static void check_forged(struct files_traps *traps)
{
    struct peer_nfs_fh good = files_stage_create(traps->link, traps->root, "forged", 0644);
    for (uint32_t bit = 0; bit < 8 * good.len; bit++) {
        struct peer_nfs_fh bad = good;
        bad.at[bit / 8] = (uint8_t)(bad.at[bit / 8] ^ (1u << bit % 8));
        FILES_EXPECT(PEER_NFS_IS_BADHANDLE, "a forged handle", traps->link, PEER_NFS_GETATTR,
                     .fh = bad);
    }
    for (uint32_t len = 0; len <= PEER_NFS_FH_MAX; len++) {
        struct peer_nfs_fh bad = good;
        bad.len = len;
        if (len != good.len)
            FILES_EXPECT(PEER_NFS_IS_BADHANDLE, "a handle of another length", traps->link,
                         PEER_NFS_GETATTR, .fh = bad);
    }
    struct peer_nfs_fh bad = good;
    bad.at[good.len - 1] ^= 1;
    expect_everywhere(traps, "a forged handle", PEER_NFS_IS_BADHANDLE, &bad);
    FILES_EXPECT(PEER_NFS_IS_BADHANDLE, "RENAME to a forged directory", traps->link,
                 PEER_NFS_RENAME, .fh = traps->root, .name = peer_nfs_text("forged"), .to_fh = bad,
                 .to_name = peer_nfs_text("x"));
}

static void check_gone(struct files_traps *traps)
{
    char path[512];
    struct peer_nfs_fh fh = files_stage_create(traps->link, traps->root, "gone", 0644);
    FILES_EXPECT(PEER_NFS_IS_OK, "it is open now", traps->link, PEER_NFS_WRITE, .fh = fh,
                 .count = 1, .data = {"a", 1});
    FILES_EXPECT(PEER_NFS_IS_OK, "set-up", traps->link, PEER_NFS_REMOVE, .fh = traps->root,
                 .name = peer_nfs_text("gone"));
    expect_everywhere(traps, "a file that is gone", PEER_NFS_IS_STALE, &fh);
    /* Its inode is taken by another one: that is not it. */
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(path, sizeof(path), "after-%u", i);
        struct peer_nfs_fh other = files_stage_create(traps->link, traps->root, path, 0644);
        HARNESS_EXPECT(!peer_nfs_same_fh(&fh, &other), "a handle is given out again");
    }
    FILES_EXPECT(PEER_NFS_IS_STALE, "its inode was used again", traps->link, PEER_NFS_GETATTR,
                 .fh = fh);
    fh = FILES_EXPECT(PEER_NFS_IS_OK, "set-up", traps->link, PEER_NFS_MKDIR, .fh = traps->root,
                      .name = peer_nfs_text("gone"))
             ->fh;
    FILES_EXPECT(PEER_NFS_IS_OK, "set-up", traps->link, PEER_NFS_RMDIR, .fh = traps->root,
                 .name = peer_nfs_text("gone"));
    expect_everywhere(traps, "a directory that is gone", PEER_NFS_IS_STALE, &fh);
    /* Removed by somebody on the server. */
    fh = files_stage_create(traps->link, traps->root, "gone-here", 0644);
    snprintf(path, sizeof(path), "%s/gone-here", traps->path);
    HARNESS_EXPECT(unlink(path) == 0, "unlink");
    FILES_EXPECT(PEER_NFS_IS_NOENT, "removed on the server", traps->link, PEER_NFS_LOOKUP,
                 .fh = traps->root, .name = peer_nfs_text("gone-here"));
    FILES_EXPECT(PEER_NFS_IS_STALE, "removed on the server", traps->link, PEER_NFS_GETATTR,
                 .fh = fh);
}

/* Handles are the same after every start, for files and directories. */
static void check_restart(struct files_traps *traps)
{
    struct peer_nfs_fh root = traps->root;
    struct peer_nfs_fh fh = files_stage_create(traps->link, root, "restart", 0644);
    HARNESS_EXPECT(harness_stop(&traps->stage->server, SIGTERM) == 0, "SIGTERM");
    if (!files_stage_start(traps->stage))
        return;
    struct peer_nfs_fh again = files_stage_mount(traps->link, traps->path);
    HARNESS_EXPECT(peer_nfs_same_fh(&root, &again), "the root has another handle");
    again = files_stage_lookup(traps->link, root, "restart");
    HARNESS_EXPECT(peer_nfs_same_fh(&fh, &again), "a file has another handle");
    FILES_EXPECT(PEER_NFS_IS_OK, "a handle of before", traps->link, PEER_NFS_WRITE, .fh = fh,
                 .count = 1, .data = {"a", 1});
}

void files_traps_handles(struct files_traps *traps)
{
    check_forged(traps);
    check_gone(traps);
    check_restart(traps);
}
