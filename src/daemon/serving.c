/*
 * serving.c -- see serving.h.
 */
#include "daemon/serving.h"

#include "admin/http.h"
#include "base/check.h"
#include "base/units.h"
#include "daemon/notify_ready.h"

#include <stdio.h>

enum { CALL_BYTES = 4096 }; /* for the messages of one call of ours */

/* The engine of the calls that we make, and its sockets. */
static int start_caller(struct daemon *daemon)
{
    struct rpc_client_limits limits = {
        .attempts_max = DAEMON_CALLS_MAX,
        .connections_max = daemon->connections.calls,
        .bytes_max = (uint64_t)DAEMON_CALLS_MAX * CALL_BYTES,
        .is_fenced = daemon->is_shared,
    };
    struct core_status status;
    core_status(daemon->core, &status);
    /* Calls of this start must not be taken for those of the last one (D6). */
    uint32_t first_xid = (uint32_t)(status.epoch << 20) ^ (uint32_t)daemon_seed();
    daemon->client = rpc_client_new(&limits, first_xid, daemon_seed());
    if (daemon->client == NULL)
        return -1;
    rpc_server_set_client(daemon->server, daemon->client);
    struct caller_options options = {.source_port_low = daemon->config.source_ports.low,
                                     .source_port_high = daemon->config.source_ports.high,
                                     .listener = daemon->wire};
    daemon->caller = caller_new(&daemon->loop, daemon->client, &daemon->clock, &options);
    return daemon->caller == NULL ? -1 : 0;
}

int serving_start(struct daemon *daemon)
{
    daemon->wire =
        wire_new(&daemon->loop, daemon->server, &daemon->clock, daemon->connections.callers);
    if (daemon->wire == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE,
                           "cannot reserve memory; lower --max-connections");
    if (start_caller(daemon) != 0)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, "cannot reserve memory for calls to clients");
    struct driver_parts parts = {
        .loop = &daemon->loop,
        .clock = &daemon->clock,
        .log = &daemon->log,
        .core = daemon->core,
        .server = daemon->server,
        .client = daemon->client,
        .wire = daemon->wire,
        .caller = daemon->caller,
        .registrar = daemon->registrar,
        .control = daemon->control_http,
        .events = daemon->console.admin.events,
        .store = daemon->store,
        .store_timeout_ns = daemon->config.store_timeout_s * SECOND_NS,
        .is_metered = daemon->config.metrics == CONFIG_ON,
        .is_shared = daemon->is_shared,
    };
    parts.resolving = daemon->resolving =
        resolving_new(&daemon->loop, daemon->core, daemon->server);
    if (daemon->resolving == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_STORE, "out of memory");
    daemon->driver = driver_new(&parts);
    if (daemon->driver == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_STORE, "out of memory");
    daemon->store = NULL; /* the driver's from here on */
    daemon->console.driver = daemon->driver;
    daemon->console.registrar = daemon->registrar;
    daemon->console.admin.core = daemon->core;
    daemon->console.admin.meter = rpc_server_meter(daemon->server);
    if (!driver_start(daemon->driver))
        return daemon_fail(
            daemon, DAEMON_EXIT_STORE,
            "cannot start the store thread; raise the limit of threads (TasksMax=, ulimit -u)");
    int err = wire_listen(daemon->wire, &daemon->sockets);
    if (err == 0)
        err = wire_listen(daemon->wire, &daemon->nsm_sockets);
    if (err != 0) {
        log_say(&daemon->log, LOG_LEVEL_ERROR, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("cannot listen; another process may have taken the port"),
                LOG_NUMBER("port", daemon->sockets.port), LOG_TEXT("cause", uv_strerror(err)));
        return DAEMON_EXIT_UNAVAILABLE;
    }
    return registrar_start(daemon->registrar, daemon->core);
}

/* One line that scripts wait for, on standard output; the log has it too, and is complete when that
 * line comes. */
static void announce(struct daemon *daemon)
{
    struct core_status status;
    core_status(daemon->core, &status);
    char buffer[256];
    struct text line;
    text_init(&line, buffer, sizeof buffer);
    text_add(&line, "ready on port ");
    text_add_u64(&line, daemon->sockets.port);
    text_add(&line, " (state ");
    text_add_u64(&line, status.state);
    text_add(&line, ", ");
    text_add_count(&line, (uint64_t)status.registrants + status.clients);
    text_add(&line, " clients, ");
    text_add_count(&line, status.locks);
    text_add(&line, " locks, grace ");
    text_add_u64(&line, (status.grace.remaining_ns + SECOND_NS - 1) / SECOND_NS);
    text_add(&line, " s)");
    char store[256];
    store_show_url(daemon->config.store, store, sizeof store);
    log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock), LOG_MESSAGE(buffer),
            LOG_TEXT("store", store), LOG_NUMBER("epoch", status.epoch));
    if (daemon->nsm_sockets.port != 0)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the status monitor has its own port"),
                LOG_NUMBER("port", daemon->nsm_sockets.port));
    char page[128];
    struct text url;
    text_init(&url, page, sizeof page);
    if (daemon->http != NULL) {
        http_add_url(daemon->http, &url);
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("serving HTTP"), LOG_NUMBER("port", http_port(daemon->http)),
                LOG_TEXT("page", page));
    }
    if (status.incomplete)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the store may have lost records: raised the state number past the "
                            "clock, so clients will see a restart"));
    (void)printf("holdfast: %s\n", buffer);
    (void)fflush(stdout);
    int err = notify_ready_started(buffer);
    if (err != 0)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("cannot notify the service manager"),
                LOG_TEXT("cause", strerror(-err)));
}

/*
 * A server that we have replaced without its knowing may answer for CLOCK_SEND_MS after the epoch
 * was raised (wire/clock.h). Who is told to reclaim before that does not reclaim what such an
 * answer gives him. Nobody reclaims where nothing is held.
 */
static uint64_t telling_wait_ns(struct daemon *daemon)
{
    const uint64_t lease_ns = MS_NS * CLOCK_SEND_MS;
    struct core_status status;
    core_status(daemon->core, &status);
    uint64_t age_ns = clock_boot_ns() - daemon->raised_ns;
    return !daemon->is_shared || status.grace.remaining_ns == 0 || age_ns >= lease_ns
               ? 0
               : lease_ns - age_ns;
}

/* Clients can find us, and what they may call us is known, as far as that is possible. */
static void become_ready(struct daemon *daemon)
{
    if (!daemon->is_registered || !daemon->is_named)
        return;
    announce(daemon);
    driver_ready(daemon->driver, telling_wait_ns(daemon));
}

static void on_named(void *context)
{
    struct daemon *daemon = context;
    daemon->is_named = true;
    become_ready(daemon);
}

void serving_settled(void *context, int exit_code)
{
    struct daemon *daemon = context;
    if (exit_code != 0) {
        driver_stop(daemon->driver, exit_code);
        return;
    }
    daemon->is_registered = true;
    become_ready(daemon);
}

int serving_run(struct daemon *daemon)
{
    names_ask(daemon->names, daemon->core, daemon, on_named);
    clock_turn_over(&daemon->clock);
    return driver_run(daemon->driver);
}
