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
 * use, 70 internal check failed, 71 another server is registered with rpcbind, 74 store, 76
 * replaced by another server, 78 store written by a newer format.
 */
#include "admin/control.h"
#include "admin/events.h"
#include "admin/http.h"
#include "base/check.h"
#include "daemon/config.h"
#include "daemon/config_print.h"
#include "daemon/console.h"
#include "daemon/descriptors.h"
#include "daemon/driver.h"
#include "daemon/names.h"
#include "daemon/notify_ready.h"
#include "daemon/opening.h"
#include "daemon/privilege.h"
#include "daemon/registrar.h"
#include "daemon/store_command.h"
#include "proto/nlm.h"
#include "proto/nsm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    EXIT_UNAVAILABLE = 69,
    EXIT_INTERNAL = 70,
    EXIT_STORE = 74,
    EXIT_NEWER = 78,
    STOPPED = -1,          /* while it waited for the store: no failure */
    OUTBOX_MAX = 16384,    /* answers that may wait for one commit */
    CACHE_PER_CLIENT = 32, /* R-DRC-1 */
    CACHE_MIN = 65536,
    CACHE_LIMIT = 1048576,
    MESSAGES_BURST = 2000, /* over UDP, per address (R-SEC-6) */
    MESSAGES_PER_SECOND = 1000,
    CALLS_MAX = 16384,       /* calls of our own at once */
    CALL_BYTES = 4096,       /* for the messages of one */
    SPARE_DESCRIPTORS = 256, /* beside the connections: sockets, store, HTTP */
};

#define SECOND_NS     UINT64_C(1000000000)
#define RUN_DIRECTORY "/run/holdfast" /* of the control socket, without a store */

static const struct program *const programs[] = {&nlm_program, &nsm_program};

/* Everything that lives as long as the process serves. */
struct daemon {
    struct config config;
    struct log log;
    struct clock clock;
    uv_loop_t loop;
    struct listen_set sockets;     /* of every program */
    struct listen_set nsm_sockets; /* if the status monitor has a port of its own */
    struct file_share shares[FILE_SHARES_MAX];
    struct opening *opening;
    struct store *store;
    bool is_shared; /* the store: other machines can reach it */
    struct store_summary summary;
    struct core *core;
    uint32_t call_connections; /* open files left for calls of our own */
    struct rpc_server *server;
    struct rpc_client *client;
    struct wire *wire;
    struct caller *caller;
    struct names *names;
    struct registrar *registrar;
    bool is_registered, is_named; /* both: ready */
    struct driver *driver;
    struct console console;
    struct http *http;
    struct control control;    /* the file of the control socket, */
    struct http *control_http; /* and who serves it */
};

static void on_abort(int number)
{
    (void)number;
    _exit(EXIT_INTERNAL); /* check_failed has said why */
}

static void set_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction on_check_failed = {.sa_handler = on_abort};
    CHECK(sigaction(SIGPIPE, &ignore, NULL) == 0);
    CHECK(sigaction(SIGXFSZ, &ignore, NULL) == 0); /* a write then fails, with a sentence */
    CHECK(sigaction(SIGABRT, &on_check_failed, NULL) == 0);
}

static uint64_t random_seed(void)
{
    uint64_t seed = 0;
    CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
    return seed;
}

static int fail(struct daemon *daemon, int exit_code, const char *sentence)
{
    log_say(&daemon->log, LOG_LEVEL_ERROR, clock_wall_ns(&daemon->clock), LOG_MESSAGE(sentence));
    return exit_code;
}

static int bind_http(struct daemon *daemon)
{
    daemon->console.admin.events = events_new(&daemon->loop, &daemon->console.admin);
    if (daemon->console.admin.events == NULL)
        return fail(daemon, EXIT_USAGE, "out of memory");
    const struct config_endpoint *at = &daemon->config.http;
    if (!at->is_on)
        return 0;
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    int exit_code = EXIT_UNAVAILABLE;
    daemon->http =
        http_new(&daemon->loop, &at->address, at->port, &daemon->console.admin, &exit_code, &why);
    return daemon->http == NULL ? fail(daemon, exit_code, buffer) : 0;
}

static int bind_ports(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    uint64_t needed = (uint64_t)config->connections_max + SPARE_DESCRIPTORS;
    uint64_t limit = descriptors_reserve(needed + CALLS_MAX);
    uint64_t left = limit > needed ? limit - needed : 0;
    daemon->call_connections = (uint32_t)(left < CALLS_MAX ? left : CALLS_MAX);
    if (daemon->call_connections == 0)
        daemon->call_connections = SPARE_DESCRIPTORS / 4;
    if (limit < needed)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("fewer open files are allowed than --max-connections needs; raise the "
                            "limit (ulimit -n, LimitNOFILE=) or lower the option"),
                LOG_NUMBER("allowed", limit), LOG_NUMBER("needed", needed));
    const struct config_addresses *at = &config->listen;
    struct listen_failure failure;
    if (listen_open(at->at, at->count, config->nlm_port, &daemon->sockets, &failure) != 0 ||
        (config->nsm_port != config->nlm_port &&
         listen_open(at->at, at->count, config->nsm_port, &daemon->nsm_sockets, &failure) != 0))
        return fail(daemon, failure.error == EADDRINUSE ? EXIT_UNAVAILABLE : EXIT_USAGE,
                    failure.text);
    return 0;
}

/* The directory of an lmdb: store, which --user must be able to write; NULL for other stores. */
static const char *store_path(const char *url)
{
    return strncmp(url, "lmdb:", 5) == 0 ? url + 5 : NULL;
}

static int drop_privileges(struct daemon *daemon, const struct privilege *privilege)
{
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    const char *path = store_path(daemon->config.store);
    if (path != NULL && privilege_hand_over(privilege, path, &why) != 0)
        return fail(daemon, EXIT_STORE, buffer);
    /* Without a store the control socket has a directory of its own, if it can be made. */
    if (path == NULL && daemon->config.control_is_default) {
        (void)mkdir(RUN_DIRECTORY, 0755);
        if (privilege_hand_over(privilege, RUN_DIRECTORY, &why) != 0)
            text_init(&why, buffer, sizeof buffer); /* open_control says what is missing */
    }
    if (privilege_drop(privilege, &why) != 0)
        return fail(daemon, EXIT_USAGE, buffer);
    return 0;
}

static int load_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct daemon *daemon = context;
    switch (core_load(daemon->core, kind, slot, value)) {
    case RECORD_GOOD:
    case RECORD_CORRUPT: /* the core reports it and marks the store incomplete */
        log_drain(&daemon->log, core_events(daemon->core), clock_now_ns(&daemon->clock),
                  clock_wall_ns(&daemon->clock));
        return 0;
    case RECORD_NEWER:
        return EXIT_NEWER;
    }
    UNREACHABLE();
}

/* A store of our own opens at once; a shared one may have to be waited for. */
static int open_store(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    struct store_options options = {.sync_process = config->sync == CONFIG_SYNC_PROCESS,
                                    .is_server = true,
                                    .is_standby = config->standby,
                                    .timeout_ns = config->store_timeout_s * SECOND_NS};
    struct store_failure failure;
    daemon->is_shared = store_url_is_shared(config->store);
    daemon->opening = opening_new(&daemon->loop, &daemon->log, &daemon->clock);
    daemon->console.opening = daemon->opening;
    if (daemon->opening == NULL)
        return fail(daemon, EXIT_STORE, "out of memory");
    daemon->store = daemon->is_shared
                        ? opening_run(daemon->opening, config->store, &options, &failure)
                        : store_open(config->store, &options, &failure);
    if (daemon->store != NULL)
        return 0;
    if (failure.exit_code == 0)
        return STOPPED;
    return fail(daemon, failure.exit_code, failure.text);
}

/* The store is ours: nobody else can commit any more. */
static int take_over(struct daemon *daemon)
{
    if (daemon->config.standby)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("this server is the active one now"));
    const char *hook = daemon->config.takeover_hook;
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    int result = hook == NULL ? 0 : opening_run_hook(daemon->opening, hook, &why);
    if (result == -ECANCELED)
        return STOPPED;
    return result == 0 ? 0 : fail(daemon, EXIT_USAGE, buffer);
}

/* Reads the store into a new core. */
static int load(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    struct store_failure failure;
    store_summarize(daemon->store, &daemon->summary);
    if (daemon->summary.note[0] != '\0')
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE(daemon->summary.note));

    daemon->names = names_new(&daemon->loop, config);
    if (daemon->names == NULL)
        return fail(daemon, EXIT_USAGE, "out of memory");
    struct core_limits limits = {.clients_max = config->clients_max,
                                 .locks_max = config->locks_max,
                                 .locks_per_client_max = config->locks_per_client_max,
                                 .waiters_max = config->waiters_max,
                                 .bytes_max = config->bytes_max,
                                 .batch_puts_max = STORE_BATCH_PUTS_MAX - CORE_PUTS_PER_REQUEST_MAX,
                                 .mon_from_loopback = config->mon_from == CONFIG_MON_FROM_LOOPBACK,
                                 .server_name = names_first(daemon->names),
                                 .shares = daemon->shares,
                                 .share_count = config_share_list(&config->shares, daemon->shares),
                                 .notify_timeout_ns = config->notify_timeout_s * SECOND_NS,
                                 .window_ns = config->recovery_window_s * SECOND_NS,
                                 .give_up_ns = config->give_up_s * SECOND_NS,
                                 .grace_ns = config->grace_s * SECOND_NS,
                                 .hold_unreachable = config->unreachable == CONFIG_HOLD,
                                 .trust_reclaim = config->trust_reclaim,
                                 .distrust_state = config->trust_state == CONFIG_OFF,
                                 .verify_notices = config->verify_notify == CONFIG_VERIFY_ALWAYS,
                                 .resume = config->recovery == CONFIG_RESUME,
                                 .shared_store = daemon->is_shared};
    limits.name_count = names_list(daemon->names, &limits.names);
    memcpy(limits.slots_used, daemon->summary.slots_used, sizeof limits.slots_used);
    daemon->core = core_new(&limits, random_seed());
    if (daemon->core == NULL)
        return fail(daemon, EXIT_USAGE,
                    "cannot reserve memory for the tables; lower --max-locks, --max-waiters, "
                    "--max-clients or --max-bytes");
    int result = store_load(daemon->store, load_record, daemon, &failure);
    if (result == EXIT_NEWER)
        return fail(
            daemon, EXIT_NEWER,
            "the store was written by a newer holdfast; run that version, or start this one "
            "on another --store. Nothing was changed");
    if (result != 0)
        return fail(daemon, failure.exit_code, failure.text);
    return 0;
}

/*
 * After the store is locked: what lies in its directory is then a dead server's. Without a store
 * nobody has asked for a socket, and a server that forgets everything can do without.
 */
static int open_control(struct daemon *daemon)
{
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    int exit_code;
    if (control_open(daemon->config.control, &daemon->control, &exit_code, &why)) {
        daemon->control_http =
            http_new_control(&daemon->loop, daemon->control.fd, &daemon->console.admin);
        return daemon->control_http == NULL ? fail(daemon, EXIT_USAGE, "out of memory") : 0;
    }
    if (store_path(daemon->config.store) != NULL || !daemon->config.control_is_default)
        return fail(daemon, exit_code, buffer);
    log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
            LOG_MESSAGE("no control socket: the command holdfast cannot ask this server"),
            LOG_TEXT("cause", buffer));
    return 0;
}

/* The first batch: the new state and epoch, durable before anybody is answered. */
static int boot(struct daemon *daemon)
{
    struct core_boot boot = {
        .now_ns = clock_now_ns(&daemon->clock),
        .wall_ns = clock_wall_ns(&daemon->clock),
        .may_have_lost = daemon->summary.may_have_lost || daemon->config.assume_lost,
    };
    core_start(daemon->core, &boot);
    const struct config *config = &daemon->config;
    uint64_t cache = (uint64_t)config->clients_max * CACHE_PER_CLIENT;
    cache = cache < CACHE_MIN ? CACHE_MIN : cache > CACHE_LIMIT ? CACHE_LIMIT : cache;
    struct rpc_server_limits limits = {.outbox_max = OUTBOX_MAX,
                                       .cache_max = (uint32_t)cache,
                                       .require_privileged_port = config->require_privileged_port,
                                       .shared_store = daemon->is_shared,
                                       .messages_burst = MESSAGES_BURST,
                                       .messages_per_second = MESSAGES_PER_SECOND,
                                       .is_metered = config->metrics == CONFIG_ON};
    daemon->server = rpc_server_new(&limits, programs, sizeof programs / sizeof programs[0],
                                    daemon->core, random_seed());
    if (daemon->server == NULL)
        return fail(daemon, EXIT_USAGE, "cannot reserve memory for answers; lower --max-clients");

    struct store_batch batch;
    struct store_failure failure;
    CHECK(core_take_batch(daemon->core, &batch));
    if (store_commit(daemon->store, &batch, &failure) != 0)
        return fail(daemon, failure.exit_code, failure.text);
    if (daemon->is_shared)
        clock_allow_sends(&daemon->clock, store_checked_ns(daemon->store));
    rpc_server_stored(daemon->server, batch.txn, store_has_room(daemon->store),
                      clock_now_ns(&daemon->clock), clock_wall_ns(&daemon->clock));
    return 0;
}

/* The engine of the calls that we make, and its sockets. */
static int start_caller(struct daemon *daemon)
{
    struct rpc_client_limits limits = {
        .attempts_max = CALLS_MAX,
        .connections_max = daemon->call_connections,
        .bytes_max = (uint64_t)CALLS_MAX * CALL_BYTES,
    };
    struct core_status status;
    core_status(daemon->core, &status);
    /* Calls of this start must not be taken for those of the last one (D6). */
    uint32_t first_xid = (uint32_t)(status.epoch << 20) ^ (uint32_t)random_seed();
    daemon->client = rpc_client_new(&limits, first_xid, random_seed());
    if (daemon->client == NULL)
        return -1;
    rpc_server_set_client(daemon->server, daemon->client);
    struct caller_options options = {.source_port_low = daemon->config.source_ports.low,
                                     .source_port_high = daemon->config.source_ports.high,
                                     .listener = daemon->wire};
    daemon->caller = caller_new(&daemon->loop, daemon->client, &daemon->clock, &options);
    return daemon->caller == NULL ? -1 : 0;
}

static int serve(struct daemon *daemon)
{
    daemon->wire =
        wire_new(&daemon->loop, daemon->server, &daemon->clock, daemon->config.connections_max);
    if (daemon->wire == NULL)
        return fail(daemon, EXIT_USAGE, "cannot reserve memory; lower --max-connections");
    if (start_caller(daemon) != 0)
        return fail(daemon, EXIT_USAGE, "cannot reserve memory for calls to clients");
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
    daemon->driver = driver_new(&parts);
    if (daemon->driver == NULL)
        return fail(daemon, EXIT_STORE, "out of memory");
    daemon->store = NULL; /* the driver's from here on */
    daemon->console.driver = daemon->driver;
    daemon->console.registrar = daemon->registrar;
    daemon->console.admin.core = daemon->core;
    daemon->console.admin.meter = rpc_server_meter(daemon->server);
    if (!driver_start(daemon->driver))
        return fail(
            daemon, EXIT_STORE,
            "cannot start the store thread; raise the limit of threads (TasksMax=, ulimit -u)");
    int err = wire_listen(daemon->wire, &daemon->sockets);
    if (err == 0)
        err = wire_listen(daemon->wire, &daemon->nsm_sockets);
    if (err != 0) {
        log_say(&daemon->log, LOG_LEVEL_ERROR, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("cannot listen; another process may have taken the port meanwhile"),
                LOG_NUMBER("port", daemon->sockets.port), LOG_TEXT("cause", uv_strerror(err)));
        return EXIT_UNAVAILABLE;
    }
    return 0;
}

/* One line that scripts wait for, on standard output; the log has it too. */
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
    (void)printf("holdfast: %s\n", buffer);
    (void)fflush(stdout);
    char store[256];
    store_show_url(daemon->config.store, store, sizeof store);
    log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock), LOG_MESSAGE(buffer),
            LOG_TEXT("store", store), LOG_NUMBER("epoch", status.epoch));
    if (daemon->nsm_sockets.port != 0)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the status monitor has a port of its own"),
                LOG_NUMBER("port", daemon->nsm_sockets.port));
    if (daemon->http != NULL)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("HTTP is served"), LOG_NUMBER("port", http_port(daemon->http)));
    if (status.incomplete)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the store may have lost records: its state number was raised past the "
                            "clock, clients will see a restart"));
    int err = notify_ready_started(buffer);
    if (err != 0)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("cannot tell the service manager that we are ready"),
                LOG_TEXT("cause", strerror(-err)));
}

/* Clients can find us, and what they may call us is known, as far as that is possible. */
static void become_ready(struct daemon *daemon)
{
    if (!daemon->is_registered || !daemon->is_named)
        return;
    announce(daemon);
    driver_ready(daemon->driver);
}

static void on_named(void *context)
{
    struct daemon *daemon = context;
    daemon->is_named = true;
    become_ready(daemon);
}

/* The registration stands, as far as that is possible (10.1): or the start has failed after all. */
static void on_settled(void *context, int exit_code)
{
    struct daemon *daemon = context;
    if (exit_code != 0) {
        driver_stop(daemon->driver, exit_code);
        return;
    }
    daemon->is_registered = true;
    become_ready(daemon);
}

/* Chooses how clients find us; while that may still need root and costs no state number. */
static int prepare_registrar(struct daemon *daemon)
{
    struct registrar_parts parts = {.loop = &daemon->loop,
                                    .clock = &daemon->clock,
                                    .log = &daemon->log,
                                    .config = &daemon->config,
                                    .context = daemon,
                                    .on_settled = on_settled};
    daemon->registrar = registrar_new(&parts);
    if (daemon->registrar == NULL)
        return fail(daemon, EXIT_USAGE, "cannot reserve memory for the registration");
    bool is_split = daemon->nsm_sockets.count > 0;
    registrar_add(daemon->registrar, &nlm_program, &daemon->sockets);
    registrar_add(daemon->registrar, &nsm_program,
                  is_split ? &daemon->nsm_sockets : &daemon->sockets);
    return registrar_prepare(daemon->registrar);
}

/*
 * Ports and the store. A standby takes no port before it is its turn: the address may not be here
 * yet, and what is sent to a server that only waits must not be answered hours later.
 */
static int take_place(struct daemon *daemon, const struct privilege *privilege)
{
    bool is_standby = daemon->config.standby;
    int exit_code = bind_http(daemon);
    if (exit_code == 0 && is_standby)
        exit_code = open_control(daemon);
    if (exit_code == 0 && is_standby)
        exit_code = open_store(daemon);
    if (exit_code == 0 && is_standby)
        exit_code = take_over(daemon);
    if (exit_code == 0)
        exit_code = bind_ports(daemon);
    if (exit_code == 0)
        exit_code = prepare_registrar(daemon);
    if (exit_code == 0)
        exit_code = drop_privileges(daemon, privilege);
    if (exit_code == 0 && !is_standby)
        exit_code = open_store(daemon);
    if (exit_code == 0 && !is_standby)
        exit_code = take_over(daemon);
    return exit_code;
}

static int run(struct daemon *daemon, const struct privilege *privilege)
{
    int exit_code = take_place(daemon, privilege);
    if (exit_code == 0)
        exit_code = load(daemon);
    if (exit_code == 0 && daemon->control_http == NULL)
        exit_code = open_control(daemon);
    if (exit_code == 0)
        exit_code = boot(daemon);
    if (exit_code == 0)
        exit_code = serve(daemon);
    if (exit_code == 0)
        exit_code = registrar_start(daemon->registrar, daemon->core);
    if (exit_code == 0) {
        names_ask(daemon->names, daemon->core, daemon, on_named);
        clock_turn_over(&daemon->clock);
        exit_code = driver_run(daemon->driver);
    } else if (daemon->driver != NULL) {
        driver_abandon(daemon->driver, exit_code);
    }
    return exit_code;
}

static void clean_up(struct daemon *daemon, int exit_code)
{
    if (!names_close(daemon->names))
        _exit(exit_code); /* what is left to be done is to free memory */
    http_free(daemon->http);
    control_close(&daemon->control); /* before its socket is closed */
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
        return EXIT_USAGE;
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
        exit_code = fail(&daemon, EXIT_USAGE, buffer);
        config_done(&daemon.config);
        return exit_code;
    }
    CHECK(uv_loop_init(&daemon.loop) == 0);
    exit_code = run(&daemon, &privilege);
    if (exit_code == STOPPED)
        exit_code = 0;
    clean_up(&daemon, exit_code);
    return exit_code;
}
