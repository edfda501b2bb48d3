/*
 * log.h -- the log, to standard error: text for people or one JSON object per line.
 *
 * A line is a message and fields. The message is text of this program; whatever comes from a peer
 * is a field and is escaped here, and nothing is ever a format string (R-SEC-8). Events of the
 * layers below, which peers can cause at will, are limited: LOG_BURST of a kind in LOG_WINDOW_NS,
 * then one line that counts the rest.
 *
 * Writing never waits. A line that cannot be written at once is dropped and counted, and the count
 * is logged when lines can be written again.
 *
 *   log_say(log, LOG_LEVEL_INFO, wall_ns, LOG_MESSAGE("store opened"), LOG_TEXT("url", url),
 *           LOG_NUMBER("clients", count));
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include "base/units.h"
#include "core/event.h"

#define LOG_BURST     10
#define LOG_WINDOW_NS (10 * SECOND_NS)
#define LOG_LINE_MAX  4096 /* with its newline: PIPE_BUF, so that a pipe takes it whole */

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_END
};
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_END };

enum log_field_kind { LOG_FIELD_TEXT, LOG_FIELD_NUMBER, LOG_FIELD_ADDRESS };

struct log_field {
    const char *key;
    enum log_field_kind kind;
    struct bytes text;
    uint64_t number;
    const struct address *address;
};

/* clang-format off */
#define LOG_MESSAGE(sentence)        {"message", LOG_FIELD_TEXT, bytes_of_text(sentence), 0, NULL}
#define LOG_TEXT(key, string)        {(key), LOG_FIELD_TEXT, bytes_of_text(string), 0, NULL}
/* Bytes of any kind and length, also from peers. */
#define LOG_BYTES(key, view)         {(key), LOG_FIELD_TEXT, (view), 0, NULL}
#define LOG_NUMBER(key, value)       {(key), LOG_FIELD_NUMBER, {NULL, 0}, (value), NULL}
#define LOG_ADDRESS(key, address_at) {(key), LOG_FIELD_ADDRESS, {NULL, 0}, 0, (address_at)}
/* clang-format on */

/* How many events of one kind there were in the current window. */
struct log_bucket {
    uint64_t start_ns;
    uint64_t count; /* 0: no window is open */
};

/* What a file is called now; false: not known at once. The name lives until the next call. */
typedef bool (*log_path_fn)(void *context, struct bytes fh, struct bytes *ret);

struct log {
    enum log_level level;
    enum log_format format;
    bool is_monitor;   /* events are told in the words of that role */
    const char *group; /* the last field of every line; NULL: none. Borrowed */
    int fd;
    uint64_t lines_lost; /* since a line was written last */
    log_path_fn path;    /* NULL: files are named by their handles */
    void *path_context;
    /* By kind; the last one counts what did not fit into the ring. */
    struct log_bucket buckets[EVENT_KIND_END + 1];
};

/* The file descriptor is borrowed. The process ignores SIGPIPE, or a closed pipe ends it. */
void log_init(struct log *log, enum log_level level, enum log_format format, int fd);
/* Other ones from now on. */
void log_set(struct log *log, enum log_level level, enum log_format format);
/* Files are named so from now on, where they can be. */
void log_set_paths(struct log *log, log_path_fn path, void *context);

/* One line; the first field is the message. `wall_ns` is the time shown. */
#define log_say(log, level, wall_ns, ...)                                                          \
    log_fields((log), (level), (wall_ns), (const struct log_field[]){__VA_ARGS__},                 \
               sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
void log_fields(struct log *log, enum log_level level, uint64_t wall_ns,
                const struct log_field *fields, size_t count);

/* One event, unless its kind had its burst. `now_ns` is monotonic. */
void log_event(struct log *log, const struct event *event, uint64_t now_ns, uint64_t wall_ns);
/* Everything in the ring, and how much the ring itself lost. */
void log_drain(struct log *log, struct event_ring *ring, uint64_t now_ns, uint64_t wall_ns);

/* Closes windows that are over, each with the line that counts what it held back. */
void log_tick(struct log *log, uint64_t now_ns, uint64_t wall_ns);
/* The same as log_tick for every window, whether over or not: at the end of the process. */
void log_flush(struct log *log, uint64_t now_ns, uint64_t wall_ns);

#endif
