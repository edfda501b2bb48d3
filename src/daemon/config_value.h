/*
 * config_value.h -- one option's value: from text into its field, and back.
 */
#ifndef DAEMON_CONFIG_VALUE_H
#define DAEMON_CONFIG_VALUE_H

#include "daemon/config.h"

/*
 * Parses `value` into the field of this option; values of lists are added. 0, or -EINVAL
 * (-ENOMEM) with the cause and what is allowed in *ret_why; the field is then as it was.
 */
__attribute__((warn_unused_result)) int config_value_parse(struct config *config,
                                                           const struct config_option *option,
                                                           const char *value, struct text *ret_why);

/* How many values the field holds: 0 for what is not given, more than 1 for lists. */
uint32_t config_value_count(const struct config *config, const struct config_option *option);
/* One of them, in the form that config_value_parse reads. */
void config_value_add(struct text *text, const struct config *config,
                      const struct config_option *option, uint32_t index);

/* Frees what the field owns and makes it empty. */
void config_value_clear(struct config *config, const struct config_option *option);

#endif
