/*
 * test_piped.c -- long READs, whose pages come through a pipe: the same bytes, count and eof as
 * from memory, also when only some or none of them are there.
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

enum { PAGE = 4096, SHORTEST = 262144, FILE_LEN = 3 * NFS_DATA_MAX + 1234, PIPES = 4 };

static struct caller c;
static struct nfs_fh file;
static uint8_t content[FILE_LEN];

/* How splice fails: with this, behind so many bytes of each call. */
static atomic_int splice_error, splice_max;
static atomic_uint splices;

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

static const struct file_system injured = {.fsync = fsync,
                                           .fdatasync = fdatasync,
                                           .syncfs = syncfs,
                                           .pwrite = pwrite,
                                           .splice = some_splice};

TEST_FIXTURE(start)
{
    caller_start(&c, "rw");
    c.options.system = &injured;
    c.options.limits.pipes_max = PIPES;
    caller_restart(&c, "rw");
    atomic_store(&splice_error, 0);
    atomic_store(&splice_max, 0);
    atomic_store(&splices, 0);
    for (uint32_t i = 0; i < FILE_LEN; i++)
        content[i] = (uint8_t)(i * 7 + i / 256 + i / 65536);
    /* In the middle there is nothing. */
    memset(content + NFS_DATA_MAX, 0, NFS_DATA_MAX / 2);
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    int fd = open(caller_path(&c, "f"), O_WRONLY | O_CLOEXEC);
    uint32_t behind = NFS_DATA_MAX + NFS_DATA_MAX / 2;
    assert_int_equal(pwrite(fd, content, NFS_DATA_MAX, 0), NFS_DATA_MAX);
    assert_int_equal(pwrite(fd, content + behind, FILE_LEN - behind, behind), FILE_LEN - behind);
    assert_int_equal(close(fd), 0);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static struct job *submit_read(uint64_t offset, uint32_t count)
{
    struct nfs_args args = {.fh = caller_bytes(&file), .offset = offset, .count = count};
    struct job *job = caller_submit(&c, NFS_READ, &args);
    return job != NULL ? job : caller_wait(&c);
}

/* Reads, and compares with what is there; returns how many bytes came through a pipe. */
static uint32_t read_and_compare(uint64_t offset, uint32_t count)
{
    struct job *job = submit_read(offset, count);
    uint32_t piped = job->pipe.len, wanted = count < NFS_DATA_MAX ? count : NFS_DATA_MAX;
    uint64_t rest = offset < FILE_LEN ? FILE_LEN - offset : 0;
    if (wanted > rest)
        wanted = (uint32_t)rest;
    assert_int_equal(job->data_len, wanted);
    assert_int_equal((job->body_len + piped) % 4, 0);
    assert_int_equal(caller_take(&c, NFS_READ, job), NFS_OK);
    assert_int_equal(c.payload_len, wanted);
    assert_memory_equal(c.payload, content + (rest == 0 ? 0 : offset), wanted);
    assert_int_equal(c.result.eof, wanted == rest);
    assert_true(c.result.attr.is_there);
    return piped;
}

TEST(test_piped__long_reads_come_through_a_pipe)
{
    assert_int_equal(read_and_compare(0, NFS_DATA_MAX), NFS_DATA_MAX);
    assert_int_equal(read_and_compare(NFS_DATA_MAX, NFS_DATA_MAX), NFS_DATA_MAX); /* the hole */
    assert_int_equal(read_and_compare(0, SHORTEST), SHORTEST);
    assert_int_equal(read_and_compare(4 * PAGE, UINT32_MAX), NFS_DATA_MAX);
    assert_int_equal(read_and_compare(0, SHORTEST - 1), 0); /* it is shorter */
}

TEST(test_piped__what_has_no_room_in_a_pipe_comes_behind_it)
{
    uint32_t piped = read_and_compare(PAGE - 1, NFS_DATA_MAX); /* of 257 pages */
    assert_in_range(piped, NFS_DATA_MAX - PAGE, NFS_DATA_MAX - 1);
    (void)read_and_compare(1, NFS_DATA_MAX);
    (void)read_and_compare(3, NFS_DATA_MAX - 1);
}

TEST(test_piped__the_end_of_the_file)
{
    assert_int_equal(read_and_compare(FILE_LEN - SHORTEST, NFS_DATA_MAX), SHORTEST);
    assert_int_equal(read_and_compare(FILE_LEN - SHORTEST - 1, NFS_DATA_MAX), SHORTEST + 1);
    assert_int_equal(read_and_compare(FILE_LEN - SHORTEST + 1, NFS_DATA_MAX), 0);
    assert_int_equal(read_and_compare(FILE_LEN - SHORTEST - 1, SHORTEST), SHORTEST); /* all but 1 */
    assert_int_equal(read_and_compare(FILE_LEN, NFS_DATA_MAX), 0);
    assert_int_equal(read_and_compare(UINT64_C(1) << 40, NFS_DATA_MAX), 0);
}

TEST(test_piped__any_offset_and_any_length)
{
    uint64_t random = 88172645463325252;
    for (uint32_t i = 0; i < test_rounds(400); i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uint64_t offset = random % (FILE_LEN + PAGE);
        uint32_t count = (uint32_t)(random >> 32) % (NFS_DATA_MAX + PAGE);
        (void)read_and_compare(i % 3 == 0 ? offset & ~(uint64_t)(PAGE - 1) : offset, count);
    }
}

TEST(test_piped__a_file_system_without_is_read_into_memory)
{
    atomic_store(&splice_error, EINVAL);
    assert_int_equal(read_and_compare(0, NFS_DATA_MAX), 0);
    assert_int_equal(read_and_compare(5, NFS_DATA_MAX), 0);
    assert_int_equal(atomic_load(&splices), 2);
    atomic_store(&splice_error, 0);
    assert_int_equal(read_and_compare(0, NFS_DATA_MAX), NFS_DATA_MAX);
}

TEST(test_piped__what_splice_leaves_is_completed)
{
    atomic_store(&splice_error, EIO);
    for (int len = 1; len < NFS_DATA_MAX; len = len * 5 + 1) {
        atomic_store(&splice_max, len);
        assert_int_equal(read_and_compare(0, NFS_DATA_MAX), len);
        atomic_store(&splice_max, len);
        assert_int_equal(read_and_compare(2 * PAGE + 7, NFS_DATA_MAX), len);
    }
}

TEST(test_piped__without_a_pipe_it_comes_through_memory)
{
    struct job *held[PIPES];
    for (int i = 0; i < PIPES; i++) {
        held[i] = submit_read((uint64_t)i, SHORTEST);
        assert_int_equal(held[i]->pipe.len, SHORTEST);
    }
    assert_int_equal(read_and_compare(9, SHORTEST), 0);
    for (uint32_t i = 0; i < PIPES; i++) {
        assert_int_equal(caller_take(&c, NFS_READ, held[i]), NFS_OK);
        assert_memory_equal(c.payload, content + i, SHORTEST);
    }
    assert_int_equal(read_and_compare(9, SHORTEST), SHORTEST);
}

/* A connection that ends releases what it was about to write. */
TEST(test_piped__a_reply_that_nobody_read_is_in_nobody_elses)
{
    const struct job_desk *desk = file_desk(c.service);
    for (uint32_t i = 0; i < 3 * PIPES; i++) {
        struct job *job = submit_read(i * PAGE, NFS_DATA_MAX);
        assert_true(job->pipe.len > 0);
        uint8_t part[100];
        if (i % 2 == 0) {
            assert_int_equal(read(job->pipe.fd, part, sizeof part), sizeof part);
            job->pipe.len -= (uint32_t)sizeof part;
        }
        desk->release(desk->context, job);
        assert_int_equal(read_and_compare(0, NFS_DATA_MAX), NFS_DATA_MAX);
    }
}

/* ---- while it changes ---- */

static atomic_bool is_enough;

/* Cut and written again, with the same bytes. */
static void *churn(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    while (fd >= 0 && !atomic_load(&is_enough))
        if (ftruncate(fd, SHORTEST + 11) != 0 ||
            pwrite(fd, content, NFS_DATA_MAX, 0) != NFS_DATA_MAX || ftruncate(fd, 5 * PAGE) != 0 ||
            pwrite(fd, content, SHORTEST, 0) != SHORTEST)
            abort();
    (void)close(fd);
    return NULL;
}

/* Count and eof are of one moment each, and a byte is what was written there or, where the file
 * was cut, 0. */
TEST(test_piped__files_that_change_meanwhile)
{
    static char path[512];
    pthread_t thread;
    (void)snprintf(path, sizeof path, "%s", caller_path(&c, "f"));
    atomic_store(&is_enough, false);
    assert_int_equal(pthread_create(&thread, NULL, churn, path), 0);
    for (uint32_t i = 0; i < test_rounds(1000); i++) {
        assert_int_equal(caller_read(&c, &file, 0, NFS_DATA_MAX), NFS_OK);
        uint64_t size = c.result.attr.attr.size;
        assert_int_equal(c.result.eof, c.payload_len >= size);
        for (uint32_t at = 0; at < c.payload_len; at++)
            if (c.payload[at] != content[at] && c.payload[at] != 0)
                fail_msg("byte %u is 0x%02x", at, c.payload[at]);
    }
    atomic_store(&is_enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST_MAIN(start, stop, NULL, NULL)
