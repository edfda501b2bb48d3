/*
 * ledger.h -- what a client that registers, updates and removes may rely on.
 *
 * An owner is one (source address, my_name) with a few mon_names, its keys. It has one operation in
 * flight at a time. What was acknowledged is certain; for the operation in flight when the server
 * dies both outcomes are right, and nothing else is. Every registration carries a version in its
 * priv, so that a lost update is seen as well as a lost registration.
 */
#ifndef PEER_LEDGER_H
#define PEER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define LEDGER_KEYS 4

enum ledger_operation {
    LEDGER_NONE,
    LEDGER_MON,       /* adds the key, or gives it a new version */
    LEDGER_UNMON,     /* removes the key, if it is there */
    LEDGER_UNMON_ALL, /* removes all keys of the owner, together */
};

/* 0: not registered; else the version it is registered with. */
struct ledger_keys {
    uint32_t version[LEDGER_KEYS];
};

struct ledger_owner {
    struct ledger_keys known; /* what was acknowledged */
    enum ledger_operation pending;
    uint32_t pending_key;
    uint32_t last_version; /* versions are never used twice */
};

/* The operation leaves; LEDGER_MON uses owner->last_version as its version. */
void ledger_begin(struct ledger_owner *owner, enum ledger_operation operation, uint32_t key);
/* Its answer came. */
void ledger_acknowledge(struct ledger_owner *owner);
/* The server died with *found in its store: NULL when that is right, or what is wrong. */
const char *ledger_judge(const struct ledger_owner *owner, const struct ledger_keys *found);
/* From here on *found is what the owner knows; nothing is in flight. */
void ledger_adopt(struct ledger_owner *owner, const struct ledger_keys *found);

#endif
