/*
 * test_inlet.c -- long WRITEs whose data comes in a pipe (decision 047): the same bytes, status and
 * count as from memory, whatever splice says; and no pipe is lost, or has bytes of another call.
 */
#include "caller.h"

#include "../test.h"
#include "file/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA_LEN = NFS_DATA_MAX, HEAD_LEN = 5000, LENT_LEN = DATA_LEN + 4096, PIPES = 3 };

static struct caller c;
static struct nfs_fh file;
static uint8_t content[DATA_LEN], read_back[DATA_LEN];

/* How the file system fails: splice behind so many bytes, the others behind so many calls. */
static atomic_int splice_error, splice_max, write_error, writes_left, splices, writes;

static ssize_t some_splice(int from, off_t *offset, int to, off_t *to_offset, size_t len,
                           unsigned flags)
{
    atomic_fetch_add(&splices, 1);
    size_t most = (size_t)atomic_load(&splice_max);
    if (atomic_load(&splice_error) != 0 && most == 0)
        return errno = atomic_load(&splice_error), -1;
    if (most > 0 && len > most) {
        atomic_store(&splice_max, 0); /* the next one fails */
        len = most;
    }
    return splice(from, offset, to, to_offset, len, flags);
}

static ssize_t some_write(int fd, const void *data, size_t len, off_t offset)
{
    atomic_fetch_add(&writes, 1);
    if (atomic_load(&write_error) != 0 && atomic_fetch_sub(&writes_left, 1) <= 0)
        return errno = atomic_load(&write_error), -1;
    return pwrite(fd, data, len, offset);
}

static const struct file_system injured = {.fsync = fsync,
                                           .fdatasync = fdatasync,
                                           .syncfs = syncfs,
                                           .pwrite = some_write,
                                           .splice = some_splice};

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,async");
    c.options.system = &injured;
    c.options.limits.pipes_max = PIPES;
    caller_restart(&c, "rw,async");
    atomic_store(&splice_error, 0);
    atomic_store(&splice_max, 0);
    atomic_store(&write_error, 0);
    atomic_store(&writes_left, 0);
    for (uint32_t i = 0; i < DATA_LEN; i++)
        content[i] = (uint8_t)(i * 7 + i / 251 + i / 65536);
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    atomic_store(&splices, 0);
    atomic_store(&writes, 0);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static struct job_inlet *open_inlet(void)
{
    const struct job_desk *desk = file_desk(c.service);
    return desk->open_inlet(desk->context);
}

static void close_inlet(struct job_inlet *inlet)
{
    const struct job_desk *desk = file_desk(c.service);
    desk->close_inlet(desk->context, inlet);
}

/* All are there again: none is lost, and none has anything in it. */
static void expect_pipes(void)
{
    struct job_inlet *all[PIPES];
    uint8_t byte;
    for (uint32_t i = 0; i < PIPES; i++) {
        all[i] = open_inlet();
        assert_non_null(all[i]);
        assert_int_equal(all[i]->len, 0);
        assert_int_equal(read(all[i]->read_fd, &byte, 1), -1);
    }
    assert_null(open_inlet());
    for (uint32_t i = 0; i < PIPES; i++)
        close_inlet(all[i]);
}

/* A WRITE whose first bytes lie in memory, and all others in a pipe. The rest of the memory says
 * something else. */
static struct job *submit(const struct nfs_fh *fh, uint64_t offset, uint32_t in_memory,
                          enum nfs_stable stable, struct job_memory *ret_lent)
{
    static uint8_t data[DATA_LEN];
    struct job_memory lent = {malloc(LENT_LEN), LENT_LEN, open_inlet()};
    assert_non_null(lent.at);
    assert_non_null(lent.inlet);
    memset(data, 'x', sizeof data);
    memcpy(data, content, in_memory);
    lent.inlet->len = DATA_LEN - in_memory;
    assert_int_equal(write(lent.inlet->write_fd, content + in_memory, DATA_LEN - in_memory),
                     DATA_LEN - in_memory);
    const struct nfs_args args = {.fh = caller_bytes(fh),
                                  .offset = offset,
                                  .count = DATA_LEN,
                                  .stable = stable,
                                  .data = {data, DATA_LEN}};
    struct job *job = caller_submit_lent(&c, NFS_WRITE, &args, &lent);
    *ret_lent = lent;
    return job;
}

static enum nfs_stat write_piped(const struct nfs_fh *fh, uint64_t offset, uint32_t in_memory,
                                 enum nfs_stable stable)
{
    struct job_memory lent;
    struct job *job = submit(fh, offset, in_memory, stable, &lent);
    assert_null(job);
    assert_null(lent.inlet); /* it went with the memory */
    free(lent.at);
    return caller_take(&c, NFS_WRITE, caller_wait(&c));
}

static void expect_content(uint64_t offset, uint32_t len)
{
    int fd = open(caller_path(&c, "f"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, read_back, sizeof read_back, (off_t)offset), len);
    assert_int_equal(close(fd), 0);
    assert_memory_equal(read_back, content, len);
    assert_int_equal(c.result.count, len);
    assert_int_equal(c.result.wcc.after.attr.size, offset + len);
}

TEST(test_inlet__the_data_goes_from_the_pipe_into_the_file)
{
    uint64_t offset = 0;
    static const uint32_t in_memory[] = {0, HEAD_LEN, 1, 4096, DATA_LEN - 4};
    for (uint32_t i = 0; i < sizeof in_memory / sizeof in_memory[0]; i++, offset += DATA_LEN + i) {
        atomic_store(&splices, 0);
        atomic_store(&writes, 0);
        assert_int_equal(write_piped(&file, offset, in_memory[i], NFS_UNSTABLE), NFS_OK);
        expect_content(offset, DATA_LEN);
        assert_int_equal(atomic_load(&splices), 1);
        assert_int_equal(atomic_load(&writes), in_memory[i] > 0);
        expect_pipes();
    }
}

TEST(test_inlet__stability_and_verifier_are_as_without)
{
    uint8_t verf[NFS_VERF_LEN];
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_UNSTABLE), NFS_OK);
    memcpy(verf, c.result.verf, sizeof verf);
    static const enum nfs_stable all[] = {NFS_UNSTABLE, NFS_DATA_SYNC, NFS_FILE_SYNC};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(write_piped(&file, 0, HEAD_LEN, all[i]), NFS_OK);
        assert_int_equal(c.result.committed, all[i]);
        assert_memory_equal(c.result.verf, verf, sizeof verf);
        expect_content(0, DATA_LEN);
    }
}

TEST(test_inlet__a_file_system_without_is_written_from_memory)
{
    static const int errors[] = {EINVAL, EOPNOTSUPP, ENOMEM, EINTR};
    for (uint32_t i = 0; i < 4; i++) {
        atomic_store(&splice_error, errors[i]);
        assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_OK);
        expect_content(0, DATA_LEN);
        assert_int_equal(truncate(caller_path(&c, "f"), 0), 0);
        assert_int_equal(write_piped(&file, 0, 0, NFS_UNSTABLE), NFS_OK);
        expect_content(0, DATA_LEN);
        expect_pipes();
    }
}

TEST(test_inlet__one_that_takes_a_part)
{
    for (int len = 1; len < DATA_LEN; len = len * 5 + 1) {
        atomic_store(&splice_error, len % 2 == 0 ? EIO : EINVAL);
        atomic_store(&splice_max, len);
        assert_int_equal(truncate(caller_path(&c, "f"), 0), 0);
        assert_int_equal(write_piped(&file, 77, HEAD_LEN, NFS_UNSTABLE), NFS_OK);
        expect_content(77, DATA_LEN);
        expect_pipes();
    }
}

/* What pwrite says is what counts. */
TEST(test_inlet__a_full_disk)
{
    atomic_store(&splice_error, ENOSPC);
    atomic_store(&write_error, ENOSPC);
    assert_int_equal(write_piped(&file, 0, 0, NFS_UNSTABLE), NFS_NOSPC);
    atomic_store(&writes_left, 1); /* what was in memory still went there */
    assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_OK);
    expect_content(0, HEAD_LEN);
    atomic_store(&writes_left, 1);
    atomic_store(&splice_max, 70000);
    assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_OK);
    expect_content(0, HEAD_LEN + 70000);
    atomic_store(&write_error, EIO);
    assert_int_equal(write_piped(&file, 0, 0, NFS_UNSTABLE), NFS_IO);
    expect_pipes();
}

/* The real ones: a short WRITE, and then none. */
TEST(test_inlet__the_limit_of_a_files_size)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 600000, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN); /* as the server does */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum nfs_stat first = write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE);
    uint32_t count = c.result.count;
    enum nfs_stat second = write_piped(&file, 600000, HEAD_LEN, NFS_UNSTABLE);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(first, NFS_OK);
    assert_int_equal(count, 600000);
    assert_int_equal(second, NFS_FBIG);
    expect_pipes();
}

/* It is tried once more, and its data is still there. */
TEST(test_inlet__no_memory_for_a_moment)
{
    atomic_store(&splice_error, ENOMEM);
    atomic_store(&write_error, ENOMEM);
    assert_int_equal(write_piped(&file, 0, 0, NFS_UNSTABLE), NFS_JUKEBOX);
    assert_true(atomic_load(&writes) >= 1);
    expect_pipes();
    atomic_store(&write_error, 0);
    assert_int_equal(write_piped(&file, 0, 0, NFS_UNSTABLE), NFS_OK);
    expect_content(0, DATA_LEN);
}

TEST(test_inlet__what_is_refused_leaves_nothing_in_a_pipe)
{
    struct nfs_fh directory, bad = file;
    bad.data[bad.len - 1] ^= 1;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    for (uint32_t i = 0; i < 2 * PIPES; i++) {
        assert_int_equal(write_piped(&bad, 0, HEAD_LEN, NFS_UNSTABLE), NFS_BADHANDLE);
        assert_int_equal(write_piped(&directory, 0, HEAD_LEN, NFS_UNSTABLE), NFS_ISDIR);
        assert_int_equal(write_piped(&file, (uint64_t)INT64_MAX - 5, HEAD_LEN, NFS_UNSTABLE),
                         NFS_FBIG);
    }
    expect_pipes();
    assert_int_equal(chmod(caller_path(&c, "f"), 0444), 0);
    caller_be(&c, 12345, 12345);
    assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_ACCES);
    caller_be(&c, 0, 0);
    caller_restart(&c, "ro");
    assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_ROFS);
    expect_pipes();
    caller_restart(&c, "rw,async");
    assert_int_equal(unlink(caller_path(&c, "f")), 0);
    assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_STALE);
    expect_pipes();
    assert_int_equal(atomic_load(&splices), 0);
}

/* Without room for the call its inlet stays with who lent it. */
TEST(test_inlet__no_room)
{
    struct job_memory lent;
    c.options.limits.bytes_max = 1 << 20;
    caller_restart(&c, "rw,async");
    struct job *job = submit(&file, 0, HEAD_LEN, NFS_UNSTABLE, &lent);
    assert_non_null(job);
    assert_int_equal(caller_take(&c, NFS_WRITE, job), NFS_JUKEBOX);
    assert_non_null(lent.inlet);
    assert_int_equal(lent.inlet->len, DATA_LEN - HEAD_LEN);
    close_inlet(lent.inlet);
    free(lent.at);
    expect_pipes();
}

/* The memory of such a call is used again, without its inlet. */
TEST(test_inlet__memory_that_comes_back_has_none)
{
    struct job_memory lent;
    assert_int_equal(write_piped(&file, 0, HEAD_LEN, NFS_UNSTABLE), NFS_OK);
    assert_null(submit(&file, 0, HEAD_LEN, NFS_UNSTABLE, &lent));
    assert_non_null(lent.at); /* that of the first */
    assert_null(lent.inlet);
    free(lent.at);
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    /* It is there again before the reply is released. */
    assert_null(submit(&file, 0, HEAD_LEN, NFS_UNSTABLE, &lent));
    struct job *job = caller_wait(&c);
    expect_pipes();
    free(lent.at);
    assert_int_equal(caller_take(&c, NFS_WRITE, job), NFS_OK);
}

TEST(test_inlet__it_goes_with_the_service)
{
    struct job_memory lent;
    assert_null(submit(&file, 0, HEAD_LEN, NFS_UNSTABLE, &lent));
    free(lent.at);
    caller_restart(&c, "rw,async"); /* whatever has become of the call */
    expect_pipes();
}

TEST_MAIN(start, stop, NULL, NULL)
