/*
 * config_change.h -- how the options differ from those in force, and taking over what may change
 * while the server runs.
 *
 * An option's row says whether it may (CONFIG_RELOADS), or only upwards (CONFIG_RAISES): a limit
 * that goes down would find clients above it. Everything else needs a restart, and is named.
 */
#ifndef DAEMON_CONFIG_CHANGE_H
#define DAEMON_CONFIG_CHANGE_H

#include "daemon/config.h"

enum config_change {
    CONFIG_UNCHANGED,
    CONFIG_CHANGED,       /* and may be taken over */
    CONFIG_NEEDS_RESTART, /* and may not */
};

enum config_change config_change_of(const struct config *now, const struct config *fresh,
                                    const struct config_option *option);
/* All values of an option, separated by ", ". */
void config_change_add(struct text *text, const struct config *config,
                       const struct config_option *option);

/* Exchanges the values of all options that may change; `fresh` has the old ones afterwards. */
void config_change_take(struct config *now, struct config *fresh);

#endif
