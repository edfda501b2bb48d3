/*
 * main.c -- holdfastd: from the command line to a serving process, and back.
 *
 * The start is a list of steps, one for a server that is to serve at once and one for a standby.
 *
 * Each failure has a sentence and an exit code: 2 usage or configuration, 69 address or port in
 * use, 70 internal check failed, 71 another server is registered with rpcbind, 74 store, 75
 * takeover hook failed, 76 replaced by another server, 78 store written by a newer format.
 */
#include "admin/events.h"
#include "admin/http.h"
#include "admin/samples.h"
#include "base/check.h"
#include "daemon/callout_keeper.h"
#include "daemon/config_manual.h"
#include "daemon/config_print.h"
#include "daemon/groups_command.h"
#include "daemon/lock_keeper.h"
#include "daemon/monitor.h"
#include "daemon/start_net.h"
#include "daemon/start_serve.h"
#include "daemon/start_store.h"
#include "daemon/store_command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_abort(int number)
{
    (void)number;
    _exit(DAEMON_EXIT_INTERNAL); /* check_failed has said why */
}

static void set_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction on_check_failed = {.sa_handler = on_abort};
    CHECK(sigaction(SIGPIPE, &ignore, NULL) == 0);
    CHECK(sigaction(SIGXFSZ, &ignore, NULL) == 0); /* a write then fails, with a sentence */
    CHECK(sigaction(SIGABRT, &on_check_failed, NULL) == 0);
}

typedef int (*step_fn)(struct daemon *daemon);

/* Ports come before the store, so that a port in use costs no state number, and so that --user is
 * obeyed before anything is written. */
static const step_fn active_start[] = {
    start_net_reload,      /* a signal that comes early ends nothing */
    start_net_user,        /* a wrong name costs nothing */
    start_net_files,       /* nor does an export without the rights for it */
    start_net_directory,   /* while we may be root */
    start_net_http,        /* /healthz and /readyz from here on */
    start_net_ports,       /* bound, not listening */
    start_net_rpcbind,     /* is another server registered? */
    monitor_prepare,       /* its port, and which boot this is */
    start_net_privileges,  /* for good */
    start_store_open,      /* locked; a shared one may have to be waited for */
    start_store_take_over, /* nobody else commits any more; the hook may move an address */
    start_store_load,      /* into a new core */
    start_net_control,     /* a socket that lies there is a dead server's */
    start_store_boot,      /* the new state is durable before anybody is answered (R-PER-4) */
    start_serve_files,     /* exports are opened */
    start_serve_wire,      /* answers, */
    start_serve_calls,     /* calls, */
    start_serve_driver,    /* and what turns them */
    start_serve_listen,    /* clients are answered */
    start_serve_register,  /* and find us */
    NULL,
};

/* A standby takes no port before it is its turn: the address may not be here yet, and what is sent
 * to a server that only waits must not be answered hours later. */
static const step_fn standby_start[] = {
    start_net_reload,      start_net_user,     start_net_files,      start_net_directory,
    start_net_http,        start_net_control, /* `holdfast status` shows that it waits */
    start_store_open,                         /* waits, for weeks if need be */
    start_store_take_over,                    /* now active */
    start_net_ports,       start_net_rpcbind,  start_net_privileges, start_store_load,
    start_store_boot,      start_serve_files,  start_serve_wire,     start_serve_calls,
    start_serve_driver,    start_serve_listen, start_serve_register, NULL,
};

static int run(struct daemon *daemon)
{
    const step_fn *step = daemon->config.standby ? standby_start : active_start;
    int exit_code = 0;
    watchdog_start(&daemon->watchdog, &daemon->loop);
    while (exit_code == 0 && *step != NULL) {
        exit_code = (*step++)(daemon);
        watchdog_feed(&daemon->watchdog); /* a standby that takes over was ready long ago */
    }
    if (exit_code == 0)
        return start_serve_run(daemon);
    if (daemon->driver != NULL)
        driver_abandon(daemon->driver, exit_code);
    return exit_code;
}

/* Everything that was answered is kept. What a file system that hangs still has of us cannot be
 * waited for; its calls were not answered, and clients repeat them. */
enum { FILES_PATIENCE_S = 3 };

static volatile sig_atomic_t late_exit_code;

static void on_late(int number)
{
    (void)number;
    _exit((int)late_exit_code);
}

static void free_files(struct files *files, int exit_code)
{
    struct sigaction late = {.sa_handler = on_late};
    late_exit_code = exit_code;
    CHECK(sigaction(SIGALRM, &late, NULL) == 0);
    (void)alarm(FILES_PATIENCE_S);
    files_free(files);
    (void)alarm(0);
}

static void free_options(struct daemon *daemon)
{
    for (uint32_t i = 0; daemon->group_configs != NULL && i < daemon->config.group_names.count; i++)
        config_done(&daemon->group_configs[i]);
    free(daemon->group_configs);
    config_done(&daemon->config);
}

static void clean_up(struct daemon *daemon, int exit_code)
{
    control_close(&daemon->control); /* before its socket is closed */
    bool is_idle = names_close(daemon->names);
    is_idle &= reload_close(daemon->reload);
    if (!resolving_close(daemon->resolving) || !is_idle)
        _exit(exit_code); /* what is left to be done is to free memory */
    http_free(daemon->http);
    http_free(daemon->control_http);
    events_free(daemon->hooks.admin.events);
    samples_free(daemon->hooks.admin.samples);
    if (daemon->store != NULL)
        store_close(daemon->store);
    takeover_close(daemon->takeover);
    registrar_close(daemon->registrar);
    monitor_close(daemon->monitor);
    callout_runner_close(daemon->callout);
    files_close(daemon->files);
    watchdog_close(&daemon->watchdog);
    if (daemon->driver == NULL && daemon->wire != NULL)
        wire_close(daemon->wire);
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT); /* until libuv has closed every handle */
    driver_free(daemon->driver);
    registrar_free(daemon->registrar);
    monitor_free(daemon->monitor);
    callout_runner_free(daemon->callout);
    names_free(daemon->names);
    resolving_free(daemon->resolving);
    caller_free(daemon->caller);
    wire_free(daemon->wire);
    rpc_client_free(daemon->client);
    listen_close(&daemon->sockets);
    listen_close(&daemon->nsm_sockets);
    listen_close(&daemon->nfs_sockets);
    reload_free(daemon->reload);
    free_files(daemon->files, exit_code);
    rpc_server_free(daemon->server);
    core_free(daemon->core);
    takeover_free(daemon->takeover);
    (void)uv_loop_close(&daemon->loop);
    free_options(daemon);
}

/* Of a standby that does not know yet which of its groups it will serve. 0, or the exit code. */
static int read_groups(struct daemon *daemon)
{
    const struct config_group_names *names = &daemon->config.group_names;
    char buffer[1024] = "out of memory";
    struct text why;
    if (names->count < 2)
        return 0;
    daemon->group_configs = calloc(names->count, sizeof *daemon->group_configs);
    int result = daemon->group_configs == NULL ? -ENOMEM : 0;
    for (uint32_t i = 0; i < names->count && result == 0; i++) {
        text_init(&why, buffer, sizeof buffer);
        result = config_read_group(daemon->argc, daemon->argv, names->at[i],
                                   &daemon->group_configs[i], &why);
    }
    if (result == 0)
        return 0;
    (void)fprintf(stderr, "holdfastd: %s\n", buffer);
    return DAEMON_EXIT_USAGE;
}

/* True: the options asked for a text, and it was printed. --check-config comes later, when the
 * sections of all groups have been read. */
static bool print_text(const struct config *config)
{
    if (config->show_help)
        config_print_help(stdout);
    else if (config->show_manual)
        config_manual_server(stdout);
    else if (config->show_manual_conf)
        config_manual_file(stdout);
    else if (config->show_version)
        (void)printf("holdfast %s\n", HOLDFAST_VERSION);
    else
        return false;
    return true;
}

/* 0, or the exit code. *ret_done: there is nothing to serve, and no option left to be freed. */
static int read_options(struct daemon *daemon, bool *ret_done)
{
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    *ret_done = true;
    if (config_read(daemon->argc, daemon->argv, &daemon->config, &why) != 0) {
        (void)fprintf(stderr, "holdfastd: %s\n", buffer);
        return DAEMON_EXIT_USAGE;
    }
    bool is_printed = print_text(&daemon->config);
    int exit_code = is_printed ? 0 : read_groups(daemon);
    if (!is_printed && exit_code == 0 && daemon->config.check_only) {
        config_print_effective(&daemon->config, stdout);
        is_printed = true;
    }
    *ret_done = is_printed || exit_code != 0;
    if (*ret_done)
        free_options(daemon);
    return exit_code;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "store") == 0)
        return store_command_run(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "groups") == 0)
        return groups_command_run(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], CALLOUT_KEEPER_VERB) == 0)
        return callout_keeper_run(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], LOCK_KEEPER_VERB) == 0)
        return lock_keeper_run();
    struct daemon daemon = {.argc = argc, .argv = argv};
    set_signals();
    bool is_done;
    int exit_code = read_options(&daemon, &is_done);
    if (is_done)
        return exit_code;
    log_init(&daemon.log, daemon.config.log_level, daemon.config.log_format, STDERR_FILENO);
    daemon.log.is_monitor = daemon.config.role == CONFIG_MONITOR;
    if (daemon.group_configs == NULL)
        daemon_join_group(&daemon, 0); /* it is the only one */
    admin_hooks_init(&daemon.hooks, &daemon.config, &daemon.log, &daemon.clock);
    CHECK(uv_loop_init(&daemon.loop) == 0);
    exit_code = run(&daemon);
    if (exit_code == DAEMON_STOPPED)
        exit_code = 0;
    clean_up(&daemon, exit_code);
    return exit_code;
}
