/*
 * test_privilege.c -- shows that a process becomes the user of --user for good, that the store's
 * directory goes with it, and that files which are not the store's are never given away.
 *
 * Dropping is done in a child process, because there is no way back. Becoming somebody else needs
 * root; without it those tests are skipped and the refusal is tested instead.
 */
#include "daemon/descriptors.h"
#include "daemon/privilege.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#define USER "nobody"

static char why_buffer[512];
static struct text why;

TEST_FIXTURE(set_up)
{
    text_init(&why, why_buffer, sizeof why_buffer);
}

static void assert_why(const char *part)
{
    if (strstr(why_buffer, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", why_buffer, part);
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        skip();
    }
}

static void make_file(const char *directory, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static uid_t owner_of(const char *directory, const char *name)
{
    char path[128];
    struct stat status;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(lstat(path, &status), 0);
    return status.st_uid;
}

static void remove_file(const char *directory, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(unlink(path), 0);
}

TEST(test_privilege__no_user_means_no_change)
{
    struct privilege privilege;
    assert_int_equal(privilege_resolve(NULL, &privilege, &why), 0);
    assert_false(privilege.is_needed);
    assert_int_equal(privilege_drop(&privilege, &why), 0);
    assert_int_equal(privilege_hand_over(&privilege, "/nonexistent", &why), 0);
}

TEST(test_privilege__ourselves_needs_nothing)
{
    const struct passwd *entry = getpwuid(geteuid());
    if (entry == NULL || getuid() != geteuid()) {
        print_message("skipped: this user has no name\n");
        skip();
    }
    struct privilege privilege;
    assert_int_equal(privilege_resolve(entry->pw_name, &privilege, &why), 0);
    assert_false(privilege.is_needed);
}

TEST(test_privilege__unknown_user_is_refused)
{
    struct privilege privilege;
    assert_int_equal(privilege_resolve("no-such-user-here", &privilege, &why), -ENOENT);
    assert_why("--user no-such-user-here: no such user on this machine");
}

TEST(test_privilege__groups_by_name_and_number)
{
    struct privilege privilege = {0};
    assert_int_equal(privilege_resolve_group(NULL, &privilege, &why), 0);
    assert_false(privilege.has_group);
    assert_int_equal(privilege_resolve_group("root", &privilege, &why), 0);
    assert_true(privilege.has_group && privilege.group == 0);
    assert_int_equal(privilege_resolve_group("54321", &privilege, &why), 0);
    assert_int_equal(privilege.group, 54321);
    assert_int_equal(privilege_resolve_group("no-such-group", &privilege, &why), -ENOENT);
    assert_why("--tracker-group no-such-group: no such group on this machine");
    static const char *const bad[] = {"", "-1", "12x", "4294967295", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(privilege_resolve_group(bad[i], &privilege, &why), -ENOENT);
}

/* The group is kept, so that a socket made later can be given to it. */
static int drop_with_group(void)
{
    struct privilege privilege;
    gid_t groups[64];
    if (privilege_resolve(USER, &privilege, &why) != 0 ||
        privilege_resolve_group("54321", &privilege, &why) != 0 ||
        privilege_drop(&privilege, &why) != 0)
        return 30;
    if (getgroups(64, groups) != 2)
        return 31;
    bool is_first = groups[0] == privilege.gid; /* the kernel sorts them */
    return groups[is_first ? 1 : 0] != 54321 || groups[is_first ? 0 : 1] != privilege.gid;
}

/* What a child that is not root is told: 0 when it is what should be. */
static int refused_without_root(void)
{
    struct privilege privilege;
    if (privilege_resolve("root", &privilege, &why) != -EPERM)
        return 1;
    return strstr(why_buffer, "only root can become another user") == NULL;
}

static int run_child(int (*body)(void))
{
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Each check has its own number, which the parent prints. */
static int drop_and_look(void)
{
    struct privilege privilege;
    gid_t groups[64];
    if (privilege_resolve(USER, &privilege, &why) != 0)
        return 10;
    if (privilege_drop(&privilege, &why) != 0)
        return 11;
    uid_t real, effective, saved;
    if (getresuid(&real, &effective, &saved) != 0 || real != privilege.uid ||
        effective != privilege.uid || saved != privilege.uid)
        return 12;
    gid_t real_group, effective_group, saved_group;
    if (getresgid(&real_group, &effective_group, &saved_group) != 0 ||
        real_group != privilege.gid || effective_group != privilege.gid ||
        saved_group != privilege.gid)
        return 13;
    if (getgroups(64, groups) != 1 || groups[0] != privilege.gid)
        return 14;
    if (seteuid(0) == 0 || setgid(0) == 0 || open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0)
        return 15;
    return refused_without_root();
}

/* A number for what is wrong with the capabilities; 0: only binding low ports is left. */
static int look_at_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    const uint32_t bind_only = UINT32_C(1) << CAP_NET_BIND_SERVICE;
    struct privilege privilege;
    if (syscall(SYS_capget, &header, data) != 0)
        return 20;
    uint32_t expected = data[0].permitted & bind_only; /* a container may not have it */
    if (privilege_resolve(USER, &privilege, &why) != 0 || privilege_drop(&privilege, &why) != 0)
        return 21;
    if (syscall(SYS_capget, &header, data) != 0)
        return 22;
    if (data[0].permitted != expected || data[0].effective != expected)
        return 23;
    if (data[1].permitted != 0 || data[1].effective != 0)
        return 24;
    if (data[0].inheritable != 0 || data[1].inheritable != 0)
        return 25;
    return 0;
}

/* R-SEC-10: of root's rights only the one that calls to clients need is left (R-NOTIFY-3). */
TEST(test_privilege__only_low_ports_are_kept)
{
    need_root();
    assert_int_equal(run_child(look_at_capabilities), 0);
}

TEST(test_privilege__drop_keeps_the_group_of_the_socket)
{
    need_root();
    assert_int_equal(run_child(drop_with_group), 0);
}

TEST(test_privilege__drop_is_for_good)
{
    if (geteuid() != 0) {
        assert_int_equal(refused_without_root(), 0);
        need_root();
    }
    assert_int_equal(run_child(drop_and_look), 0);
}

TEST(test_privilege__hand_over_makes_and_gives_a_directory)
{
    need_root();
    struct privilege privilege;
    assert_int_equal(privilege_resolve(USER, &privilege, &why), 0);
    char parent[] = "/tmp/holdfast-test-privilege-XXXXXX", path[64];
    assert_non_null(mkdtemp(parent));
    (void)snprintf(path, sizeof path, "%s/store", parent);

    assert_int_equal(privilege_hand_over(&privilege, path, &why), 0); /* missing: made */
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_uid, privilege.uid);
    assert_int_equal(status.st_gid, privilege.gid);
    assert_int_equal(status.st_mode & 07777, 0700);

    assert_int_equal(chown(path, 0, 0), 0); /* root's, with files of a run as root: given */
    make_file(path, "data.mdb");
    make_file(parent, "secret");
    char secret[64], hard[80], soft[80];
    (void)snprintf(secret, sizeof secret, "%s/secret", parent);
    (void)snprintf(hard, sizeof hard, "%s/hard", path);
    (void)snprintf(soft, sizeof soft, "%s/soft", path);
    assert_int_equal(link(secret, hard), 0);
    assert_int_equal(symlink(secret, soft), 0);
    assert_int_equal(privilege_hand_over(&privilege, path, &why), 0);
    assert_int_equal(owner_of(parent, "store"), privilege.uid);
    assert_int_equal(owner_of(path, "data.mdb"), privilege.uid);
    assert_int_equal(owner_of(parent, "secret"), 0);

    make_file(path, "later"); /* the user's already: left alone, whatever is in it */
    assert_int_equal(privilege_hand_over(&privilege, path, &why), 0);
    assert_int_equal(owner_of(path, "later"), 0);
    assert_string_equal(why_buffer, "");

    remove_file(path, "later");
    remove_file(path, "soft");
    remove_file(path, "hard");
    remove_file(path, "data.mdb");
    remove_file(parent, "secret");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(parent), 0);
}

TEST(test_privilege__hand_over_refuses_what_others_could_write)
{
    need_root();
    struct privilege privilege;
    assert_int_equal(privilege_resolve(USER, &privilege, &why), 0);
    char path[] = "/tmp/holdfast-test-privilege-XXXXXX";
    assert_non_null(mkdtemp(path));
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(privilege_hand_over(&privilege, path, &why), -EPERM);
    assert_why("neither to the --user nor to root alone");
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_int_equal(privilege_hand_over(&privilege, path, &why), -EPERM);
    assert_int_equal(rmdir(path), 0);
    text_init(&why, why_buffer, sizeof why_buffer);
    assert_int_equal(privilege_hand_over(&privilege, "/nonexistent/store", &why), -ENOENT);
    assert_why("cannot create /nonexistent/store");
}

static int raise_from_low(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 200)
        return 1;
    limit.rlim_cur = 50;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 2;
    if (descriptors_reserve(30) != 50) /* never lowered */
        return 3;
    if (descriptors_reserve(100) != 100)
        return 4;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != 100)
        return 5;
    /* More than any kernel gives: what there is, and the truth about it. */
    uint64_t most = descriptors_reserve(UINT64_C(1) << 40);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != most || most < 100)
        return 6;
    return 0;
}

TEST(test_privilege__descriptors_are_raised_as_far_as_allowed)
{
    assert_int_equal(run_child(raise_from_low), 0);
}

TEST_MAIN(set_up, NULL, NULL, NULL)
