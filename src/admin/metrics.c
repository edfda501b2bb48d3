/*
 * metrics.c -- what the server measures, as metrics; see metrics.h.
 *
 * Label values are constants of this program, except the names of shares, which are escaped.
 */
#include "admin/metrics.h"

#include "admin/list.h"
#include "admin/metric.h"
#include "admin/metrics_limits.h"
#include "admin/tracked.h"
#include "base/check.h"
#include "base/programs.h"
#include "base/units.h"

#include <stdlib.h>

enum { BODY_MAX = 512 * 1024 };

/* ---- calls ---- */

/* The words of a program, as its metrics begin. */
struct program_words {
    uint32_t number;
    const char *requests, *requests_help;
    const char *durations, *durations_help;
};

static const struct program_words program_words[] = {
    {NSM_PROGRAM, "nsm_requests_total", "Status monitor calls replied to.",
     "nsm_request_duration_seconds",
     "Time from reading a status monitor call to its reply, including the commit it waits for."},
    {NLM_PROGRAM, "nlm_requests_total", "Lock manager calls replied to.",
     "nlm_request_duration_seconds",
     "Time from reading a lock manager call to its reply, including the commit it waits for."},
    {NFS_PROGRAM, "nfs_requests_total", "NFS calls replied to.", "nfs_request_duration_seconds",
     "Time from reading an NFS call to its reply, including the sync it waits for."},
    {MOUNT_PROGRAM, "mount_requests_total", "MOUNT calls replied to.",
     "mount_request_duration_seconds", "Time from reading a MOUNT call to its reply."},
};

static void add_program(struct text *out, const struct meter *meter, uint32_t program,
                        const struct program_words *words)
{
    metric_begin(out, words->requests, "counter", words->requests_help);
    for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++) {
        const char *name = meter_name(meter, program, proc);
        if (name == NULL)
            continue;
        const struct meter_row *row = meter_at(meter, program, proc);
        struct metric_label procedure = {"procedure", name};
        metric_add(out, words->requests, &procedure, &(struct metric_label){"result", "success"},
                   row->succeeded);
        metric_add(out, words->requests, &procedure, &(struct metric_label){"result", "error"},
                   row->failed);
    }
    /* A procedure never called has no durations: most never are. */
    metric_begin(out, words->durations, "histogram", words->durations_help);
    for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++) {
        const char *name = meter_name(meter, program, proc);
        const struct meter_row *row = meter_at(meter, program, proc);
        if (name != NULL && (proc == 0 || row->succeeded + row->failed > 0))
            metric_histogram(out, words->durations, &(struct metric_label){"procedure", name},
                             &row->durations);
    }
}

static void add_calls(struct text *out, const struct meter *meter)
{
    for (size_t i = 0; i < sizeof program_words / sizeof program_words[0]; i++)
        for (uint32_t j = 0; j < meter->program_count; j++)
            if (meter->programs[j]->number == program_words[i].number)
                add_program(out, meter, j, &program_words[i]);
    metric_one(out, "holdfast_repeated_requests_total", "counter",
               "Retransmitted calls answered from the duplicate request cache.", meter->repeats);
    metric_one(out, "holdfast_unknown_requests_total", "counter",
               "Messages that were not a call to anything served here.", meter->unknown);
}

/* ---- the status monitor's side: clients, notifications, crashes ---- */

static void add_notifications(struct text *out, const struct core_status *status)
{
    static const char *const results[] = {"started", "success", "failed"};
    static const char *const ends[] = {"success", "failed"};
    const struct notify_counters *notify = &status->notify;
    const uint64_t counts[] = {notify->started, notify->succeeded, notify->failed};
    const uint64_t retries[] = {notify->retries_succeeded, notify->retries_failed};
    metric_one(out, "nsm_clients_registered", "gauge",
               "Clients that are notified of a restart: lock clients and SM_MON registrations.",
               (uint64_t)status->clients + status->registrants);
    metric_begin(out, "nsm_notifications_total", "counter",
                 "First attempts to notify a client of a restart.");
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        metric_add(out, "nsm_notifications_total", &(struct metric_label){"result", results[i]},
                   NULL, counts[i]);
    metric_begin(out, "nsm_notification_duration_seconds", "histogram",
                 "Duration of first attempts to notify a client of a restart.");
    metric_histogram(out, "nsm_notification_duration_seconds", NULL, status->notify_durations);
    metric_results(out, "holdfast_notify_retries_total",
                   "Later attempts to notify a client of a restart.", ends, retries);
    metric_one(
        out, "holdfast_notify_given_up_total", "counter",
        "Clients that could not be notified within --give-up, including SM_MON registrations.",
        notify->given_up);
}

static void add_clients(struct text *out, const struct core_status *status)
{
    metric_one(out, "holdfast_address_limit_refusals_total", "counter",
               "New clients, registrations, locks, locked files and waiting requests refused by "
               "--max-per-address.",
               status->quota.refused);
    metric_begin(
        out, "holdfast_evicted_records_total", "counter",
        "Records that held nothing and were removed to make room for a new one, by table.");
    metric_add(out, "holdfast_evicted_records_total", &(struct metric_label){"table", "clients"},
               NULL, status->quota.evicted_clients);
    metric_add(out, "holdfast_evicted_records_total",
               &(struct metric_label){"table", "registrants"}, NULL,
               status->quota.evicted_registrants);
    metric_one(out, "nsm_crashes_detected_total", "counter",
               "Clients found to have rebooted, or unreachable after a restart of this server.",
               status->reboots.crashes_detected);
    metric_one(out, "nsm_crash_cleanups_total", "counter",
               "Crashed clients whose locks were released.", status->reboots.cleanups);
    metric_one(out, "nsm_locks_cleaned_on_crash_total", "counter",
               "Locks and share reservations released because their client crashed.",
               status->reboots.locks_cleaned);
    metric_one(out, "holdfast_released_locks_total", "counter",
               "Locks and share reservations released by an operator.", status->reboots.released);
}

static void add_tracked(struct text *out, const struct core *core)
{
    struct view_protocol_counts counts;
    metric_begin(out, "holdfast_tracked_clients", "gauge",
                 "Clients of other protocols, by protocol and state.");
    for (uint32_t i = 0; view_protocol(core, i, &counts); i++) {
        char buffer[RECORD_PROTOCOL_MAX + 1] = "";
        if (counts.name.len == 0)
            continue;
        memcpy(buffer, counts.name.at, counts.name.len);
        for (uint32_t state = RECORD_TRACKED_CONNECTED; state <= RECORD_TRACKED_EXPIRED; state++)
            metric_add(
                out, "holdfast_tracked_clients", &(struct metric_label){"protocol", buffer},
                &(struct metric_label){"state", tracked_word((enum record_tracked_state)state)},
                counts.in[state]);
    }
}

/* The hosts that a monitor watches, and its calls to the lock manager of this machine. */
static void add_monitor(struct text *out, const struct core_status *status)
{
    static const char *const results[] = {"success", "failed"};
    const struct notify_counters *upcalls = &status->upcalls;
    const uint64_t counts[] = {upcalls->succeeded + upcalls->retries_succeeded,
                               upcalls->failed + upcalls->retries_failed};
    metric_one(out, "holdfast_monitor_hosts_owed", "gauge",
               "Hosts not yet notified of the last reboot of this machine.", status->hosts_owed);
    metric_one(
        out, "holdfast_monitor_unresolved_names", "gauge",
        "Watched hosts whose name does not resolve: they can be neither notified nor believed.",
        status->unresolved);
    metric_one(out, "holdfast_monitor_upcalls_owed", "gauge",
               "Hosts whose reboot the lock manager has not been told of yet.", upcalls->owed);
    metric_results(out, "holdfast_monitor_upcalls_total",
                   "Calls that tell the lock manager of a reboot of a host.", results, counts);
}

/* ---- locks, grace, store ---- */

static void add_locks(struct text *out, const struct core *core, const struct core_status *status,
                      uint64_t now_ns)
{
    static const char *const results[] = {"success", "denied", "failed"};
    const uint64_t counts[] = {status->grants.granted, status->grants.denied,
                               status->grants.failed};
    struct view_file_set share;
    metric_begin(out, "nlm_locks_held", "gauge",
                 "Byte-range locks held or being granted, by share.");
    for (uint32_t i = 0; view_file_set(core, i, &share); i++) {
        char buffer[512];
        struct text name;
        text_init(&name, buffer, sizeof buffer);
        text_add_escaped(&name, share.name, 100);
        metric_add(out, "nlm_locks_held", &(struct metric_label){"share", buffer}, NULL,
                   share.lock_count);
    }
    metric_one(out, "nlm_shares_held", "gauge", "Share reservations held.", status->shares);
    metric_one(out, "nlm_waiters", "gauge", "Requests waiting for a lock.", status->waiters);
    uint64_t since_ns = status->silent.oldest_since_ns;
    metric_one(out, "nlm_oldest_wait_seconds", "gauge",
               "Age of the oldest waiting request, to within a few seconds.",
               since_ns == 0 ? 0 : (now_ns - since_ns) / SECOND_NS);
    metric_one(out, "nlm_waits_on_silent_clients", "gauge",
               "Requests blocked by a client that does not answer.",
               status->silent.waits_on_silent);
    metric_begin(out, "nlm_granted_callbacks_total", "counter",
                 "Callbacks that granted a client the lock it waited for, by result.");
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        metric_add(out, "nlm_granted_callbacks_total", &(struct metric_label){"result", results[i]},
                   NULL, counts[i]);
}

static void add_grace(struct text *out, const struct core_status *status)
{
    static const char *const results[] = {"success", "denied"};
    const uint64_t counts[] = {status->reclaims.reclaims_granted, status->reclaims.reclaims_denied};
    metric_one(out, "holdfast_grace_active", "gauge",
               "1 during the grace period, when only reclaims are granted.", status->grace.is_on);
    metric_one(out, "holdfast_grace_remaining_seconds", "gauge",
               "Time left in the grace period, at most.",
               (status->grace.remaining_ns + SECOND_NS - 1) / SECOND_NS);
    metric_one(out, "holdfast_grace_unsettled_locks", "gauge", "Stored locks not reclaimed yet.",
               status->grace.unsettled);
    metric_one(
        out, "holdfast_grace_given_up_locks_total", "counter",
        "Stored locks and share reservations released after the grace period because they were "
        "not reclaimed.",
        status->reclaims.dropped);
    metric_results(out, "holdfast_reclaims_total", "Reclaims after a restart.", results, counts);
}

static void add_histogram(struct text *out, const char *name, const char *help,
                          const struct histogram *histogram)
{
    metric_begin(out, name, "histogram", help);
    metric_histogram(out, name, NULL, histogram);
}

static void add_store(struct text *out, const struct admin_facts *facts,
                      const struct core_status *status)
{
    if (facts->commit_durations != NULL) {
        add_histogram(out, "holdfast_store_commit_duration_seconds",
                      "Time the store took to commit a batch.", facts->commit_durations);
        add_histogram(out, "holdfast_store_commit_write_seconds",
                      "Of that, the time the store thread ran.", facts->commit_writes);
        add_histogram(out, "holdfast_store_commit_sync_seconds",
                      "Of that, the time it waited for the disk or the database.",
                      facts->commit_syncs);
        add_histogram(out, "holdfast_store_batch_records", "Records in one batch.",
                      facts->batch_records);
    }
    metric_one(out, "holdfast_store_durable_txn", "gauge", "Number of the last committed batch.",
               status->durable_txn);
    metric_one(out, "holdfast_store_has_room", "gauge",
               "0 while the store cannot reserve space and refuses new locks.", status->has_room);
    metric_seconds(out, "holdfast_store_commit_age_seconds", "gauge",
                   "Duration so far of the commit in progress.", facts->commit_age_ns);
    metric_one(out, "holdfast_rpcbind_registered", "gauge",
               "1 while clients can find the server through rpcbind, or need not.",
               facts->is_found);
    metric_one(out, "holdfast_uptime_seconds", "gauge", "Time since the server started.",
               facts->uptime_ns / SECOND_NS);
    metric_begin(out, "holdfast_build_info", "gauge", "Running version; always 1.");
    metric_add(out, "holdfast_build_info", &(struct metric_label){"version", HOLDFAST_VERSION},
               NULL, 1);
    if (facts->group == NULL)
        return;
    metric_begin(out, "holdfast_group_info", "gauge", "The group that is served; always 1.");
    metric_add(out, "holdfast_group_info", &(struct metric_label){"group", facts->group}, NULL, 1);
}

/* ---- files ---- */

/* Bytes that a procedure of NFS has read or written. */
static uint64_t bytes_of(const struct meter *meter, const char *procedure)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < meter->program_count; i++)
        for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++) {
            const char *name = meter_name(meter, i, proc);
            if (meter->programs[i]->number == NFS_PROGRAM && name != NULL &&
                strcmp(name, procedure) == 0)
                bytes += meter_at(meter, i, proc)->bytes;
        }
    return bytes;
}

static void add_files(struct text *out, const struct meter *meter, const struct admin_files *files)
{
    if (!files->is_served)
        return;
    metric_begin(out, "nfs_bytes_total", "counter",
                 "Bytes of files that clients have read and written.");
    metric_add(out, "nfs_bytes_total", &(struct metric_label){"direction", "read"}, NULL,
               bytes_of(meter, "READ"));
    metric_add(out, "nfs_bytes_total", &(struct metric_label){"direction", "write"}, NULL,
               bytes_of(meter, "WRITE"));
    metric_one(out, "nfs_exports", "gauge", "Exported directories.", files->exports);
    metric_one(out, "nfs_open_files", "gauge", "Files kept open.", files->open_files);
    metric_one(out, "nfs_queue_length", "gauge", "NFS and MOUNT calls that wait for a thread.",
               files->queued);
    metric_one(out, "nfs_calls_in_progress", "gauge", "NFS and MOUNT calls not answered yet.",
               files->calls);
    metric_one(out, "nfs_refused_total", "counter",
               "Calls told to come back later (JUKEBOX) because too many were in progress.",
               files->refused);
    metric_one(out, "nfs_sync_errors_total", "counter",
               "Failed syncs; after each one clients write their unsynced data again.",
               files->sync_errors);
    metric_one(out, "nfs_local_locked_files", "gauge",
               "Files whose NFS locks exclude programs on the server.", files->local_files);
    metric_one(out, "nfs_local_waiting", "gauge",
               "Requests that wait for a lock of a program on the server.", files->local_waiting);
    metric_one(out, "nfs_local_conflicts", "gauge",
               "Files with locks of NFS clients that programs on the server are not kept from.",
               files->local_conflicts);
    metric_one(out, "nfs_restart_repeats_total", "counter",
               "Calls that clients repeated after a restart and that had been executed before it.",
               files->repeats);
}

void metrics_answer(struct exchange *exchange)
{
    const struct admin *admin = exchange->admin;
    if (admin->meter == NULL) {
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "metrics are off", (struct bytes){0},
                       "the server was started with --metrics off");
        return;
    }
    char *body = malloc(BODY_MAX);
    if (body == NULL)
        return;
    struct text out;
    struct core_status status;
    struct admin_facts facts = {0};
    text_init(&out, body, BODY_MAX);
    core_status(admin->core, &status);
    admin->facts(admin->context, &facts);
    add_calls(&out, admin->meter);
    add_notifications(&out, &status);
    if (status.is_monitor) {
        add_monitor(&out, &status);
    } else {
        add_clients(&out, &status);
        add_locks(&out, admin->core, &status, facts.now_ns);
        add_grace(&out, &status);
        add_tracked(&out, admin->core);
    }
    add_store(&out, &facts, &status);
    add_files(&out, admin->meter, &facts.files);
    metrics_limits_add(&out, admin);
    CHECK(out.len < out.max); /* nothing was cut */
    exchange_body(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", body, out.len);
}
