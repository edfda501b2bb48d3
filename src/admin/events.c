/*
 * events.c -- streams of events; see events.h.
 *
 * An event is rendered once, into a string that all streams copy. A stream that has sent everything
 * sleeps (http_sleep) and is woken by the next event, at the latest the status a second later: that
 * is how a vanished reader is detected.
 *
 * Always true:
 *  (1) Events first_id to next_id - 1 are kept, at most KEPT_MAX; `at` is indexed by id.
 *  (2) A stream's place is not behind next_id, and a stream that sleeps has read everything: all
 *      events, and the newest status.
 */
#include "admin/events.h"

#include "admin/http.h"
#include "admin/status.h"
#include "base/check.h"
#include "base/list.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    KEPT_MAX = 512,
    PER_SECOND_MAX = 100, /* events that are kept one by one */
    STATUS_MS = 1000,
    PIECE_BYTES = 8 * 1024,
};

struct events {
    const struct admin *admin;
    uv_timer_t timer; /* runs while there are streams */
    struct list streams;
    uint32_t stream_count;
    uint64_t run; /* distinguishes ids of another run */
    uint64_t first_id, next_id;
    char *at[KEPT_MAX]; /* the event of an id at id % KEPT_MAX */
    char *status;       /* the newest; NULL: there was none */
    uint64_t status_count;
    uint64_t second; /* since the epoch, in which kept_this_second were kept one by one */
    uint32_t kept_this_second;
    uint64_t not_kept;
};

struct stream {
    struct events *events;
    struct exchange *exchange;
    struct list node;
    uint64_t place;      /* the id to send next */
    uint64_t statuses;   /* status_count when it sent the newest of them */
    char *piece;         /* of its own: the first status; NULL: none */
    const char *sending; /* what is being sent: `piece`, or a copy of an event */
    char *copy;
    size_t sent;
};

/* ---- keeping ---- */

/* Begins an event; what is written next is its data, and keep() ends it. */
static void begin_event(const struct events *events, struct writer *out, const char *kind)
{
    char buffer[128];
    struct text head;
    text_init(&head, buffer, sizeof buffer);
    text_add(&head, "id: ");
    text_add_u64(&head, events->run);
    text_add(&head, "-");
    text_add_u64(&head, events->next_id);
    text_add(&head, "\nevent: ");
    text_add(&head, kind);
    text_add(&head, "\ndata: ");
    writer_plain(out, buffer);
}

static void wake_all(struct events *events)
{
    for (struct list *at = events->streams.next; at != &events->streams; at = at->next)
        http_wake(LIST_ELEMENT(at, struct stream, node)->exchange);
}

static void keep(struct events *events, struct writer *out)
{
    size_t len;
    writer_plain(out, "\n\n");
    char *text = writer_take(out, &len);
    if (text == NULL)
        return; /* out of memory: this one is not sent */
    uint64_t slot = events->next_id % KEPT_MAX;
    free(events->at[slot]);
    events->at[slot] = text;
    events->next_id++;
    if (events->next_id - events->first_id > KEPT_MAX)
        events->first_id = events->next_id - KEPT_MAX;
    wake_all(events);
}

/* The names of events that operators should see; NULL: for the log only. */
static const char *const names[EVENT_KIND_END] = {
    [EVENT_LIMIT] = "limit",
    [EVENT_NO_BYTES] = "no_bytes",
    [EVENT_NO_ROOM] = "no_room",
    [EVENT_CRASH_SIMULATED] = "crash_simulated",
    [EVENT_NOTICE] = "notice",
    [EVENT_NOTICE_IGNORED] = "notice_ignored",
    [EVENT_NOTICE_AMBIGUOUS] = "notice_ambiguous",
    [EVENT_NOTICE_FOREIGN] = "notice_foreign",
    [EVENT_NOTICE_UNCONFIRMED] = "notice_unconfirmed",
    [EVENT_TOLD] = "told",
    [EVENT_NOT_REACHED] = "not_reached",
    [EVENT_GIVEN_UP] = "given_up",
    [EVENT_ROUND_OVER] = "round_over",
    [EVENT_CLIENT_REBOOTED] = "client_rebooted",
    [EVENT_CLIENT_UNREACHED] = "client_unreached",
    [EVENT_CLIENT_RENEWED] = "client_renewed",
    [EVENT_CLIENT_FREED] = "client_freed",
    [EVENT_NAMESAKE_REFUSED] = "namesake_refused",
    [EVENT_CLIENT_MOVED] = "client_moved",
    [EVENT_NOT_RESUMED] = "not_resumed",
    [EVENT_GRACE_OVER] = "grace_over",
    [EVENT_GRACE_SETTLED] = "grace_over",
    [EVENT_CLIENT_RECLAIMED] = "client_reclaimed",
    [EVENT_CLIENT_LOST] = "client_lost",
    [EVENT_RECLAIM_DENIED] = "reclaim_denied",
    [EVENT_HOLDER_SILENT] = "holder_silent",
    [EVENT_LOCK_LIMIT] = "lock_limit",
    [EVENT_CLIENT_LOCK_LIMIT] = "client_lock_limit",
    [EVENT_WAITER_LIMIT] = "waiter_limit",
    [EVENT_ADDRESS_LIMIT] = "address_limit",
    [EVENT_RECORD_EVICTED] = "record_evicted",
    [EVENT_UNRESOLVED] = "unresolved",
    [EVENT_RESOLVED] = "resolved",
    [EVENT_UPCALL] = "upcall",
    [EVENT_UPCALL_FAILED] = "upcall_failed",
    [EVENT_RESTART_NOTICE] = "restart_notice",
    [EVENT_LOCKD_RESTARTED] = "lockd_restarted",
    [EVENT_REGISTERED] = "registered",
    [EVENT_CLIENT_ADDED] = "client_added",
    [EVENT_BLOCKED] = "blocked",
    [EVENT_GRANTED] = "granted",
    [EVENT_TRACKED_EXPIRED] = "tracked_expired",
};

const char *events_name(enum event_kind kind)
{
    return names[kind];
}

/* What exceeded the limit of the previous seconds. */
static void keep_more(struct events *events, uint64_t wall_ns)
{
    if (events->not_kept == 0)
        return;
    struct writer out = {0};
    begin_event(events, &out, "more");
    writer_object(&out, NULL);
    writer_time(&out, "time", wall_ns);
    writer_number(&out, "count", events->not_kept);
    writer_end_object(&out);
    keep(events, &out);
    events->not_kept = 0;
}

/* An event waits for nobody: a name that is not known at once is left out. */
static void add_file(struct writer *out, const struct admin *admin, struct bytes fh)
{
    struct bytes path;
    writer_hex(out, "file", fh);
    if (admin->path != NULL && admin->path(admin->context, fh, &path) == ADMIN_PATH_KNOWN)
        writer_bytes(out, "path", path);
    else
        writer_null(out, "path");
}

static void keep_event(struct events *events, const struct event *event, uint64_t wall_ns)
{
    const char *name = events_name(event->kind);
    if (name == NULL)
        return;
    if (events->second != wall_ns / SECOND_NS) {
        events->second = wall_ns / SECOND_NS;
        events->kept_this_second = 0;
        keep_more(events, wall_ns);
    }
    if (events->kept_this_second >= PER_SECOND_MAX) {
        events->not_kept++;
        return;
    }
    events->kept_this_second++;
    uint32_t len = event->name_len < EVENT_NAME_MAX ? event->name_len : EVENT_NAME_MAX;
    struct writer out = {0};
    begin_event(events, &out, name);
    writer_object(&out, NULL);
    writer_time(&out, "time", wall_ns);
    writer_text(&out, "kind", name);
    writer_address(&out, "address", &event->from);
    writer_bytes(&out, "name", (struct bytes){event->name, len});
    writer_number(&out, "value", event->value);
    if (event->total > 0)
        writer_number(&out, "total", event->total);
    if (event->fh_len > 0)
        add_file(&out, events->admin, (struct bytes){event->fh, event->fh_len});
    writer_end_object(&out);
    keep(events, &out);
}

void events_turn(struct events *events, const struct event_ring *reported, struct event_ring *feed)
{
    struct event event;
    if (events == NULL) {
        feed->count = 0;
        return;
    }
    if (reported->count == 0 && feed->count == 0)
        return;
    struct admin_facts facts = {0};
    events->admin->facts(events->admin->context, &facts);
    for (uint32_t i = 0; i < reported->count; i++)
        keep_event(events, &reported->at[(reported->head + i) % EVENT_RING_MAX], facts.wall_ns);
    while (event_take(feed, &event))
        keep_event(events, &event, facts.wall_ns);
    events->not_kept += feed->lost;
    feed->lost = 0;
}

/* ---- sending ---- */

static void free_stream(void *context)
{
    struct stream *stream = context;
    list_remove(&stream->node);
    if (--stream->events->stream_count == 0)
        CHECK(uv_timer_stop(&stream->events->timer) == 0);
    free(stream->piece);
    free(stream->copy);
    free(stream);
}

/* What this stream sends next; NULL: nothing. */
static const char *next_text(struct stream *stream)
{
    struct events *events = stream->events;
    free(stream->copy);
    stream->copy = NULL;
    if (stream->piece != NULL) {
        stream->copy = stream->piece;
        stream->piece = NULL;
    } else if (stream->place < events->first_id) {
        char lost[128];
        (void)snprintf(lost, sizeof lost, "event: lost\ndata: {\"count\":%llu}\n\n",
                       (unsigned long long)(events->first_id - stream->place));
        stream->place = events->first_id;
        stream->copy = strdup(lost);
    } else if (stream->place < events->next_id) {
        stream->copy = strdup(events->at[stream->place++ % KEPT_MAX]);
    } else if (stream->statuses < events->status_count) {
        stream->statuses = events->status_count;
        stream->copy = strdup(events->status);
    }
    stream->sent = 0;
    return stream->copy;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t max)
{
    struct stream *stream = context;
    size_t len = 0;
    (void)position;
    if (max > PIECE_BYTES)
        max = PIECE_BYTES;
    while (len < max) {
        if (stream->sending == NULL && (stream->sending = next_text(stream)) == NULL)
            break;
        size_t left = strlen(stream->sending) - stream->sent;
        size_t count = left < max - len ? left : max - len;
        memcpy(buffer + len, stream->sending + stream->sent, count);
        stream->sent += count;
        len += count;
        if (count == left)
            stream->sending = NULL;
    }
    return len == 0 ? http_sleep(stream->exchange) : (ssize_t)len;
}

static char *make_status(const struct events *events, const char *before)
{
    struct writer out = {0};
    size_t len;
    writer_plain(&out, before);
    writer_plain(&out, "event: status\ndata: ");
    status_write(&out, events->admin);
    writer_plain(&out, "\n\n");
    return writer_take(&out, &len);
}

static void renew_status(struct events *events)
{
    char *status = make_status(events, "");
    if (status == NULL)
        return; /* out of memory: the next second has one */
    free(events->status);
    events->status = status;
    events->status_count++;
    wake_all(events);
}

static void on_second(uv_timer_t *timer)
{
    struct events *events = timer->data;
    struct admin_facts facts = {0};
    events->admin->facts(events->admin->context, &facts);
    keep_more(events, facts.wall_ns);
    if (events->admin->core != NULL)
        renew_status(events);
}

/* Digits alone, up to `end`. */
static bool read_number(const char *text, char end, uint64_t *ret, const char **ret_end)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    *ret = value;
    *ret_end = at;
    return at > text && *at == end;
}

/*
 * Where this reader left off, or now. An id no longer kept is still a position: what was missed is
 * counted. A reader from an earlier run, or from a version whose ids had no run, has seen nothing
 * of this run yet and gets all of it. A browser that connects again says both, and its header is
 * the newer one.
 */
static uint64_t place_of(const struct events *events, const struct exchange *exchange)
{
    const char *text =
        MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "Last-Event-ID");
    uint64_t run, id;
    const char *end;
    if (text == NULL)
        text = exchange_parameter(exchange, "after");
    if (text == NULL)
        return events->next_id;
    if (strcmp(text, "0") == 0)
        return events->first_id; /* what is not kept any more it did not miss */
    if (read_number(text, '\0', &id, &end))
        return 1;
    if (!read_number(text, '-', &run, &end) || !read_number(end + 1, '\0', &id, &end))
        return events->next_id;
    if (run != events->run)
        return 1;
    return id < events->next_id ? id + 1 : events->next_id;
}

void events_answer(struct exchange *exchange)
{
    struct events *events = exchange->admin->events;
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return;
    stream->piece = make_status(events, "retry: 2000\n");
    if (stream->piece == NULL) {
        free(stream);
        return;
    }
    stream->events = events;
    stream->exchange = exchange;
    stream->place = place_of(events, exchange);
    stream->statuses = events->status_count;
    list_append(&events->streams, &stream->node);
    if (events->stream_count++ == 0)
        CHECK(uv_timer_start(&events->timer, on_second, STATUS_MS, STATUS_MS) == 0);
    exchange_stream(exchange, "text/event-stream", PIECE_BYTES, read_stream, stream, free_stream);
}

/* ---- birth and end ---- */

struct events *events_new(uv_loop_t *loop, const struct admin *admin, uint64_t run)
{
    struct events *events = calloc(1, sizeof *events);
    if (events == NULL)
        return NULL;
    events->admin = admin;
    events->run = run;
    events->first_id = events->next_id = 1;
    list_init(&events->streams);
    CHECK(uv_timer_init(loop, &events->timer) == 0); /* it only fills the struct */
    events->timer.data = events;
    return events;
}

static void on_close(uv_handle_t *handle)
{
    struct events *events = handle->data;
    for (uint32_t i = 0; i < KEPT_MAX; i++)
        free(events->at[i]);
    free(events->status);
    free(events);
}

void events_free(struct events *events)
{
    if (events == NULL)
        return;
    CHECK(events->stream_count == 0); /* their endpoints are gone */
    uv_close((uv_handle_t *)&events->timer, on_close);
}
