/*
 * start_store.c -- see start_store.h.
 */
#include "daemon/start_store.h"

#include "base/check.h"
#include "base/units.h"
#include "proto/mount.h"
#include "proto/nfs.h"
#include "proto/nlm.h"
#include "proto/nsm.h"

#include <errno.h>
#include <stdlib.h>

enum {
    OUTBOX_MAX = 16384,    /* answers that may wait for one commit */
    CACHE_PER_CLIENT = 32, /* R-DRC-1 */
    CACHE_MIN = 65536,
    CACHE_LIMIT = 1048576,
    CACHE_OF_MONITOR = 8192, /* its callers are few, and repeat little */
    OUTBOX_OF_MONITOR = 4096,
    MESSAGES_BURST = 2000, /* over UDP, per address (R-SEC-6) */
    MESSAGES_PER_SECOND = 1000,
    RECORDS_PER_FEED = 4096, /* some milliseconds of loading */
};

/* Those of files last: without --export they are not served. */
static const struct program *const programs[] = {&nlm_program, &nsm_program, &nfs_program,
                                                 &mount_program};
enum { PROGRAM_COUNT = sizeof programs / sizeof programs[0], LOCK_PROGRAM_COUNT = 2 };

/* Where clients find us, for those who list groups. */
static void write_address(const struct config *config, char *buffer, uint32_t size)
{
    struct text text;
    text_init(&text, buffer, size);
    for (uint32_t i = 0; i < config->listen.count; i++) {
        text_add(&text, i > 0 ? ", " : "");
        text_add_address(&text, &config->listen.at[i]);
    }
    if (config->listen.count == 0)
        text_add(&text, "all addresses");
}

int start_store_open(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    char addresses[STORE_GROUPS_MAX][256];
    struct store_options options = {.sync_process = config->sync == CONFIG_SYNC_PROCESS,
                                    .is_server = true,
                                    .is_standby = config->standby,
                                    .timeout_ns = config->store_timeout_s * SECOND_NS};
    struct store_failure failure;
    options.group_count = config_group_list(&config->group_names, options.groups);
    for (uint32_t i = 0; i == 0 || i < options.group_count; i++) {
        write_address(daemon->group_configs != NULL ? &daemon->group_configs[i] : config,
                      addresses[i], sizeof addresses[i]);
        options.addresses[i] = addresses[i];
    }
    daemon->lease.is_shared = store_url_is_shared(config->store);
    daemon->takeover = takeover_new(&daemon->loop, &daemon->log, &daemon->clock, &daemon->lease);
    daemon->hooks.takeover = daemon->takeover;
    if (daemon->takeover == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_STORE, "out of memory");
    daemon->store = daemon->lease.is_shared
                        ? takeover_open(daemon->takeover, config->store, &options, &failure)
                        : store_open(config->store, &options, &failure);
    if (daemon->store != NULL) {
        store_summarize(daemon->store, &daemon->summary);
        daemon_join_group(daemon, daemon->summary.group);
        daemon->lease.raised_ns = store_checked_ns(daemon->store);
        lease_renew(&daemon->lease, daemon->lease.raised_ns);
        return 0;
    }
    if (failure.exit_code == 0)
        return DAEMON_STOPPED;
    return daemon_fail(daemon, failure.exit_code, failure.text);
}

int start_store_take_over(struct daemon *daemon)
{
    if (daemon->config.standby)
        log_say(&daemon->log, LOG_LEVEL_INFO, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("this server is now active"));
    const char *hook = daemon->config.takeover_hook;
    if (hook != NULL && daemon->log.group != NULL)
        CHECK(setenv("HOLDFAST_GROUP", daemon->log.group, 1) == 0);
    struct store_failure failure;
    int result =
        hook == NULL ? 0 : takeover_run_hook(daemon->takeover, daemon->store, hook, &failure);
    if (result == -ECANCELED)
        return DAEMON_STOPPED;
    return result == 0 ? 0 : daemon_fail(daemon, failure.exit_code, failure.text);
}

static int load_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct daemon *daemon = context;
    if (++daemon->loaded_count % RECORDS_PER_FEED == 0)
        watchdog_feed(&daemon->watchdog);
    switch (core_load(daemon->core, kind, slot, value)) {
    case RECORD_GOOD:
    case RECORD_CORRUPT: /* the core reports it and marks the store incomplete */
        log_drain(&daemon->log, core_events(daemon->core), clock_now_ns(&daemon->clock),
                  clock_wall_ns(&daemon->clock));
        return 0;
    case RECORD_NEWER:
        return DAEMON_EXIT_NEWER;
    }
    UNREACHABLE();
}

static struct core_limits limits_of(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    bool is_monitor = config->role == CONFIG_MONITOR;
    struct core_limits limits = {
        .clients_max = config->clients_max,
        .locks_max = config->locks_max,
        .locks_per_client_max = config->locks_per_client_max,
        .waiters_max = config->waiters_max,
        .per_address_percent = config->per_address_percent,
        .local_files_max = daemon->files_mirrored_max,
        .bytes_max = config->bytes_max,
        .batch_puts_max = STORE_BATCH_PUTS_MAX - CORE_PUTS_PER_REQUEST_MAX,
        .mon_from_loopback = config->mon_from == CONFIG_MON_FROM_LOOPBACK,
        .server_name = names_first(daemon->names),
        .file_sets = daemon->file_sets,
        .file_set_count = config_share_list(&config->shares, daemon->file_sets),
        .notify_timeout_ns = config->notify_timeout_s * SECOND_NS,
        .window_ns = config->recovery_window_s * SECOND_NS,
        .windows = daemon->windows,
        .window_count = config_window_list(&config->windows, daemon->windows),
        .give_up_ns = config->give_up_s * SECOND_NS,
        .grace_ns = config->grace_s * SECOND_NS,
        .hold_unreachable = config->unreachable == CONFIG_HOLD,
        .trust_reclaim = config->trust_reclaim,
        .distrust_state = config->trust_state == CONFIG_OFF,
        .verify_notices = config->verify_notify == CONFIG_VERIFY_ALWAYS,
        .resume = config->recovery == CONFIG_RESUME,
        .lease = &daemon->lease,
        .is_monitor = is_monitor,
        .has_callout = config->callout != NULL,
        .notify_after_ns = config->notify_after_s * SECOND_NS,
        .unmon_all_notifies = config->unmon_all == CONFIG_UNMON_NOTIFY,
        .lockd_restart_notifies = config->lockd_restart == CONFIG_LOCKD_NOTIFY};
    limits.name_count = names_list(daemon->names, &limits.names);
    if (is_monitor) /* of its own names a host knows the one that its lock manager says */
        limits.name_count = config->names.count;
    memcpy(limits.slots_used, daemon->summary.slots_used, sizeof limits.slots_used);
    return limits;
}

int start_store_load(struct daemon *daemon)
{
    struct store_failure failure;
    if (daemon->summary.note[0] != '\0')
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE(daemon->summary.note));

    daemon->names = names_new(&daemon->loop, &daemon->config);
    if (daemon->names == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, "out of memory");
    struct core_limits limits = limits_of(daemon);
    daemon->core = core_new(&limits, daemon_seed());
    if (daemon->core == NULL)
        return daemon_fail(
            daemon, DAEMON_EXIT_USAGE,
            "cannot reserve memory for the tables; lower --max-locks, --max-waiters, "
            "--max-clients or --max-bytes");
    int result = store_load(daemon->store, load_record, daemon, &failure);
    if (result == DAEMON_EXIT_NEWER)
        return daemon_fail(daemon, DAEMON_EXIT_NEWER,
                           "the store was written by a newer holdfast; run that version, or use "
                           "another --store. Nothing was changed");
    if (result != 0)
        return daemon_fail(daemon, failure.exit_code, failure.text);
    uint32_t refused = core_loaded(daemon->core);
    if (refused > 0) {
        log_drain(&daemon->log, core_events(daemon->core), clock_now_ns(&daemon->clock),
                  clock_wall_ns(&daemon->clock));
        /* There may be more than events that fit. */
        log_say(&daemon->log, LOG_LEVEL_ERROR, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("removed locks that contradict others"), LOG_NUMBER("locks", refused));
    }
    watchdog_feed(&daemon->watchdog);
    if (!core_is_of_role(daemon->core))
        return daemon_fail(daemon, DAEMON_EXIT_USAGE,
                           limits.is_monitor
                               ? "the store is of a lock server; use another --store, or "
                                 "--role server. Nothing was changed"
                               : "the store is of a status monitor; use another --store, or "
                                 "--role monitor. Nothing was changed");
    return 0;
}

/* Until when a server that does not know that it was replaced, or its kernel, may call (025). */
static uint64_t echo_until_ns(struct daemon *daemon)
{
    uint64_t left_ns = lease_echoes_left_ns(&daemon->lease, clock_boot_ns());
    return left_ns == 0 ? 0 : clock_now_ns(&daemon->clock) + left_ns;
}

int start_store_boot(struct daemon *daemon)
{
    struct core_boot boot = {
        .now_ns = clock_now_ns(&daemon->clock),
        .wall_ns = clock_wall_ns(&daemon->clock),
        .may_have_lost = daemon->summary.may_have_lost || daemon->config.assume_lost,
        .echo_until_ns = echo_until_ns(daemon),
        .netns = daemon->identity.netns,
    };
    memcpy(boot.boot, daemon->identity.boot, sizeof boot.boot);
    core_start(daemon->core, &boot);
    const struct config *config = &daemon->config;
    uint64_t cache = (uint64_t)config->clients_max * CACHE_PER_CLIENT;
    bool is_monitor = config->role == CONFIG_MONITOR;
    cache = is_monitor            ? CACHE_OF_MONITOR
            : cache < CACHE_MIN   ? CACHE_MIN
            : cache > CACHE_LIMIT ? CACHE_LIMIT
                                  : cache;
    uint32_t outbox = is_monitor ? OUTBOX_OF_MONITOR : OUTBOX_MAX;
    struct rpc_server_limits limits = {.outbox_max = outbox,
                                       .cache_max = (uint32_t)cache,
                                       .require_privileged_port = config->require_privileged_port,
                                       .trusts_registrations = is_monitor,
                                       .lease = &daemon->lease,
                                       .messages_burst = MESSAGES_BURST,
                                       .messages_per_second = MESSAGES_PER_SECOND,
                                       .is_metered = config->metrics == CONFIG_ON};
    bool has_files = files_is_wanted(config);
    limits.away_max = has_files ? FILES_CALLS_MAX : 0;
    uint32_t first = is_monitor ? 1 : 0; /* without the lock manager */
    uint32_t end = has_files ? PROGRAM_COUNT : LOCK_PROGRAM_COUNT;
    daemon->server =
        rpc_server_new(&limits, programs + first, end - first, daemon->core, daemon_seed());
    if (daemon->server == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE,
                           "cannot reserve memory for replies; lower --max-clients");
    rpc_server_set_allowed(daemon->server, config->allow.at, config->allow.count);

    struct store_batch batch;
    struct store_failure failure;
    CHECK(core_take_batch(daemon->core, &batch));
    if (store_commit(daemon->store, &batch, &failure) != 0)
        return daemon_fail(daemon, failure.exit_code, failure.text);
    lease_renew(&daemon->lease, store_checked_ns(daemon->store));
    rpc_server_stored(daemon->server, batch.txn, store_has_room(daemon->store),
                      clock_now_ns(&daemon->clock), clock_wall_ns(&daemon->clock));
    return 0;
}
