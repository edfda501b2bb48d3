/*
 * test_idle.c -- the server keeps no file open for long: other programs of its machine can execute
 * what was written, and get the space of what they removed.
 */
#include "caller.h"

#include "../test.h"
#include "file/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 5, PATIENCE_MS = 20000, PAUSE_MS = 2 };

static struct caller c;
static atomic_int syncs;

static int counted(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return fsync(fd);
}

static const struct file_system counting_system = {
    .fsync = counted, .fdatasync = counted, .syncfs = counted, .pwrite = pwrite, .splice = splice};

TEST_FIXTURE(start)
{
    caller_start(&c, "rw");
    c.options.system = &counting_system;
    c.options.limits.tick_ms = TICK_MS;
    caller_restart(&c, "rw");
    atomic_store(&syncs, 0);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static uint32_t open_files(void)
{
    struct file_status status;
    file_get_status(c.service, &status);
    return status.open_files;
}

/* Until nothing is open; false: it takes too long. */
static bool await_closed(void)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        if (open_files() == 0)
            return true;
        (void)usleep(PAUSE_MS * 1000);
    }
    return false;
}

/* Copies a program of this machine over NFS. */
static void write_program(struct nfs_fh *ret)
{
    static uint8_t buffer[65536];
    uint64_t offset = 0;
    int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(caller_create(&c, &c.root, "program", 0755, ret), NFS_OK);
    for (ssize_t len; (len = read(fd, buffer, sizeof buffer)) > 0; offset += (uint64_t)len)
        assert_int_equal(caller_call(&c, NFS_WRITE,
                                     &(struct nfs_args){.fh = caller_bytes(ret),
                                                        .offset = offset,
                                                        .count = (uint32_t)len,
                                                        .data = {buffer, (uint32_t)len}}),
                         NFS_OK);
    assert_true(offset > 0);
    (void)close(fd);
}

/* What exec says: 0, or an errno. */
static int execute(const char *path)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        (void)execl(path, path, (char *)NULL);
        _exit(errno);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Until it can be executed; clients read it meanwhile. */
static int await_executed(const struct nfs_fh *read_file)
{
    int code = 0;
    for (int ms = 0; ms < PATIENCE_MS; ms += PAUSE_MS) {
        code = execute(caller_path(&c, "program"));
        if (code != ETXTBSY)
            break;
        if (read_file != NULL)
            assert_int_equal(caller_read(&c, read_file, 0, 4096), NFS_OK);
        (void)usleep(PAUSE_MS * 1000);
    }
    return code;
}

TEST(test_idle__a_program_that_was_written_can_be_executed_here)
{
    struct nfs_fh file;
    write_program(&file);
    assert_int_equal(await_executed(NULL), 0);
}

TEST(test_idle__also_while_clients_read_it)
{
    struct nfs_fh file;
    write_program(&file);
    assert_int_equal(await_executed(&file), 0);
    assert_int_equal(caller_read(&c, &file, 0, 4), NFS_OK);
    assert_memory_equal(c.payload, "\177ELF", 4);
}

TEST(test_idle__what_nobody_uses_is_closed)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_FILE_SYNC), NFS_OK);
    assert_true(open_files() > 0);
    assert_true(await_closed());
    assert_int_equal(caller_read(&c, &file, 0, 10), NFS_OK);
    assert_string_equal((char *)c.payload, "x");
}

/* The kernel would forget that it could not be written back. */
TEST(test_idle__what_was_written_is_synced_before_it_is_closed)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    atomic_store(&syncs, 0);
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_UNSTABLE), NFS_OK);
    assert_true(await_closed());
    assert_int_equal(atomic_load(&syncs), 1);
}

TEST(test_idle__what_was_removed_here_is_closed_without_a_sync)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    atomic_store(&syncs, 0);
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(unlink(caller_path(&c, "f")), 0);
    assert_true(await_closed());
    assert_int_equal(atomic_load(&syncs), 0);
    assert_int_equal(caller_getattr(&c, &file), NFS_STALE);
}

/* A call that has a file in its hands keeps it. */
TEST(test_idle__calls_in_flight_keep_their_files)
{
    struct nfs_fh file;
    char text[8];
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    for (uint32_t i = 0; i < test_rounds(2000); i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        assert_int_equal(caller_write(&c, &file, 0, text, NFS_UNSTABLE), NFS_OK);
        assert_int_equal(caller_read(&c, &file, 0, (uint32_t)strlen(text)), NFS_OK);
        assert_string_equal((char *)c.payload, text);
        if (i % 100 == 0)
            (void)usleep(TICK_MS * 6000); /* it is closed, or about to be */
    }
}

TEST_MAIN(start, stop, NULL, NULL)
