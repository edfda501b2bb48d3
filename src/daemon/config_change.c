/*
 * config_change.c -- see config_change.h.
 */
#include "daemon/config_change.h"

#include "base/check.h"
#include "daemon/config_value.h"

enum { VALUES_MAX = 8192 };

void config_change_add(struct text *text, const struct config *config,
                       const struct config_option *option)
{
    for (uint32_t i = 0; i < config_value_count(config, option); i++) {
        text_add(text, i > 0 ? ", " : "");
        config_value_add(text, config, option, i);
    }
}

static uint32_t number_of(const struct config *config, const struct config_option *option)
{
    uint32_t number;
    CHECK(option->type == CONFIG_NUMBER);
    memcpy(&number, (const char *)config + option->offset, sizeof number);
    return number;
}

/* Does the value depend on another option? Then that one is named. */
static bool is_derived(const struct config *config, const struct config_option *option)
{
    return option->default_text == NULL &&
           config->origins[option - config_options] == CONFIG_FROM_DEFAULT;
}

/* No file was exported: there are no ports and no threads for them. */
static bool is_first_export(const struct config *now, const struct config_option *option)
{
    bool is_export = option->offset == offsetof(struct config, exports) ||
                     option->offset == offsetof(struct config, exports_file);
    return is_export && now->exports.count == 0 && now->exports_file == NULL;
}

enum config_change config_change_of(const struct config *now, const struct config *fresh,
                                    const struct config_option *option)
{
    char old_values[VALUES_MAX], new_values[VALUES_MAX];
    struct text old_text, new_text;
    if ((option->flags & CONFIG_NO_KEY) != 0 ||
        (is_derived(now, option) && is_derived(fresh, option)))
        return CONFIG_UNCHANGED;
    text_init(&old_text, old_values, sizeof old_values);
    text_init(&new_text, new_values, sizeof new_values);
    config_change_add(&old_text, now, option);
    config_change_add(&new_text, fresh, option);
    if (strcmp(old_values, new_values) == 0)
        return CONFIG_UNCHANGED;
    if ((option->flags & CONFIG_RAISES) != 0)
        return number_of(fresh, option) > number_of(now, option) ? CONFIG_CHANGED
                                                                 : CONFIG_NEEDS_RESTART;
    bool may_change = (option->flags & CONFIG_RELOADS) != 0 && !is_first_export(now, option);
    return may_change ? CONFIG_CHANGED : CONFIG_NEEDS_RESTART;
}

static const size_t sizes[] = {
    [CONFIG_FLAG] = sizeof(bool),
    [CONFIG_NUMBER] = sizeof(uint32_t),
    [CONFIG_PORT] = sizeof(uint16_t),
    [CONFIG_SECONDS] = sizeof(uint32_t),
    [CONFIG_SIZE] = sizeof(uint64_t),
    [CONFIG_CHOICE] = sizeof(unsigned),
    [CONFIG_TEXT] = sizeof(char *),
    [CONFIG_STORE] = sizeof(char *),
    [CONFIG_ADDRESSES] = sizeof(struct config_addresses),
    [CONFIG_NAMES] = sizeof(struct config_names),
    [CONFIG_PORTS] = sizeof(struct config_ports),
    [CONFIG_ENDPOINT] = sizeof(struct config_endpoint),
    [CONFIG_SHARES] = sizeof(struct config_shares),
    [CONFIG_EXPORTS] = sizeof(struct config_exports),
    [CONFIG_NETWORKS] = sizeof(struct config_networks),
    [CONFIG_WINDOWS] = sizeof(struct config_windows),
    [CONFIG_GROUPS] = sizeof(struct config_group_names),
};

static void exchange(void *a, void *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char kept = ((char *)a)[i];
        ((char *)a)[i] = ((char *)b)[i];
        ((char *)b)[i] = kept;
    }
}

void config_change_take(struct config *now, struct config *fresh)
{
    bool may_change[CONFIG_OPTION_MAX];
    for (uint32_t i = 0; i < config_option_count; i++) /* before the first one does */
        may_change[i] = (config_options[i].flags & (CONFIG_RELOADS | CONFIG_RAISES)) != 0 &&
                        config_change_of(now, fresh, &config_options[i]) != CONFIG_NEEDS_RESTART;
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        if (!may_change[i])
            continue;
        exchange((char *)now + option->offset, (char *)fresh + option->offset, sizes[option->type]);
        exchange(&now->origins[i], &fresh->origins[i], sizeof now->origins[i]);
        exchange(&now->lines[i], &fresh->lines[i], sizeof now->lines[i]);
    }
}
