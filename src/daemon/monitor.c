/*
 * monitor.c -- see monitor.h.
 *
 * The end of the kernel's grace period: sm-notify ends it when there was nobody to notify after a
 * boot, and so do we, once its lock manager is up. Nobody to notify means that no host had a lock
 * that it could reclaim.
 */
#include "daemon/monitor.h"

#include "base/check.h"
#include "wire/caller_udp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WAITING_MS = 25,  /* for the NFS server: its clients wait to reclaim */
    GRACE_MS = 1000,  /* for a lock manager whose grace period is to be ended; it may never come */
    SERVED_MS = 5000, /* for new addresses of this machine */
};

struct monitor {
    struct daemon *daemon;
    uv_timer_t timer;
    bool is_served;
    bool is_state_set;  /* the kernel knows our state number, or does not want to */
    bool has_nobody;    /* nobody was owed anything when this boot began */
    bool is_grace_over; /* of the kernel: we ended it, or may not */
};

int monitor_prepare(struct daemon *daemon)
{
    if (daemon->config.role != CONFIG_MONITOR)
        return 0;
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    if (machine_identify(&daemon->identity, &why) != 0)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, buffer);
    if (daemon->config.callout != NULL && access(daemon->config.callout, X_OK) != 0) {
        text_add(&why, "--callout: ");
        text_add(&why, daemon->config.callout);
        text_add(&why, ": ");
        text_add(&why, strerror(errno));
        text_add(&why, "; give the path of a program that may be executed");
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, buffer);
    }
    int fd = caller_udp_bind_privileged();
    daemon->privileged_fd = fd > 0 ? fd : 0;
    if (fd < 0)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("no port below 1024 for calls to the lock manager of this machine: the "
                            "kernel ignores others, and keeps the locks of hosts that rebooted; "
                            "start as root, or with CAP_NET_BIND_SERVICE"));
    return 0;
}

static void set_locals(struct daemon *daemon)
{
    struct address locals[CORE_LOCALS_MAX];
    uint32_t count = machine_addresses(locals, CORE_LOCALS_MAX);
    core_set_locals(daemon->core, locals, count);
}

/* A file of the kernel that only root may write; the rest works without it. */
static void report(struct daemon *daemon, const char *what, int result)
{
    if (result == 0)
        return;
    log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock), LOG_MESSAGE(what),
            LOG_TEXT("cause", strerror(-result)));
}

static void tell_kernel(struct monitor *monitor)
{
    struct daemon *daemon = monitor->daemon;
    struct core_status status;
    core_status(daemon->core, &status);
    if (!monitor->is_state_set) {
        int result = machine_set_state(status.state);
        monitor->is_state_set = result != -ENOENT; /* its lock manager is not loaded yet */
        if (monitor->is_state_set)
            report(daemon, "the kernel learns our state number with its first SM_MON", result);
    }
    if (monitor->is_grace_over || !monitor->has_nobody ||
        !registrar_has_lock_manager(daemon->registrar))
        return;
    int result = machine_end_grace();
    monitor->is_grace_over = result != -ENOENT;
    if (result == 0)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("nobody was to be notified: ended the kernel's grace period"));
    else if (monitor->is_grace_over)
        report(daemon, "the kernel's grace period takes its full time", result);
}

static void serve(struct monitor *monitor)
{
    struct daemon *daemon = monitor->daemon;
    if (core_is_full(daemon->core))
        return; /* in the next turn */
    struct core_input input = {.kind = CORE_SERVED,
                               .now_ns = clock_now_ns(&daemon->clock),
                               .wall_ns = clock_wall_ns(&daemon->clock)};
    rpc_server_step(daemon->server, &input, NULL);
    monitor->is_served = true;
}

static void on_timer(uv_timer_t *timer)
{
    struct monitor *monitor = timer->data;
    struct daemon *daemon = monitor->daemon;
    struct core_status status;
    set_locals(daemon);
    core_status(daemon->core, &status);
    monitor->is_served |= status.is_served; /* --notify-after is over */
    if (!monitor->is_served && registrar_is_served(daemon->registrar))
        serve(monitor);
    tell_kernel(monitor);
    bool is_done = monitor->is_grace_over || !monitor->has_nobody;
    uint64_t next_ms = !monitor->is_served ? WAITING_MS : is_done ? SERVED_MS : GRACE_MS;
    registrar_watch(daemon->registrar, !monitor->is_served);
    CHECK(uv_timer_start(timer, on_timer, next_ms, 0) == 0);
}

void monitor_run(struct daemon *daemon)
{
    struct monitor *monitor = calloc(1, sizeof *monitor);
    if (monitor == NULL) {
        driver_stop(daemon->driver, daemon_fail(daemon, DAEMON_EXIT_STORE, "out of memory"));
        return;
    }
    struct core_status status;
    core_status(daemon->core, &status);
    daemon->monitor = monitor;
    monitor->daemon = daemon;
    monitor->has_nobody = status.hosts_owed == 0 && !status.is_same_boot;
    CHECK(uv_timer_init(&daemon->loop, &monitor->timer) == 0);
    monitor->timer.data = monitor;
    set_locals(daemon);
    if (!daemon->config.is_notify_after_given && !machine_exports())
        serve(monitor);
    on_timer(&monitor->timer);
}

void monitor_close(struct monitor *monitor)
{
    if (monitor != NULL && !uv_is_closing((uv_handle_t *)&monitor->timer))
        uv_close((uv_handle_t *)&monitor->timer, NULL);
}

void monitor_free(struct monitor *monitor)
{
    free(monitor);
}
