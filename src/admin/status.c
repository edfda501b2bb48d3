/*
 * status.c -- the state of the server in one JSON object; see status.h.
 *
 * It costs the same whatever is stored: counts are kept by the core, and of the clients that a
 * recovery waits for WAITING_SHOWN are named and SLOTS_LOOKED_AT looked at; `waiting_for_more` says
 * that there are others.
 */
#include "admin/status.h"

#include "admin/list.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    WAITING_SHOWN = 20,
    SILENT_SHOWN = 20,
    SLOTS_LOOKED_AT = 20000,
    NLM_PROGRAM = 100021,
};

static json_t *seconds_ago(uint64_t then_ns, uint64_t now_ns)
{
    return then_ns == 0 ? json_null() : json_integer((json_int_t)((now_ns - then_ns) / SECOND_NS));
}

uint32_t status_reclaimed(const struct view_client *view)
{
    uint32_t all = view->lock_count + view->share_count;
    return all > view->unsettled_count ? all - view->unsettled_count : 0;
}

static json_t *waiting_value(const struct view_client *view, uint64_t now_ns)
{
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:s, s:I, s:o, s:o, s:b}", "id", exchange_json_id(view->id),
        "name", exchange_json_bytes(view->name), "address", exchange_json_address(&view->address),
        "unsettled_locks", (json_int_t)view->unsettled_count, "reclaimed",
        (json_int_t)status_reclaimed(view), "notification", list_word_of_news(view->news),
        "attempts", (json_int_t)view->attempt_count, "reached_seconds_ago",
        seconds_ago(view->reached_ns, now_ns), "told_seconds_ago",
        seconds_ago(view->told_ns, now_ns), "crashed", view->is_crashed);
}

static json_t *grace_value(const struct admin *admin, const struct grace_status *grace,
                           uint64_t now_ns)
{
    json_t *waiting = json_array();
    uint64_t cursor = grace->unsettled == 0 ? VIEW_END : 0;
    uint32_t budget = SLOTS_LOOKED_AT;
    struct view_client view;
    while (waiting != NULL && json_array_size(waiting) < WAITING_SHOWN &&
           view_next_unsettled(admin->core, &cursor, &budget, &view))
        (void)json_array_append_new(waiting, waiting_value(&view, now_ns));
    uint64_t after = cursor;
    bool is_more = cursor != VIEW_END &&
                   (view_next_unsettled(admin->core, &after, &budget, &view) || after != VIEW_END);
    return json_pack("{s:b, s:I, s:I, s:o, s:b}", "active", grace->is_on, "remaining_seconds",
                     (json_int_t)((grace->remaining_ns + SECOND_NS - 1) / SECOND_NS),
                     "unsettled_locks", (json_int_t)grace->unsettled, "waiting_for", waiting,
                     "waiting_for_more", is_more);
}

/* Clients that others wait for and that do not answer. */
static json_t *silent_value(const struct admin *admin, uint64_t now_ns)
{
    json_t *holders = json_array();
    struct view_silent view;
    for (uint32_t i = 0; holders != NULL && i < SILENT_SHOWN && view_silent(admin->core, i, &view);
         i++)
        (void)json_array_append_new(
            holders,
            json_pack("{s:o, s:o, s:o, s:I, s:I, s:I}", "id", exchange_json_id(view.holder.client),
                      "name", exchange_json_bytes(view.holder.name), "address",
                      exchange_json_address(&view.holder.address), "waiters",
                      (json_int_t)view.wait_count, "blocked_seconds",
                      (json_int_t)((now_ns - view.oldest_ns) / SECOND_NS), "silent_seconds",
                      (json_int_t)((now_ns - view.heard_ns) / SECOND_NS)));
    return holders;
}

static json_t *store_value(const struct admin_facts *facts, const struct core_status *status)
{
    return json_pack("{s:s, s:I, s:b, s:b, s:f}", "url", facts->store, "durable_txn",
                     (json_int_t)status->durable_txn, "has_room", status->has_room, "incomplete",
                     status->incomplete, "commit_seconds",
                     (double)facts->commit_age_ns / (double)SECOND_NS);
}

static json_t *rpcbind_value(const struct admin_facts *facts)
{
    json_t *reason = facts->is_found ? json_null() : json_string(facts->not_found_why);
    return json_pack("{s:s, s:b, s:o}", "mode", facts->rpcbind, "registered", facts->is_found,
                     "reason", reason);
}

/* Totals since the start, for rates; null: nothing is measured. */
static json_t *activity_value(const struct admin *admin, const struct admin_facts *facts)
{
    uint64_t nlm = 0, nsm = 0;
    const struct meter *meter = admin->meter;
    if (meter == NULL || facts->commit_durations == NULL)
        return json_null();
    for (uint32_t i = 0; i < meter->program_count; i++)
        for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++) {
            const struct meter_row *row = meter_at(meter, i, proc);
            *(meter->programs[i]->number == NLM_PROGRAM ? &nlm : &nsm) +=
                row->succeeded + row->failed;
        }
    return json_pack("{s:I, s:I, s:I, s:f}", "nlm_requests", (json_int_t)nlm, "nsm_requests",
                     (json_int_t)nsm, "commits",
                     (json_int_t)histogram_total(facts->commit_durations), "commit_seconds",
                     (double)facts->commit_durations->sum / (double)SECOND_NS);
}

json_t *status_value(const struct admin *admin)
{
    struct core_status status;
    struct admin_facts facts = {0};
    core_status(admin->core, &status);
    admin->facts(admin->context, &facts);
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:s}",
        "role", "active", "state", (json_int_t)status.state, "epoch", (json_int_t)status.epoch,
        "uptime_seconds", (json_int_t)(facts.uptime_ns / SECOND_NS), "clients",
        (json_int_t)status.clients, "registrants", (json_int_t)status.registrants, "locks",
        (json_int_t)status.locks, "offers", (json_int_t)status.offers, "share_reservations",
        (json_int_t)status.shares, "waiters", (json_int_t)status.waiters, "grace",
        grace_value(admin, &status.grace, facts.now_ns), "store", store_value(&facts, &status),
        "silent_holders", silent_value(admin, facts.now_ns), "rpcbind", rpcbind_value(&facts),
        "activity", activity_value(admin, &facts), "time", exchange_json_time(facts.wall_ns),
        "version", HOLDFAST_VERSION);
}

/* Before there is a core: a standby says for whom it waits. */
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
                       "ask again when /readyz says ready");
        return;
    }
    exchange_json(exchange, MHD_HTTP_OK,
                  json_pack("{s:s, s:s, s:I, s:{s:s}, s:s}", "role", "standby", "reason", buffer,
                            "uptime_seconds", (json_int_t)(facts.uptime_ns / SECOND_NS), "store",
                            "url", facts.store, "version", HOLDFAST_VERSION));
}

void status_answer(struct exchange *exchange)
{
    if (exchange->admin->core == NULL)
        answer_without_core(exchange);
    else
        exchange_json(exchange, MHD_HTTP_OK, status_value(exchange->admin));
}
