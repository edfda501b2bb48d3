/*
 * reload.c -- see reload.h.
 *
 * Always true:
 *  (1) What is in force changes in take() alone, on the loop's thread, after everything that can
 *      fail has succeeded.
 *  (2) While a reading is in progress nobody else touches what it fills in.
 */
#include "daemon/reload.h"

#include "base/check.h"
#include "daemon/config_change.h"
#include "daemon/reload_report.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct reload {
    struct reload_parts parts;
    struct core *core; /* NULL: we do not serve */
    struct rpc_server *server;
    struct names *names;
    struct files *files;
    uv_signal_t hang_up;
    bool is_reading, is_asked_again, is_closed;
    uint64_t begun, over; /* numbers of readings */
    struct reload_report report;

    /* Of the reading in progress; the thread's until it is over. */
    uv_work_t work;
    char group[STORE_GROUP_NAME_MAX + 1]; /* that is served; a copy: the options are the loop's */
    struct config fresh;
    struct export_table *exports; /* NULL: refused, or none are served */
    bool is_good;                 /* `fresh` is there, and `exports` if it must be */
    bool has_fresh;
};

static void say(const struct reload *reload, enum log_level level, const struct log_field *fields,
                size_t count)
{
    log_fields(reload->parts.log, level, clock_wall_ns(reload->parts.clock), fields, count);
}

/* ---- on a thread of libuv ---- */

static void read_all(uv_work_t *work)
{
    struct reload *reload = work->data;
    struct text why;
    text_init(&why, reload->report.why, sizeof reload->report.why);
    reload->has_fresh = config_read_group(reload->parts.argc, reload->parts.argv,
                                          reload->group[0] != '\0' ? reload->group : NULL,
                                          &reload->fresh, &why) == 0;
    reload->is_good = reload->has_fresh;
    if (!reload->has_fresh || reload->files == NULL)
        return;
    reload->exports = files_prepare(reload->files, &reload->fresh, &why);
    reload->is_good = reload->exports != NULL;
}

/* ---- on the loop ---- */

static void tell_core(struct reload *reload)
{
    const struct config *config = reload->parts.config;
    names_change(reload->names, config);
    struct core_changes changes = {.locks_per_client_max = config->locks_per_client_max,
                                   .per_address_percent = config->per_address_percent,
                                   .server_name = names_first(reload->names)};
    changes.name_count = names_list(reload->names, &changes.names);
    if (config->role == CONFIG_MONITOR)
        changes.name_count = config->names.count;
    core_change(reload->core, &changes);
}

/* The core and the names point into the options: they are told before the old ones go. */
static void take(struct reload *reload)
{
    struct config *config = reload->parts.config;
    config_change_take(config, &reload->fresh);
    tell_core(reload);
    rpc_server_set_allowed(reload->server, config->allow.at, config->allow.count);
    log_set(reload->parts.log, config->log_level, config->log_format);
    if (reload->exports != NULL)
        files_take(reload->files, reload->exports);
    reload->exports = NULL;
    reload->report.told.is_done = true;
}

static void log_report(const struct reload *reload)
{
    const struct admin_reload *told = &reload->report.told;
    if (!told->is_done) {
        const struct log_field fields[] = {LOG_MESSAGE("cannot reload; nothing has changed"),
                                           LOG_TEXT("cause", told->why)};
        say(reload, LOG_LEVEL_ERROR, fields, 2);
        return;
    }
    for (uint32_t i = 0; i < told->change_count; i++) {
        const struct admin_change *change = &told->changes[i];
        const struct log_field fields[] = {
            LOG_MESSAGE("option changed"), LOG_TEXT("option", change->option),
            LOG_TEXT("from", change->from != NULL ? change->from : "none"),
            LOG_TEXT("to", change->to != NULL ? change->to : "none")};
        say(reload, LOG_LEVEL_INFO, fields, 4);
    }
    for (uint32_t i = 0; i < told->restart_count; i++) {
        const struct log_field fields[] = {LOG_MESSAGE("option stays as it is until a restart"),
                                           LOG_TEXT("option", told->needs_restart[i])};
        say(reload, LOG_LEVEL_WARNING, fields, 2);
    }
    const struct log_field fields[] = {LOG_MESSAGE("reloaded"),
                                       LOG_NUMBER("changes", told->change_count)};
    say(reload, LOG_LEVEL_INFO, fields, 2);
}

static void begin(struct reload *reload);

static void on_read(uv_work_t *work, int status)
{
    struct reload *reload = work->data;
    struct reload_report *report = &reload->report;
    reload->is_reading = false;
    reload->over = reload->begun;
    if (reload->is_good && !reload->is_closed && status == 0) {
        const struct export_table *now =
            reload->files == NULL ? NULL : file_exports(files_service(reload->files));
        if (reload_report_compare(report, reload->parts.config, &reload->fresh, now,
                                  reload->exports)) {
            take(reload);
        } else {
            struct text why;
            text_init(&why, report->why, sizeof report->why);
            text_add(&why, "out of memory");
        }
    }
    if (reload->exports != NULL)
        file_drop(reload->exports);
    reload->exports = NULL;
    if (reload->has_fresh)
        config_done(&reload->fresh);
    reload->has_fresh = false;
    if (reload->is_closed)
        return;
    log_report(reload);
    if (reload->is_asked_again)
        begin(reload);
}

static void begin(struct reload *reload)
{
    reload->is_asked_again = false;
    reload->is_reading = true;
    reload->is_good = false;
    reload->begun++;
    memcpy(reload->group, reload->parts.config->group, sizeof reload->group);
    reload_report_begin(&reload->report);
    reload->work.data = reload;
    CHECK(uv_queue_work(reload->parts.loop, &reload->work, read_all, on_read) == 0);
}

uint64_t reload_ask(struct reload *reload)
{
    CHECK(reload->core != NULL);
    if (!reload->is_reading) {
        begin(reload);
        return reload->begun;
    }
    reload->is_asked_again = true;
    return reload->begun + 1;
}

const struct admin_reload *reload_report(const struct reload *reload, uint64_t number)
{
    return reload->over >= number && !reload->is_reading ? &reload->report.told : NULL;
}

static void on_hang_up(uv_signal_t *handle, int number)
{
    struct reload *reload = handle->data;
    (void)number;
    if (reload->core != NULL) {
        (void)reload_ask(reload);
        return;
    }
    const struct log_field fields[] = {
        LOG_MESSAGE("cannot reload: this server does not serve yet; restart it if its options are "
                    "to change before it does")};
    say(reload, LOG_LEVEL_WARNING, fields, 1);
}

/* ---- life ---- */

struct reload *reload_new(const struct reload_parts *parts)
{
    struct reload *reload = calloc(1, sizeof *reload);
    if (reload == NULL)
        return NULL;
    reload->parts = *parts;
    CHECK(uv_signal_init(parts->loop, &reload->hang_up) == 0);
    reload->hang_up.data = reload;
    CHECK(uv_signal_start(&reload->hang_up, on_hang_up, SIGHUP) == 0);
    uv_unref((uv_handle_t *)&reload->hang_up);
    return reload;
}

void reload_serve(struct reload *reload, struct core *core, struct rpc_server *server,
                  struct names *names, struct files *files)
{
    reload->core = core;
    reload->server = server;
    reload->names = names;
    reload->files = files;
}

bool reload_close(struct reload *reload)
{
    if (reload == NULL)
        return true;
    reload->is_closed = true;
    uv_close((uv_handle_t *)&reload->hang_up, NULL);
    return !reload->is_reading || uv_cancel((uv_req_t *)&reload->work) == 0;
}

void reload_free(struct reload *reload)
{
    if (reload == NULL)
        return;
    reload_report_done(&reload->report);
    free(reload);
}
