/*
 * test_control.c -- shows what becomes of the file of the control socket: made with mode 0600,
 * guarded by a file that only we can open, replaced when its server is dead, left alone when
 * somebody answers or when it is no socket, removed or given away only if it is still ours.
 * In a directory of its own. What other users have to do with it needs root; without it those tests
 * are skipped.
 */
#include "admin/control.h"
#include "unit/test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char root[] = "/tmp/holdfast-test-control-XXXXXX";
static char path[256];

static char said[1024];  /* the last thing that was waited for */
static int held_fd = -1; /* given up when something is waited for */

static void note(void *context, const char *sentence)
{
    (void)context;
    (void)snprintf(said, sizeof said, "%s", sentence);
    if (held_fd >= 0)
        assert_int_equal(close(held_fd), 0);
    held_fd = -1;
}

static const struct control_words words = {.say = note};

static bool try_open(const char *where, struct control *ret, int *ret_exit_code, char *ret_why,
                     uint32_t size)
{
    struct text why;
    text_init(&why, ret_why, size);
    return control_open(where, CONTROL_NO_GROUP, &words, ret, ret_exit_code, &why);
}

static struct control open_at(const char *where)
{
    struct control control;
    int exit_code;
    char why[512];
    if (!try_open(where, &control, &exit_code, why, sizeof why))
        fail_msg("%s", why);
    return control;
}

static void assert_refused(const char *where, int exit_code, const char *cause)
{
    struct control control;
    int code = 0;
    char why[1024];
    assert_false(try_open(where, &control, &code, why, sizeof why));
    assert_int_equal(code, exit_code);
    assert_non_null(strstr(why, "--control: cannot listen on "));
    if (strstr(why, cause) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", why, cause);
}

static bool is_socket(const char *where)
{
    struct stat info;
    return lstat(where, &info) == 0 && S_ISSOCK(info.st_mode);
}

static void end(struct control *control)
{
    int fd = control->fd;
    control_close(control);
    assert_int_equal(close(fd), 0);
}

TEST(test_control__is_for_its_owner_only)
{
    struct stat info;
    mode_t before = umask(0);
    struct control control = open_at(path);
    (void)umask(before);
    assert_int_equal(lstat(path, &info), 0);
    assert_int_equal(info.st_mode, S_IFSOCK | 0600);
    end(&control);
    assert_int_not_equal(lstat(path, &info), 0);
}

TEST(test_control__a_living_server_is_left_alone)
{
    struct control first = open_at(path);
    assert_refused(path, 69, "another server is using it");
    assert_true(is_socket(path));
    end(&first);
}

TEST(test_control__a_dead_server_is_replaced)
{
    struct control dead = open_at(path);
    assert_int_equal(close(dead.fd), 0); /* as when its process was killed */
    struct control control = open_at(path);
    end(&control);
    assert_false(is_socket(path));
    free(dead.name);
    assert_int_equal(close(dead.directory_fd), 0);
}

TEST(test_control__only_its_own_file_is_removed)
{
    struct control first = open_at(path);
    assert_int_equal(unlink(path), 0);
    struct control second = open_at(path);
    end(&first);
    assert_true(is_socket(path));
    end(&second);
    assert_false(is_socket(path));
}

TEST(test_control__other_things_are_left_alone)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_refused(path, 2, "not a server's socket");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/nowhere", path), 0);
    assert_refused(path, 2, "not a server's socket");
    assert_int_equal(unlink(path), 0);
    assert_refused(root, 2, "not a server's socket");
    /* A socket of another kind: nobody listens, and it is no dead server's. */
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof name.sun_path);
    memcpy(name.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_refused(path, 2, "not a server's socket");
    assert_true(is_socket(path));
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
}

TEST(test_control__paths_that_cannot_be)
{
    char where[512];
    (void)snprintf(where, sizeof where, "%s/missing/control.sock", root);
    assert_refused(where, 2, "No such file or directory; its directory must exist");
    (void)snprintf(where, sizeof where, "%s/", root);
    assert_refused(where, 2, "not a file path");
    (void)snprintf(where, sizeof where, "%s/%0120d", root, 0);
    assert_refused(where, 2, "the name is too long");
}

TEST(test_control__a_path_may_be_long)
{
    char directory[256], where[512];
    (void)snprintf(directory, sizeof directory, "%s/%0150d", root, 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    (void)snprintf(where, sizeof where, "%s/control.sock", directory);
    struct control control = open_at(where);
    assert_true(is_socket(where));
    assert_refused(where, 69, "another server is using it");
    end(&control);
    assert_int_equal(rmdir(directory), 0);
}

enum { STRANGER = 54321 }; /* a user that nobody is */

static void need_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skipped: needs root\n");
    skip();
}

/* Its user cannot be asked whether it lives: it is in use, whatever it is. */
TEST(test_control__a_server_of_another_user_is_in_use)
{
    need_root();
    struct control first = open_at(path);
    assert_int_equal(chmod(root, 0777), 0);
    assert_int_equal(seteuid(STRANGER), 0);
    struct control control;
    int code = 0;
    char why[1024];
    bool is_open = try_open(path, &control, &code, why, sizeof why);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(root, 0700), 0);
    assert_false(is_open);
    assert_int_equal(code, 69);
    assert_non_null(strstr(why, "another user's server"));
    assert_true(is_socket(path));
    end(&first);
}

TEST(test_control__is_given_to_who_uses_it)
{
    need_root();
    struct stat info;
    struct control control = open_at(path);
    assert_int_equal(control_give(&control, STRANGER, STRANGER), 0);
    assert_int_equal(lstat(path, &info), 0);
    assert_int_equal(info.st_uid, STRANGER);
    assert_int_equal(info.st_gid, STRANGER);
    assert_int_equal(info.st_mode, S_IFSOCK | 0600);
    assert_int_equal(unlink(path), 0);
    struct control second = open_at(path);
    assert_int_equal(control_give(&control, STRANGER, STRANGER), 0); /* not its own any more */
    assert_int_equal(lstat(path, &info), 0);
    assert_int_equal(info.st_uid, 0);
    end(&control);
    end(&second);
    assert_int_equal(control_give(&control, STRANGER, STRANGER), 0); /* there is none */
}

TEST(test_control__a_group_may_open_it)
{
    struct control control;
    struct stat info;
    struct text why;
    char buffer[512];
    int exit_code;
    gid_t group = geteuid() == 0 ? STRANGER : getegid();
    text_init(&why, buffer, sizeof buffer);
    assert_true(control_open(path, group, &words, &control, &exit_code, &why));
    assert_int_equal(lstat(path, &info), 0);
    assert_int_equal(info.st_mode, S_IFSOCK | 0660);
    assert_int_equal(info.st_gid, group);
    assert_int_equal(chmod(root, 0700), 0);
    assert_false(control_is_reachable(&control, STRANGER));
    assert_int_equal(chmod(root, 0701), 0);
    assert_true(control_is_reachable(&control, STRANGER));
    assert_int_equal(stat(root, &info), 0);
    assert_false(control_is_reachable(&control, info.st_gid)); /* what others may, it may not */
    assert_int_equal(chmod(root, 0710), 0);
    assert_true(control_is_reachable(&control, info.st_gid));
    assert_false(control_is_reachable(&control, STRANGER));
    assert_int_equal(chmod(root, 0700), 0);
    end(&control);
}

static void guard_path(char ret[static 300])
{
    (void)snprintf(ret, 300, "%s.lock", path);
}

static int make_guard(mode_t mode)
{
    char guard[300];
    guard_path(guard);
    int fd = open(guard, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    return fd;
}

/* Whoever can open the directory can lock it; that is nothing to us (A13). */
TEST(test_control__a_locked_directory_keeps_nobody_waiting)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    said[0] = '\0';
    struct control control = open_at(path);
    assert_string_equal(said, "");
    end(&control);
    assert_int_equal(close(fd), 0);
}

TEST(test_control__a_start_under_way_is_waited_for_with_a_word)
{
    held_fd = make_guard(0600);
    assert_int_equal(flock(held_fd, LOCK_EX), 0);
    struct control control = open_at(path);
    assert_non_null(strstr(said, "waiting for the lock of "));
    assert_non_null(strstr(said, "control.sock.lock"));
    assert_non_null(strstr(said, "at most 5 s"));
    end(&control);
}

TEST(test_control__but_not_for_ever)
{
    char guard[300];
    guard_path(guard);
    int fd = make_guard(0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    said[0] = '\0';
    assert_refused(path, 69, "another server has been starting there for 5 s");
    assert_non_null(strstr(said, "waiting for the lock of "));
    assert_int_equal(close(fd), 0);
    assert_int_equal(access(guard, F_OK), 0); /* it was not ours to remove */
    /* Left by one that died: it is used, and gone afterwards. */
    struct control control = open_at(path);
    assert_int_not_equal(access(guard, F_OK), 0);
    end(&control);
}

TEST(test_control__a_guard_that_others_can_open_is_refused)
{
    char guard[300];
    guard_path(guard);
    int fd = make_guard(0644);
    assert_refused(path, 2, "belongs to another user or can be opened by others");
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(guard), 0);
    assert_int_equal(symlink("elsewhere", guard), 0);
    assert_refused(path, 2, "belongs to another user or can be opened by others");
    assert_int_equal(unlink(guard), 0);
    assert_int_equal(mkfifo(guard, 0644), 0);
    assert_refused(path, 2, "belongs to another user or can be opened by others");
    assert_int_equal(unlink(guard), 0);
    if (geteuid() != 0)
        return;
    fd = make_guard(0600);
    assert_int_equal(fchown(fd, STRANGER, STRANGER), 0);
    assert_refused(path, 2, "belongs to another user or can be opened by others");
    assert_int_equal(chown(root, STRANGER, STRANGER), 0); /* the user of --user left it */
    struct control control = open_at(path);
    end(&control);
    assert_int_equal(chown(root, 0, 0), 0);
    assert_int_equal(close(fd), 0);
}

TEST_FIXTURE(set_up)
{
    assert_non_null(mkdtemp(root));
    (void)snprintf(path, sizeof path, "%s/control.sock", root);
}

TEST_FIXTURE(tear_down)
{
    assert_int_equal(rmdir(root), 0);
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
