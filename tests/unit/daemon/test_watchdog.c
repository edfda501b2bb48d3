/*
 * test_watchdog.c -- shows when a service manager hears from the watchdog: as often as it asked,
 * only if it asked this process, and not when the loop is not run.
 */
#include "daemon/watchdog.h"
#include "unit/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct manager {
    int fd;
    uv_loop_t loop;
    struct watchdog watchdog;
};

/* What systemd sets in the environment; NULL: nothing. */
static void manager_ask(struct manager *manager, const char *usec, const char *pid)
{
    char name[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int len = snprintf(name, sizeof name, "@holdfast-test-watchdog-%ld", (long)getpid());
    memcpy(address.sun_path, name, (size_t)len);
    address.sun_path[0] = '\0';
    *manager =
        (struct manager){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    assert_true(manager->fd >= 0);
    socklen_t address_len = (socklen_t)offsetof(struct sockaddr_un, sun_path) + (socklen_t)len;
    assert_int_equal(bind(manager->fd, (struct sockaddr *)&address, address_len), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    assert_int_equal(usec != NULL ? setenv("WATCHDOG_USEC", usec, 1) : unsetenv("WATCHDOG_USEC"),
                     0);
    assert_int_equal(pid != NULL ? setenv("WATCHDOG_PID", pid, 1) : unsetenv("WATCHDOG_PID"), 0);
    assert_int_equal(uv_loop_init(&manager->loop), 0);
    watchdog_start(&manager->watchdog, &manager->loop);
}

static bool manager_hears(const struct manager *manager)
{
    char buffer[64];
    ssize_t len = recv(manager->fd, buffer, sizeof buffer - 1, 0);
    if (len < 0)
        return false;
    buffer[len] = '\0';
    assert_string_equal(buffer, "WATCHDOG=1");
    return true;
}

static void manager_end(struct manager *manager)
{
    watchdog_close(&manager->watchdog);
    (void)uv_run(&manager->loop, UV_RUN_DEFAULT); /* ends: nothing is left of it */
    assert_int_equal(uv_loop_close(&manager->loop), 0);
    assert_int_equal(close(manager->fd), 0);
}

static void on_pass(uv_timer_t *timer)
{
    (void)timer;
}

TEST(test_watchdog__feeds_while_the_loop_runs)
{
    struct manager manager;
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    manager_ask(&manager, "20000", pid); /* every 5 ms */
    assert_false(manager_hears(&manager));
    uv_timer_t other; /* the watchdog alone does not keep a loop alive */
    assert_int_equal(uv_timer_init(&manager.loop, &other), 0);
    assert_int_equal(uv_timer_start(&other, on_pass, 1, 1), 0);
    for (int heard = 0; heard < 3;) {
        (void)uv_run(&manager.loop, UV_RUN_ONCE);
        heard += manager_hears(&manager);
    }
    uv_close((uv_handle_t *)&other, NULL);
    manager_end(&manager);
}

TEST(test_watchdog__feeds_without_a_loop)
{
    struct manager manager;
    manager_ask(&manager, "60000000", NULL);
    watchdog_feed(&manager.watchdog);
    assert_true(manager_hears(&manager));
    assert_false(manager_hears(&manager));
    manager_end(&manager);
}

static void assert_silent(const char *usec, const char *pid)
{
    struct manager manager;
    manager_ask(&manager, usec, pid);
    watchdog_feed(&manager.watchdog);
    assert_false(manager_hears(&manager));
    manager_end(&manager);
}

TEST(test_watchdog__is_silent_unless_asked)
{
    assert_silent(NULL, NULL);
    assert_silent("0", NULL);
    assert_silent("", NULL);
    assert_silent("soon", NULL);
    assert_silent("99999999999999999999", NULL);
    assert_silent("20000", "1"); /* another process was asked */
}

TEST_MAIN(NULL, NULL, NULL, NULL)
