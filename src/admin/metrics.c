/*
 * metrics.c -- Prometheus' text format, version 0.0.4; see metrics.h.
 *
 * A metric is written by begin() and one add() per sample. Label values are constants of this
 * program, except the names of shares, which are escaped.
 */
#include "admin/metrics.h"

#include "admin/list.h"
#include "base/check.h"
#include "base/programs.h"
#include "base/units.h"

#include <stdlib.h>

enum { BODY_MAX = 512 * 1024 };

static void begin(struct text *out, const char *name, const char *type, const char *help)
{
    text_add(out, "# HELP ");
    text_add(out, name);
    text_add_char(out, ' ');
    text_add(out, help);
    text_add(out, "\n# TYPE ");
    text_add(out, name);
    text_add_char(out, ' ');
    text_add(out, type);
    text_add_char(out, '\n');
}

/* A label and its value; `key` NULL: none. */
struct label {
    const char *key;
    const char *value;
};

static void add_label(struct text *out, const struct label *label, bool *is_open)
{
    if (label == NULL || label->key == NULL)
        return;
    text_add_char(out, *is_open ? ',' : '{');
    *is_open = true;
    text_add(out, label->key);
    text_add(out, "=\"");
    text_add(out, label->value);
    text_add_char(out, '"');
}

static void add_name(struct text *out, const char *name, const char *suffix,
                     const struct label *first, const struct label *second)
{
    bool is_open = false;
    text_add(out, name);
    text_add(out, suffix);
    add_label(out, first, &is_open);
    add_label(out, second, &is_open);
    text_add(out, is_open ? "} " : " ");
}

static void add(struct text *out, const char *name, const struct label *first,
                const struct label *second, uint64_t value)
{
    add_name(out, name, "", first, second);
    text_add_u64(out, value);
    text_add_char(out, '\n');
}

/* One sample without labels. */
static void add_one(struct text *out, const char *name, const char *type, const char *help,
                    uint64_t value)
{
    begin(out, name, type, help);
    add(out, name, NULL, NULL, value);
}

static void add_seconds(struct text *out, uint64_t ns)
{
    text_add_u64(out, ns / SECOND_NS);
    text_add_char(out, '.');
    for (uint64_t unit = SECOND_NS / 10; unit > 0; unit /= 10)
        text_add_char(out, (char)('0' + ns / unit % 10));
}

static void add_histogram(struct text *out, const char *name, const struct label *label,
                          const struct histogram *histogram)
{
    const struct histogram_scale *scale = histogram->scale;
    uint64_t below = 0;
    for (uint32_t i = 0; i < scale->count; i++) {
        below += histogram->counts[i];
        struct label le = {"le", scale->texts[i]};
        add_name(out, name, "_bucket", label, &le);
        text_add_u64(out, below);
        text_add_char(out, '\n');
    }
    below += histogram->counts[scale->count];
    add_name(out, name, "_bucket", label, &(struct label){"le", "+Inf"});
    text_add_u64(out, below);
    text_add_char(out, '\n');
    add_name(out, name, "_sum", label, NULL);
    if (scale == &histogram_durations)
        add_seconds(out, histogram->sum);
    else
        text_add_u64(out, histogram->sum);
    text_add_char(out, '\n');
    add_name(out, name, "_count", label, NULL);
    text_add_u64(out, below);
    text_add_char(out, '\n');
}

/* Two results of one counter. */
static void add_results(struct text *out, const char *name, const char *help,
                        const char *const words[2], const uint64_t values[2])
{
    begin(out, name, "counter", help);
    for (int i = 0; i < 2; i++)
        add(out, name, &(struct label){"result", words[i]}, NULL, values[i]);
}

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
    begin(out, words->requests, "counter", words->requests_help);
    for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++) {
        const char *name = meter_name(meter, program, proc);
        if (name == NULL)
            continue;
        const struct meter_row *row = meter_at(meter, program, proc);
        struct label procedure = {"procedure", name};
        add(out, words->requests, &procedure, &(struct label){"result", "success"}, row->succeeded);
        add(out, words->requests, &procedure, &(struct label){"result", "error"}, row->failed);
    }
    /* A procedure never called has no durations: most never are. */
    begin(out, words->durations, "histogram", words->durations_help);
    for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++) {
        const char *name = meter_name(meter, program, proc);
        const struct meter_row *row = meter_at(meter, program, proc);
        if (name != NULL && (proc == 0 || row->succeeded + row->failed > 0))
            add_histogram(out, words->durations, &(struct label){"procedure", name},
                          &row->durations);
    }
}

static void add_calls(struct text *out, const struct meter *meter)
{
    for (size_t i = 0; i < sizeof program_words / sizeof program_words[0]; i++)
        for (uint32_t j = 0; j < meter->program_count; j++)
            if (meter->programs[j]->number == program_words[i].number)
                add_program(out, meter, j, &program_words[i]);
    add_one(out, "holdfast_repeated_requests_total", "counter",
            "Retransmitted calls answered from the duplicate request cache.", meter->repeats);
    add_one(out, "holdfast_unknown_requests_total", "counter",
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
    add_one(out, "nsm_clients_registered", "gauge",
            "Clients that are notified of a restart: lock clients and SM_MON registrations.",
            (uint64_t)status->clients + status->registrants);
    begin(out, "nsm_notifications_total", "counter",
          "First attempts to notify a client of a restart.");
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        add(out, "nsm_notifications_total", &(struct label){"result", results[i]}, NULL, counts[i]);
    begin(out, "nsm_notification_duration_seconds", "histogram",
          "Duration of first attempts to notify a client of a restart.");
    add_histogram(out, "nsm_notification_duration_seconds", NULL, status->notify_durations);
    add_results(out, "holdfast_notify_retries_total",
                "Later attempts to notify a client of a restart.", ends, retries);
    add_one(out, "holdfast_notify_given_up_total", "counter",
            "Clients that could not be notified within --give-up, including SM_MON registrations.",
            notify->given_up);
}

static void add_clients(struct text *out, const struct core_status *status)
{
    add_one(out, "holdfast_address_limit_refusals_total", "counter",
            "New clients, registrations, locks, locked files and waiting requests refused by "
            "--max-per-address.",
            status->quota.refused);
    begin(out, "holdfast_evicted_records_total", "counter",
          "Records that held nothing and were removed to make room for a new one, by table.");
    add(out, "holdfast_evicted_records_total", &(struct label){"table", "clients"}, NULL,
        status->quota.evicted_clients);
    add(out, "holdfast_evicted_records_total", &(struct label){"table", "registrants"}, NULL,
        status->quota.evicted_registrants);
    add_one(out, "nsm_crashes_detected_total", "counter",
            "Clients found to have rebooted, or unreachable after a restart of this server.",
            status->reboots.crashes_detected);
    add_one(out, "nsm_crash_cleanups_total", "counter",
            "Crashed clients whose locks were released.", status->reboots.cleanups);
    add_one(out, "nsm_locks_cleaned_on_crash_total", "counter",
            "Locks and share reservations released because their client crashed.",
            status->reboots.locks_cleaned);
    add_one(out, "holdfast_released_locks_total", "counter",
            "Locks and share reservations released by an operator.", status->reboots.released);
}

/* The hosts that a monitor watches, and its calls to the lock manager of this machine. */
static void add_monitor(struct text *out, const struct core_status *status)
{
    static const char *const results[] = {"success", "failed"};
    const struct notify_counters *upcalls = &status->upcalls;
    const uint64_t counts[] = {upcalls->succeeded + upcalls->retries_succeeded,
                               upcalls->failed + upcalls->retries_failed};
    add_one(out, "holdfast_monitor_hosts_owed", "gauge",
            "Hosts not yet notified of the last reboot of this machine.", status->hosts_owed);
    add_one(out, "holdfast_monitor_unresolved_names", "gauge",
            "Watched hosts whose name does not resolve: they can be neither notified nor believed.",
            status->unresolved);
    add_one(out, "holdfast_monitor_upcalls_owed", "gauge",
            "Hosts whose reboot the lock manager has not been told of yet.", upcalls->owed);
    add_results(out, "holdfast_monitor_upcalls_total",
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
    begin(out, "nlm_locks_held", "gauge", "Byte-range locks held or being granted, by share.");
    for (uint32_t i = 0; view_file_set(core, i, &share); i++) {
        char buffer[512];
        struct text name;
        text_init(&name, buffer, sizeof buffer);
        text_add_escaped(&name, share.name, 100);
        add(out, "nlm_locks_held", &(struct label){"share", buffer}, NULL, share.lock_count);
    }
    add_one(out, "nlm_shares_held", "gauge", "Share reservations held.", status->shares);
    add_one(out, "nlm_waiters", "gauge", "Requests waiting for a lock.", status->waiters);
    uint64_t since_ns = status->silent.oldest_since_ns;
    add_one(out, "nlm_oldest_wait_seconds", "gauge",
            "Age of the oldest waiting request, to within a few seconds.",
            since_ns == 0 ? 0 : (now_ns - since_ns) / SECOND_NS);
    add_one(out, "nlm_waits_on_silent_clients", "gauge",
            "Requests blocked by a client that does not answer.", status->silent.waits_on_silent);
    begin(out, "nlm_granted_callbacks_total", "counter",
          "Callbacks that granted a client the lock it waited for, by result.");
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        add(out, "nlm_granted_callbacks_total", &(struct label){"result", results[i]}, NULL,
            counts[i]);
}

static void add_grace(struct text *out, const struct core_status *status)
{
    static const char *const results[] = {"success", "denied"};
    const uint64_t counts[] = {status->reclaims.reclaims_granted, status->reclaims.reclaims_denied};
    add_one(out, "holdfast_grace_active", "gauge",
            "1 during the grace period, when only reclaims are granted.", status->grace.is_on);
    add_one(out, "holdfast_grace_remaining_seconds", "gauge",
            "Time left in the grace period, at most.",
            (status->grace.remaining_ns + SECOND_NS - 1) / SECOND_NS);
    add_one(out, "holdfast_grace_unsettled_locks", "gauge", "Stored locks not reclaimed yet.",
            status->grace.unsettled);
    add_one(out, "holdfast_grace_given_up_locks_total", "counter",
            "Stored locks and share reservations released after the grace period because they were "
            "not reclaimed.",
            status->reclaims.dropped);
    add_results(out, "holdfast_reclaims_total", "Reclaims after a restart.", results, counts);
}

static void add_store(struct text *out, const struct admin_facts *facts,
                      const struct core_status *status)
{
    if (facts->commit_durations != NULL) {
        begin(out, "holdfast_store_commit_duration_seconds", "histogram",
              "Time the store took to commit a batch.");
        add_histogram(out, "holdfast_store_commit_duration_seconds", NULL, facts->commit_durations);
        begin(out, "holdfast_store_batch_records", "histogram", "Records in one batch.");
        add_histogram(out, "holdfast_store_batch_records", NULL, facts->batch_records);
    }
    add_one(out, "holdfast_store_durable_txn", "gauge", "Number of the last committed batch.",
            status->durable_txn);
    add_one(out, "holdfast_store_has_room", "gauge",
            "0 while the store cannot reserve space and refuses new locks.", status->has_room);
    begin(out, "holdfast_store_commit_age_seconds", "gauge",
          "Duration so far of the commit in progress.");
    add_name(out, "holdfast_store_commit_age_seconds", "", NULL, NULL);
    add_seconds(out, facts->commit_age_ns);
    text_add_char(out, '\n');
    add_one(out, "holdfast_rpcbind_registered", "gauge",
            "1 while clients can find the server through rpcbind, or need not.", facts->is_found);
    add_one(out, "holdfast_uptime_seconds", "gauge", "Time since the server started.",
            facts->uptime_ns / SECOND_NS);
    begin(out, "holdfast_build_info", "gauge", "Running version; always 1.");
    add(out, "holdfast_build_info", &(struct label){"version", HOLDFAST_VERSION}, NULL, 1);
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
    begin(out, "nfs_bytes_total", "counter", "Bytes of files that clients have read and written.");
    add(out, "nfs_bytes_total", &(struct label){"direction", "read"}, NULL,
        bytes_of(meter, "READ"));
    add(out, "nfs_bytes_total", &(struct label){"direction", "write"}, NULL,
        bytes_of(meter, "WRITE"));
    add_one(out, "nfs_exports", "gauge", "Exported directories.", files->exports);
    add_one(out, "nfs_open_files", "gauge", "Files kept open.", files->open_files);
    add_one(out, "nfs_queue_length", "gauge", "NFS and MOUNT calls that wait for a thread.",
            files->queued);
    add_one(out, "nfs_calls_in_progress", "gauge", "NFS and MOUNT calls not answered yet.",
            files->calls);
    add_one(out, "nfs_refused_total", "counter",
            "Calls told to come back later (JUKEBOX) because too many were in progress.",
            files->refused);
    add_one(out, "nfs_sync_errors_total", "counter",
            "Failed syncs; after each one clients write their unsynced data again.",
            files->sync_errors);
    add_one(out, "nfs_local_locked_files", "gauge",
            "Files whose NFS locks exclude programs on the server.", files->local_files);
    add_one(out, "nfs_local_waiting", "gauge",
            "Requests that wait for a lock of a program on the server.", files->local_waiting);
    add_one(out, "nfs_local_conflicts", "gauge",
            "Files with locks of NFS clients that programs on the server are not kept from.",
            files->local_conflicts);
    add_one(out, "nfs_restart_repeats_total", "counter",
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
    }
    add_store(&out, &facts, &status);
    add_files(&out, admin->meter, &facts.files);
    CHECK(out.len < out.max); /* nothing was cut */
    exchange_body(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", body, out.len);
}
