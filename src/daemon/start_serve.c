/*
 * start_serve.c -- see start_serve.h.
 */
#include "daemon/start_serve.h"

#include "admin/http.h"
#include "base/check.h"
#include "base/units.h"
#include "daemon/monitor.h"
#include "daemon/sd_notify.h"
#include "daemon/start_net.h"

#include <stdio.h>

enum { CALL_BYTES = 4096 }; /* for the messages of one call of ours */

/* Somebody may read a list that waits for the names of files. */
static void wake_readers(void *context)
{
    struct daemon *daemon = context;
    http_wake_all(daemon->http);
    http_wake_all(daemon->control_http);
}

static bool name_file(void *context, struct bytes fh, struct bytes *ret)
{
    struct daemon *daemon = context;
    return files_get_path(daemon->files, fh, ret) == PATH_KNOWN;
}

int start_serve_files(struct daemon *daemon)
{
    if (!files_is_wanted(&daemon->config))
        return 0;
    struct core_status status;
    core_status(daemon->core, &status);
    struct files_parts parts = {.loop = &daemon->loop,
                                .log = &daemon->log,
                                .clock = &daemon->clock,
                                .config = &daemon->config,
                                .server = daemon->server,
                                .core = daemon->core,
                                .epoch = status.epoch,
                                .open_max = daemon->files_open_max,
                                .pipes_max = daemon->files_pipes_max,
                                .mirrored_max = daemon->files_mirrored_max,
                                .on_news = wake_readers,
                                .context = daemon};
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    daemon->files = files_new(&parts, &why);
    if (daemon->files != NULL && files_service(daemon->files) != NULL) {
        daemon->hooks.files = daemon->files;
        log_set_paths(&daemon->log, name_file, daemon);
        return 0;
    }
    return daemon_fail(daemon, DAEMON_EXIT_USAGE, buffer);
}

int start_serve_wire(struct daemon *daemon)
{
    daemon->wire =
        wire_new(&daemon->loop, daemon->server, &daemon->clock, daemon->connections.callers);
    return daemon->wire != NULL ? 0
                                : daemon_fail(daemon, DAEMON_EXIT_USAGE,
                                              "cannot reserve memory; lower --max-connections");
}

int start_serve_calls(struct daemon *daemon)
{
    struct rpc_client_limits limits = {
        .attempts_max = DAEMON_CALLS_MAX,
        .connections_max = daemon->connections.calls,
        .bytes_max = (uint64_t)DAEMON_CALLS_MAX * CALL_BYTES,
        .lease = &daemon->lease,
        .our_ports = {daemon->sockets.port, daemon->nsm_sockets.port},
    };
    struct core_status status;
    core_status(daemon->core, &status);
    /* Calls of this start must not be taken for those of the last one (D6). */
    uint32_t first_call = (uint32_t)(status.epoch << 20) ^ (uint32_t)daemon_seed();
    struct caller_options options = {.source_port_low = daemon->config.source_ports.low,
                                     .source_port_high = daemon->config.source_ports.high,
                                     .listener = daemon->wire,
                                     .privileged_fd = daemon->privileged_fd};
    daemon->client = rpc_client_new(&limits, first_call, daemon_seed());
    if (daemon->client != NULL)
        daemon->caller = caller_new(&daemon->loop, daemon->client, &daemon->clock, &options);
    daemon->resolving = resolving_new(&daemon->loop, daemon->core, daemon->server);
    const char *callout = daemon->config.callout;
    if (callout != NULL)
        daemon->callout =
            callout_runner_new(&daemon->loop, daemon->core, &daemon->log, &daemon->clock, callout);
    if (daemon->caller == NULL || daemon->resolving == NULL ||
        (callout != NULL && daemon->callout == NULL))
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, "cannot reserve memory for calls to clients");
    rpc_server_set_client(daemon->server, daemon->client);
    return 0;
}

int start_serve_driver(struct daemon *daemon)
{
    struct driver_parts parts = {
        .loop = &daemon->loop,
        .log = &daemon->log,
        .store = {.clock = &daemon->clock,
                  .lease = &daemon->lease,
                  .core = daemon->core,
                  .server = daemon->server,
                  .control = daemon->control_http,
                  .store = daemon->store,
                  .timeout_ns = daemon->config.store_timeout_s * SECOND_NS,
                  .is_metered = daemon->config.metrics == CONFIG_ON},
        .client = daemon->client,
        .wire = daemon->wire,
        .caller = daemon->caller,
        .registrar = daemon->registrar,
        .resolving = daemon->resolving,
        .callout = daemon->callout,
        .events = daemon->hooks.admin.events,
        .keeps_nothing = store_url_keeps_nothing(daemon->config.store),
    };
    daemon->driver = driver_new(&parts);
    if (daemon->driver == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_STORE, "out of memory");
    daemon->store = NULL; /* the driver's from here on */
    daemon->hooks.driver = daemon->driver;
    store_url_identify(daemon->config.store, daemon->hooks.store_id, sizeof daemon->hooks.store_id);
    daemon->hooks.registrar = daemon->registrar;
    daemon->hooks.admin.core = daemon->core;
    daemon->hooks.admin.meter = rpc_server_meter(daemon->server);
    reload_serve(daemon->reload, daemon->core, daemon->server, daemon->names, daemon->files);
    return driver_start(daemon->driver)
               ? 0
               : daemon_fail(daemon, DAEMON_EXIT_STORE,
                             "cannot start the store thread; raise the limit of threads "
                             "(TasksMax=, ulimit -u)");
}

/* Where we are, for those who look. */
static void show_places(struct daemon *daemon)
{
    struct admin_hooks *hooks = &daemon->hooks;
    struct text page;
    hooks->wire = daemon->wire;
    hooks->client = daemon->client;
    hooks->places.port = daemon->sockets.port;
    hooks->places.nsm_port = daemon->nsm_sockets.port;
    hooks->places.nfs_port = daemon->files != NULL ? start_net_files_at(daemon)->port : 0;
    text_init(&page, hooks->places.page, sizeof hooks->places.page);
    if (daemon->http != NULL)
        http_add_url(daemon->http, &page);
}

int start_serve_listen(struct daemon *daemon)
{
    const struct listen_set *files_at = daemon->files != NULL ? start_net_files_at(daemon) : NULL;
    int err = wire_listen(daemon->wire, &daemon->sockets, files_at == &daemon->sockets);
    if (err == 0)
        err = wire_listen(daemon->wire, &daemon->nsm_sockets, files_at == &daemon->nsm_sockets);
    if (err == 0)
        err = wire_listen(daemon->wire, &daemon->nfs_sockets, true);
    if (err == 0) {
        show_places(daemon);
        return 0;
    }
    log_say(&daemon->log, LOG_LEVEL_ERROR, clock_wall_ns(&daemon->clock),
            LOG_MESSAGE("cannot listen; another process may have taken the port"),
            LOG_NUMBER("port", daemon->sockets.port), LOG_TEXT("cause", uv_strerror(err)));
    return DAEMON_EXIT_UNAVAILABLE;
}

int start_serve_register(struct daemon *daemon)
{
    return registrar_start(daemon->registrar, daemon->core);
}

static void add_summary(const struct daemon *daemon, const struct core_status *status,
                        struct text *line)
{
    bool is_monitor = daemon->config.role == CONFIG_MONITOR;
    text_add(line, is_monitor ? "monitoring on port " : "ready on port ");
    text_add_u64(line, daemon->sockets.port);
    text_add(line, " (state ");
    text_add_u64(line, status->state);
    text_add(line, ", ");
    text_add_plural(line, (uint64_t)status->registrants + status->clients,
                    is_monitor ? "host" : "client");
    if (is_monitor) {
        text_add_char(line, ')');
        return;
    }
    text_add(line, ", ");
    text_add_plural(line, status->locks, "lock");
    text_add(line, ", grace ");
    text_add_u64(line, (status->grace.remaining_ns + SECOND_NS - 1) / SECOND_NS);
    text_add(line, " s)");
}

/* One line that scripts wait for, on standard output; JSON if the log is, because both may be read
 * by one reader. */
static void print_ready(struct daemon *daemon, const char *line)
{
    char buffer[300];
    (void)snprintf(buffer, sizeof buffer, "holdfast: %s", line);
    if (daemon->log.format == LOG_FORMAT_TEXT) {
        (void)printf("%s\n", buffer);
        (void)fflush(stdout);
        return;
    }
    struct log output;
    log_init(&output, LOG_LEVEL_INFO, LOG_FORMAT_JSON, STDOUT_FILENO);
    log_say(&output, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock), LOG_MESSAGE(buffer),
            LOG_NUMBER("port", daemon->sockets.port));
}

/* The log is complete when the line of readiness comes, which is not in it: both may be read by
 * one reader. */
static void log_service(struct daemon *daemon, const struct core_status *status)
{
    bool is_monitor = daemon->config.role == CONFIG_MONITOR;
    char store[256];
    store_show_url(daemon->config.store, store, sizeof store);
    const struct log_field fields[] = {
        LOG_MESSAGE(is_monitor ? "watching hosts" : "serving locks"),
        LOG_NUMBER("port", daemon->sockets.port),
        LOG_TEXT("store", store),
        LOG_NUMBER("epoch", status->epoch),
        LOG_NUMBER("state", status->state),
        LOG_NUMBER(is_monitor ? "hosts" : "clients",
                   (uint64_t)status->registrants + status->clients),
        LOG_NUMBER("locks", status->locks), /* these two not of a monitor */
        LOG_NUMBER("grace_seconds", (status->grace.remaining_ns + SECOND_NS - 1) / SECOND_NS),
    };
    log_fields(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock), fields,
               sizeof fields / sizeof fields[0] - (is_monitor ? 2 : 0));
}

static void announce(struct daemon *daemon)
{
    struct core_status status;
    core_status(daemon->core, &status);
    char buffer[256];
    struct text line;
    text_init(&line, buffer, sizeof buffer);
    add_summary(daemon, &status, &line);
    log_service(daemon, &status);
    if (daemon->nsm_sockets.port != 0)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the status monitor has its own port"),
                LOG_NUMBER("port", daemon->nsm_sockets.port));
    if (daemon->files != NULL)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("serving files"), LOG_NUMBER("port", start_net_files_at(daemon)->port));
    if (daemon->http != NULL)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("serving HTTP"), LOG_NUMBER("port", http_port(daemon->http)),
                LOG_TEXT("page", daemon->hooks.places.page));
    if (status.incomplete)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the store may have lost records: raised the state number past the "
                            "clock, so clients will see a restart"));
    print_ready(daemon, buffer);
    int err = sd_notify_started(buffer);
    if (err != 0)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("cannot notify the service manager"),
                LOG_TEXT("cause", strerror(-err)));
}

/*
 * A server that we have replaced without its knowing may still send (base/lease.h). Who is told to
 * reclaim before that is over does not reclaim what such an answer grants. Nobody reclaims where
 * nothing is held.
 */
static uint64_t telling_wait_ns(struct daemon *daemon)
{
    struct core_status status;
    core_status(daemon->core, &status);
    return status.grace.remaining_ns == 0 ? 0
                                          : lease_sends_left_ns(&daemon->lease, clock_boot_ns());
}

/* Clients can find us, and what they may call us is known, as far as that is possible. */
static void become_ready(struct daemon *daemon)
{
    if (!daemon->is_registered || !daemon->is_named)
        return;
    announce(daemon);
    driver_ready(daemon->driver, telling_wait_ns(daemon));
    if (daemon->config.role == CONFIG_MONITOR)
        monitor_run(daemon);
}

static void on_named(void *context)
{
    struct daemon *daemon = context;
    daemon->is_named = true;
    become_ready(daemon);
}

void start_serve_registered(void *context, int exit_code)
{
    struct daemon *daemon = context;
    if (exit_code != 0) {
        driver_stop(daemon->driver, exit_code);
        return;
    }
    daemon->is_registered = true;
    become_ready(daemon);
}

int start_serve_run(struct daemon *daemon)
{
    names_ask(daemon->names, daemon->core, daemon, on_named);
    clock_turn_over(&daemon->clock);
    return driver_run(daemon->driver);
}
