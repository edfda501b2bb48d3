/*
 * test_limits.c -- many calls at once: limits, shared syncs, and that each comes out once.
 */
#include "caller.h"

#include "../test.h"
#include "file/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MEMORY "/dev/shm"

static struct caller c;

/* Syncs wait at a gate until it is opened. */
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static bool gate_is_open;
static atomic_int syncs, failing;

static int gated(int fd)
{
    atomic_fetch_add(&syncs, 1);
    (void)pthread_mutex_lock(&gate_mutex);
    while (!gate_is_open)
        (void)pthread_cond_wait(&gate_opened, &gate_mutex);
    (void)pthread_mutex_unlock(&gate_mutex);
    if (atomic_load(&failing) > 0 && atomic_fetch_sub(&failing, 1) > 0)
        return errno = EIO, -1;
    return fsync(fd);
}

/* So does a write, when it is asked to. */
static atomic_int writes;
static atomic_bool holds_writes;

static ssize_t gated_write(int fd, const void *data, size_t len, off_t offset)
{
    atomic_fetch_add(&writes, 1);
    while (atomic_load(&holds_writes))
        (void)usleep(100);
    return pwrite(fd, data, len, offset);
}

static const struct file_system gated_system = {
    .fsync = gated, .fdatasync = gated, .syncfs = gated, .pwrite = gated_write, .splice = splice};

static void set_gate(bool is_open)
{
    (void)pthread_mutex_lock(&gate_mutex);
    gate_is_open = is_open;
    (void)pthread_cond_broadcast(&gate_opened);
    (void)pthread_mutex_unlock(&gate_mutex);
}

TEST_FIXTURE(start)
{
    caller_start(&c, "rw");
    c.options.system = &gated_system;
    set_gate(true);
    caller_restart(&c, "rw");
    atomic_store(&syncs, 0);
    atomic_store(&failing, 0);
}

TEST_FIXTURE(stop)
{
    set_gate(true);
    caller_stop(&c);
}

/* Again, in memory: there the sync of a directory counts for what is new in it, which elsewhere
 * depends on the file system (journal.h). */
static void start_in_memory(void)
{
    struct statfs fs;
    if (statfs(MEMORY, &fs) != 0 || fs.f_type != TMPFS_MAGIC) {
        print_message("# skipped: %s is no tmpfs\n", MEMORY);
        skip();
    }
    const char *before = getenv("TMPDIR");
    char parent[PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s", before != NULL ? before : "");
    caller_stop(&c);
    assert_int_equal(setenv("TMPDIR", MEMORY, 1), 0);
    start(NULL);
    assert_int_equal(before != NULL ? setenv("TMPDIR", parent, 1) : unsetenv("TMPDIR"), 0);
}

static void wait_for_syncs(int count)
{
    while (atomic_load(&syncs) < count)
        (void)usleep(100);
}

static void submit_create(uint32_t i)
{
    char name[24];
    (void)snprintf(name, sizeof name, "f%u", i);
    assert_null(caller_submit(&c, NFS_CREATE,
                              &(struct nfs_args){.fh = caller_bytes(&c.root),
                                                 .name = bytes_of_text(name),
                                                 .create = NFS_GUARDED}));
}

/* Until these calls have no thread any more: they wait for their syncs. */
static void wait_for_executed(uint32_t count)
{
    char name[24];
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        while (access(caller_path(&c, name), F_OK) != 0)
            (void)usleep(100);
    }
    (void)usleep(20000); /* and the last of them is added to the waiting */
}

TEST(test_limits__an_answer_leaves_after_the_sync)
{
    const struct job_desk *desk = file_desk(c.service);
    set_gate(false);
    submit_create(0);
    wait_for_syncs(1);
    assert_null(desk->next(desk->context));
    set_gate(true);
    assert_int_equal(caller_take(&c, NFS_CREATE, caller_wait(&c)), NFS_OK);
}

TEST(test_limits__calls_of_one_directory_share_a_sync)
{
    start_in_memory();
    set_gate(false);
    submit_create(0);
    wait_for_syncs(1);
    for (uint32_t i = 1; i < 60; i++)
        submit_create(i);
    wait_for_executed(60);
    set_gate(true);
    for (int i = 0; i < 60; i++)
        assert_int_equal(caller_take(&c, NFS_CREATE, caller_wait(&c)), NFS_OK);
    assert_int_equal(atomic_load(&syncs), 2); /* the first one's, and one for all who came then */
}

TEST(test_limits__who_waits_for_a_sync_that_fails_hears_of_it)
{
    start_in_memory();
    set_gate(false);
    submit_create(0);
    wait_for_syncs(1);
    submit_create(1);
    submit_create(2);
    wait_for_executed(3);
    atomic_store(&failing, 1);
    set_gate(true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(caller_take(&c, NFS_CREATE, caller_wait(&c)), NFS_IO);
    submit_create(3);
    assert_int_equal(caller_take(&c, NFS_CREATE, caller_wait(&c)), NFS_OK);
}

TEST(test_limits__every_change_is_synced)
{
    struct nfs_fh file, directory;
    start_in_memory();
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0777, &directory), NFS_OK);
    const struct {
        enum nfs_procedure procedure;
        struct nfs_args args;
        int syncs;
    } changes[] = {
        {NFS_SETATTR, {.fh = caller_bytes(&file), .sattr = {.set_mode = true, .mode = 0666}}, 1},
        {NFS_SYMLINK,
         {.fh = caller_bytes(&c.root), .name = bytes_of_text("l"), .path = bytes_of_text("x")},
         1},
        {NFS_MKNOD,
         {.fh = caller_bytes(&c.root), .name = bytes_of_text("p"), .type = NFS_TYPE_FIFO},
         1},
        /* A mode that is set behind the name: its directory's sync may not have it. */
        {NFS_MKDIR,
         {.fh = caller_bytes(&c.root),
          .name = bytes_of_text("s"),
          .sattr = {.set_mode = true, .mode = 02770}},
         2},
        {NFS_LINK,
         {.fh = caller_bytes(&file), .to_fh = caller_bytes(&c.root), .to_name = bytes_of_text("g")},
         1},
        {NFS_RENAME,
         {.fh = caller_bytes(&c.root),
          .name = bytes_of_text("g"),
          .to_fh = caller_bytes(&directory),
          .to_name = bytes_of_text("h")},
         2},
        {NFS_REMOVE, {.fh = caller_bytes(&directory), .name = bytes_of_text("h")}, 1},
        {NFS_RMDIR, {.fh = caller_bytes(&c.root), .name = bytes_of_text("d")}, 1},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        atomic_store(&syncs, 0);
        assert_int_equal(caller_call(&c, changes[i].procedure, &changes[i].args), NFS_OK);
        assert_true(atomic_load(&syncs) >= changes[i].syncs);
    }
    caller_restart(&c, "rw,async");
    atomic_store(&syncs, 0);
    assert_int_equal(caller_create(&c, &c.root, "a", 0644, NULL), NFS_OK);
    assert_int_equal(atomic_load(&syncs), 0);
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_FILE_SYNC), NFS_OK);
    assert_int_equal(atomic_load(&syncs), 1); /* what is claimed is true, also then */
}

TEST(test_limits__a_stable_write_does_not_outlive_an_error_of_others)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    atomic_store(&syncs, 0);
    set_gate(false);
    struct nfs_args args = {
        .fh = caller_bytes(&file), .count = 1, .data = bytes_of_text("x"), .stable = NFS_FILE_SYNC};
    assert_null(caller_submit(&c, NFS_WRITE, &args));
    wait_for_syncs(1);
    submit_create(1); /* another target; one of the two syncs fails */
    wait_for_syncs(2);
    atomic_store(&failing, 1);
    set_gate(true);
    struct job *first = caller_wait(&c), *second = caller_wait(&c);
    assert_true(first->status == NFS_IO || second->status == NFS_IO);
    /* Whichever it was: the write may claim to be stable only if the error came later. */
    assert_true(first->status != NFS_OK || second->status != NFS_OK);
    const struct job_desk *desk = file_desk(c.service);
    desk->release(desk->context, first);
    desk->release(desk->context, second);
}

/* Closed without a sync, the kernel would forget that writing it back failed. */
TEST(test_limits__what_is_written_during_a_sync_is_synced_before_it_is_closed)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    struct nfs_args args = {.fh = caller_bytes(&file), .count = 1, .data = bytes_of_text("x")};
    atomic_store(&writes, 0);
    atomic_store(&holds_writes, true);
    assert_null(caller_submit(&c, NFS_WRITE, &args));
    while (atomic_load(&writes) == 0)
        (void)usleep(100);
    assert_null(caller_submit(&c, NFS_COMMIT, &(struct nfs_args){.fh = caller_bytes(&file)}));
    assert_int_equal(caller_take(&c, NFS_COMMIT, caller_wait(&c)), NFS_OK);
    atomic_store(&holds_writes, false);
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    atomic_store(&syncs, 0);
    caller_restart(&c, "rw");
    assert_int_equal(atomic_load(&syncs), 1);
}

TEST(test_limits__too_many_calls_are_answered_jukebox)
{
    c.options.limits.calls_max = 8;
    caller_restart(&c, "rw");
    set_gate(false);
    for (uint32_t i = 0; i < 8; i++)
        submit_create(i);
    wait_for_executed(8);
    struct nfs_args args = {.fh = caller_bytes(&c.root)};
    for (int procedure = NFS_GETATTR; procedure < NFS_PROCEDURE_COUNT; procedure++) {
        args.name = args.to_name = bytes_of_text("x");
        args.to_fh = caller_bytes(&c.root);
        args.type = NFS_TYPE_FIFO;
        struct job *job = caller_submit(&c, (enum nfs_procedure)procedure, &args);
        assert_non_null(job);
        assert_int_equal(caller_take(&c, (enum nfs_procedure)procedure, job), NFS_JUKEBOX);
    }
    set_gate(true);
    for (int i = 0; i < 8; i++)
        assert_int_equal(caller_take(&c, NFS_CREATE, caller_wait(&c)), NFS_OK);
    assert_int_equal(caller_getattr(&c, &c.root), NFS_OK);
    struct file_status status;
    file_get_status(c.service, &status);
    assert_int_equal(status.refused, NFS_PROCEDURE_COUNT - 1);
    assert_int_equal(status.calls, 0);
}

TEST(test_limits__bytes_under_way_are_limited)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    c.options.limits.bytes_max = 3 << 20;
    caller_restart(&c, "rw");
    struct nfs_args args = {.fh = caller_bytes(&file), .count = NFS_DATA_MAX};
    struct job *jobs[3];
    uint32_t refused = 0, done = 0;
    for (int i = 0; i < 3; i++) {
        jobs[i] = caller_submit(&c, NFS_READ, &args);
        refused += jobs[i] != NULL && jobs[i]->status == NFS_JUKEBOX;
        done += jobs[i] != NULL;
    }
    assert_int_equal(refused, 1); /* two of more than a megabyte fit */
    const struct job_desk *desk = file_desk(c.service);
    for (int i = 0; i < 3; i++)
        desk->release(desk->context, jobs[i] != NULL ? jobs[i] : caller_wait(&c));
    (void)done;
}

TEST(test_limits__exports_change_under_running_calls)
{
    struct text text;
    char line[160], why[256];
    text_init(&text, why, sizeof why);
    (void)snprintf(line, sizeof line, "%s 192.0.2.1(rw)", c.directory);
    set_gate(false);
    for (uint32_t i = 0; i < 20; i++)
        submit_create(i);
    assert_true(caller_reload(&c, line, &text));
    set_gate(true);
    for (int i = 0; i < 20; i++) /* those that had begun go on */
        assert_int_equal(caller_take(&c, NFS_CREATE, caller_wait(&c)), NFS_OK);
    assert_int_equal(caller_create(&c, &c.root, "later", 0644, NULL), NFS_ACCES);
}

TEST_MAIN(start, stop, NULL, NULL)
