/*
 * test_paths.c -- the names of files by their handles: now for what is open, later for what is not,
 * another one after a rename, none for what is gone, moved away or not ours; and many at once.
 * After a reboot, which a file system that was unmounted stands for, they are searched for.
 */
#include "caller.h"

#include "../test.h"
#include "file/paths.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, PAUSE_MS = 2, MANY = 1500 };

static struct caller c;

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,no_root_squash");
    caller_be(&c, 0, 0);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

/* As one who waits: asks again until it is said. The name, or NULL. */
static const char *path_of(const struct nfs_fh *fh)
{
    static char name[4096];
    struct bytes path;
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    enum path_state state = PATH_LATER;
    for (int ms = 0; state == PATH_LATER && ms < PATIENCE_MS; ms += PAUSE_MS) {
        state = file_get_path(c.service, caller_bytes(fh), &path);
        if (state == PATH_LATER)
            (void)nanosleep(&pause, NULL);
    }
    assert_int_not_equal(state, PATH_LATER);
    if (state != PATH_KNOWN)
        return NULL;
    (void)snprintf(name, sizeof name, "%.*s", (int)path.len, (const char *)path.at);
    return name;
}

/* The same of a file that has one: on a busy machine it may take longer than anybody waits. */
static const char *name_of(const struct nfs_fh *fh)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const char *path = path_of(fh);
    for (int ms = 0; path == NULL && ms < PATIENCE_MS; ms += PAUSE_MS) {
        (void)nanosleep(&pause, NULL);
        path = path_of(fh);
    }
    assert_non_null(path);
    return path;
}

TEST(test_paths__what_is_open_has_its_name_at_once)
{
    struct nfs_fh fh;
    struct bytes path;
    assert_int_equal(caller_create(&c, &c.root, "file", 0644, &fh), NFS_OK);
    assert_int_equal(file_get_path(c.service, caller_bytes(&fh), &path), PATH_KNOWN);
    assert_int_equal(path.len, strlen(caller_path(&c, "file")));
    assert_memory_equal(path.at, caller_path(&c, "file"), path.len);
    assert_string_equal(name_of(&c.root), c.directory);
}

TEST(test_paths__a_rename_is_seen)
{
    struct nfs_fh fh;
    char before[128];
    assert_int_equal(caller_create(&c, &c.root, "before", 0644, &fh), NFS_OK);
    (void)snprintf(before, sizeof before, "%s", caller_path(&c, "before"));
    assert_int_equal(rename(before, caller_path(&c, "after")), 0);
    assert_string_equal(name_of(&fh), caller_path(&c, "after"));
}

TEST(test_paths__what_is_not_open_is_found_later)
{
    struct nfs_fh fh;
    struct bytes path;
    assert_int_equal(caller_create(&c, &c.root, "file", 0644, &fh), NFS_OK);
    caller_restart(&c, "rw,no_root_squash");
    assert_int_equal(file_get_path(c.service, caller_bytes(&fh), &path), PATH_LATER);
    assert_string_equal(name_of(&fh), caller_path(&c, "file"));
}

TEST(test_paths__what_is_gone_has_none)
{
    struct nfs_fh fh;
    assert_int_equal(caller_create(&c, &c.root, "file", 0644, &fh), NFS_OK);
    assert_int_equal(unlink(caller_path(&c, "file")), 0);
    assert_null(path_of(&fh)); /* though it is open here, as "file (deleted)" */
    caller_restart(&c, "rw,no_root_squash");
    assert_null(path_of(&fh));
}

TEST(test_paths__what_left_the_export_has_none)
{
    struct nfs_fh fh;
    char outside[128];
    assert_int_equal(caller_create(&c, &c.root, "file", 0644, &fh), NFS_OK);
    (void)snprintf(outside, sizeof outside, "%s-outside", c.directory);
    assert_int_equal(rename(caller_path(&c, "file"), outside), 0);
    const char *path = path_of(&fh);
    assert_int_equal(unlink(outside), 0);
    assert_null(path);
}

TEST(test_paths__what_is_not_ours_has_none)
{
    struct nfs_fh fh = c.root;
    assert_null(path_of(&(struct nfs_fh){.len = 3, .data = {1, 2, 3}}));
    fh.data[fh.len - 1] ^= 1;
    assert_null(path_of(&fh));
}

/* More than may be asked for at once: none is forgotten, and each has its own. */
TEST(test_paths__many)
{
    static struct nfs_fh files[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(caller_create(&c, &c.root, name, 0644, &files[i]), NFS_OK);
    }
    caller_restart(&c, "rw,no_root_squash");
    for (int i = 0; i < MANY; i++) {
        struct bytes path;
        /* As a list does. What could not be asked is not said to have no name. */
        assert_int_not_equal(file_get_path(c.service, caller_bytes(&files[i]), &path), PATH_NONE);
    }
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "f%d", i);
        assert_string_equal(name_of(&files[i]), caller_path(&c, name));
    }
}

static bool run(const char *const *words)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null_fd, 1);
        (void)dup2(null_fd, 2);
        (void)execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ext4 in a file beside the exported directory, mounted on it. */
static char image[80];

static bool mount_image(void)
{
    return run((const char *[]){"mount", "-o", "loop", image, c.directory, NULL});
}

static bool make_image(void)
{
    (void)snprintf(image, sizeof image, "%s.img", c.directory);
    int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool is_made = fd >= 0 && ftruncate(fd, 16 << 20) == 0;
    (void)close(fd);
    return is_made && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           run((const char *[]){"mkfs.ext4", "-q", "-F", image, NULL}) && mount_image();
}

TEST(test_paths__after_a_reboot_names_are_searched_for)
{
    struct nfs_fh a, b, file, other, gone;
    if (!make_image()) {
        (void)unlink(image);
        print_message("# skipped: needs mkfs.ext4, loop devices and a mount namespace\n");
        skip();
    }
    caller_restart(&c, "rw,no_root_squash");
    assert_int_equal(caller_mkdir(&c, &c.root, "a", 0755, &a), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &a, "b", 0755, &b), NFS_OK);
    assert_int_equal(caller_create(&c, &b, "file", 0644, &file), NFS_OK);
    assert_int_equal(caller_create(&c, &c.root, "other", 0644, &other), NFS_OK);
    assert_int_equal(caller_create(&c, &c.root, "gone", 0644, &gone), NFS_OK);
    file_free(c.service);
    c.service = NULL;
    assert_int_equal(umount(c.directory), 0);
    assert_true(mount_image());
    caller_restart(&c, "rw,no_root_squash");
    assert_int_equal(unlink(caller_path(&c, "gone")), 0);
    assert_string_equal(name_of(&file), caller_path(&c, "a/b/file"));
    assert_string_equal(name_of(&other), caller_path(&c, "other"));
    assert_null(path_of(&gone));
    file_free(c.service);
    c.service = NULL;
    assert_int_equal(umount(c.directory), 0);
    (void)unlink(image);
}

TEST_MAIN(start, stop, NULL, NULL)
