/*
 * config_group.c -- see config_group.h.
 */
#include "daemon/config_group.h"

#include "daemon/config.h"
#include "store/store.h"

#include <errno.h>

int config_group_parse(struct config_group_names *names, const char *value, struct text *ret_why)
{
    if (!store_group_is_name(value)) {
        text_add(ret_why, "not the name of a group; allowed: " STORE_GROUP_RULE);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i], value) == 0)
            return 0;
    if (names->count == STORE_GROUPS_MAX) {
        text_add(ret_why, "too many groups; allowed: ");
        text_add_u64(ret_why, STORE_GROUPS_MAX);
        return -EINVAL;
    }
    memcpy(names->at[names->count++], value, strlen(value) + 1);
    return 0;
}

uint32_t config_group_list(const struct config_group_names *names,
                           const char *ret[static STORE_GROUPS_MAX])
{
    for (uint32_t i = 0; i < names->count; i++)
        ret[i] = names->at[i];
    return names->count;
}

bool config_group_has_key(const char *key)
{
    /* In force from the first moment: what it is, whom it waits for, how it is asked and logs. */
    static const char *const of_process[] = {
        "role",    "http", "control",       "store",   "sync",      "store-timeout", "group",
        "standby", "user", "tracker-group", "metrics", "log-level", "log-format"};
    for (size_t i = 0; i < sizeof of_process / sizeof of_process[0]; i++)
        if (strcmp(key, of_process[i]) == 0)
            return false;
    return true;
}

int config_group_check(const struct config *config, struct text *ret_why)
{
    uint32_t count = config->group_names.count;
    if (count == 0)
        return 0;
    if (!store_url_is_shared(config->store))
        text_add(ret_why, "--group: only a store that several servers share has groups; use "
                          "--store postgres:CONNINFO");
    else if (count > 1 && !config->standby)
        text_add(ret_why, "--group: a server serves one group, and only a standby can wait for "
                          "several; add --standby, or start a server for each");
    else
        return 0;
    return -EINVAL;
}
