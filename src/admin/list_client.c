/*
 * list_client.c -- rows of clients, of watched hosts and of their notifications, from views of the
 * core to JSON; see list.h.
 *
 * A status monitor's rows are the hosts it watches. They have no locks here, so the members about
 * locks are left out, and what is owed to them or for them is in "host".
 */
#include "admin/list.h"

#include "admin/list_sort.h"
#include "admin/tracked.h"
#include "base/check.h"
#include "base/units.h"

static const char *word_of_transport(uint32_t transport)
{
    return transport == TRANSPORT_TCP ? "tcp" : transport == TRANSPORT_UDP ? "udp" : NULL;
}

/* Seconds from now until then, by the monotonic clock; null: no such time. */
static void add_seconds_until(struct writer *row, const char *key, uint64_t time_ns,
                              uint64_t now_ns)
{
    if (time_ns == 0)
        writer_null(row, key);
    else
        writer_seconds(row, key, time_ns > now_ns ? time_ns - now_ns : 0);
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

static const char *const client_words[] = {"freeing", "given_up",  "crashed",      "recovering",
                                           "active",  "connected", "disconnected", "expired"};

/*
 * Freeing comes first. A client given up also counts as crashed; that retries have stopped is the
 * more useful fact.
 */
const char *list_word_of_client(const struct view_client *view)
{
    if (view->protocol == VIEW_OTHER)
        return tracked_word(view->tracked);
    return client_words[view->is_draining             ? 0
                        : view->news == VIEW_GIVEN_UP ? 1
                        : view->is_crashed            ? 2
                        : view->unsettled_count > 0   ? 3
                                                      : 4];
}

bool list_read_id(struct exchange *exchange, struct bytes text, uint64_t *ret)
{
    if (exchange_parse_id(text, ret))
        return true;
    /* In the path it is not found; as a parameter it is invalid. */
    bool is_path = text.at == exchange->id.at;
    exchange_error(exchange, is_path ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST,
                   "not a client id: ", text, "ids look like c17; /api/v1/clients lists them");
    return false;
}

/* ---- clients ---- */

/* Fields of an SM_MON registration only. */
static void add_callback(struct writer *row, const struct view_client *view)
{
    if (view->protocol == VIEW_NSM) {
        writer_bytes(row, "mon_name", view->mon_name);
        writer_bytes(row, "callback_host", view->my_name);
        writer_number(row, "callback_prog", view->prog);
        writer_number(row, "callback_vers", view->vers);
        writer_number(row, "callback_proc", view->proc);
        writer_hex(row, "priv", view->priv);
        return;
    }
    static const char *const keys[] = {"mon_name",      "callback_host", "callback_prog",
                                       "callback_vers", "callback_proc", "priv"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        writer_null(row, keys[i]);
}

/* Of those that may hold locks. */
static void add_holdings(struct writer *row, const struct view_client *view)
{
    writer_number(row, "locks", view->lock_count);
    writer_number(row, "share_reservations", view->share_count);
    writer_number(row, "waiters", view->waiter_count);
    writer_number(row, "unsettled_locks", view->unsettled_count);
    writer_number(row, "reclaimed", view->reclaimed_count);
}

/* Of a watched host: what is owed to it, and to the lock manager because of it. */
static void add_host(struct writer *row, const struct view_client *view)
{
    writer_object(row, "host");
    writer_bool(row, "owed", view->is_owed);
    writer_bool(row, "upcall_owed", view->upcall != 0);
    writer_bool(row, "registered_in_this_boot", view->is_current);
    writer_bool(row, "resolved", view->address.family != 0);
    writer_end_object(row);
}

/* Of a client of another protocol only. */
static void add_tracked(struct writer *row, const struct view_client *view)
{
    if (view->protocol != VIEW_OTHER) {
        writer_null(row, "tracked");
        return;
    }
    writer_object(row, "tracked");
    writer_number(row, "window_s", view->window_s);
    writer_time(row, "deadline", view->deadline_ns);
    writer_end_object(row);
}

static void add_client(struct writer *row, const struct view_client *view, uint64_t now_ns)
{
    writer_object(row, NULL);
    writer_id(row, "id", view->id);
    writer_bytes(row, "protocol", view->protocol_name);
    writer_bytes(row, "name", view->name);
    writer_address(row, "address", &view->address);
    writer_address(row, "local_address", &view->local);
    writer_text(row, "state", list_word_of_client(view));
    add_callback(row, view);
    if ((view->protocol == VIEW_NLM || view->is_watched) && view->state != 0)
        writer_number(row, "nsm_state", view->state);
    else
        writer_null(row, "nsm_state");
    writer_number(row, "server_epoch", view->server_epoch);
    writer_time(row, "registered_at", view->registered_ns);
    writer_time(row, "last_seen", view->seen_ns);
    if (!view->is_watched)
        add_holdings(row, view);
    writer_object(row, "notification");
    writer_text(row, "state", list_word_of_news(view->news));
    writer_number(row, "attempts", view->attempt_count);
    add_seconds_until(row, "next_try_seconds", view->next_try_ns, now_ns);
    writer_end_object(row);
    if (view->is_watched)
        add_host(row, view);
    else
        add_tracked(row, view);
    writer_bool(row, "crashed", view->is_crashed);
    writer_bool(row, "monitored", view->is_monitored);
    writer_bool(row, "moved", view->is_moved);
    writer_time(row, "rebooted_at", view->rebooted_ns);
    writer_end_object(row);
}

static bool is_wanted_name(const char *wanted, struct bytes name)
{
    return wanted[0] == '\0' || writer_shows(name, bytes_of_text(wanted));
}

static bool is_called(const struct paging_clients *clients, const struct view_client *view)
{
    return (clients->called_id != 0 && view->id == clients->called_id) ||
           (clients->called_address.family != 0 &&
            address_equal(&view->address, &clients->called_address)) ||
           (clients->called_name[0] != '\0' &&
            writer_shows(view->name, bytes_of_text(clients->called_name)));
}

static bool is_wanted(const struct paging_clients *clients, const struct view_client *view)
{
    if (clients->is_called && !is_called(clients, view))
        return false;
    if (clients->only != NULL && !clients->only(view))
        return false;
    if (clients->state != NULL && strcmp(clients->state, list_word_of_client(view)) != 0)
        return false;
    if (clients->protocol[0] != '\0' &&
        !bytes_equal(view->protocol_name, bytes_of_text(clients->protocol)))
        return false;
    return is_wanted_name(clients->name, view->name) &&
           is_wanted_name(clients->mon_name, view->mon_name);
}

static bool fits_client(struct paging *paging, const struct view_client *view, uint32_t *budget)
{
    const struct paging_clients *clients = &paging->clients;
    if (!is_wanted(clients, view) || !list_match_client(&paging->match, view, budget))
        return false;
    for (uint32_t i = 0; i < clients->word_count; i++)
        if (!list_match_client(&clients->words[i], view, budget))
            return false;
    return true;
}

static void write_client(struct paging *paging, const struct view_client *view)
{
    add_client(&paging->writer, view, paging->now_ns);
}

/* ---- which of them ---- */

/* Who cannot be reached, or has something to reclaim; a host whose name does not resolve. */
static bool is_in_trouble(const struct view_client *view)
{
    return list_sort_trouble(view) < LIST_SORT_NO_TROUBLE ||
           (view->is_watched && view->address.family == 0);
}

static bool is_holding(const struct view_client *view)
{
    return view->lock_count > 0;
}

static bool is_waiting(const struct view_client *view)
{
    return view->waiter_count > 0;
}

static bool is_untold(const struct view_client *view)
{
    return view->news != VIEW_TOLD && view->news != VIEW_NOT_TOLD;
}

static bool is_owed(const struct view_client *view)
{
    return view->is_owed || view->upcall != 0;
}

/* False: answered with a 400. */
static bool read_only(struct exchange *exchange, struct paging_clients *ret)
{
    static const struct {
        const char *word;
        bool (*fits)(const struct view_client *view);
    } words[] = {{"trouble", is_in_trouble},
                 {"holding", is_holding},
                 {"waiting", is_waiting},
                 {"untold", is_untold},
                 {"owed", is_owed}};
    const char *only = exchange_parameter(exchange, "only");
    for (size_t i = 0; only != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(only, words[i].word) == 0)
            ret->only = words[i].fits;
    if (only == NULL || ret->only != NULL)
        return true;
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a kind of clients: ", bytes_of_text(only),
                   "allowed: trouble, holding, waiting, untold, owed");
    return false;
}

/* False: answered with a 400. */
static bool read_state(struct exchange *exchange, struct paging_clients *ret)
{
    const char *state = exchange_parameter(exchange, "state");
    for (size_t i = 0; state != NULL && i < sizeof client_words / sizeof client_words[0]; i++)
        if (strcmp(state, client_words[i]) == 0)
            ret->state = client_words[i];
    if (state == NULL || ret->state != NULL)
        return true;
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a client state: ", bytes_of_text(state),
                   "allowed: freeing, given_up, crashed, recovering, active; of tracked clients "
                   "connected, disconnected, expired");
    return false;
}

static bool read_protocol(struct exchange *exchange, struct paging_clients *ret)
{
    const char *protocol = exchange_parameter(exchange, "protocol");
    if (protocol == NULL)
        return true;
    struct bytes name = bytes_of_text(protocol);
    if (record_is_protocol(name)) {
        memcpy(ret->protocol, name.at, name.len);
        return true;
    }
    exchange_error(
        exchange, MHD_HTTP_BAD_REQUEST, "not a protocol name: ", name,
        "nlm for lock clients, nsm for SM_MON registrations, or up to 16 of a-z, 0-9 and -");
    return false;
}

static bool read_name(struct exchange *exchange, const char *key,
                      char ret[static RECORD_NAME_MAX + 1])
{
    const char *name = exchange_parameter(exchange, key);
    size_t len = name != NULL ? strlen(name) : 1;
    if (len == 0 || len > RECORD_NAME_MAX) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                       len == 0 ? "empty name: " : "name too long: ", bytes_of_text(key),
                       "names have 1 to 1024 bytes; /api/v1/clients lists them");
        return false;
    }
    if (name != NULL)
        memcpy(ret, name, len + 1);
    return true;
}

/* An id (c17), an address or a name, whichever it may be; "id:c17" and "name:c17" are one only. */
static bool read_called(struct exchange *exchange, struct paging_clients *ret)
{
    const char *word = exchange_parameter(exchange, "client");
    if (word == NULL)
        return true;
    bool is_id = strncmp(word, "id:", 3) == 0, is_name = strncmp(word, "name:", 5) == 0;
    struct bytes rest = bytes_of_text(word + (is_id ? 3 : is_name ? 5 : 0));
    if (rest.len == 0 || rest.len > RECORD_NAME_MAX) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                       "not the id, address or name of a client: ", bytes_of_text(word),
                       "give an id, an address or a name");
        return false;
    }
    ret->is_called = true;
    if (!is_name && !exchange_parse_id(rest, &ret->called_id))
        ret->called_id = 0;
    if (!is_name && !is_id)
        (void)address_parse(rest, &ret->called_address);
    if (!is_id)
        memcpy(ret->called_name, rest.at, rest.len);
    return true;
}

void list_clients(struct exchange *exchange)
{
    static const struct list_rows rows = {fits_client, write_client, LIST_SORT_CLIENTS};
    struct paging paging = {.name = "clients"};
    struct paging_clients *clients = &paging.clients;
    if (read_state(exchange, clients) && read_protocol(exchange, clients) &&
        read_called(exchange, clients) && read_only(exchange, clients) &&
        list_match_read(exchange, &paging.match) &&
        list_match_read_words(exchange, clients->words, &clients->word_count) &&
        read_name(exchange, "name", clients->name) &&
        read_name(exchange, "mon_name", clients->mon_name))
        list_sort_answer(exchange, &rows, &paging);
}

void list_client(struct exchange *exchange)
{
    struct writer writer = {0};
    struct admin_facts facts = {0};
    uint64_t id;
    struct view_client view;
    if (!list_read_id(exchange, exchange->id, &id))
        return;
    if (!view_find_client(exchange->admin->core, id, &view)) {
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "no such client: ", exchange->id,
                       "/api/v1/clients lists the clients");
        return;
    }
    exchange->admin->facts(exchange->admin->context, &facts);
    add_client(&writer, &view, facts.now_ns);
    exchange_json(exchange, MHD_HTTP_OK, &writer);
}

/* ---- notifications ---- */

/* Notifications of our restart: to whom, how often, and the result. */
static bool fits_notification(struct paging *paging, const struct view_client *view,
                              uint32_t *budget)
{
    (void)budget;
    return (is_untold(view) || view->attempt_count > 0) &&
           (paging->clients.only == NULL || paging->clients.only(view));
}

static void write_notification(struct paging *paging, const struct view_client *view)
{
    struct writer *row = &paging->writer;
    struct bytes used;
    view_name_used(paging->admin->core, view, &used);
    writer_object(row, NULL);
    writer_id(row, "client", view->id);
    writer_bytes(row, "protocol", view->protocol_name);
    writer_bytes(row, "name", view->name);
    writer_bytes(row, "name_used", used);
    writer_address(row, "address", &view->address);
    writer_text(row, "transport", word_of_transport(view->transport));
    writer_number(row, "attempt", view->attempt_count);
    writer_text(row, "result", list_word_of_news(view->news));
    add_seconds_until(row, "next_try_seconds", view->next_try_ns, paging->now_ns);
    writer_end_object(row);
}

void list_notifications(struct exchange *exchange)
{
    static const struct list_rows rows = {fits_notification, write_notification,
                                          LIST_SORT_NOTIFICATIONS};
    struct paging paging = {.name = "notifications"};
    if (read_only(exchange, &paging.clients))
        list_sort_answer(exchange, &rows, &paging);
}
