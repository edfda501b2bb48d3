/*
 * status.c -- the state of the server in one JSON object; see status.h.
 *
 * It costs the same whatever is stored: counts are kept by the core, and of the clients that a
 * recovery waits for WAITING_SHOWN are named and SLOTS_LOOKED_AT looked at; `waiting_for_more` says
 * that there are others.
 */
#include "admin/status.h"

#include "core/view.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    WAITING_SHOWN = 20,
    SLOTS_LOOKED_AT = 20000,
};

static const char *word_of_news(enum view_news news)
{
    switch (news) {
    case VIEW_NOT_TOLD:
        return "none";
    case VIEW_TOLD:
        return "told";
    case VIEW_OWED:
        return "waiting";
    case VIEW_CALLING:
        return "calling";
    case VIEW_GIVEN_UP:
        return "given_up";
    }
    return "none";
}

static json_t *waiting_value(const struct view_client *view, uint64_t now_ns)
{
    json_t *reached = view->reached_ns == 0
                          ? json_null()
                          : json_integer((json_int_t)((now_ns - view->reached_ns) / SECOND_NS));
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:s, s:I, s:o, s:b}", "id",
                     exchange_json_id(view->id), "name", exchange_json_bytes(view->name), "address",
                     exchange_json_address(&view->address), "unsettled_locks",
                     (json_int_t)view->unsettled_count, "reclaimed",
                     (json_int_t)view->reclaim_count, "notification", word_of_news(view->news),
                     "attempts", (json_int_t)view->attempt_count, "reached_seconds_ago", reached,
                     "crashed", view->is_crashed);
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

json_t *status_value(const struct admin *admin)
{
    struct core_status status;
    struct admin_facts facts = {0};
    core_status(admin->core, &status);
    admin->facts(admin->context, &facts);
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:s}", "state",
        (json_int_t)status.state, "epoch", (json_int_t)status.epoch, "uptime_seconds",
        (json_int_t)(facts.uptime_ns / SECOND_NS), "clients", (json_int_t)status.clients,
        "registrants", (json_int_t)status.registrants, "locks", (json_int_t)status.locks, "offers",
        (json_int_t)status.offers, "share_reservations", (json_int_t)status.shares, "waiters",
        (json_int_t)status.waiters, "grace", grace_value(admin, &status.grace, facts.now_ns),
        "store", store_value(&facts, &status), "rpcbind", rpcbind_value(&facts), "version",
        HOLDFAST_VERSION);
}

void status_answer(struct exchange *exchange)
{
    exchange_json(exchange, MHD_HTTP_OK, status_value(exchange->admin));
}
