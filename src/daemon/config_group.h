/*
 * config_group.h -- --group: which of the servers that share a store this is, or may become.
 *
 * What differs between groups stands in the section [group NAME] of the configuration file: its
 * keys count above those of [holdfast], and only while this process serves that group. A standby of
 * several groups reads all of them when it starts, so an error is found then and not at a takeover.
 */
#ifndef DAEMON_CONFIG_GROUP_H
#define DAEMON_CONFIG_GROUP_H

#include "base/text.h"
#include "store/group.h"

#include <stdint.h>

#define CONFIG_GROUP_SECTION "group " /* and the name */

struct config;

struct config_group_names {
    uint32_t count;
    char at[STORE_GROUPS_MAX][STORE_GROUP_NAME_MAX + 1];
};

/* Adds one; a repeated name counts once. 0, or -EINVAL with the cause in *ret_why. */
__attribute__((warn_unused_result)) int config_group_parse(struct config_group_names *names,
                                                           const char *value, struct text *ret_why);

/* The names as a store takes them; how many. They live as long as the options do. */
uint32_t config_group_list(const struct config_group_names *names,
                           const char *ret[static STORE_GROUPS_MAX]);

/* Of a key of the configuration file: may it stand in the section of a group? Not if the process
 * needs it before it knows which group it serves. */
bool config_group_has_key(const char *key);

/* Do the options about groups fit together? 0, or -EINVAL with a sentence in *ret_why. */
__attribute__((warn_unused_result)) int config_group_check(const struct config *config,
                                                           struct text *ret_why);

#endif
