/*
 * list.c -- rows of lists, from views of the core to JSON; see list.h.
 *
 * Numbers of bytes are JSON numbers: as integers as far as those of the JSON library go, which is
 * further than any file does, and as the nearest floating-point number beyond.
 */
#include "admin/list.h"

#include "admin/listing.h"
#include "base/check.h"

#define SECOND_NS UINT64_C(1000000000)

static json_t *number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

/* Length 0: to the end of the file. */
static json_t *length(uint64_t start, uint64_t end)
{
    return number(end == UINT64_MAX ? 0 : end - start + 1);
}

static const char *word_of_transport(uint32_t transport)
{
    return transport == RECORD_TCP ? "tcp" : transport == RECORD_UDP ? "udp" : NULL;
}

static json_t *string_or_null(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

/* Seconds from now until then, by the monotonic clock; null: no such time. */
static json_t *seconds_until(uint64_t time_ns, uint64_t now_ns)
{
    if (time_ns == 0)
        return json_null();
    uint64_t left_ns = time_ns > now_ns ? time_ns - now_ns : 0;
    return json_real((double)left_ns / (double)SECOND_NS);
}

static json_t *seconds_since(uint64_t time_ns, uint64_t now_ns)
{
    if (time_ns == 0)
        return json_null();
    return json_integer((json_int_t)(now_ns > time_ns ? (now_ns - time_ns) / SECOND_NS : 0));
}

const char *list_word_of_news(enum view_news news)
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
    UNREACHABLE();
}

static const char *const client_words[] = {"crashed", "recovering", "freeing", "active"};

const char *list_word_of_client(const struct view_client *view)
{
    return client_words[view->is_crashed            ? 0
                        : view->unsettled_count > 0 ? 1
                        : view->is_draining         ? 2
                                                    : 3];
}

bool list_parse_handle(const char *text, uint8_t ret[static RECORD_FH_MAX], uint32_t *ret_len)
{
    size_t len = strlen(text);
    if (len == 0 || len % 2 != 0 || len / 2 > RECORD_FH_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = byte_fold((uint8_t)text[i]);
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f'))
            return false;
        uint8_t value = (uint8_t)(is_digit ? c - '0' : c - 'a' + 10);
        ret[i / 2] = (uint8_t)(i % 2 == 0 ? value << 4 : ret[i / 2] | value);
    }
    *ret_len = (uint32_t)(len / 2);
    return true;
}

bool list_read_id(struct exchange *exchange, struct bytes text, uint64_t *ret)
{
    if (exchange_parse_id(text, ret))
        return true;
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not the id of a client: ", text,
                   "ids are like c17; /api/v1/clients lists them");
    return false;
}

/* ---- clients ---- */

static json_t *notification_value(const struct view_client *view, uint64_t now_ns)
{
    return json_pack("{s:s, s:I, s:o}", "state", list_word_of_news(view->news), "attempts",
                     (json_int_t)view->attempt_count, "next_try_seconds",
                     seconds_until(view->next_try_ns, now_ns));
}

static json_t *client_value(const struct view_client *view, uint64_t now_ns)
{
    bool is_nsm = view->protocol == VIEW_NSM, is_nlm = view->protocol == VIEW_NLM;
    json_t *row = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
        exchange_json_id(view->id), "protocol", exchange_json_bytes(view->protocol_name), "name",
        exchange_json_bytes(view->name), "address", exchange_json_address(&view->address),
        "local_address", exchange_json_address(&view->local), "state", list_word_of_client(view),
        "mon_name", is_nsm ? exchange_json_bytes(view->mon_name) : json_null(), "callback_host",
        is_nsm ? exchange_json_bytes(view->name) : json_null(), "callback_prog",
        is_nsm ? json_integer(view->prog) : json_null(), "callback_vers",
        is_nsm ? json_integer(view->vers) : json_null(), "callback_proc",
        is_nsm ? json_integer(view->proc) : json_null(), "priv",
        is_nsm ? exchange_json_hex(view->priv) : json_null());
    json_t *more = json_pack(
        "{s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:b, s:b, s:o}", "nsm_state",
        is_nlm && view->state != 0 ? json_integer(view->state) : json_null(), "server_epoch",
        (json_int_t)view->server_epoch, "registered_at", exchange_json_time(view->registered_ns),
        "last_seen", exchange_json_time(view->seen_ns), "locks", (json_int_t)view->lock_count,
        "share_reservations", (json_int_t)view->share_count, "waiters",
        (json_int_t)view->waiter_count, "unsettled_locks", (json_int_t)view->unsettled_count,
        "reclaimed", (json_int_t)view->reclaim_count, "notification",
        notification_value(view, now_ns), "crashed", view->is_crashed, "monitored",
        view->is_monitored, "moved", view->is_moved, "rebooted_at",
        exchange_json_time(view->rebooted_ns));
    if (row == NULL || more == NULL || json_object_update_new(row, more) != 0) {
        json_decref(row);
        return NULL;
    }
    return row;
}

static uint64_t now_of(const struct admin *admin, uint64_t *ret_wall_ns)
{
    struct admin_facts facts = {0};
    admin->facts(admin->context, &facts);
    *ret_wall_ns = facts.wall_ns;
    return facts.now_ns;
}

static json_t *next_client(struct listing *listing, uint64_t *cursor, uint32_t *budget)
{
    struct view_client view;
    uint64_t wall_ns;
    while (view_next_client(listing->admin->core, cursor, budget, &view))
        if (listing->state == NULL || strcmp(listing->state, list_word_of_client(&view)) == 0)
            return client_value(&view, now_of(listing->admin, &wall_ns));
    return NULL;
}

void list_clients(struct exchange *exchange)
{
    struct listing listing = {.name = "clients", .next = next_client};
    const char *state = exchange_parameter(exchange, "state");
    for (size_t i = 0; state != NULL && i < sizeof client_words / sizeof client_words[0]; i++)
        if (strcmp(state, client_words[i]) == 0)
            listing.state = client_words[i];
    if (state != NULL && listing.state == NULL) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                       "not the state of a client: ", bytes_of_text(state),
                       "allowed: crashed, recovering, freeing, active");
        return;
    }
    listing_answer(exchange, &listing);
}

void list_client(struct exchange *exchange)
{
    uint64_t id, wall_ns;
    struct view_client view;
    if (!list_read_id(exchange, exchange->id, &id))
        return;
    if (!view_find_client(exchange->admin->core, id, &view)) {
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "there is no client ", exchange->id,
                       "it has gone, or never was; /api/v1/clients lists those that are there");
        return;
    }
    exchange_json(exchange, MHD_HTTP_OK, client_value(&view, now_of(exchange->admin, &wall_ns)));
}

/* ---- locks and waiters ---- */

static json_t *owner_value(const struct view_owner *owner)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:o}", "client", exchange_json_id(owner->client), "name",
                     exchange_json_bytes(owner->name), "address",
                     exchange_json_address(&owner->address), "svid", (json_int_t)owner->svid,
                     "last_seen", exchange_json_time(owner->seen_ns));
}

static const char *word_of_answer(enum silent_phase phase)
{
    switch (phase) {
    case SILENT_NOT_ASKED:
        return "not asked";
    case SILENT_ASKING:
        return "being asked";
    case SILENT_ANSWERS:
        return "yes";
    case SILENT_NO_ANSWER:
        return "no";
    }
    UNREACHABLE();
}

/* Who blocks a waiter, for how long it was not heard of, and whether it answers. */
static json_t *blocker_value(const struct view_waiter *view, uint64_t now_ns)
{
    json_t *value = owner_value(&view->blocker);
    if (value != NULL) {
        uint64_t silent_ns = now_ns > view->blocker_heard_ns ? now_ns - view->blocker_heard_ns : 0;
        (void)json_object_set_new(value, "silent_seconds",
                                  json_integer((json_int_t)(silent_ns / SECOND_NS)));
        (void)json_object_set_new(value, "answers",
                                  json_string(word_of_answer(view->blocker_phase)));
    }
    return value;
}

static const char *word_of_lock(enum view_lock_state state)
{
    switch (state) {
    case VIEW_HELD:
        return "held";
    case VIEW_OFFERED:
        return "offered";
    case VIEW_UNSETTLED:
        return "unsettled";
    case VIEW_OVER:
        return "freeing";
    }
    UNREACHABLE();
}

static json_t *next_lock(struct listing *listing, uint64_t *cursor, uint32_t *budget)
{
    struct view_lock view;
    if (!view_next_lock(listing->admin->core, &listing->filter, cursor, budget, &view))
        return NULL;
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:b, s:o, s:I}", "client",
        exchange_json_id(view.owner.client), "name", exchange_json_bytes(view.owner.name),
        "address", exchange_json_address(&view.owner.address), "svid", (json_int_t)view.owner.svid,
        "owner", exchange_json_hex(view.oh), "file", exchange_json_hex(view.fh), "share",
        exchange_json_bytes(view.share), "offset", number(view.start), "length",
        length(view.start, view.end), "exclusive", view.is_exclusive, "state",
        word_of_lock(view.state), "monitored", view.is_monitored, "granted_at",
        exchange_json_time(view.granted_ns), "waiters", (json_int_t)view.waiter_count);
}

static json_t *waiter_value(const struct view_waiter *view, uint64_t now_ns, uint64_t wall_ns)
{
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:o, s:o, s:I, s:o}", "client",
        exchange_json_id(view->owner.client), "name", exchange_json_bytes(view->owner.name),
        "address", exchange_json_address(&view->owner.address), "svid",
        (json_int_t)view->owner.svid, "owner", exchange_json_hex(view->oh), "file",
        exchange_json_hex(view->fh), "share", exchange_json_bytes(view->share), "offset",
        number(view->start), "length", length(view->start, view->end), "exclusive",
        view->is_exclusive, "state", view->phase, "queued_at", exchange_json_time(view->queued_ns),
        "waiting_seconds", seconds_since(view->queued_ns, wall_ns), "ahead",
        (json_int_t)view->ahead_count, "blocked_by",
        view->is_blocked ? blocker_value(view, now_ns) : json_null());
}

static json_t *next_waiter(struct listing *listing, uint64_t *cursor, uint32_t *budget)
{
    struct view_waiter view;
    uint64_t wall_ns;
    if (!view_next_waiter(listing->admin->core, &listing->filter, cursor, budget, &view))
        return NULL;
    uint64_t now_ns = now_of(listing->admin, &wall_ns);
    return waiter_value(&view, now_ns, wall_ns);
}

/* Reads client, file and share. False: answered already, also with an empty list when nothing can
 * match: a client without locks is none, and a name of no set a mistake. */
static bool read_filter(struct exchange *exchange, struct listing *listing)
{
    const char *client = exchange_parameter(exchange, "client");
    const char *file = exchange_parameter(exchange, "file");
    const char *share = exchange_parameter(exchange, "share");
    struct core *core = exchange->admin->core;
    uint64_t id;
    if (client != NULL) {
        if (!list_read_id(exchange, bytes_of_text(client), &id))
            return false;
        if (!view_handle(core, id, &listing->filter.client)) {
            exchange_error(exchange, MHD_HTTP_NOT_FOUND,
                           "there is no client that locks: ", bytes_of_text(client),
                           "/api/v1/clients lists those that are there");
            return false;
        }
    }
    if (file != NULL && !list_parse_handle(file, listing->handle, &listing->filter.fh.len)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a file handle: ", bytes_of_text(file),
                       "handles are pairs of hex digits, 64 at most");
        return false;
    }
    if (share != NULL) {
        listing->filter.has_share = true;
        if (!view_find_share(core, bytes_of_text(share), &listing->filter.share)) {
            exchange_error(exchange, MHD_HTTP_NOT_FOUND, "there is no share ", bytes_of_text(share),
                           "/api/v1/shares lists them");
            return false;
        }
    }
    return true;
}

void list_locks(struct exchange *exchange)
{
    struct listing listing = {.name = "locks", .next = next_lock};
    if (read_filter(exchange, &listing))
        listing_answer(exchange, &listing);
}

void list_waiters(struct exchange *exchange)
{
    struct listing listing = {.name = "waiters", .next = next_waiter};
    if (read_filter(exchange, &listing))
        listing_answer(exchange, &listing);
}

/* ---- notifications ---- */

/* Who is being told of our restart, or was tried: who, how often, and what came of it. */
static json_t *next_notification(struct listing *listing, uint64_t *cursor, uint32_t *budget)
{
    struct view_client view;
    uint64_t wall_ns, now_ns = now_of(listing->admin, &wall_ns);
    while (view_next_client(listing->admin->core, cursor, budget, &view)) {
        bool is_under_way = view.news != VIEW_TOLD && view.news != VIEW_NOT_TOLD;
        if (!is_under_way && view.attempt_count == 0)
            continue;
        struct bytes used;
        view_name_used(listing->admin->core, &view, &used);
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s, s:o}", "client",
                         exchange_json_id(view.id), "protocol",
                         exchange_json_bytes(view.protocol_name), "name",
                         exchange_json_bytes(view.name), "name_used", exchange_json_bytes(used),
                         "address", exchange_json_address(&view.address), "transport",
                         string_or_null(word_of_transport(view.transport)), "attempt",
                         (json_int_t)view.attempt_count, "result", list_word_of_news(view.news),
                         "next_try_seconds", seconds_until(view.next_try_ns, now_ns));
    }
    return NULL;
}

void list_notifications(struct exchange *exchange)
{
    listing_answer(exchange, &(struct listing){.name = "notifications", .next = next_notification});
}

/* ---- sets of files ---- */

static json_t *next_share(struct listing *listing, uint64_t *cursor, uint32_t *budget)
{
    struct view_share view;
    (void)budget;
    if (*cursor > UINT32_MAX || !view_share(listing->admin->core, (uint32_t)*cursor, &view)) {
        *cursor = VIEW_END;
        return NULL;
    }
    ++*cursor;
    return json_pack("{s:o, s:o, s:I}", "name", exchange_json_bytes(view.name), "prefix",
                     exchange_json_hex(view.prefix), "locks", (json_int_t)view.lock_count);
}

void list_shares(struct exchange *exchange)
{
    listing_answer(exchange, &(struct listing){.name = "shares", .next = next_share});
}
