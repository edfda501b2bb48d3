/*
 * test_lanes.c -- a file system that hangs keeps a part of the threads, of the calls and of the
 * memory, and the others go on.
 *
 * Two exports on two file systems, a directory of the disk and one in memory; writes to the first
 * wait at a gate. Skipped where both are on one file system.
 */
#include "caller.h"

#include "../test.h"
#include "file/system.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICK_MS = 5, PATIENCE_MS = 20000, PAUSE_MS = 2 };

static struct caller c;
static char memory_path[] = "/dev/shm/lanes-XXXXXX", memory_directory[64];
static struct nfs_fh memory_root, slow, quick;
static atomic_bool is_hanging;
static dev_t hanging_device;
static atomic_uint hanging;

static ssize_t gated_write(int fd, const void *data, size_t len, off_t offset)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_dev == hanging_device) {
        atomic_fetch_add(&hanging, 1);
        while (atomic_load(&is_hanging))
            (void)usleep(100);
        atomic_fetch_sub(&hanging, 1);
    }
    return pwrite(fd, data, len, offset);
}

static const struct file_system gated_system = {.fsync = fsync,
                                                .fdatasync = fdatasync,
                                                .syncfs = syncfs,
                                                .pwrite = gated_write,
                                                .splice = splice};

static void export_both(void)
{
    struct export_line lines[2];
    char text[160], reason[256];
    struct text why;
    text_init(&why, reason, sizeof reason);
    (void)snprintf(text, sizeof text, "%s *(rw,async)", c.directory);
    assert_int_equal(export_line_parse(text, &lines[0], &why), 0);
    (void)snprintf(text, sizeof text, "%s *(rw,async)", memory_directory);
    assert_int_equal(export_line_parse(text, &lines[1], &why), 0);
    struct export_table *exports = file_prepare(c.service, lines, 2, &why);
    assert_non_null(exports);
    file_take(c.service, exports);
    export_line_done(&lines[0]);
    export_line_done(&lines[1]);
}

TEST_FIXTURE(start)
{
    struct stat a, b;
    caller_start(&c, "rw,async");
    (void)snprintf(memory_directory, sizeof memory_directory, "%s", memory_path);
    if (mkdtemp(memory_directory) == NULL || stat(memory_directory, &a) != 0 ||
        stat(c.directory, &b) != 0 || a.st_dev == b.st_dev) {
        (void)rmdir(memory_directory);
        caller_stop(&c);
        print_message("# skipped: there is one file system only\n");
        skip();
    }
    assert_int_equal(chmod(memory_directory, 0777), 0);
    hanging_device = b.st_dev;
    atomic_store(&is_hanging, false);
    c.options.system = &gated_system;
    c.options.limits.tick_ms = TICK_MS;
    c.options.limits.calls_max = 64;
    caller_restart(&c, "rw,async");
    export_both();
    assert_int_equal(caller_mount(&c, memory_directory, &memory_root), MOUNT_OK);
    assert_int_equal(caller_create(&c, &c.root, "slow", 0666, &slow), NFS_OK);
    assert_int_equal(caller_create(&c, &memory_root, "quick", 0666, &quick), NFS_OK);
}

TEST_FIXTURE(stop)
{
    char path[96];
    atomic_store(&is_hanging, false);
    (void)snprintf(path, sizeof path, "%s/quick", memory_directory);
    (void)unlink(path);
    (void)rmdir(memory_directory);
    caller_stop(&c);
}

/* NULL: it is in flight. */
static struct job *submit_write(const struct nfs_fh *file)
{
    return caller_submit(
        &c, NFS_WRITE,
        &(struct nfs_args){.fh = caller_bytes(file), .count = 1, .data = bytes_of_text("x")});
}

static void drop(struct job *job)
{
    const struct job_desk *desk = file_desk(c.service);
    desk->release(desk->context, job);
}

/* Calls for the one that hangs, until no more are taken: how many are in flight. */
static uint32_t fill(void)
{
    uint32_t count = 0;
    atomic_store(&is_hanging, true);
    for (struct job *job = NULL; count < 1000; count++) {
        job = submit_write(&slow);
        if (job == NULL)
            continue;
        assert_int_equal(job->status, NFS_JUKEBOX);
        drop(job);
        break;
    }
    return count;
}

/* Waits for so many of any status. */
static void collect(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        drop(caller_wait(&c));
}

static void expect_service(void)
{
    assert_int_equal(caller_write(&c, &quick, 0, "y", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(caller_create(&c, &memory_root, "other", 0666, NULL), NFS_OK);
    assert_int_equal(caller_call(&c, NFS_REMOVE,
                                 &(struct nfs_args){.fh = caller_bytes(&memory_root),
                                                    .name = bytes_of_text("other")}),
                     NFS_OK);
    assert_int_equal(caller_mount(&c, memory_directory, NULL), MOUNT_OK);
}

/* As long as it is not known to hang, its calls are queued: with a tick that never comes. */
static void stop_clock(void)
{
    c.options.limits.tick_ms = 1000000;
    caller_restart(&c, "rw,async");
    export_both();
}

/* A long call that is refused for its file system has no use for what it came in. */
TEST(test_lanes__a_refused_call_gives_up_its_memory)
{
    struct job_memory lent = {.at = malloc(NFS_DATA_MAX), .len = NFS_DATA_MAX};
    stop_clock();
    uint32_t count = fill();
    const struct job_desk *desk = file_desk(c.service);
    uint64_t room = desk->room(desk->context);
    struct job *job = caller_submit_lent(
        &c, NFS_WRITE,
        &(struct nfs_args){.fh = caller_bytes(&slow), .count = 1, .data = bytes_of_text("x")},
        &lent);
    assert_non_null(job);
    assert_int_equal(job->status, NFS_JUKEBOX);
    drop(job);
    assert_int_equal(desk->room(desk->context), room);
    free(lent.at); /* or it is the service's now */
    atomic_store(&is_hanging, false);
    collect(count);
}

TEST(test_lanes__others_are_served_beside_a_file_system_that_hangs)
{
    stop_clock();
    uint32_t count = fill();
    assert_true(count >= 16 && count <= 32); /* half of 64, what was in use meanwhile apart */
    while (atomic_load(&hanging) == 0)
        (void)usleep(100);
    for (int i = 0; i < 20; i++)
        expect_service();
    atomic_store(&is_hanging, false);
    collect(count);
    assert_int_equal(caller_write(&c, &slow, 0, "z", NFS_UNSTABLE), NFS_OK);
    struct file_status status;
    file_get_status(c.service, &status);
    assert_int_equal(status.calls, 0);
}

/* A client has one connection for all its mounts: what it cannot have must not keep it busy. */
TEST(test_lanes__who_waits_for_a_file_system_that_hangs_is_told_to_come_again)
{
    uint32_t count = fill(), refused = 0, threads = c.options.limits.threads;
    while (count - refused > threads) { /* those without a thread */
        struct job *job = caller_wait(&c);
        assert_int_equal(job->status, NFS_JUKEBOX);
        drop(job);
        refused++;
    }
    for (int ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        struct job *job = submit_write(&slow);
        if (job != NULL) {
            assert_int_equal(job->status, NFS_JUKEBOX);
            drop(job);
            break;
        }
        assert_true(ms + PAUSE_MS < PATIENCE_MS);
        count++;
    }
    struct file_export_view slow_view, quick_view;
    assert_true(file_get_export(c.service, 0, &slow_view));
    assert_true(file_get_export(c.service, 1, &quick_view));
    assert_true(slow_view.is_stuck && !quick_view.is_stuck);
    expect_service();
    atomic_store(&is_hanging, false);
    for (uint32_t left = count - refused; left > 0; left--)
        drop(caller_wait(&c));
    /* It is believed as soon as it moves. */
    for (int ms = 0; caller_write(&c, &slow, 0, "z", NFS_UNSTABLE) != NFS_OK; ms += PAUSE_MS) {
        assert_true(ms < PATIENCE_MS);
        (void)usleep(PAUSE_MS * 1000);
    }
}

/* Many files of one file system make room for those of another, which closes nothing itself. */
TEST(test_lanes__files_of_another_file_system_make_room)
{
    enum { FILES = 60 };
    char name[24];
    struct file_status status;
    stop_clock();
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(caller_create(&c, &c.root, name, 0666, NULL), NFS_OK);
    }
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < FILES; i++) {
            (void)snprintf(name, sizeof name, "other%d", i);
            assert_int_equal(caller_create(&c, &memory_root, name, 0666, NULL), NFS_OK);
            assert_int_equal(caller_call(&c, NFS_REMOVE,
                                         &(struct nfs_args){.fh = caller_bytes(&memory_root),
                                                            .name = bytes_of_text(name)}),
                             NFS_OK);
        }
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof name, "other%d", i);
        assert_int_equal(caller_create(&c, &memory_root, name, 0666, NULL), NFS_OK);
    }
    for (int ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        file_get_status(c.service, &status);
        if (status.open_files <= c.options.limits.files_max + 8)
            break;
        (void)usleep(PAUSE_MS * 1000);
    }
    assert_true(status.open_files <= c.options.limits.files_max + 8);
    for (int i = 0; i < FILES; i++) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/other%d", memory_directory, i);
        (void)unlink(path);
    }
}

TEST(test_lanes__a_reload_beside_a_file_system_that_hangs)
{
    stop_clock();
    uint32_t count = fill();
    for (int i = 0; i < 5; i++) {
        export_both();
        expect_service();
    }
    atomic_store(&is_hanging, false);
    collect(count);
}

TEST_MAIN(start, stop, NULL, NULL)
