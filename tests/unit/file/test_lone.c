/*
 * test_lone.c -- calls that are alone on a file system in memory: executed by the thread that
 * submits them, as their caller, and that thread is afterwards what it was before.
 */
#include "caller.h"

#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MEMORY "/dev/shm"

enum { GROUPS = 3, FILES_MAX = 64 };

static struct caller c;

TEST_FIXTURE(start)
{
    struct statfs fs;
    if (statfs(MEMORY, &fs) != 0 || fs.f_type != TMPFS_MAGIC) {
        print_message("# skipped: %s is no tmpfs\n", MEMORY);
        skip();
    }
    assert_int_equal(setenv("TMPDIR", MEMORY, 1), 0);
    caller_start(&c, "rw,async");
    assert_int_equal(chmod(c.directory, 0777), 0);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

/* Submits a call; was it executed at once? */
static bool is_at_once(enum nfs_procedure procedure, const struct nfs_args *args,
                       enum nfs_stat wanted)
{
    struct job *job = caller_submit(&c, procedure, args);
    bool is_done = job != NULL;
    assert_int_equal(caller_take(&c, procedure, is_done ? job : caller_wait(&c)), wanted);
    return is_done;
}

static struct nfs_args name_args(const char *name, uint32_t mode)
{
    return (struct nfs_args){.fh = caller_bytes(&c.root),
                             .name = bytes_of_text(name),
                             .create = NFS_GUARDED,
                             .sattr = {.set_mode = true, .mode = mode}};
}

/* Now its directory is open, and the caller's right to it known. */
static void warm_up(void)
{
    struct nfs_fh ignored;
    assert_int_equal(caller_create(&c, &c.root, "warm", 0644, &ignored), NFS_OK);
}

TEST(test_lone__what_is_short_is_done_at_once)
{
    static uint8_t data[65536 + 4];
    warm_up();
    struct nfs_args create = name_args("f", 0600), mkdir_args = name_args("d", 0700);
    assert_true(is_at_once(NFS_CREATE, &create, NFS_OK));
    struct nfs_fh file = c.result.fh;
    assert_true(is_at_once(NFS_MKDIR, &mkdir_args, NFS_OK));
    struct nfs_args write = {.fh = caller_bytes(&file), .count = 65536, .data = {data, 65536}};
    assert_true(is_at_once(NFS_WRITE, &write, NFS_OK));
    struct nfs_args setattr = {.fh = caller_bytes(&file),
                               .sattr = {.set_mode = true, .mode = 0400}};
    assert_true(is_at_once(NFS_SETATTR, &setattr, NFS_OK));
    assert_true(is_at_once(NFS_REMOVE, &create, NFS_OK));
    assert_int_equal(access(caller_path(&c, "f"), F_OK), -1);
    assert_int_equal(access(caller_path(&c, "d"), F_OK), 0);
}

TEST(test_lone__what_may_be_long_is_not)
{
    static uint8_t data[65536 + 4];
    warm_up();
    struct nfs_args create = name_args("f", 0600);
    assert_true(is_at_once(NFS_CREATE, &create, NFS_OK));
    struct nfs_fh file = c.result.fh;
    struct nfs_args write = {
        .fh = caller_bytes(&file), .count = sizeof data, .data = {data, sizeof data}};
    assert_false(is_at_once(NFS_WRITE, &write, NFS_OK));
    struct nfs_args cut = {.fh = caller_bytes(&file), .sattr = {.set_size = true}};
    assert_false(is_at_once(NFS_REMOVE, &create, NFS_OK));
    assert_true(is_at_once(NFS_CREATE, &create, NFS_OK));
    file = c.result.fh;
    assert_false(is_at_once(NFS_SETATTR, &cut, NFS_OK));
}

TEST(test_lone__who_is_not_alone_goes_to_the_pool)
{
    warm_up();
    struct nfs_args list = {.fh = caller_bytes(&c.root), .count = 4096};
    struct nfs_args create = name_args("f", 0600);
    assert_null(caller_submit(&c, NFS_READDIR, &list)); /* done or not, it is not collected yet */
    assert_null(caller_submit(&c, NFS_CREATE, &create));
    const struct job_desk *desk = file_desk(c.service);
    for (int i = 0; i < 2; i++)
        desk->release(desk->context, caller_wait(&c));
    assert_int_equal(access(caller_path(&c, "f"), F_OK), 0);
}

TEST(test_lone__with_sync_the_answer_waits_for_it)
{
    caller_restart(&c, "rw,sync");
    warm_up();
    struct nfs_args create = name_args("f", 0600);
    assert_false(is_at_once(NFS_CREATE, &create, NFS_OK));
    assert_int_equal(access(caller_path(&c, "f"), F_OK), 0);
}

TEST(test_lone__it_is_the_callers_with_the_mode_it_asked_for)
{
    struct stat st;
    (void)umask(077);
    caller_be(&c, 1234, 2345);
    c.credential.group_count = 1;
    c.credential.groups[0] = 3456;
    warm_up();
    struct nfs_args create = name_args("f", 0666);
    assert_true(is_at_once(NFS_CREATE, &create, NFS_OK));
    assert_int_equal(stat(caller_path(&c, "f"), &st), 0);
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 2345);
    assert_int_equal(st.st_mode & 07777, 0666);
    assert_int_equal(umask(022), 077);
    /* Neither more than the caller may, nor less. */
    assert_int_equal(chmod(c.directory, 0700), 0);
    create = name_args("g", 0666);
    assert_true(is_at_once(NFS_CREATE, &create, NFS_ACCES));
    assert_int_equal(chown(c.directory, 0, 3456), 0);
    assert_int_equal(chmod(c.directory, 0770), 0);
    assert_true(is_at_once(NFS_CREATE, &create, NFS_OK));
}

struct self {
    long fsuid, fsgid;
    int group_count;
    gid_t groups[GROUPS];
    struct __user_cap_data_struct capabilities[2];
    mode_t mask;
};

static struct self look_at_self(void)
{
    struct self self;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    memset(&self, 0, sizeof self);
    self.fsuid = syscall(SYS_setfsuid, -1);
    self.fsgid = syscall(SYS_setfsgid, -1);
    self.group_count = getgroups(GROUPS, self.groups);
    assert_int_equal(syscall(SYS_capget, &header, self.capabilities), 0);
    self.mask = umask(0);
    (void)umask(self.mask);
    return self;
}

TEST(test_lone__the_thread_is_what_it_was)
{
    const gid_t groups[GROUPS] = {7, 8, 9};
    assert_int_equal(syscall(SYS_setgroups, GROUPS, groups), 0);
    (void)umask(027);
    struct self before = look_at_self();
    for (uint32_t uid = 0; uid < 3; uid++) {
        char name[8];
        (void)snprintf(name, sizeof name, "f%u", uid);
        caller_be(&c, uid, uid + 10);
        c.credential.group_count = uid;
        c.credential.groups[0] = 77;
        c.credential.groups[1] = 78;
        struct nfs_args create = name_args(name, 0600);
        (void)is_at_once(NFS_CREATE, &create, NFS_OK);
        struct self after = look_at_self();
        assert_memory_equal(&before, &after, sizeof before);
    }
}

TEST(test_lone__files_that_are_open_stay_limited)
{
    struct file_status status;
    char name[24];
    warm_up();
    uint32_t at_once = 0;
    for (int i = 0; i < 20 * FILES_MAX; i++) {
        (void)snprintf(name, sizeof name, "f%d", i / 2);
        struct nfs_args args = name_args(name, 0600);
        bool is_made = i % 2 == 0 || i % 8 == 7; /* some stay */
        at_once +=
            is_at_once(is_made ? NFS_CREATE : NFS_REMOVE, &args, i % 8 == 7 ? NFS_EXIST : NFS_OK);
        file_get_status(c.service, &status);
        assert_in_range(status.open_files, 1, 2 * FILES_MAX);
    }
    assert_in_range(at_once, 10 * FILES_MAX, 20 * FILES_MAX);
}

TEST_MAIN(start, stop, NULL, NULL)
