/*
 * config_window.h -- the values of --window: how long clients of one protocol have to come back.
 */
#ifndef DAEMON_CONFIG_WINDOW_H
#define DAEMON_CONFIG_WINDOW_H

#include "base/text.h"
#include "core/core.h"

#define CONFIG_WINDOW_MAX   16    /* protocols with clients at the same time */
#define CONFIG_WINDOW_S_MAX 86400 /* a day: longer windows are typing errors */

struct config_window {
    char protocol[RECORD_PROTOCOL_MAX + 1];
    uint32_t seconds;
};

struct config_windows {
    uint32_t count;
    struct config_window at[CONFIG_WINDOW_MAX];
};

/* Adds PROTOCOL=S. 0, or -EINVAL with the cause and what is allowed in *ret_why; nothing is then
 * added. */
__attribute__((warn_unused_result)) int
config_window_parse(struct config_windows *windows, const char *value, struct text *ret_why);
/* In the form that config_window_parse reads. */
void config_window_add_text(struct text *text, const struct config_window *window);

/* For the core: views into *windows, CONFIG_WINDOW_MAX at most. Returns the count. */
uint32_t config_window_list(const struct config_windows *windows, struct core_window *ret);

#endif
