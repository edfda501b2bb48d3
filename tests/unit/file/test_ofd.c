/*
 * test_ofd.c -- what clients hold, in the kernel's own table of locks (file/ofd.h).
 *
 * A program is another descriptor of the same file with open-file-description locks of its own: the
 * kernel treats it as it would any other process. Passing shows that the kernel holds exactly what
 * was asked for, that a refusal changes nothing, that many pieces become one and come back, and
 * that a file that is gone is reported.
 */
#include "../test.h"
#include "caller.h"
#include "file/lock_guard.h"
#include "file/ofd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 16 };

static struct caller caller;
static const struct local_locks *locks;
static struct nfs_fh fh;
static uint32_t file;
static int program;

static uint32_t open_it(void)
{
    return locks->open(locks->context, caller_bytes(&fh));
}

static int begin(void **state)
{
    (void)state;
    caller_start(&caller, "rw");
    locks = file_local_locks(caller.service);
    assert_non_null(locks);
    assert_int_equal(caller_create(&caller, &caller.root, "f", 0666, &fh), NFS_OK);
    program = open(caller_path(&caller, "f"), O_RDWR | O_CLOEXEC);
    assert_true(program >= 0);
    file = open_it();
    assert_true(file < LOCAL_NOT_NOW);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (file < LOCAL_NOT_NOW)
        locks->close(locks->context, file);
    (void)close(program);
    caller_stop(&caller);
    return 0;
}

static bool hold(uint64_t start, uint64_t last, enum local_mode mode)
{
    return locks->raise(locks->context, file, &(struct local_range){start, last, mode});
}

static bool lower(uint64_t start, uint64_t last, enum local_mode mode)
{
    return locks->lower(locks->context, file, &(struct local_range){start, last, mode});
}

static bool program_takes(short type, uint64_t start, uint64_t len)
{
    struct flock flock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)len};
    return fcntl(program, F_OFD_SETLK, &flock) == 0;
}

/* May a program have this byte? */
static bool is_free(short type, uint64_t at)
{
    struct flock flock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    assert_int_equal(fcntl(program, F_OFD_GETLK, &flock), 0);
    return flock.l_type == F_UNLCK;
}

/* What the kernel holds for us, one letter a byte. */
static void assert_kernel(const char *letters)
{
    char held[BYTES + 1] = "";
    for (size_t i = 0; letters[i] != 0; i++)
        held[i] = is_free(F_WRLCK, i) ? '-' : is_free(F_RDLCK, i) ? 'S' : 'X';
    assert_string_equal(held, letters);
}

TEST(test_ofd__the_kernel_holds_what_is_raised_and_not_what_is_lowered)
{
    assert_true(hold(0, 3, LOCAL_EXCLUSIVE));
    assert_true(hold(6, 7, LOCAL_SHARED));
    assert_kernel("XXXX--SS-");
    assert_true(hold(2, 8, LOCAL_SHARED)); /* what is stronger stays */
    assert_kernel("XXXXSSSSS-");
    assert_true(lower(1, 2, LOCAL_SHARED));
    assert_true(lower(5, 6, LOCAL_NONE));
    assert_true(lower(10, 12, LOCAL_SHARED)); /* nothing is raised by that */
    assert_kernel("XSSXS--SS----");
    locks->close(locks->context, file);
    assert_kernel("-------------");
    file = open_it();
}

TEST(test_ofd__a_program_is_in_the_way_and_nothing_changes)
{
    assert_true(hold(4, 5, LOCAL_EXCLUSIVE));
    assert_true(program_takes(F_WRLCK, 9, 1));
    assert_false(hold(2, 12, LOCAL_SHARED)); /* in pieces: around what is stronger */
    assert_false(hold(8, 9, LOCAL_EXCLUSIVE));
    assert_true(program_takes(F_UNLCK, 9, 1));
    assert_kernel("----XX-------");
    assert_true(program_takes(F_RDLCK, 9, 1));
    assert_true(hold(9, 9, LOCAL_SHARED));
    assert_false(hold(9, 9, LOCAL_EXCLUSIVE));
    assert_false(program_takes(F_WRLCK, 4, 1));
    assert_true(program_takes(F_UNLCK, 9, 1));
    assert_kernel("----XX---S");
}

TEST(test_ofd__random_work_is_as_if_each_byte_were_held)
{
    uint8_t model[BYTES] = {0};
    uint64_t bits = 2463534242u;
    for (int round = 0; round < 20000; round++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        uint32_t first = (uint32_t)(bits >> 33) % BYTES;
        uint32_t last = first + (uint32_t)(bits >> 45) % (BYTES - first);
        enum local_mode mode = (enum local_mode)((bits >> 60) % 3);
        bool is_raise = bits >> 63 && mode != LOCAL_NONE;
        assert_true(is_raise ? hold(first, last, mode) : lower(first, last, mode));
        for (uint32_t at = first; at <= last; at++)
            if (is_raise ? model[at] < mode : model[at] > mode)
                model[at] = (uint8_t)mode;
        if (round % 8 != 0)
            continue;
        char letters[BYTES + 1] = "";
        for (uint32_t at = 0; at < BYTES; at++)
            letters[at] = "-SX"[model[at]];
        assert_kernel(letters);
    }
}

TEST(test_ofd__a_program_is_found)
{
    struct local_holder holder;
    const struct local_range wanted = {0, 20, LOCAL_SHARED};
    assert_false(locks->find(locks->context, caller_bytes(&fh), &wanted, &holder));
    assert_true(program_takes(F_WRLCK, 3, 4));
    assert_true(locks->find(locks->context, caller_bytes(&fh), &wanted, &holder));
    assert_int_equal(holder.range.start, 3);
    assert_int_equal(holder.range.end, 6);
    assert_int_equal(holder.range.mode, LOCAL_EXCLUSIVE);
    assert_true(program_takes(F_UNLCK, 0, 0));
    assert_true(program_takes(F_RDLCK, 3, 0));
    assert_false(locks->find(locks->context, caller_bytes(&fh), &wanted, &holder));
    assert_true(locks->find(locks->context, caller_bytes(&fh),
                            &(struct local_range){0, 20, LOCAL_EXCLUSIVE}, &holder));
    assert_int_equal(holder.range.end, UINT64_MAX);
    /* Ours are nobody else's. */
    assert_true(program_takes(F_UNLCK, 0, 0));
    assert_true(hold(0, 3, LOCAL_EXCLUSIVE));
    assert_false(locks->find(locks->context, caller_bytes(&fh), &wanted, &holder));
}

TEST(test_ofd__the_pid_of_a_process_is_known)
{
    struct local_holder holder;
    int ready[2], go_on[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go_on), 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock flock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        int fd = open(caller_path(&caller, "f"), O_RDWR);
        (void)close(go_on[1]);
        if (fcntl(fd, F_SETLK, &flock) == 0 && write(ready[1], "", 1) == 1)
            (void)!read(go_on[0], &byte, 1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(locks->find(locks->context, caller_bytes(&fh),
                            &(struct local_range){0, 0, LOCAL_SHARED}, &holder));
    assert_int_equal(holder.pid, child);
    for (int i = 0; i < 2; i++)
        (void)(close(ready[i]) | close(go_on[i]));
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(test_ofd__many_pieces_are_held_as_one)
{
    for (uint32_t i = 0; i < OFD_PIECES_MAX; i++)
        assert_true(hold(3 * (uint64_t)i, 3 * (uint64_t)i, LOCAL_EXCLUSIVE));
    assert_true(is_free(F_WRLCK, 1));
    assert_true(lower(0, 0, LOCAL_NONE));
    assert_true(hold(0, 0, LOCAL_EXCLUSIVE));
    /* One too many, where a program has a byte of another place: it would be in the way. */
    assert_true(program_takes(F_RDLCK, 1000000, 1));
    assert_false(hold(500000, 500000, LOCAL_SHARED));
    assert_true(is_free(F_WRLCK, 1));
    assert_true(program_takes(F_UNLCK, 0, 0));
    assert_true(hold(500000, 500000, LOCAL_SHARED));
    assert_false(is_free(F_RDLCK, 1));
    assert_false(is_free(F_RDLCK, 9000000));
    assert_false(lower(0, UINT64_MAX, LOCAL_NONE)); /* it stays so */
    assert_true(hold(7, 70, LOCAL_EXCLUSIVE));
    locks->refine(locks->context, file);
    assert_true(lower(0, 2, LOCAL_NONE));
    assert_true(lower(5, UINT64_MAX, LOCAL_NONE));
    assert_kernel("---XX-----");
}

TEST(test_ofd__what_the_kernel_cannot_count_is_nobodys)
{
    assert_true(hold(UINT64_C(1) << 63, UINT64_MAX, LOCAL_EXCLUSIVE));
    assert_true(is_free(F_WRLCK, INT64_MAX - 1));
    assert_true(hold(INT64_MAX - 1, UINT64_MAX, LOCAL_EXCLUSIVE));
    assert_false(is_free(F_WRLCK, INT64_MAX - 1));
    assert_true(lower(0, UINT64_MAX, LOCAL_NONE));
    assert_true(is_free(F_WRLCK, INT64_MAX - 1));
}

static void copy_program(const char *from, const char *to)
{
    int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT, 0755);
    assert_true(source >= 0 && target >= 0);
    while (copy_file_range(source, NULL, target, NULL, 1 << 20, 0) > 0)
        continue;
    assert_int_equal(close(source) | close(target), 0);
}

TEST(test_ofd__what_is_being_executed_is_held_as_far_as_it_can_be)
{
    copy_program("/bin/sleep", caller_path(&caller, "sleep"));
    pid_t child = fork();
    if (child == 0) {
        (void)execl(caller_path(&caller, "sleep"), "sleep", "60", (char *)NULL);
        _exit(127);
    }
    /* To open it for writing meanwhile would keep it from being executed. */
    char link_path[64], executed[256] = "";
    (void)snprintf(link_path, sizeof link_path, "/proc/%d/exe", (int)child);
    while (strcmp(executed, caller_path(&caller, "sleep")) != 0) {
        ssize_t len = readlink(link_path, executed, sizeof executed - 1);
        assert_true(len > 0);
        executed[len] = 0;
    }
    struct nfs_fh running;
    assert_int_equal(caller_lookup(&caller, &caller.root, "sleep", &running), NFS_OK);
    uint32_t id = locks->open(locks->context, caller_bytes(&running));
    assert_true(id < LOCAL_NOT_NOW);
    assert_true(locks->raise(locks->context, id, &(struct local_range){0, 0, LOCAL_EXCLUSIVE}));
    (void)close(program);
    program = open(caller_path(&caller, "sleep"), O_RDONLY);
    assert_true(is_free(F_RDLCK, 0));
    assert_false(is_free(F_WRLCK, 0));
    locks->close(locks->context, id);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(test_ofd__there_are_so_many_files_and_no_more)
{
    uint32_t opened[8], count = 0;
    struct nfs_fh other[9];
    for (; count < 8; count++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%u", count);
        assert_int_equal(caller_create(&caller, &caller.root, name, 0666, &other[count]), NFS_OK);
        opened[count] = locks->open(locks->context, caller_bytes(&other[count]));
        if (opened[count] == LOCAL_NO_ROOM)
            break;
    }
    assert_int_equal(count, 7); /* with f */
    /* One that is unused makes room. */
    locks->close(locks->context, opened[0]);
    opened[0] = locks->open(locks->context, caller_bytes(&other[7]));
    assert_true(opened[0] < LOCAL_NOT_NOW);
    for (uint32_t i = 0; i < 7; i++)
        locks->close(locks->context, opened[i]);
}

static uint32_t pinned_files(void)
{
    struct file_status status;
    file_get_status(caller.service, &status);
    return status.mirrored;
}

TEST(test_ofd__a_file_that_is_closed_is_used_again_or_let_go)
{
    const struct job_desk *desk = file_desk(caller.service);
    assert_true(hold(0, 3, LOCAL_EXCLUSIVE));
    locks->close(locks->context, file);
    assert_kernel("----");
    assert_int_equal(pinned_files(), 0);
    uint32_t again = open_it();
    assert_int_equal(again, file); /* it was still there */
    assert_true(hold(1, 1, LOCAL_SHARED));
    assert_kernel("-S--");
    locks->close(locks->context, file);
    /* A file that was replaced meanwhile is another one. */
    assert_int_equal(unlink(caller_path(&caller, "f")), 0);
    assert_int_equal(caller_call(&caller, NFS_GETATTR, &(struct nfs_args){.fh = caller_bytes(&fh)}),
                     NFS_STALE);
    file = open_it();
    assert_int_equal(file, LOCAL_NOT_NOW);
    assert_null(desk->next(desk->context));
}

/* ---- with those who ask first ---- */

static enum guard_verdict judge(const struct nfs_fh *of)
{
    const struct job_desk *desk = file_desk(caller.service);
    const struct guard_question asked = {
        .from = &caller.peer, .credential = &caller.credential, .fh = caller_bytes(of)};
    enum guard_verdict verdict;
    while ((verdict = file_judge_lock(caller.service, &asked)) == GUARD_LATER)
        assert_null(desk->next(desk->context));
    return verdict;
}

TEST(test_ofd__a_file_is_open_when_its_lock_is_allowed)
{
    struct nfs_fh other;
    struct stat st;
    file_serve_locks(caller.service);
    assert_int_equal(caller_create(&caller, &caller.root, "g", 0666, &other), NFS_OK);
    assert_int_equal(locks->open(locks->context, caller_bytes(&other)), LOCAL_NOT_NOW);
    assert_int_equal(judge(&other), GUARD_ALLOWED);
    uint32_t id = locks->open(locks->context, caller_bytes(&other));
    assert_true(id < LOCAL_NOT_NOW);
    locks->close(locks->context, id);
    /* A directory can be locked; no program sees it. */
    assert_int_equal(caller_mkdir(&caller, &caller.root, "d", 0777, &other), NFS_OK);
    assert_int_equal(judge(&other), GUARD_ALLOWED);
    assert_int_equal(locks->open(locks->context, caller_bytes(&other)), LOCAL_NO_FILE);
    assert_int_equal(stat(caller_path(&caller, "d"), &st), 0);
}

static bool is_reported(const struct nfs_fh *gone)
{
    struct nfs_fh found;
    bool is_there = false;
    while (file_next_removed(caller.service, &found))
        is_there |= found.len == gone->len && memcmp(found.data, gone->data, gone->len) == 0;
    return is_there;
}

TEST(test_ofd__a_file_that_is_removed_by_a_client_is_reported)
{
    struct nfs_args args = {.fh = caller_bytes(&caller.root), .name = bytes_of_text("f")};
    assert_false(is_reported(&fh));
    assert_int_equal(caller_call(&caller, NFS_REMOVE, &args), NFS_OK);
    assert_true(is_reported(&fh));
    /* One of two names is not. */
    assert_int_equal(caller_create(&caller, &caller.root, "g", 0666, &fh), NFS_OK);
    char other[256];
    (void)snprintf(other, sizeof other, "%s", caller_path(&caller, "h"));
    assert_int_equal(link(caller_path(&caller, "g"), other), 0);
    args.name = bytes_of_text("g");
    assert_int_equal(caller_call(&caller, NFS_REMOVE, &args), NFS_OK);
    assert_false(is_reported(&fh));
}

TEST(test_ofd__a_file_that_is_removed_here_is_reported_with_the_next_call)
{
    assert_int_equal(judge(&fh), GUARD_ALLOWED);
    assert_int_equal(unlink(caller_path(&caller, "f")), 0);
    assert_int_equal(judge(&fh), GUARD_STALE);
    assert_true(is_reported(&fh));
    /* But not what only cannot be found: its file system may not be mounted. */
    locks->close(locks->context, file);
    (void)close(program);
    program = -1;
    caller_restart(&caller, "rw");
    locks = file_local_locks(caller.service);
    file = open_it();
    assert_int_equal(file, LOCAL_NOT_NOW);
    assert_false(is_reported(&fh));
}

TEST_MAIN(begin, end, NULL, NULL)
