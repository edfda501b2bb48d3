/*
 * main.c -- holdfastd: from the command line to a serving process, and back.
 *
 * The order of the start (docs/ARCHITECTURE.md, "life of a crash"):
 *
 *   options -> ports bound, not yet listening; is another server registered? -> privileges dropped
 *           -> store locked and loaded -> next state durable -> listening -> registered -> ready
 *
 * Ports come before the store so that a port in use costs no state number, and so that --user can
 * be obeyed before anything is written. Nobody is answered before the new state is durable
 * (R-PER-4). A standby opens the store first and takes everything else when it has become active.
 *
 * Each failure has a sentence and an exit code: 2 usage or configuration, 69 address or port in
 * use, 70 internal check failed, 71 another server is registered with rpcbind, 74 store, 75
 * takeover hook failed, 76 replaced by another server, 78 store written by a newer format.
 */
#include "admin/events.h"
#include "admin/http.h"
#include "base/check.h"
#include "daemon/config_print.h"
#include "daemon/places.h"
#include "daemon/restoring.h"
#include "daemon/serving.h"
#include "daemon/store_command.h"

#include <signal.h>
#include <stdio.h>
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

/*
 * Ports and the store. A standby takes no port before it is its turn: the address may not be here
 * yet, and what is sent to a server that only waits must not be answered hours later.
 */
static int take_place(struct daemon *daemon, const struct privilege *privilege)
{
    bool is_standby = daemon->config.standby;
    places_make_directory(daemon);
    int exit_code = places_take_http(daemon);
    if (exit_code == 0 && is_standby)
        exit_code = places_open_control(daemon);
    if (exit_code == 0 && is_standby)
        exit_code = restoring_open(daemon);
    if (exit_code == 0 && is_standby)
        exit_code = restoring_take_over(daemon);
    if (exit_code == 0)
        exit_code = places_take_ports(daemon);
    if (exit_code == 0)
        exit_code = places_choose_rpcbind(daemon, serving_settled);
    if (exit_code == 0)
        exit_code = places_drop_privileges(daemon, privilege);
    if (exit_code == 0 && !is_standby)
        exit_code = restoring_open(daemon);
    if (exit_code == 0 && !is_standby)
        exit_code = restoring_take_over(daemon);
    return exit_code;
}

static int run(struct daemon *daemon, const struct privilege *privilege)
{
    int exit_code = take_place(daemon, privilege);
    if (exit_code == 0)
        exit_code = restoring_load(daemon);
    if (exit_code == 0 && daemon->control_http == NULL)
        exit_code = places_open_control(daemon);
    if (exit_code == 0)
        exit_code = restoring_boot(daemon);
    if (exit_code == 0)
        exit_code = serving_start(daemon);
    if (exit_code == 0)
        return serving_run(daemon);
    if (daemon->driver != NULL)
        driver_abandon(daemon->driver, exit_code);
    return exit_code;
}

static void clean_up(struct daemon *daemon, int exit_code)
{
    control_close(&daemon->control); /* before its socket is closed */
    bool is_idle = names_close(daemon->names);
    if (!resolving_close(daemon->resolving) || !is_idle)
        _exit(exit_code); /* what is left to be done is to free memory */
    http_free(daemon->http);
    http_free(daemon->control_http);
    events_free(daemon->console.admin.events);
    if (daemon->store != NULL)
        store_close(daemon->store);
    opening_close(daemon->opening);
    registrar_close(daemon->registrar);
    if (daemon->driver == NULL && daemon->wire != NULL)
        wire_close(daemon->wire);
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT); /* until libuv has closed every handle */
    driver_free(daemon->driver);
    registrar_free(daemon->registrar);
    names_free(daemon->names);
    resolving_free(daemon->resolving);
    caller_free(daemon->caller);
    wire_free(daemon->wire);
    rpc_client_free(daemon->client);
    listen_close(&daemon->sockets);
    listen_close(&daemon->nsm_sockets);
    rpc_server_free(daemon->server);
    core_free(daemon->core);
    opening_free(daemon->opening);
    (void)uv_loop_close(&daemon->loop);
    config_done(&daemon->config);
}

static int read_options(int argc, char **argv, struct config *ret, bool *ret_done)
{
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    *ret_done = true;
    if (config_read(argc, argv, ret, &why) != 0) {
        (void)fprintf(stderr, "holdfastd: %s\n", buffer);
        return DAEMON_EXIT_USAGE;
    }
    if (ret->show_help)
        config_print_help(stdout);
    else if (ret->show_manual)
        config_print_manual(stdout);
    else if (ret->show_version)
        (void)printf("holdfast %s\n", HOLDFAST_VERSION);
    else if (ret->check_only)
        config_print_effective(ret, stdout);
    else
        *ret_done = false;
    if (*ret_done)
        config_done(ret);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "store") == 0)
        return store_command_run(argc - 1, argv + 1);
    struct daemon daemon = {0};
    set_signals();
    bool is_done;
    int exit_code = read_options(argc, argv, &daemon.config, &is_done);
    if (is_done)
        return exit_code;
    log_init(&daemon.log, daemon.config.log_level, daemon.config.log_format, STDERR_FILENO);
    console_init(&daemon.console, &daemon.config, &daemon.log, &daemon.clock);

    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    struct privilege privilege;
    if (privilege_resolve(daemon.config.user, &privilege, &why) != 0) {
        exit_code = daemon_fail(&daemon, DAEMON_EXIT_USAGE, buffer);
        config_done(&daemon.config);
        return exit_code;
    }
    CHECK(uv_loop_init(&daemon.loop) == 0);
    exit_code = run(&daemon, &privilege);
    if (exit_code == DAEMON_STOPPED)
        exit_code = 0;
    clean_up(&daemon, exit_code);
    return exit_code;
}
