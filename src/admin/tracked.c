/*
 * tracked.c -- requests about tracked clients as inputs of the core, and its answers as responses;
 * see tracked.h.
 *
 *   added                             201 with the client
 *   updated, reconnected, found,
 *   disconnected, taken               200 with the client
 *   removed                           200 {"result": "removed"}
 *   none (is expired)                 204
 *   unknown                           404
 *   replaced                          409
 *   expired                           410
 *   limit, bytes, room                507
 *   later                             no response yet: tried again in the next turn
 *
 * Over the control socket each leaves when what it says is durable (P1): exchange.after_txn. A look
 * over TCP, like every other there, does not wait.
 */
#include "admin/tracked.h"

#include "admin/paging.h"
#include "admin/tracked_body.h"
#include "base/check.h"
#include "base/hex.h"

#include <stdlib.h>

enum { KEY_SHOWN_MAX = 4 + 2 * RECORD_KEY_MAX };

const char *tracked_word(enum record_tracked_state state)
{
    switch (state) {
    case RECORD_TRACKED_CONNECTED:
        return "connected";
    case RECORD_TRACKED_DISCONNECTED:
        return "disconnected";
    case RECORD_TRACKED_EXPIRED:
        return "expired";
    }
    UNREACHABLE();
}

/* As a path may name it: as it is where that is plain text, else in hex. */
static void add_key(struct writer *out, const char *member, struct bytes key)
{
    char buffer[KEY_SHOWN_MAX + 1];
    struct text text;
    bool is_plain = key.len < 4 || memcmp(key.at, "hex:", 4) != 0;
    for (uint32_t i = 0; i < key.len; i++)
        is_plain &= key.at[i] >= ' ' && key.at[i] < 0x7f && key.at[i] != '/' && key.at[i] != '%';
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "hex:");
    text_add_hex(&text, key);
    if (is_plain)
        writer_bytes(out, member, key);
    else
        writer_text(out, member, buffer);
}

void tracked_add(struct writer *out, const struct tracker_view *view, bool has_bytes)
{
    writer_id(out, "id", view->id);
    writer_bytes(out, "protocol", view->protocol);
    add_key(out, "key", view->key);
    if (bytes_equal(view->name, view->key))
        add_key(out, "name", view->key);
    else
        writer_bytes(out, "name", view->name);
    writer_address(out, "address", &view->address);
    writer_text(out, "state", tracked_word(view->state));
    writer_number(out, "connection", view->generation);
    writer_number(out, "window_s", view->window_s);
    writer_time(out, "deadline", view->deadline_ns);
    writer_time(out, "registered_at", view->registered_ns);
    if (has_bytes)
        writer_hex(out, "bytes", view->bytes);
    else
        writer_null(out, "bytes");
}

/* ---- one client ---- */

static const char *word_of(enum tracking_result result)
{
    static const char *const words[] = {
        [TRACKING_ADDED] = "added",
        [TRACKING_UPDATED] = "updated",
        [TRACKING_RECONNECTED] = "reconnected",
        [TRACKING_DISCONNECTED] = "disconnected",
        [TRACKING_REMOVED] = "removed",
        [TRACKING_TAKEN] = "expired",
        [TRACKING_FOUND] = "found",
    };
    return words[result];
}

static void show(struct exchange *exchange, const struct tracking_answer *answer, bool has_bytes)
{
    struct writer out = {0};
    writer_object(&out, NULL);
    writer_text(&out, "result", word_of(answer->result));
    if (answer->has_view)
        tracked_add(&out, &answer->view, has_bytes);
    writer_end_object(&out);
    writer_plain(&out, "\n");
    exchange_json(exchange, answer->result == TRACKING_ADDED ? MHD_HTTP_CREATED : MHD_HTTP_OK,
                  &out);
}

static void report(struct exchange *exchange, const struct tracking_answer *answer)
{
    switch (answer->result) {
    case TRACKING_ADDED:
    case TRACKING_UPDATED:
    case TRACKING_RECONNECTED:
    case TRACKING_DISCONNECTED:
    case TRACKING_REMOVED:
    case TRACKING_TAKEN:
    case TRACKING_FOUND:
        show(exchange, answer, true);
        return;
    case TRACKING_NONE:
        exchange_body(exchange, MHD_HTTP_NO_CONTENT, "application/json", strdup(""), 0);
        return;
    case TRACKING_UNKNOWN:
        exchange_error(
            exchange, MHD_HTTP_NOT_FOUND, "no such tracked client: ", exchange->key,
            "it was removed, another one has its key, or it never was; PUT registers it");
        return;
    case TRACKING_REPLACED:
        exchange_error(exchange, MHD_HTTP_CONFLICT, "it has a newer connection: ", exchange->key,
                       "what concerns an older one changes nothing");
        return;
    case TRACKING_EXPIRED:
        exchange_error(exchange, MHD_HTTP_GONE, "its time has run out: ", exchange->key,
                       "clean up after it, then DELETE it; it can be registered again then");
        return;
    case TRACKING_LIMIT:
        exchange_error(exchange, MHD_HTTP_INSUFFICIENT_STORAGE,
                       "no room for another tracked client: ", exchange->key,
                       "raise --max-clients or, for many at one address, --max-per-address; at "
                       "most 16 protocols have clients at the same time");
        return;
    case TRACKING_BYTES:
        exchange_error(exchange, MHD_HTTP_INSUFFICIENT_STORAGE,
                       "no room for its bytes: ", exchange->key, "--max-bytes is used up");
        return;
    case TRACKING_ROOM:
        exchange_error(exchange, MHD_HTTP_INSUFFICIENT_STORAGE,
                       "the store cannot reserve more space: ", exchange->key,
                       "free space on its disk");
        return;
    case TRACKING_LATER:
        break;
    }
    UNREACHABLE();
}

/* True: already responded. */
static bool refuse_of_monitor(struct exchange *exchange)
{
    struct core_status status;
    core_status(exchange->admin->core, &status);
    if (status.is_monitor)
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "a status monitor tracks no clients",
                       (struct bytes){0}, "a server does: --role server");
    return status.is_monitor;
}

static void ask(struct exchange *exchange, enum tracking_kind kind)
{
    struct tracked_words words;
    struct tracking tracking = {.kind = kind};
    struct core_answer answer = {.tracking.result = TRACKING_LATER};
    if (refuse_of_monitor(exchange) || !tracked_body_read(exchange, &words, &tracking))
        return;
    exchange->admin->track(exchange->admin->context, &tracking, &answer);
    exchange->is_pending = answer.tracking.result == TRACKING_LATER;
    exchange->after_txn = answer.after_txn;
    if (!exchange->is_pending)
        report(exchange, &answer.tracking);
}

void tracked_register(struct exchange *exchange)
{
    ask(exchange, TRACKING_REGISTER);
}

void tracked_reconnect(struct exchange *exchange)
{
    ask(exchange, TRACKING_RECONNECT);
}

void tracked_disconnect(struct exchange *exchange)
{
    ask(exchange, TRACKING_DISCONNECT);
}

void tracked_update(struct exchange *exchange)
{
    ask(exchange, TRACKING_UPDATE);
}

void tracked_remove(struct exchange *exchange)
{
    ask(exchange, TRACKING_REMOVE);
}

void tracked_take(struct exchange *exchange)
{
    ask(exchange, TRACKING_TAKE);
}

void tracked_show(struct exchange *exchange)
{
    struct tracked_words words;
    struct tracking tracking = {.kind = TRACKING_LOOK};
    struct tracking_answer answer = {.result = TRACKING_FOUND, .has_view = true};
    if (exchange->is_control) {
        ask(exchange, TRACKING_LOOK);
        return;
    }
    if (refuse_of_monitor(exchange) || !tracked_body_read(exchange, &words, &tracking))
        return;
    if (view_find_tracked(exchange->admin->core, tracking.protocol, tracking.key, &answer.view))
        show(exchange, &answer, false);
    else
        report(exchange, &(struct tracking_answer){.result = TRACKING_UNKNOWN});
}

/* ---- all ---- */

static bool next_tracked(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    const struct paging_clients *wanted = &paging->clients;
    struct tracker_view view;
    while (view_next_tracked(paging->admin->core, cursor, budget, &view)) {
        if (wanted->state != NULL && strcmp(wanted->state, tracked_word(view.state)) != 0)
            continue;
        if (wanted->protocol[0] != '\0' &&
            !bytes_equal(view.protocol, bytes_of_text(wanted->protocol)))
            continue;
        writer_line(&paging->writer);
        writer_object(&paging->writer, NULL);
        tracked_add(&paging->writer, &view, paging->exchange->is_control);
        writer_end_object(&paging->writer);
        return true;
    }
    return false;
}

/* False: already responded. */
static bool read_state(struct exchange *exchange, const char **ret)
{
    const char *word = exchange_parameter(exchange, "state");
    for (uint32_t state = RECORD_TRACKED_CONNECTED; state <= RECORD_TRACKED_EXPIRED; state++)
        if (word != NULL && strcmp(word, tracked_word((enum record_tracked_state)state)) == 0)
            *ret = tracked_word((enum record_tracked_state)state);
    if (word == NULL || *ret != NULL)
        return true;
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                   "not the state of a tracked client: ", bytes_of_text(word),
                   "allowed: connected, disconnected, expired");
    return false;
}

void tracked_list(struct exchange *exchange)
{
    struct paging paging = {.name = "tracked", .next = next_tracked};
    const char *protocol = exchange_parameter(exchange, "protocol");
    struct bytes word;
    if (refuse_of_monitor(exchange) || !read_state(exchange, &paging.clients.state))
        return;
    if (protocol != NULL) {
        if (!tracked_body_read_protocol(exchange, bytes_of_text(protocol), &word))
            return;
        memcpy(paging.clients.protocol, word.at, word.len);
    }
    paging_answer(exchange, &paging);
}
