/*
 * log.c -- the only place that formats a log line; see log.h.
 *
 *   text:  2026-11-15T20:10:57.123Z info    message key=value key="value"
 *   json:  {"time":"2026-11-15T20:10:57.123Z","level":"info","message":"...","key":"value"}
 *
 * Always true:
 *  (1) A line is one write of at most LOG_LINE_MAX bytes, ends in a newline and contains no other.
 *  (2) A JSON line is valid JSON: a field that does not fit is left out whole, and the room for the
 *      end of the object is never given away.
 *  (3) Bytes of a value reach the line only through text_add_escaped or writer_cut.
 *
 * Why poll before write: standard error may be a pipe whose reader has stopped, and a lock server
 * must not stop with it. Setting O_NONBLOCK is not ours to do, because the flag belongs to the open
 * file that we share with our parent process. But a pipe that polls writable has room for PIPE_BUF
 * bytes, so a line within that size is taken at once. The same holds for the socket of a journal; a
 * file or a terminal takes what it is given. Another writer of the same pipe could fill it between
 * the two calls; that costs a wait for its reader, once, and not correctness.
 */
#include "daemon/log.h"

#include "admin/writer.h"
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/log_row.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 1024, /* bytes of a message that are shown */
    VALUE_MAX = 256,    /* bytes of any other value */
    TIME_MAX = 40,
    PART_MAX = 48, /* two numbers and a word */
    LEVEL_WIDTH = 7,
};

_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a pipe that polls writable takes a whole line");
/* Escaping makes six bytes of one at most; two whole values fit beside the message's usual size. */
_Static_assert(VALUE_MAX * 6 * 2 < LOG_LINE_MAX, "values fit into a line");

static const char *const level_names[] = {"error", "warning", "info", "debug"};
_Static_assert(sizeof level_names / sizeof level_names[0] == LOG_LEVEL_END, "a name per level");

void log_init(struct log *log, enum log_level level, enum log_format format, int fd)
{
    *log = (struct log){.level = level, .format = format, .fd = fd};
}

void log_set(struct log *log, enum log_level level, enum log_format format)
{
    log->level = level;
    log->format = format;
}

void log_set_paths(struct log *log, log_path_fn path, void *context)
{
    log->path = path;
    log->path_context = context;
}

static void add_time(struct text *text, uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / SECOND_NS);
    struct tm parts;
    char buffer[TIME_MAX] = "";
    CHECK(gmtime_r(&seconds, &parts) != NULL);
    size_t len = strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%S", &parts);
    CHECK(len > 0);
    text_add(text, buffer);
    (void)snprintf(buffer, sizeof buffer, ".%03uZ", (unsigned)(wall_ns / MS_NS % 1000));
    text_add(text, buffer);
}

/* A sentence for people keeps its quotes; what could break the line or the terminal is escaped. */
static void add_message(struct text *text, struct bytes message)
{
    for (uint32_t i = 0; i < message.len && i < MESSAGE_MAX; i++) {
        if (message.at[i] == '"' || message.at[i] == '\\')
            text_add_char(text, (char)message.at[i]);
        else
            text_add_escaped(text, (struct bytes){message.at + i, 1}, 1);
    }
}

static void add_field_text(struct text *text, const struct log_field *field)
{
    text_add_char(text, ' ');
    text_add(text, field->key);
    text_add_char(text, '=');
    switch (field->kind) {
    case LOG_FIELD_TEXT:
        text_add_char(text, '"');
        text_add_escaped(text, field->text, VALUE_MAX);
        text_add_char(text, '"');
        return;
    case LOG_FIELD_NUMBER:
        text_add_u64(text, field->number);
        return;
    case LOG_FIELD_ADDRESS:
        text_add_address(text, field->address);
        return;
    }
}

static void add_field_json(struct writer *line, const struct log_field *field, uint32_t len_max)
{
    char address[ADDRESS_TEXT_MAX];
    switch (field->kind) {
    case LOG_FIELD_TEXT:
        writer_cut(line, field->key, field->text, len_max);
        return;
    case LOG_FIELD_NUMBER:
        writer_integer(line, field->key, field->number);
        return;
    case LOG_FIELD_ADDRESS:
        address_text(field->address, address);
        writer_text(line, field->key, address);
        return;
    }
}

/* A field that does not fit is left out: without it the line is still right. */
static uint32_t build_json(const struct log *log, enum log_level level, uint64_t wall_ns,
                           const struct log_field *fields, size_t count, char *buffer)
{
    static const char end[] = "}\n";
    struct writer line = writer_into(buffer, LOG_LINE_MAX + 2 - sizeof end);
    writer_object(&line, NULL);
    writer_time(&line, "time", wall_ns);
    writer_text(&line, "level", level_names[level]);
    const struct log_field group = LOG_TEXT("group", log->group != NULL ? log->group : "");
    for (size_t i = 0; i < count + (log->group != NULL); i++) {
        struct writer before = line;
        add_field_json(&line, i < count ? &fields[i] : &group,
                       i == 0 ? MESSAGE_MAX / 2 : VALUE_MAX);
        if (line.has_failed)
            line = before;
    }
    line.size = LOG_LINE_MAX + 1;
    writer_plain(&line, end);
    return (uint32_t)line.len;
}

static uint32_t build_text(const struct log *log, enum log_level level, uint64_t wall_ns,
                           const struct log_field *fields, size_t count, char *buffer)
{
    struct text text;
    text_init(&text, buffer, LOG_LINE_MAX);
    add_time(&text, wall_ns);
    text_add_char(&text, ' ');
    text_add(&text, level_names[level]);
    for (size_t at = strlen(level_names[level]); at <= LEVEL_WIDTH; at++)
        text_add_char(&text, ' ');
    add_message(&text, fields[0].text);
    const struct log_field group = LOG_TEXT("group", log->group != NULL ? log->group : "");
    for (size_t i = 1; i < count + (log->group != NULL); i++) {
        uint32_t before = text.len;
        add_field_text(&text, i < count ? &fields[i] : &group);
        /* Full means that something may be missing: without the field the line is still right. */
        if (text.len == text.max) {
            text.len = before;
            buffer[before] = '\0';
        }
    }
    text.max = LOG_LINE_MAX;
    text_add_char(&text, '\n');
    return text.len;
}

/* Builds the line with its newline. `buffer` has LOG_LINE_MAX bytes and one for the NUL. */
static uint32_t build_line(const struct log *log, enum log_level level, uint64_t wall_ns,
                           const struct log_field *fields, size_t count, char *buffer)
{
    return log->format == LOG_FORMAT_JSON ? build_json(log, level, wall_ns, fields, count, buffer)
                                          : build_text(log, level, wall_ns, fields, count, buffer);
}

static bool write_line(const struct log *log, const char *line, uint32_t len)
{
    struct pollfd fd = {.fd = log->fd, .events = POLLOUT};
    if (poll(&fd, 1, 0) != 1 || (fd.revents & POLLOUT) == 0)
        return false;
    return write(log->fd, line, len) == (ssize_t)len;
}

void log_fields(struct log *log, enum log_level level, uint64_t wall_ns,
                const struct log_field *fields, size_t count)
{
    CHECK(level < LOG_LEVEL_END);
    CHECK(count >= 1);
    if (level > log->level)
        return;
    char line[LOG_LINE_MAX + 1];
    uint32_t len;
    if (log->lines_lost > 0) {
        const struct log_field lost[] = {
            LOG_MESSAGE("lost log lines: the reader of standard error is too slow"),
            LOG_NUMBER("lines", log->lines_lost)};
        len = build_line(log, LOG_LEVEL_WARNING, wall_ns, lost, 2, line);
        if (!write_line(log, line, len)) {
            log->lines_lost++;
            return;
        }
        log->lines_lost = 0;
    }
    len = build_line(log, level, wall_ns, fields, count, line);
    if (!write_line(log, line, len))
        log->lines_lost++;
}

static uint64_t burst_of(uint32_t kind)
{
    return kind == EVENT_KIND_END ? 0 : LOG_BURST;
}

/* Ends the window of a kind and counts what it held back. */
static void close_window(struct log *log, uint32_t kind, uint64_t now_ns, uint64_t wall_ns)
{
    struct log_bucket bucket = log->buckets[kind];
    log->buckets[kind] = (struct log_bucket){0};
    if (bucket.count <= burst_of(kind))
        return;
    char buffer[MESSAGE_MAX / 2];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, log_row_of(kind, log->is_monitor)->sentence);
    text_add(&text, "; and ");
    text_add_count(&text, bucket.count - burst_of(kind));
    text_add(&text, " more like this in the last ");
    text_add_count(&text, (now_ns - bucket.start_ns + SECOND_NS - 1) / SECOND_NS);
    text_add(&text, " s");
    log_say(log, log_row_of(kind, log->is_monitor)->level, wall_ns, LOG_MESSAGE(buffer),
            LOG_NUMBER("held_back", bucket.count - burst_of(kind)));
}

static bool is_over(const struct log_bucket *bucket, uint64_t now_ns)
{
    return bucket->count > 0 && now_ns - bucket->start_ns >= LOG_WINDOW_NS;
}

/* True when one more of this kind, or `count` more, may be logged one by one. */
static bool count_event(struct log *log, uint32_t kind, uint64_t count, uint64_t now_ns,
                        uint64_t wall_ns)
{
    struct log_bucket *bucket = &log->buckets[kind];
    if (is_over(bucket, now_ns))
        close_window(log, kind, now_ns, wall_ns);
    if (bucket->count == 0)
        bucket->start_ns = now_ns;
    bucket->count += count;
    return bucket->count <= burst_of(kind);
}

/* Its name, or its handle; `buffer` has room for that. */
static struct log_field file_field(const struct log *log, const struct event *event,
                                   char buffer[static 2 * EVENT_FH_MAX + 1])
{
    struct bytes fh = {event->fh, event->fh_len}, path;
    struct text hex;
    if (log->path != NULL && log->path(log->path_context, fh, &path))
        return (struct log_field)LOG_BYTES("path", path);
    text_init(&hex, buffer, 2 * EVENT_FH_MAX + 1);
    text_add_hex(&hex, fh);
    return (struct log_field)LOG_TEXT("file", buffer);
}

/* "7 of 12" */
static struct log_field part_field(const char *key, const struct event *event,
                                   char buffer[static PART_MAX])
{
    struct text words;
    text_init(&words, buffer, PART_MAX);
    text_add_u64(&words, event->value);
    text_add(&words, " of ");
    text_add_u64(&words, event->total);
    return (struct log_field)LOG_TEXT(key, buffer);
}

void log_event(struct log *log, const struct event *event, uint64_t now_ns, uint64_t wall_ns)
{
    CHECK(event->kind < EVENT_KIND_END);
    const struct log_row *row = log_row_of(event->kind, log->is_monitor);
    if (row->level > log->level || !count_event(log, event->kind, 1, now_ns, wall_ns))
        return;
    struct log_field fields[6] = {LOG_MESSAGE(row->sentence)};
    char file[2 * EVENT_FH_MAX + 1], part[PART_MAX];
    size_t count = 1;
    if (event->from.family != 0)
        fields[count++] = (struct log_field)LOG_ADDRESS("from", &event->from);
    if (row->name_key != NULL && event->name_len > 0) {
        bool is_cut = event->name_len > EVENT_NAME_MAX;
        struct bytes name = {event->name, is_cut ? EVENT_NAME_MAX : event->name_len};
        fields[count++] = (struct log_field)LOG_BYTES(row->name_key, name);
        if (is_cut)
            fields[count++] = (struct log_field)LOG_NUMBER("cut_from_bytes", event->name_len);
    }
    if (row->value_key != NULL && event->total > 0)
        fields[count++] = part_field(row->value_key, event, part);
    else if (row->value_key != NULL)
        fields[count++] = (struct log_field)LOG_NUMBER(row->value_key, event->value);
    if (event->fh_len > 0)
        fields[count++] = file_field(log, event, file);
    log_fields(log, row->level, wall_ns, fields, count);
}

void log_drain(struct log *log, struct event_ring *ring, uint64_t now_ns, uint64_t wall_ns)
{
    struct event event;
    while (event_take(ring, &event))
        log_event(log, &event, now_ns, wall_ns);
    if (ring->lost > 0)
        (void)count_event(log, EVENT_KIND_END, ring->lost, now_ns, wall_ns);
    ring->lost = 0;
}

void log_tick(struct log *log, uint64_t now_ns, uint64_t wall_ns)
{
    for (uint32_t kind = 0; kind <= EVENT_KIND_END; kind++)
        if (is_over(&log->buckets[kind], now_ns))
            close_window(log, kind, now_ns, wall_ns);
}

void log_flush(struct log *log, uint64_t now_ns, uint64_t wall_ns)
{
    for (uint32_t kind = 0; kind <= EVENT_KIND_END; kind++)
        close_window(log, kind, now_ns, wall_ns);
}
