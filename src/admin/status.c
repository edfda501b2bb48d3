/*
 * status.c -- the state of the server in one JSON object; see status.h.
 *
 * It costs the same whatever is stored: the core keeps counts, and of the clients a recovery waits
 * for WAITING_SHOWN are named and SLOTS_LOOKED_AT examined; `waiting_for_more` says that there are
 * others.
 */
#include "admin/status.h"

#include "admin/attention.h"
#include "admin/blockers.h"
#include "admin/exports.h"
#include "admin/limit.h"
#include "admin/list.h"
#include "admin/samples.h"
#include "base/units.h"

enum {
    WAITING_SHOWN = 20,
    SILENT_SHOWN = 20,
    SLOTS_LOOKED_AT = 20000,
};

static void add_seconds_ago(struct writer *out, const char *key, uint64_t then_ns, uint64_t now_ns)
{
    if (then_ns == 0)
        writer_null(out, key);
    else
        writer_number(out, key, (now_ns - then_ns) / SECOND_NS);
}

static void add_waiting(struct writer *out, const struct view_client *view, uint64_t now_ns)
{
    writer_object(out, NULL);
    writer_id(out, "id", view->id);
    writer_bytes(out, "name", view->name);
    writer_address(out, "address", &view->address);
    writer_number(out, "unsettled_locks", view->unsettled_count);
    writer_number(out, "reclaimed", view->reclaimed_count);
    writer_text(out, "notification", list_word_of_news(view->news));
    writer_number(out, "attempts", view->attempt_count);
    add_seconds_ago(out, "reached_seconds_ago", view->reached_ns, now_ns);
    add_seconds_ago(out, "told_seconds_ago", view->told_ns, now_ns);
    writer_bool(out, "crashed", view->is_crashed);
    writer_end_object(out);
}

static void add_grace(struct writer *out, const struct admin *admin,
                      const struct grace_status *grace, uint64_t now_ns)
{
    uint64_t cursor = grace->unsettled == 0 ? VIEW_END : 0;
    uint32_t budget = SLOTS_LOOKED_AT;
    struct view_client view;
    writer_object(out, "grace");
    writer_bool(out, "active", grace->is_on);
    writer_number(out, "remaining_seconds", (grace->remaining_ns + SECOND_NS - 1) / SECOND_NS);
    writer_number(out, "unsettled_locks", grace->unsettled);
    writer_list(out, "waiting_for");
    for (uint32_t shown = 0;
         shown < WAITING_SHOWN && view_next_unsettled(admin->core, &cursor, &budget, &view);
         shown++)
        add_waiting(out, &view, now_ns);
    writer_end_list(out);
    uint64_t after = cursor;
    bool is_more = cursor != VIEW_END &&
                   (view_next_unsettled(admin->core, &after, &budget, &view) || after != VIEW_END);
    writer_bool(out, "waiting_for_more", is_more);
    writer_end_object(out);
}

/* Clients that block others and do not answer. */
static void add_silent(struct writer *out, const struct admin *admin, uint64_t now_ns)
{
    struct view_silent view;
    writer_list(out, "silent_holders");
    for (uint32_t i = 0; i < SILENT_SHOWN && view_silent(admin->core, i, &view); i++) {
        writer_object(out, NULL);
        writer_id(out, "id", view.holder.client);
        writer_bytes(out, "name", view.holder.name);
        writer_address(out, "address", &view.holder.address);
        writer_number(out, "waiters", view.wait_count);
        writer_number(out, "blocked_seconds", (now_ns - view.oldest_ns) / SECOND_NS);
        writer_number(out, "silent_seconds", (now_ns - view.heard_ns) / SECOND_NS);
        writer_end_object(out);
    }
    writer_end_list(out);
}

/* Clients refused by a lock of their own name at another address: perhaps one host that moved. */
static void add_namesakes(struct writer *out, const struct admin *admin)
{
    struct view_namesake view;
    writer_list(out, "name_conflicts");
    for (uint32_t i = 0; view_namesake(admin->core, i, &view); i++) {
        writer_object(out, NULL);
        writer_id(out, "id", view.holder.client);
        writer_bytes(out, "name", view.holder.name);
        writer_address(out, "address", &view.holder.address);
        writer_time(out, "last_seen", view.holder.seen_ns);
        writer_address(out, "refused_address", &view.refused);
        writer_time(out, "refused_last_seen", view.refused_seen_ns);
        writer_number(out, "refused_requests", view.refused_count);
        if (view.refused_client != 0)
            writer_id(out, "refused_id", view.refused_client);
        else
            writer_null(out, "refused_id");
        writer_bool(out, "can_move", !view.is_taken);
        writer_end_object(out);
    }
    writer_end_list(out);
}

static void add_store(struct writer *out, const struct admin_facts *facts,
                      const struct core_status *status)
{
    writer_object(out, "store");
    writer_text(out, "url", facts->store);
    writer_number(out, "durable_txn", status->durable_txn);
    writer_bool(out, "has_room", status->has_room);
    writer_bool(out, "incomplete", status->incomplete);
    writer_seconds(out, "commit_seconds", facts->commit_age_ns);
    writer_bool(out, "stalled", facts->commit_age_ns >= ADMIN_STALLED_NS);
    writer_end_object(out);
}

static void add_rpcbind(struct writer *out, const struct admin_facts *facts)
{
    writer_object(out, "rpcbind");
    writer_text(out, "mode", facts->rpcbind);
    writer_bool(out, "registered", facts->is_found);
    writer_text(out, "reason", facts->is_found ? NULL : facts->not_found_why);
    writer_end_object(out);
}

/* "127.0.0.1:12049", "[::1]:12049", "*:12049" */
static void add_endpoint(struct writer *out, const struct address *address, uint16_t port)
{
    char buffer[ADDRESS_TEXT_MAX + 16];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    bool is_v6 = address != NULL && address->family == 6;
    text_add(&text, is_v6 ? "[" : address == NULL ? "*" : "");
    if (address != NULL)
        text_add_address(&text, address);
    text_add(&text, is_v6 ? "]:" : ":");
    text_add_u64(&text, port);
    writer_text(out, NULL, buffer);
}

static void add_places(struct writer *out, const struct admin_places *places)
{
    writer_text(out, "host", places->host);
    writer_list(out, "listen");
    for (uint32_t i = 0; i < places->listen_count && places->port != 0; i++)
        add_endpoint(out, &places->listen[i], places->port);
    if (places->listen_count == 0 && places->port != 0)
        add_endpoint(out, NULL, places->port);
    writer_end_list(out);
    writer_text(out, "page", places->page[0] != '\0' ? places->page : NULL);
}

/* Of the last seconds; null: nothing is measured, or nothing was committed. */
static void add_recent(struct writer *out, const struct admin *admin,
                       const struct admin_facts *facts)
{
    struct samples_recent recent;
    samples_recent(admin->samples, facts, &recent);
    writer_object(out, "recent");
    writer_seconds(out, "window_seconds", recent.window_ns);
    if (recent.window_ns == 0)
        writer_null(out, "requests_per_second");
    else
        writer_number(out, "requests_per_second",
                      (recent.requests * SECOND_NS + recent.window_ns / 2) / recent.window_ns);
    if (recent.commits == 0)
        writer_null(out, "commit_seconds");
    else
        writer_seconds(out, "commit_seconds", recent.commit_ns / recent.commits);
    writer_end_object(out);
}

/* What a lock server has and a monitor has not. */
static void add_lock_server(struct writer *out, const struct admin *admin,
                            const struct core_status *status, const struct admin_facts *facts)
{
    writer_number(out, "clients", status->clients);
    writer_number(out, "registrants", status->registrants);
    writer_number(out, "locks", status->locks);
    writer_number(out, "offers", status->offers);
    writer_number(out, "share_reservations", status->shares);
    writer_number(out, "waiters", status->waiters);
    writer_text(out, "recovery", facts->recovery);
    add_grace(out, admin, &status->grace, facts->now_ns);
    blockers_add_status(out, admin, status, facts);
    add_silent(out, admin, facts->now_ns);
    add_namesakes(out, admin);
}

static void add_owed_host(struct writer *out, const struct view_client *view)
{
    writer_object(out, NULL);
    writer_id(out, "id", view->id);
    writer_bytes(out, "name", view->name);
    writer_address(out, "address", &view->address);
    writer_bool(out, "owed", view->is_owed);
    writer_bool(out, "upcall_owed", view->upcall != 0);
    writer_text(out, "notification", list_word_of_news(view->news));
    writer_number(out, "attempts", view->attempt_count);
    writer_end_object(out);
}

/* Watched hosts, and those that something is left to be done for. */
static void add_monitor(struct writer *out, const struct admin *admin,
                        const struct core_status *status)
{
    bool has_any = status->hosts_owed > 0 || status->upcalls.owed > 0 || status->unresolved > 0;
    uint64_t cursor = has_any ? 0 : VIEW_END;
    uint32_t budget = SLOTS_LOOKED_AT;
    struct view_client view;
    writer_object(out, "hosts");
    writer_number(out, "watched", status->registrants);
    writer_number(out, "owed", status->hosts_owed);
    writer_number(out, "upcalls_owed", status->upcalls.owed);
    writer_number(out, "unresolved", status->unresolved);
    writer_bool(out, "notifying", status->is_served);
    writer_list(out, "waiting_for");
    for (uint32_t shown = 0;
         shown < WAITING_SHOWN && view_next_owed(admin->core, &cursor, &budget, &view); shown++)
        add_owed_host(out, &view);
    writer_end_list(out);
    uint64_t after = cursor;
    bool is_more = cursor != VIEW_END &&
                   (view_next_owed(admin->core, &after, &budget, &view) || after != VIEW_END);
    writer_bool(out, "waiting_for_more", is_more);
    writer_end_object(out);
}

void status_write(struct writer *out, const struct admin *admin)
{
    struct core_status status;
    struct admin_facts facts = {0};
    core_status(admin->core, &status);
    admin->facts(admin->context, &facts);
    writer_object(out, NULL);
    writer_text(out, "role", status.is_monitor ? "monitor" : "active");
    writer_text(out, "group", facts.group);
    add_places(out, &facts.places);
    attention_add_status(out, admin, &status, &facts);
    writer_number(out, "state", status.state);
    writer_number(out, "epoch", status.epoch);
    writer_number(out, "uptime_seconds", facts.uptime_ns / SECOND_NS);
    if (status.is_monitor)
        add_monitor(out, admin, &status);
    else
        add_lock_server(out, admin, &status, &facts);
    add_store(out, &facts, &status);
    add_rpcbind(out, &facts);
    add_recent(out, admin, &facts);
    limit_add_status(out, admin);
    if (!status.is_monitor)
        exports_add_status(out, admin, &facts.files);
    writer_time(out, "time", facts.wall_ns);
    writer_text(out, "version", HOLDFAST_VERSION);
    writer_end_object(out);
}

/* Before there is a core: a standby names the active server. */
static void answer_without_core(struct exchange *exchange)
{
    const struct admin *admin = exchange->admin;
    struct admin_facts facts = {0};
    char buffer[512];
    struct text reason;
    admin->facts(admin->context, &facts);
    text_init(&reason, buffer, sizeof buffer);
    (void)admin->is_ready(admin->context, &reason);
    if (!facts.is_standby) {
        exchange_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "starting", (struct bytes){0},
                       "try again when /readyz reports ready");
        return;
    }
    struct writer out = {0};
    writer_object(&out, NULL);
    writer_text(&out, "role", "standby");
    writer_text(&out, "group", facts.group);
    writer_text(&out, "host", facts.places.host);
    writer_text(&out, "page", facts.places.page[0] != '\0' ? facts.places.page : NULL);
    writer_text(&out, "reason", buffer);
    writer_number(&out, "uptime_seconds", facts.uptime_ns / SECOND_NS);
    writer_object(&out, "store");
    writer_text(&out, "url", facts.store);
    writer_end_object(&out);
    writer_text(&out, "version", HOLDFAST_VERSION);
    writer_end_object(&out);
    exchange_json(exchange, MHD_HTTP_OK, &out);
}

void status_answer(struct exchange *exchange)
{
    struct writer out = {0};
    if (exchange->admin->core == NULL) {
        answer_without_core(exchange);
        return;
    }
    status_write(&out, exchange->admin);
    exchange_json(exchange, MHD_HTTP_OK, &out);
}
