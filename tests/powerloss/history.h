/*
 * history.h -- what clients asked and were told, and what a store may hold in the light of it.
 *
 * An owner is one (source address, name) with a few keys. Two of three are registrants: a key is a
 * mon_name. The others are lock clients: a key is a range of a file of their own. It posts its
 * operations one after the other; an answer to one acknowledges all before it. A store is right
 * when each owner's keys are what its operations up to some point leave, where that point is not
 * before the last one acknowledged and not after the last one posted. Every SM_MON carries a
 * version in its priv, and the length of a lock is its version, so a lost update is seen as well as
 * a lost key.
 *
 * It is read from a tape, event by event, so it is always as old as the cut.
 */
#ifndef POWERLOSS_HISTORY_H
#define POWERLOSS_HISTORY_H

#include "tape.h"

#include "peer/peer_nlm.h"
#include "peer/peer_nsm.h"

#define HISTORY_OWNERS   31
#define HISTORY_KEYS     4
#define HISTORY_XID      UINT32_C(0x70776c00) /* of the first operation; the next has one more */
#define HISTORY_NAME_MAX 1025
#define HISTORY_NLM      4 /* the version that lock clients speak */

enum history_operation {
    HISTORY_ADD = 1,    /* SM_MON, LOCK: adds the key, or gives it a new version */
    HISTORY_REMOVE,     /* SM_UNMON, UNLOCK: removes the key, if it is there */
    HISTORY_REMOVE_ALL, /* SM_UNMON_ALL, UNLOCK of the file: removes all keys of the owner */
    HISTORY_STAT,       /* SM_STAT: changes nothing, but the answer carries the state */
};

/* The data of a TAPE_POST. Operation i has xid HISTORY_XID + i. */
struct history_post {
    uint32_t xid, operation, owner, key, version;
    uint32_t is_reclaim; /* LOCK, after a restart, of what it has */
};

/* 0: not there; else the version it has. */
struct history_keys {
    uint32_t version[HISTORY_KEYS];
};

/* What a server found in a store when it started on it. */
struct history_found {
    bool has_started;
    uint32_t state; /* from the readiness line */
    uint32_t flags; /* of the server record */
    struct history_keys owners[HISTORY_OWNERS];
    uint64_t clients[HISTORY_OWNERS]; /* of lock clients: the id of the record; 0: none */
    char problem[512];                /* what is wrong whatever was acknowledged; empty: nothing */
};

struct history;

struct history *history_new(void);
void history_free(struct history *history);

/* NULL, or why the event makes no sense: an answer to nothing, a refused call, ... */
const char *history_note(struct history *history, const struct tape_event *event);
uint32_t history_acknowledged(const struct history *history);
uint32_t history_states(const struct history *history, uint32_t *ret_max);

/* What a power cut may take. */
enum history_loss {
    HISTORY_NOTHING,  /* --sync full: R-PER-6 */
    HISTORY_UNSYNCED, /* --sync process: anything, but the store then counts as incomplete */
    HISTORY_UPDATES,  /* --sync process with a disk that is as the last sync left it: the same,
                         but no registration, because a batch that adds one is synced (D16) */
};

/* NULL, or which of R-PER-6 (a), (b), (c) is broken and how. Valid until the next call. */
const char *history_judge(const struct history *history, const struct history_found *found,
                          enum history_loss loss);

/* The largest xid that a TAPE_SEND answers. */
uint32_t history_newest_xid(const struct tape_event *event);

/* What an operation leaves of its owner's keys. */
void history_apply(struct history_keys *keys, const struct history_post *post);

/* Who an owner is. Every sixth has names so long that its records do not fit in a page with
 * another, which LMDB stores in another way. */
struct history_name {
    char mon_name[HISTORY_NAME_MAX], my_name[HISTORY_NAME_MAX];
    uint32_t address; /* 127.x.y.z, host byte order */
};
void history_name(uint32_t owner, uint32_t key, struct history_name *ret);
bool history_is_locker(uint32_t owner);
struct peer_nsm_id history_id(const struct history_name *name);
void history_priv(const struct history_post *post, uint8_t ret[static PEER_NSM_PRIV_LEN]);
/* The lock of a key, all of its bytes for version 0; or of the whole file. */
struct peer_nlm_lock history_lock(const struct history_post *post);
uint64_t history_offset(uint32_t key);

#endif
