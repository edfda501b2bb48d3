/*
 * test_lent.c -- long calls that keep the memory which their arguments came in: it is exchanged,
 * counted, given up when it is not needed, and freed with the service.
 */
#include "caller.h"

#include "../test.h"
#include "file/system.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATA_LEN = NFS_DATA_MAX, LENT_LEN = NFS_DATA_MAX + 4096 };

static struct caller c;
static struct nfs_fh file;
static uint8_t data[DATA_LEN];

/* Writes wait when they are asked to. */
static atomic_bool holds_writes;

static ssize_t gated_write(int fd, const void *bytes, size_t len, off_t offset)
{
    while (atomic_load(&holds_writes))
        (void)usleep(100);
    return pwrite(fd, bytes, len, offset);
}

static const struct file_system gated_system = {.fsync = fsync,
                                                .fdatasync = fdatasync,
                                                .syncfs = syncfs,
                                                .pwrite = gated_write,
                                                .splice = splice};

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,async");
    c.options.system = &gated_system;
    atomic_store(&holds_writes, false);
    caller_restart(&c, "rw,async");
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
}

TEST_FIXTURE(stop)
{
    atomic_store(&holds_writes, false);
    caller_stop(&c);
}

static struct job_memory piece(void)
{
    struct job_memory memory = {.at = malloc(LENT_LEN), .len = LENT_LEN};
    assert_non_null(memory.at);
    return memory;
}

static struct job *submit_write(uint64_t offset, uint8_t value, struct job_memory *lent)
{
    memset(data, value, sizeof data);
    const struct nfs_args args = {.fh = caller_bytes(&file),
                                  .offset = offset,
                                  .count = sizeof data,
                                  .data = {data, sizeof data}};
    return caller_submit_lent(&c, NFS_WRITE, &args, lent);
}

static void expect_content(uint64_t offset, uint8_t value)
{
    int fd = open(caller_path(&c, "f"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, data, sizeof data, (off_t)offset), sizeof data);
    (void)close(fd);
    for (uint32_t i = 0; i < sizeof data; i++)
        if (data[i] != value)
            fail_msg("byte %u is %u", i, data[i]);
}

static uint64_t room(void)
{
    const struct job_desk *desk = file_desk(c.service);
    return desk->room(desk->context);
}

TEST(test_lent__the_data_is_written_and_the_memory_used_again)
{
    struct job_memory first = piece(), lent = first;
    assert_null(submit_write(0, 1, &lent));
    assert_null(lent.at); /* kept, and there is nothing to give for it yet */
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    expect_content(0, 1);
    struct job_memory second = piece();
    lent = second;
    assert_null(submit_write(DATA_LEN, 2, &lent));
    assert_ptr_equal(lent.at, first.at);
    assert_int_equal(lent.len, first.len);
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    expect_content(0, 1);
    expect_content(DATA_LEN, 2);
    free(lent.at);
}

TEST(test_lent__it_counts_while_the_call_is_in_flight)
{
    struct job_memory lent[3] = {piece(), piece(), piece()};
    c.options.limits.bytes_max = 3 << 20;
    caller_restart(&c, "rw,async");
    uint64_t before = room();
    atomic_store(&holds_writes, true);
    assert_null(submit_write(0, 1, &lent[0]));
    assert_true(before - room() >= LENT_LEN);
    assert_null(submit_write(0, 1, &lent[1]));
    assert_true(before - room() >= UINT64_C(2) * LENT_LEN);
    const uint8_t *third = lent[2].at;
    struct job *job = submit_write(0, 1, &lent[2]); /* two of more than a megabyte fit */
    assert_non_null(job);
    assert_ptr_equal(lent[2].at, third);
    assert_int_equal(caller_take(&c, NFS_WRITE, job), NFS_JUKEBOX);
    atomic_store(&holds_writes, false);
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    assert_int_equal(room(), before);
    free(lent[2].at);
}

TEST(test_lent__only_what_is_executed_later_keeps_it)
{
    struct job_memory own = piece(), lent = own;
    assert_int_equal(caller_getattr(&c, &file), NFS_OK); /* now it is open */
    struct job *job =
        caller_submit_lent(&c, NFS_GETATTR, &(struct nfs_args){.fh = caller_bytes(&file)}, &lent);
    assert_non_null(job);
    assert_ptr_equal(lent.at, own.at);
    assert_int_equal(caller_take(&c, NFS_GETATTR, job), NFS_OK);
    /* Garbage. */
    const struct job_desk *desk = file_desk(c.service);
    const struct job_request request = {.program = NFS_PROGRAM,
                                        .procedure = NFS_WRITE,
                                        .from = &c.peer,
                                        .credential = &c.credential,
                                        .args = {own.at, 3},
                                        .lent = &lent};
    assert_int_equal(desk->submit(desk->context, &request, &job), JOB_GARBAGE);
    assert_ptr_equal(lent.at, own.at);
    free(own.at);
}

/* The sanitizers show that it is. */
TEST(test_lent__it_is_freed_with_the_service)
{
    struct job_memory lent = piece();
    assert_null(submit_write(0, 1, &lent));
    caller_restart(&c, "rw,async"); /* whatever has become of the call */
    lent = piece();
    assert_null(submit_write(0, 2, &lent));
    assert_int_equal(caller_take(&c, NFS_WRITE, caller_wait(&c)), NFS_OK);
    caller_restart(&c, "rw,async"); /* it is kept for the next */
    expect_content(0, 2);
}

TEST_MAIN(start, stop, NULL, NULL)
