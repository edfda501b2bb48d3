/*
 * test_sd_notify.c -- shows what a service manager reads from its notification socket, by being
 * one: a datagram socket with a path, and one with an abstract name.
 */
#include "daemon/sd_notify.h"
#include "unit/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager_listen(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    socklen_t address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, address_len), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static void assert_received(int fd, const char *expected)
{
    char buffer[1024];
    ssize_t len = recv(fd, buffer, sizeof buffer - 1, 0);
    assert_true(len >= 0);
    buffer[len] = '\0';
    assert_string_equal(buffer, expected);
    assert_int_equal(recv(fd, buffer, sizeof buffer, 0), -1); /* and nothing else */
}

TEST(test_sd_notify__nobody_asked)
{
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_int_equal(sd_notify_started("ready"), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", "", 1), 0);
    assert_int_equal(sd_notify_stopping(NULL), 0);
}

TEST(test_sd_notify__path)
{
    char directory[] = "/tmp/holdfast-test-notify-XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/notify", directory);
    int fd = manager_listen(path);
    assert_int_equal(sd_notify_started("port 12049\nREADY=0"), 0);
    assert_received(fd, "READY=1\nSTATUS=port 12049 READY=0");
    assert_int_equal(sd_notify_stopping(NULL), 0);
    assert_received(fd, "STOPPING=1");
    assert_int_equal(sd_notify_alive(), 0);
    assert_received(fd, "WATCHDOG=1");
    assert_int_equal(close(fd), 0);
    assert_int_equal(sd_notify_started(NULL), -ECONNREFUSED); /* the manager is gone */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sd_notify_started(NULL), -ENOENT);
    assert_int_equal(rmdir(directory), 0);
}

TEST(test_sd_notify__abstract_name)
{
    char name[64];
    (void)snprintf(name, sizeof name, "@holdfast-test-%ld", (long)getpid());
    int fd = manager_listen(name);
    assert_int_equal(sd_notify_started("serving"), 0);
    assert_received(fd, "READY=1\nSTATUS=serving");
    assert_int_equal(close(fd), 0);
}

TEST(test_sd_notify__names_that_are_no_socket)
{
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[0] = '/';
    name[sizeof name - 1] = '\0';
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    assert_int_equal(sd_notify_started(NULL), -EINVAL);
    assert_int_equal(setenv("NOTIFY_SOCKET", "relative/path", 1), 0);
    assert_int_equal(sd_notify_started(NULL), -EINVAL);
    assert_int_equal(setenv("NOTIFY_SOCKET", "@", 1), 0);
    assert_int_equal(sd_notify_started(NULL), -EINVAL);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
