/*
 * log_row.h -- what each kind of event means to an operator: a level, a sentence, and what its name
 * and value are called. A status monitor has other words for some of them.
 */
#ifndef DAEMON_LOG_ROW_H
#define DAEMON_LOG_ROW_H

#include "core/event.h"
#include "daemon/log.h"

struct log_row {
    enum log_level level;
    const char *sentence;
    const char *name_key, *value_key; /* NULL: the event has none */
};

/* EVENT_KIND_END: events that the ring lost. */
const struct log_row *log_row_of(uint32_t kind, bool is_monitor);

#endif
