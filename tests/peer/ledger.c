/*
 * ledger.c -- what a client may rely on; see ledger.h.
 */
#include "peer/ledger.h"

#include <string.h>

void ledger_begin(struct ledger_owner *owner, enum ledger_operation operation, uint32_t key)
{
    owner->pending = operation;
    owner->pending_key = key;
    if (operation == LEDGER_MON)
        owner->last_version++;
}

/* The keys after the operation in flight. */
static struct ledger_keys outcome(const struct ledger_owner *owner)
{
    struct ledger_keys keys = owner->known;
    switch (owner->pending) {
    case LEDGER_NONE:
        break;
    case LEDGER_MON:
        keys.version[owner->pending_key] = owner->last_version;
        break;
    case LEDGER_UNMON:
        keys.version[owner->pending_key] = 0;
        break;
    case LEDGER_UNMON_ALL:
        memset(&keys, 0, sizeof(keys));
        break;
    }
    return keys;
}

void ledger_acknowledge(struct ledger_owner *owner)
{
    owner->known = outcome(owner);
    owner->pending = LEDGER_NONE;
}

const char *ledger_judge(const struct ledger_owner *owner, const struct ledger_keys *found)
{
    struct ledger_keys after = outcome(owner);
    if (memcmp(found, &owner->known, sizeof(*found)) == 0 ||
        memcmp(found, &after, sizeof(*found)) == 0)
        return NULL;
    for (uint32_t i = 0; i < LEDGER_KEYS; i++) {
        uint32_t version = found->version[i], known = owner->known.version[i];
        if (version == known || version == after.version[i])
            continue;
        if (version == 0)
            return "an acknowledged registration is lost";
        if (known == 0)
            return "an acknowledged removal came back";
        return "a registration has another version than the last acknowledged";
    }
    return "an SM_UNMON_ALL was applied in part";
}

void ledger_adopt(struct ledger_owner *owner, const struct ledger_keys *found)
{
    owner->known = *found;
    owner->pending = LEDGER_NONE;
}
