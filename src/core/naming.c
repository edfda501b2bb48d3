/*
 * naming.c -- see naming.h.
 *
 * Always true:
 *  (1) The numeric address and its own name have their places: however many names we were given, a
 *      Linux client, which knows us by address, hears the one that it knows.
 *  (2) A name that is learned is one that a status monitor can accept (R-NSM-1). What a resolver
 *      says is somebody else's text.
 */
#include "core/naming.h"

#include "base/check.h"
#include "core/state.h"

static struct bytes name_of(const struct naming_entry *entry)
{
    return (struct bytes){entry->name, entry->len};
}

static const struct naming_entry *find(const struct naming *naming, const struct address *local)
{
    for (uint32_t i = 0; i < naming->count; i++)
        if (address_equal(&naming->at[i].local, local))
            return &naming->at[i];
    return NULL;
}

static bool is_acceptable(struct bytes name)
{
    if (name.len == 0 || name.len > NAMING_LEN_MAX || name.at[0] == '.')
        return false;
    for (uint32_t i = 0; i < name.len; i++)
        if (name.at[i] <= 0x20 || name.at[i] >= 0x7f || name.at[i] == '/')
            return false;
    return true;
}

void core_learn_name(struct core *core, const struct address *local, struct bytes name)
{
    struct naming *naming = &core->notify.naming;
    struct naming_entry *entry = &naming->host;
    if (!is_acceptable(name))
        return;
    if (local != NULL) {
        if (find(naming, local) != NULL || naming->count == CORE_LOCALS_MAX)
            return;
        entry = &naming->at[naming->count++];
        entry->local = *local;
    }
    entry->len = name.len;
    memcpy(entry->name, name.at, name.len);
}

uint32_t core_list_locals(const struct core *core, struct address *ret, uint32_t max)
{
    const struct table *table = &core->clients.table;
    uint32_t count = 0;
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE && count < max;
         slot = table_next(table, slot)) {
        const struct client *client = client_at(core, slot);
        bool is_known = !target_owed(core, target_of_client(core, slot)).state ||
                        client->stored.local.family == 0;
        for (uint32_t i = 0; i < count && !is_known; i++)
            is_known = address_equal(&ret[i], &client->stored.local);
        if (!is_known)
            ret[count++] = client->stored.local;
    }
    return count;
}

/* Adds a name that is not there yet, if it may have a place. */
static void add(struct bytes names[static CORE_CALL_NAMES_MAX], uint32_t *count, struct bytes name,
                uint32_t max)
{
    bool is_there = name.len == 0;
    for (uint32_t i = 0; i < *count && !is_there; i++)
        is_there = bytes_equal(names[i], name);
    if (!is_there && *count < max)
        names[(*count)++] = name;
}

uint32_t naming_list(struct core *core, const struct address *local,
                     struct bytes ret_names[static CORE_CALL_NAMES_MAX])
{
    struct naming *naming = &core->notify.naming;
    const struct core_limits *limits = &core->limits;
    const struct naming_entry *entry = find(naming, local);
    struct address bare = address_without_zone(local);
    uint32_t count = 0;
    for (uint32_t i = 0; i < limits->name_count; i++)
        add(ret_names, &count, limits->names[i], CORE_CALL_NAMES_MAX - 2);
    add(ret_names, &count, name_of(&naming->host), CORE_CALL_NAMES_MAX - 2);
    if (entry != NULL)
        add(ret_names, &count, name_of(entry), CORE_CALL_NAMES_MAX - 1);
    address_text(&bare, naming->numbers);
    if (local->family != 0)
        add(ret_names, &count, bytes_of_text(naming->numbers), CORE_CALL_NAMES_MAX);
    if (count == 0)
        add(ret_names, &count, limits->server_name, CORE_CALL_NAMES_MAX);
    CHECK(count > 0);
    return count;
}
