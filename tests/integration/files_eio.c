/*
 * files_eio.c -- a disk that fails to sync and loses what it could not write (lossy_sync.c).
 *
 * Passing shows (F-DUR):
 *  (1) no client believes that lost data is stable: four write at random with every stability, some
 *      syncs fail, and each writes again what an error or another verifier tells it to; whatever
 *      was said to be stable is on the disk at that moment, byte for byte;
 *  (2) the verifier has changed when the error arrives, for other files, too;
 *  (3) while every sync fails, nothing that must be durable is answered OK;
 *  (4) when the disk works again, so does everything;
 *  (5) a stop does not wait for a disk that does not answer.
 *
 * HOLDFAST_LOSSY_SYNC_LIBRARY says where the library is; without it the test is skipped.
 */
#include "files_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 4, FILE_LEN = 16384, PIECE_MAX = 3000, ROUNDS = 400, TRIES_MAX = 1000 };

static struct files_stage stage;
static const char *path, *disk_path;
static struct peer_link link_of_root;
static struct peer_nfs_fh root;

/* One client's file: what it wants to be there, and which bytes it knows to be stable. */
static struct {
    struct peer_link link;
    struct peer_nfs_fh fh;
    uint64_t fileid, seed;
    uint8_t wanted[FILE_LEN];
    bool is_stable[FILE_LEN], is_sent[FILE_LEN]; /* sent unstable, with `verf` */
    uint8_t verf[PEER_NFS_VERF_LEN];
    uint32_t errors, rewrites, failures;
} own;

static void set_failing(const char *text)
{
    char name[300];
    snprintf(name, sizeof(name), "%s/fail", disk_path);
    if (!text) {
        unlink(name);
        return;
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) < 0)
        abort();
}

/* What a power loss would leave of it now. */
static void check_disk(const char *when)
{
    static uint8_t found[FILE_LEN];
    char name[300];
    snprintf(name, sizeof(name), "%s/%llu", disk_path, (unsigned long long)own.fileid);
    memset(found, 0, sizeof(found));
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, found, sizeof(found)) < 0)
        memset(found, 0, sizeof(found));
    if (fd >= 0)
        close(fd);
    for (uint32_t i = 0; i < FILE_LEN; i++)
        if (own.is_stable[i] && found[i] != own.wanted[i]) {
            own.failures++;
            printf("%s: byte %u was said to be stable and is lost\n", when, i);
            return;
        }
}

static void mark(bool *marks, uint32_t offset, uint32_t len, bool value)
{
    for (uint32_t i = 0; i < len; i++)
        marks[offset + i] = value;
}

/* What was sent with another verifier may be lost: nothing of it counts as sent. */
static void take_verifier(const uint8_t verf[PEER_NFS_VERF_LEN])
{
    if (memcmp(own.verf, verf, PEER_NFS_VERF_LEN) == 0)
        return;
    memset(own.is_sent, 0, sizeof(own.is_sent));
    memcpy(own.verf, verf, PEER_NFS_VERF_LEN);
    own.rewrites++;
}

static void write_piece(uint32_t offset, uint32_t len, uint32_t stable)
{
    const struct peer_nfs_res *res =
        FILES_ASK(&own.link, PEER_NFS_WRITE, .fh = own.fh, .offset = offset, .count = len,
                  .stable = stable, .data = {own.wanted + offset, len});
    mark(own.is_stable, offset, len, false);
    mark(own.is_sent, offset, len, false);
    if (res->status != PEER_NFS_IS_OK) {
        own.errors++;
        own.failures += !HARNESS_EXPECT(res->status == PEER_NFS_IS_IO, "WRITE answered %s",
                                        peer_nfs_status_text(res->status));
        return;
    }
    own.failures += !HARNESS_EXPECT(res->count == len && res->committed >= stable,
                                    "%u bytes, committed %u", res->count, res->committed);
    take_verifier(res->verf);
    if (res->committed == PEER_NFS_UNSTABLE)
        mark(own.is_sent, offset, len, true);
    else
        mark(own.is_stable, offset, len, true);
}

static void commit(void)
{
    const struct peer_nfs_res *res = FILES_ASK(&own.link, PEER_NFS_COMMIT, .fh = own.fh);
    if (res->status != PEER_NFS_IS_OK) {
        own.errors++;
        own.failures += !HARNESS_EXPECT(res->status == PEER_NFS_IS_IO, "COMMIT answered %s",
                                        peer_nfs_status_text(res->status));
        return;
    }
    take_verifier(res->verf);
    for (uint32_t i = 0; i < FILE_LEN; i++)
        own.is_stable[i] |= own.is_sent[i];
    memset(own.is_sent, 0, sizeof(own.is_sent));
}

/* Sends again what is neither stable nor on its way. */
static void send_rest(void)
{
    for (uint32_t i = 0; i < FILE_LEN;) {
        uint32_t len = 0;
        while (i + len < FILE_LEN && len < PIECE_MAX && !own.is_stable[i + len] &&
               !own.is_sent[i + len])
            len++;
        if (len > 0)
            write_piece(i, len, PEER_NFS_UNSTABLE);
        i += len > 0 ? len : 1;
    }
}

static bool is_all_stable(void)
{
    for (uint32_t i = 0; i < FILE_LEN; i++)
        if (!own.is_stable[i])
            return false;
    return true;
}

static void write_randomly(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t offset = (uint32_t)(harness_random(&own.seed) % (FILE_LEN - PIECE_MAX));
        uint32_t len = 1 + (uint32_t)(harness_random(&own.seed) % (PIECE_MAX - 1));
        for (uint32_t i = 0; i < len; i++)
            own.wanted[offset + i] = (uint8_t)harness_random(&own.seed);
        write_piece(offset, len, (uint32_t)(harness_random(&own.seed) % 3));
        check_disk("after a WRITE");
        if (harness_random(&own.seed) % 4 == 0) {
            commit();
            check_disk("after a COMMIT");
            send_rest();
        }
    }
    for (uint32_t i = 0; i < TRIES_MAX && !is_all_stable(); i++) {
        send_rest();
        commit();
        check_disk("at the end");
    }
    own.failures += !HARNESS_EXPECT(is_all_stable(), "it is never stable");
}

static int run_writer(uint32_t number, uint64_t seed)
{
    char name[16];
    snprintf(name, sizeof(name), "file%u", number);
    own.seed = seed + number;
    files_stage_link(&own.link, 0, 0);
    own.fh = files_stage_lookup(&own.link, root, name);
    own.fileid = FILES_ASK(&own.link, PEER_NFS_GETATTR, .fh = own.fh)->attr.fileid;
    write_randomly();
    printf("writer %u: %u errors, told %u times to write again\n", number, own.errors,
           own.rewrites);
    own.failures += !HARNESS_EXPECT(own.errors > 0 && own.rewrites > 1, "no sync failed");
    fflush(stdout);
    peer_link_done(&own.link);
    return own.failures > 0;
}

static void check_writers(void)
{
    uint64_t seed = harness_seed();
    pid_t writers[WRITERS];
    char name[16];
    for (uint32_t i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof(name), "file%u", i);
        (void)files_stage_create(&link_of_root, root, name, 0644);
    }
    set_failing("7");
    fflush(stdout);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            _exit(run_writer(i, seed));
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        int status = 1;
        waitpid(writers[i], &status, 0);
        HARNESS_EXPECT(status == 0, "writer %u ended with %d", i, status);
    }
    set_failing(NULL);
}

/* Every sync fails: what is OK then was a lie. */
static void check_refusals(void)
{
    struct peer_nfs_fh fh = files_stage_create(&link_of_root, root, "refused", 0644);
    struct peer_nfs_fh other = files_stage_create(&link_of_root, root, "other", 0644);
    uint8_t verf[PEER_NFS_VERF_LEN];
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "before", &link_of_root, PEER_NFS_WRITE, .fh = other,
                     .count = 1, .data = {"a", 1});
    memcpy(verf, res->verf, sizeof(verf));
    set_failing("");
    static const uint32_t makers[] = {PEER_NFS_CREATE, PEER_NFS_MKDIR, PEER_NFS_SYMLINK,
                                      PEER_NFS_MKNOD};
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "made%u", i);
        FILES_EXPECT(PEER_NFS_IS_IO, name, &link_of_root, makers[i], .fh = root,
                     .name = peer_nfs_text(name), .path = peer_nfs_text("x"), .type = PEER_NFS_FIFO,
                     .how = PEER_NFS_GUARDED);
    }
    FILES_EXPECT(PEER_NFS_IS_IO, "SETATTR", &link_of_root, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_mode = true, .mode = 0600});
    FILES_EXPECT(PEER_NFS_IS_IO, "LINK", &link_of_root, PEER_NFS_LINK, .fh = fh, .to_fh = root,
                 .to_name = peer_nfs_text("linked"));
    FILES_EXPECT(PEER_NFS_IS_IO, "RENAME", &link_of_root, PEER_NFS_RENAME, .fh = root,
                 .name = peer_nfs_text("refused"), .to_fh = root,
                 .to_name = peer_nfs_text("renamed"));
    FILES_EXPECT(PEER_NFS_IS_IO, "REMOVE", &link_of_root, PEER_NFS_REMOVE, .fh = root,
                 .name = peer_nfs_text("linked"));
    FILES_EXPECT(PEER_NFS_IS_IO, "COMMIT", &link_of_root, PEER_NFS_COMMIT, .fh = fh);
    for (uint32_t stable = PEER_NFS_DATA_SYNC; stable <= PEER_NFS_FILE_SYNC; stable++)
        FILES_EXPECT(PEER_NFS_IS_IO, "a stable WRITE", &link_of_root, PEER_NFS_WRITE, .fh = fh,
                     .count = 1, .data = {"a", 1}, .stable = stable);
    set_failing(NULL);
    res = FILES_EXPECT(PEER_NFS_IS_OK, "another file", &link_of_root, PEER_NFS_COMMIT, .fh = other);
    HARNESS_EXPECT(memcmp(verf, res->verf, sizeof(verf)) != 0,
                   "the verifier of another file has not changed");
    FILES_EXPECT(PEER_NFS_IS_OK, "the disk works again", &link_of_root, PEER_NFS_WRITE, .fh = fh,
                 .count = 1, .data = {"a", 1}, .stable = PEER_NFS_FILE_SYNC);
    FILES_EXPECT(PEER_NFS_IS_OK, "the disk works again", &link_of_root, PEER_NFS_CREATE, .fh = root,
                 .name = peer_nfs_text("late"), .how = PEER_NFS_GUARDED);
}

static void check_stop(void)
{
    static struct peer_link_call call;
    char name[300];
    snprintf(name, sizeof(name), "%s/hang", disk_path);
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    HARNESS_EXPECT(fd >= 0 && close(fd) == 0, "%s", name);
    peer_nfs_begin(&link_of_root, &call, PEER_NFS_CREATE,
                   &(struct peer_nfs_args){.fh = root, .name = peer_nfs_text("never")});
    HARNESS_EXPECT(peer_link_send(&link_of_root, &call) == 0, "send");
    snprintf(name, sizeof(name), "%s/never", path);
    while (access(name, F_OK) != 0)
        usleep(1000);
    int code = harness_stop(&stage.server, SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM beside a disk that hangs: %d", code);
}

int main(void)
{
    const char *library = getenv("HOLDFAST_LOSSY_SYNC_LIBRARY");
    if (!library) {
        printf("skipped: a sanitizer's library must be loaded before all others\n");
        return HARNESS_SKIPPED;
    }
    files_stage_init(&stage, "files_eio");
    path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    disk_path = harness_path("disk");
    HARNESS_EXPECT(mkdir(disk_path, 0700) == 0, "mkdir");
    setenv("HOLDFAST_LOSSY_FILES", path, 1);
    setenv("HOLDFAST_LOSSY_DISK", disk_path, 1);
    setenv("LD_PRELOAD", library, 1);
    bool is_up = files_stage_start(&stage);
    unsetenv("LD_PRELOAD");
    if (is_up) {
        files_stage_link(&link_of_root, 0, 0);
        root = files_stage_mount(&link_of_root, path);
        check_writers();
        check_refusals();
        check_stop();
        peer_link_done(&link_of_root);
    }
    return files_stage_finish(&stage);
}
