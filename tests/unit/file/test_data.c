/*
 * test_data.c -- READ, WRITE, COMMIT: what is read, what is claimed, and when it is on disk.
 */
#include "caller.h"

#include "../test.h"
#include "file/system.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct caller c;
static struct nfs_fh file;

static atomic_int fsyncs, fdatasyncs, failing;

static atomic_bool is_lazy; /* syncs do nothing */

static int counted_fsync(int fd)
{
    atomic_fetch_add(&fsyncs, 1);
    if (atomic_load(&is_lazy))
        return 0;
    if (atomic_load(&failing) > 0 && atomic_fetch_sub(&failing, 1) > 0)
        return errno = EIO, -1;
    return fsync(fd);
}

static int counted_fdatasync(int fd)
{
    atomic_fetch_add(&fdatasyncs, 1);
    if (atomic_load(&failing) > 0 && atomic_fetch_sub(&failing, 1) > 0)
        return errno = EIO, -1;
    return fdatasync(fd);
}

static ssize_t write_error;
static ssize_t real_or_failing_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    if (write_error != 0)
        return errno = (int)write_error, -1;
    return pwrite(fd, data, len > 3 ? 3 : len, offset); /* also a short write is written on */
}

static const struct file_system counted = {.fsync = counted_fsync,
                                           .fdatasync = counted_fdatasync,
                                           .syncfs = syncfs,
                                           .pwrite = real_or_failing_pwrite,
                                           .splice = splice};

TEST_FIXTURE(start)
{
    caller_start(&c, "rw");
    c.options.system = &counted;
    caller_restart(&c, "rw");
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    atomic_store(&fsyncs, 0);
    atomic_store(&fdatasyncs, 0);
    atomic_store(&failing, 0);
    write_error = 0;
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

TEST(test_data__what_was_written_is_read)
{
    assert_int_equal(caller_write(&c, &file, 0, "hello, world", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(c.result.count, 12);
    for (int round = 0; round < 2; round++) { /* by a thread, then at once */
        assert_int_equal(caller_read(&c, &file, 7, 100), NFS_OK);
        assert_string_equal((char *)c.payload, "world");
        assert_true(c.result.eof);
        assert_int_equal(caller_read(&c, &file, 0, 5), NFS_OK);
        assert_string_equal((char *)c.payload, "hello");
        assert_false(c.result.eof);
        assert_true(c.result.attr.is_there);
    }
}

TEST(test_data__eof_comes_from_the_size)
{
    assert_int_equal(caller_write(&c, &file, 0, "12345", NFS_UNSTABLE), NFS_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(caller_read(&c, &file, 0, 5), NFS_OK);
        assert_true(c.result.eof);
        assert_int_equal(caller_read(&c, &file, 0, 4), NFS_OK);
        assert_false(c.result.eof);
        const uint64_t beyond[] = {5, 6, INT64_MAX, UINT64_MAX};
        for (int i = 0; i < 4; i++) {
            assert_int_equal(caller_read(&c, &file, beyond[i], 10), NFS_OK);
            assert_int_equal(c.payload_len, 0);
            assert_true(c.result.eof);
        }
        assert_int_equal(caller_read(&c, &file, 2, 0), NFS_OK);
        assert_false(c.result.eof);
    }
}

TEST(test_data__a_megabyte_and_not_more)
{
    static uint8_t data[NFS_DATA_MAX];
    for (uint32_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    struct nfs_args args = {.fh = caller_bytes(&file),
                            .count = 30000, /* three bytes at a time */
                            .data = {data, 30000}};
    assert_int_equal(caller_call(&c, NFS_WRITE, &args), NFS_OK);
    int fd = open(caller_path(&c, "f"), O_WRONLY);
    assert_int_equal(pwrite(fd, data, sizeof data, 0), sizeof data);
    assert_int_equal(pwrite(fd, data, 100, sizeof data), 100);
    assert_int_equal(close(fd), 0);
    assert_int_equal(caller_read(&c, &file, 0, UINT32_MAX), NFS_OK);
    assert_int_equal(c.payload_len, NFS_DATA_MAX);
    assert_memory_equal(c.payload, data, sizeof data);
    assert_false(c.result.eof);
}

TEST(test_data__more_than_wtmax_is_cut)
{
    static uint8_t data[NFS_DATA_MAX + 1000];
    struct nfs_args args = {
        .fh = caller_bytes(&file), .count = sizeof data, .data = {data, sizeof data}};
    memset(data, 'm', sizeof data);
    assert_int_equal(caller_call(&c, NFS_WRITE, &args), NFS_OK);
    assert_int_equal(c.result.count, NFS_DATA_MAX);
    assert_int_equal(c.result.wcc.after.attr.size, NFS_DATA_MAX);
}

/* More than is read on the server's thread, and enough for a pipe. */
enum { LARGE_LEN = 262144 };

static atomic_bool is_enough;

/* Longer and shorter, until it is enough. */
static void *breathe(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    while (fd >= 0 && !atomic_load(&is_enough))
        if (ftruncate(fd, LARGE_LEN) != 0 || ftruncate(fd, 0) != 0)
            abort();
    (void)close(fd);
    return NULL;
}

/* Memory of calls is used again: what another caller read there must not come out. */
TEST(test_data__what_was_not_read_is_not_sent)
{
    static char secret[LARGE_LEN + 1], file_path[512];
    struct nfs_fh other;
    pthread_t thread;
    uint32_t shorter = 0;
    memset(secret, 'S', sizeof secret - 1);
    (void)snprintf(file_path, sizeof file_path, "%s", caller_path(&c, "f"));
    assert_int_equal(caller_create(&c, &c.root, "secret", 0600, &other), NFS_OK);
    assert_int_equal(caller_write(&c, &other, 0, secret, NFS_UNSTABLE), NFS_OK);
    atomic_store(&is_enough, false);
    assert_int_equal(pthread_create(&thread, NULL, breathe, file_path), 0);
    const uint32_t rounds = test_rounds(3000);
    for (uint32_t i = 0; i < rounds; i++) {
        assert_int_equal(caller_read(&c, &other, 0, LARGE_LEN), NFS_OK);
        assert_int_equal(caller_read(&c, &file, 0, LARGE_LEN), NFS_OK);
        assert_null(memchr(c.payload, 'S', c.payload_len));
        shorter += c.payload_len < LARGE_LEN;
    }
    atomic_store(&is_enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("# %u of %u reads met a file that was being changed\n", shorter, rounds);
}

TEST(test_data__a_count_that_is_not_the_data_is_inval)
{
    struct nfs_args args = {.fh = caller_bytes(&file), .count = 4, .data = bytes_of_text("abc")};
    assert_int_equal(caller_call(&c, NFS_WRITE, &args), NFS_INVAL);
    args.count = 2;
    assert_int_equal(caller_call(&c, NFS_WRITE, &args), NFS_INVAL);
    assert_true(c.result.wcc.after.is_there);
    assert_int_equal(c.result.wcc.after.attr.size, 0);
}

TEST(test_data__beyond_what_a_file_can_have_is_fbig)
{
    assert_int_equal(caller_write(&c, &file, INT64_MAX, "x", NFS_UNSTABLE), NFS_FBIG);
    assert_int_equal(caller_write(&c, &file, UINT64_MAX, "x", NFS_UNSTABLE), NFS_FBIG);
}

TEST(test_data__sparse_files)
{
    assert_int_equal(caller_write(&c, &file, 1 << 20, "end", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(caller_read(&c, &file, (1 << 20) - 1, 4), NFS_OK);
    assert_memory_equal(c.payload, "\0end", 4);
    assert_true(c.result.attr.attr.used < 1 << 20);
}

TEST(test_data__errors_have_their_status)
{
    const struct {
        int err;
        enum nfs_stat stat;
    } cases[] = {{ENOSPC, NFS_NOSPC}, {EDQUOT, NFS_DQUOT}, {EFBIG, NFS_FBIG},
                 {EIO, NFS_IO},       {EROFS, NFS_ROFS},   {ESTALE, NFS_STALE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_error = cases[i].err;
        assert_int_equal(caller_write(&c, &file, 0, "x", NFS_UNSTABLE), cases[i].stat);
        assert_true(c.result.wcc.after.is_there);
    }
}

TEST(test_data__only_what_has_data)
{
    struct nfs_fh directory, fifo;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0777, &directory), NFS_OK);
    assert_int_equal(mkfifo(caller_path(&c, "fifo"), 0666), 0);
    assert_int_equal(chmod(caller_path(&c, "fifo"), 0666), 0);
    assert_int_equal(caller_lookup(&c, &c.root, "fifo", &fifo), NFS_OK);
    assert_int_equal(caller_read(&c, &directory, 0, 1), NFS_ISDIR);
    assert_int_equal(caller_write(&c, &directory, 0, "x", NFS_UNSTABLE), NFS_ISDIR);
    assert_int_equal(caller_read(&c, &fifo, 0, 1), NFS_INVAL); /* and nobody waits for a writer */
    assert_int_equal(caller_write(&c, &fifo, 0, "x", NFS_UNSTABLE), NFS_INVAL);
    assert_int_equal(caller_call(&c, NFS_COMMIT, &(struct nfs_args){.fh = caller_bytes(&fifo)}),
                     NFS_INVAL);
}

/* ---- stability ---- */

TEST(test_data__a_write_claims_what_was_reached)
{
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(c.result.committed, NFS_UNSTABLE);
    assert_int_equal(atomic_load(&fsyncs) + atomic_load(&fdatasyncs), 0);
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_DATA_SYNC), NFS_OK);
    assert_int_equal(c.result.committed, NFS_DATA_SYNC);
    assert_int_equal(atomic_load(&fdatasyncs), 1);
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_FILE_SYNC), NFS_OK);
    assert_int_equal(c.result.committed, NFS_FILE_SYNC);
    assert_int_equal(atomic_load(&fsyncs), 1);
}

static enum nfs_stat commit(void)
{
    return caller_call(&c, NFS_COMMIT, &(struct nfs_args){.fh = caller_bytes(&file)});
}

TEST(test_data__write_and_commit_have_one_verifier_until_a_restart)
{
    uint8_t verifier[NFS_VERF_LEN];
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    memcpy(verifier, c.result.verf, sizeof verifier);
    assert_int_equal(commit(), NFS_OK);
    assert_memory_equal(verifier, c.result.verf, sizeof verifier);
    assert_int_equal(atomic_load(&fsyncs), 1);
    caller_restart(&c, "rw");
    assert_int_equal(commit(), NFS_OK);
    assert_memory_not_equal(verifier, c.result.verf, sizeof verifier);
}

TEST(test_data__a_store_that_went_back_has_another_verifier)
{
    uint8_t verifier[NFS_VERF_LEN];
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    memcpy(verifier, c.result.verf, sizeof verifier);
    c.options.epoch--; /* the start makes it the same again */
    c.options.chance++;
    caller_restart(&c, "rw");
    assert_int_equal(commit(), NFS_OK);
    assert_memory_not_equal(verifier, c.result.verf, sizeof verifier);
}

TEST(test_data__a_failed_sync_changes_the_verifier_before_it_is_answered)
{
    uint8_t verifier[NFS_VERF_LEN];
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    memcpy(verifier, c.result.verf, sizeof verifier);
    atomic_store(&failing, 1);
    assert_int_equal(commit(), NFS_IO);
    /* The kernel would now say that all is well: the page is clean. */
    assert_int_equal(commit(), NFS_OK);
    assert_memory_not_equal(verifier, c.result.verf, sizeof verifier);
    struct file_status status;
    file_get_status(c.service, &status);
    assert_int_equal(status.sync_errors, 1);
    /* Just now; the clock goes on. */
    uint64_t age_ns = status.sync_error_age_ns;
    assert_in_range(age_ns, 1, UINT64_C(600000000000));
    do
        file_get_status(c.service, &status);
    while (status.sync_error_age_ns <= age_ns);
}

TEST(test_data__a_failed_sync_fails_a_stable_write)
{
    atomic_store(&failing, 1);
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_FILE_SYNC), NFS_IO);
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_FILE_SYNC), NFS_OK);
}

/* ---- who may ---- */

TEST(test_data__the_owner_may_after_a_chmod)
{
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(chmod(caller_path(&c, "f"), 0), 0);
    assert_int_equal(caller_write(&c, &file, 0, "b", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(caller_read(&c, &file, 0, 1), NFS_OK);
    caller_be(&c, 1001, 1001);
    assert_int_equal(caller_write(&c, &file, 0, "c", NFS_UNSTABLE), NFS_ACCES);
    assert_int_equal(caller_read(&c, &file, 0, 1), NFS_ACCES);
}

TEST(test_data__a_right_that_is_taken_away_is_gone)
{
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    caller_be(&c, 1001, 1001);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(chmod(caller_path(&c, "f"), 0644), 0);
        assert_int_equal(caller_read(&c, &file, 0, 1), NFS_OK);
        assert_int_equal(caller_read(&c, &file, 0, 1), NFS_OK);
        assert_int_equal(chmod(caller_path(&c, "f"), 0600), 0);
        assert_int_equal(caller_read(&c, &file, 0, 1), NFS_ACCES);
    }
}

TEST(test_data__who_may_execute_may_read)
{
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(chmod(caller_path(&c, "f"), 0711), 0);
    caller_be(&c, 1001, 1001);
    assert_int_equal(caller_read(&c, &file, 0, 1), NFS_OK);
}

TEST(test_data__setuid_bits_go_when_another_writes)
{
    struct stat st;
    assert_int_equal(chmod(caller_path(&c, "f"), 06777), 0);
    caller_be(&c, 1001, 1001);
    assert_int_equal(caller_write(&c, &file, 0, "a", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(stat(caller_path(&c, "f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0777);
}

TEST(test_data__the_attributes_before_are_those_before)
{
    assert_int_equal(caller_write(&c, &file, 0, "abc", NFS_UNSTABLE), NFS_OK);
    assert_true(c.result.wcc.before.is_there);
    assert_int_equal(c.result.wcc.before.size, 0);
    assert_int_equal(c.result.wcc.after.attr.size, 3);
    struct nfs_time ctime = c.result.wcc.after.attr.ctime;
    assert_int_equal(caller_write(&c, &file, 3, "d", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(c.result.wcc.before.size, 3);
    assert_int_equal(c.result.wcc.before.ctime.seconds, ctime.seconds);
    assert_int_equal(c.result.wcc.before.ctime.nseconds, ctime.nseconds);
}

/* Another one changes the file all the time: nothing of that lies between the two. */
static void *change_size(void *argument)
{
    atomic_bool *is_over = argument;
    int fd = open(caller_path(&c, "f"), O_WRONLY | O_CLOEXEC);
    for (off_t size = 1; fd >= 0 && !atomic_load(is_over); size++)
        (void)!ftruncate(fd, size);
    (void)close(fd);
    return NULL;
}

/* Between the two looks of a WRITE lies its own change alone: what all of them say that they added
 * is what was added. */
TEST(test_data__the_attributes_before_are_those_before_at_once)
{
    enum { CALLS = 200, ROUNDS = 20 };
    struct nfs_args args = {.fh = caller_bytes(&file), .count = 1, .data = bytes_of_text("x")};
    for (int round = 0; round < ROUNDS; round++) {
        struct job *done[CALLS]; /* those that needed no thread (file/lone.h) */
        uint64_t added = 0;
        assert_int_equal(truncate(caller_path(&c, "f"), 0), 0);
        for (uint32_t i = 0; i < CALLS; i++) {
            args.offset = i;
            done[i] = caller_submit(&c, NFS_WRITE, &args);
        }
        for (uint32_t i = 0; i < CALLS; i++) {
            struct job *job = done[i] != NULL ? done[i] : caller_wait(&c);
            assert_int_equal(caller_take(&c, NFS_WRITE, job), NFS_OK);
            assert_true(c.result.wcc.before.is_there);
            added += c.result.wcc.after.attr.size - c.result.wcc.before.size;
        }
        assert_int_equal(added, CALLS);
    }
}

TEST(test_data__a_commit_claims_no_change_of_others)
{
    atomic_bool is_over = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, change_size, &is_over), 0);
    uint32_t wrong = 0;
    atomic_store(&is_lazy, true);
    for (uint32_t i = 0; i < test_rounds(5000); i++) {
        assert_int_equal(caller_call(&c, NFS_COMMIT, &(struct nfs_args){.fh = caller_bytes(&file)}),
                         NFS_OK);
        wrong += c.result.wcc.before.size != c.result.wcc.after.attr.size;
    }
    atomic_store(&is_lazy, false);
    atomic_store(&is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(wrong, 0);
}

TEST_MAIN(start, stop, NULL, NULL)
