/*
 * admin_hooks.c -- the hooks of the HTTP endpoints; see admin_hooks.h.
 */
#include "daemon/admin_hooks.h"

#include "base/check.h"
#include "daemon/config_value.h"
#include "daemon/process.h"
#include "daemon/store_copy.h"
#include "file/file.h"
#include "store/store.h"

#include <unistd.h>

static bool is_ready(void *context, struct text *ret_reason)
{
    const struct admin_hooks *hooks = context;
    if (hooks->driver == NULL) {
        if (!takeover_explain(hooks->takeover, ret_reason))
            text_add(ret_reason, "starting");
        return false;
    }
    return driver_is_ready(hooks->driver, ret_reason);
}

/* The word of a choice that is in force. */
static const char *word_of(const char *name, uint32_t choice)
{
    const struct config_option *option = config_find(name);
    CHECK(option != NULL);
    return option->choices[choice];
}

static bool tell_option(void *context, uint32_t index, struct admin_option *ret)
{
    static const char *const origins[] = {"default", "file", "group", "command line"};
    const struct admin_hooks *hooks = context;
    if (index >= config_option_count)
        return false;
    const struct config_option *option = &config_options[index];
    bool is_monitor = hooks->config->role == CONFIG_MONITOR;
    uint32_t hidden = CONFIG_NO_KEY | (is_monitor ? CONFIG_NOT_OF_MONITOR : CONFIG_NOT_OF_SERVER);
    *ret = (struct admin_option){
        .name = (option->flags & hidden) != 0 ? NULL : option->name,
        .help = option->help,
        .default_text = option->default_text != NULL ? option->default_text : option->default_shown,
        .origin = origins[hooks->config->origins[index]],
    };
    return true;
}

static bool tell_option_value(void *context, uint32_t option, uint32_t index, struct text *ret)
{
    const struct admin_hooks *hooks = context;
    const struct config_option *row = &config_options[option];
    if (index >= config_value_count(hooks->config, row))
        return false;
    if (row->type == CONFIG_STORE)
        text_add(ret, hooks->store);
    else
        config_value_add(ret, hooks->config, row, index);
    return true;
}

static void tell_files(struct file_service *service, const struct core *core,
                       struct admin_files *ret)
{
    struct file_status status;
    struct core_status locks;
    file_get_status(service, &status);
    core_status(core, &locks);
    *ret = (struct admin_files){.is_served = true,
                                .exports = status.exports,
                                .open_files = status.open_files,
                                .calls = status.calls,
                                .queued = status.queued,
                                .refused = status.refused,
                                .sync_errors = status.sync_errors,
                                .sync_error_age_ns = status.sync_error_age_ns,
                                .repeats = status.repeats,
                                .has_local_locks = file_local_locks(service) != NULL,
                                .local_files = status.mirrored,
                                .local_waiting = locks.local_waiting,
                                .local_conflicts = locks.local_refused};
}

static void tell_facts(void *context, struct admin_facts *ret)
{
    struct admin_hooks *hooks = context;
    uint64_t now_ns = clock_now_ns(hooks->clock);
    *ret = (struct admin_facts){
        .now_ns = now_ns,
        .wall_ns = clock_wall_ns(hooks->clock),
        .uptime_ns = now_ns - hooks->start_ns,
        .store = hooks->store,
        .is_standby = hooks->config->standby && hooks->driver == NULL,
        .group = hooks->log->group,
        .rpcbind = word_of("rpcbind", hooks->config->rpcbind),
        .recovery = word_of("recovery", hooks->config->recovery),
        .places = hooks->places,
    };
    struct text why;
    text_init(&why, ret->not_found_why, sizeof ret->not_found_why);
    if (hooks->driver == NULL || hooks->registrar == NULL) {
        text_add(&why, "starting");
        return;
    }
    const struct commits *commits = driver_commits(hooks->driver);
    ret->commit_age_ns = commits_age_ns(commits);
    ret->commit_durations = &commits->meter.durations;
    ret->commit_writes = &commits->meter.writes;
    ret->commit_syncs = &commits->meter.syncs;
    ret->batch_records = &commits->meter.batch_records;
    ret->is_found = registrar_is_ready(hooks->registrar, &why);
    if (hooks->files != NULL)
        tell_files(files_service(hooks->files), hooks->admin.core, &ret->files);
}

static bool is_in_use(void *context)
{
    const struct admin_hooks *hooks = context;
    return clock_heard_lately(hooks->clock);
}

static void tell_process(void *context, struct admin_process *ret)
{
    const struct admin_hooks *hooks = context;
    process_read(ret);
    ret->start_wall_ns = hooks->start_wall_ns;
}

static bool tell_limit(void *context, uint32_t index, struct admin_limit *ret)
{
    const struct admin_hooks *hooks = context;
    struct file_status files = {0};
    if (hooks->wire == NULL || hooks->client == NULL)
        return false;
    uint32_t connections_max, connections = wire_connections(hooks->wire, &connections_max);
    if (hooks->files != NULL)
        file_get_status(files_service(hooks->files), &files);
    const struct admin_limit limits[] = {
        {"connections", "--max-connections", connections_max, connections, false},
        {"outgoing_calls", NULL, rpc_client_max(hooks->client), rpc_client_awaited(hooks->client),
         true},
        {"open_files", "LimitNOFILE=", files.open_max, files.open_files, true},
        {"nfs_calls", NULL, files.calls_max, files.calls, true},
        {"nfs_call_bytes", NULL, files.bytes_max, files.bytes, true},
    };
    if (index >= sizeof limits / sizeof limits[0] || limits[index].max == 0)
        return false; /* files come last, and are there all or not at all */
    *ret = limits[index];
    return true;
}

static enum admin_path tell_path(void *context, struct bytes fh, struct bytes *ret)
{
    const struct admin_hooks *hooks = context;
    if (hooks->files == NULL)
        return ADMIN_PATH_NONE;
    switch (files_get_path(hooks->files, fh, ret)) {
    case PATH_NONE:
        return ADMIN_PATH_NONE;
    case PATH_KNOWN:
        return ADMIN_PATH_KNOWN;
    case PATH_LATER:
        return ADMIN_PATH_LATER;
    case PATH_UNKNOWN:
        return ADMIN_PATH_UNKNOWN;
    }
    UNREACHABLE();
}

static const char *name_of(enum order_kind kind, bool is_monitor)
{
    switch (kind) {
    case ORDER_END_GRACE:
        return "end the grace period";
    case ORDER_RELEASE:
        return is_monitor ? "forget a host" : "release a client's locks";
    case ORDER_NOTIFY:
        return is_monitor ? "notify a host again" : "notify a client again";
    case ORDER_MOVE:
        return "move a client to another address";
    case ORDER_RESTART_NOTICE:
        return "notify every watched host of a restart";
    }
    UNREACHABLE();
}

static const char *name_of_result(enum order_result result)
{
    switch (result) {
    case ORDER_DONE:
        return "done";
    case ORDER_BEGUN:
        return "begun";
    case ORDER_NO_CLIENT:
        return "no such client";
    case ORDER_NOTHING:
        return "nothing to do";
    case ORDER_LATER:
        return "later";
    case ORDER_BAD_ADDRESS:
        return "not the address of a host";
    case ORDER_TAKEN:
        return "a client of that name holds locks there";
    case ORDER_NO_BYTES:
        return "no room for the address";
    }
    UNREACHABLE();
}

static void obey(void *context, const struct order *order, const struct admin_caller *who,
                 struct core_answer *ret)
{
    struct admin_hooks *hooks = context;
    *ret = (struct core_answer){.order_result = ORDER_LATER};
    if (hooks->driver != NULL)
        driver_order(hooks->driver, order, ret);
    if (ret->order_result == ORDER_LATER)
        return; /* it is given again in the next turn */
    char client[32], file[2 * RECORD_FH_MAX + 1], to[ADDRESS_TEXT_MAX];
    struct text id, hex;
    text_init(&id, client, sizeof client);
    text_add_char(&id, 'c');
    text_add_u64(&id, order->client);
    text_init(&hex, file, sizeof file);
    text_add_hex(&hex, order->fh);
    address_text(&order->to, to);
    bool is_move = order->kind == ORDER_MOVE;
    struct bytes path = {0};
    bool has_path = order->fh.len > 0 && tell_path(hooks, order->fh, &path) == ADMIN_PATH_KNOWN;
    const struct log_field fields[] = {
        LOG_MESSAGE("operator command"),
        LOG_TEXT("order", name_of(order->kind, hooks->log->is_monitor)),
        LOG_TEXT("result", name_of_result(ret->order_result)),
        LOG_NUMBER("uid", who->uid),
        LOG_NUMBER("pid", (uint64_t)who->pid),
        LOG_TEXT("client", client), /* these three are not part of every order */
        LOG_TEXT(is_move ? "to" : "file", is_move ? to : file),
        LOG_BYTES("path", path),
    };
    bool is_of_all = order->kind == ORDER_END_GRACE || order->kind == ORDER_RESTART_NOTICE;
    size_t absent = is_of_all ? 3 : order->fh.len == 0 && !is_move ? 2 : has_path ? 0 : 1;
    log_fields(hooks->log, LOG_LEVEL_WARNING, clock_wall_ns(hooks->clock), fields,
               sizeof fields / sizeof fields[0] - absent);
}

/* Not logged: a server of another protocol speaks of its clients all the time. */
static void track(void *context, const struct tracking *tracking, struct core_answer *ret)
{
    struct admin_hooks *hooks = context;
    *ret = (struct core_answer){.tracking.result = TRACKING_LATER};
    if (hooks->driver != NULL)
        driver_track(hooks->driver, tracking, ret);
}

static bool tell_export(void *context, uint32_t index, struct admin_export *ret)
{
    const struct admin_hooks *hooks = context;
    struct file_export_view view;
    if (hooks->files == NULL || !file_get_export(files_service(hooks->files), index, &view))
        return false;
    *ret = (struct admin_export){.directory = view.directory,
                                 .id = view.fsid,
                                 .client_count = view.client_count,
                                 .mounts = view.mounts,
                                 .open_files = view.open_files,
                                 .is_stuck = view.is_stuck};
    return true;
}

static bool tell_export_client(void *context, uint32_t index, uint32_t client,
                               struct admin_export_client *ret)
{
    const struct admin_hooks *hooks = context;
    const struct export_rights *rights;
    struct text options;
    if (hooks->files == NULL ||
        !file_get_client(files_service(hooks->files), index, client, &ret->name, &rights))
        return false;
    text_init(&options, ret->options, sizeof ret->options);
    export_line_add_rights(&options, rights);
    ret->is_async = rights->is_async;
    return true;
}

static bool tell_export_of(void *context, struct bytes fh, uint32_t *ret_id)
{
    const struct admin_hooks *hooks = context;
    return hooks->files != NULL && file_get_export_id(files_service(hooks->files), fh, ret_id);
}

static uint64_t start_reload(void *context, const struct admin_caller *who)
{
    struct admin_hooks *hooks = context;
    const struct log_field fields[] = {
        LOG_MESSAGE("operator command"), LOG_TEXT("order", "reload the options"),
        LOG_NUMBER("uid", who->uid), LOG_NUMBER("pid", (uint64_t)who->pid)};
    log_fields(hooks->log, LOG_LEVEL_WARNING, clock_wall_ns(hooks->clock), fields,
               sizeof fields / sizeof fields[0]);
    return reload_ask(hooks->reload);
}

static const struct admin_reload *tell_reload(void *context, uint64_t number)
{
    const struct admin_hooks *hooks = context;
    return reload_report(hooks->reload, number);
}

void admin_hooks_init(struct admin_hooks *hooks, const struct config *config, struct log *log,
                      struct clock *clock)
{
    *hooks = (struct admin_hooks){
        .admin = {.context = hooks,
                  .is_ready = is_ready,
                  .facts = tell_facts,
                  .is_in_use = is_in_use,
                  .process = tell_process,
                  .limit = tell_limit,
                  .option = tell_option,
                  .option_value = tell_option_value,
                  .export = tell_export,
                  .export_client = tell_export_client,
                  .export_of = tell_export_of,
                  .path = tell_path,
                  .obey = obey,
                  .track = track,
                  .reload = start_reload,
                  .reload_report = tell_reload,
                  .copy_begin = store_copy_begin,
                  .copy_read = store_copy_read,
                  .copy_end = store_copy_end},
        .config = config,
        .log = log,
        .clock = clock,
        .start_ns = clock_now_ns(clock),
        .start_wall_ns = clock_wall_ns(clock),
        .places = {.listen = config->listen.at, .listen_count = config->listen.count},
    };
    (void)gethostname(hooks->places.host, sizeof hooks->places.host - 1);
    store_show_url(config->store, hooks->store, sizeof hooks->store);
}
