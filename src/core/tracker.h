/*
 * tracker.h -- clients of any protocol that may go away for a while and come back (D15).
 *
 * NLM and NSM have tables of their own (client.h, registrant.h), because their protocols say in
 * detail how a client comes back. Every other protocol uses this one: an SMB server that keeps
 * durable handles, for instance. What is known of a client, and whether it is there, is durable
 * like everything else. docs/internals/TRACKER.md shows how to use it.
 *
 *               register                     disconnect, or a restart of ours
 *   (nothing) ------------> CONNECTED ---------------------------------------> DISCONNECTED
 *                               ^                                                |      |
 *                               +------------------------------------------------+      | its time
 *                                     register, reconnect                               | is over
 *                                                                                       v
 *   (nothing) <---------------------- EXPIRED <--------- its protocol takes it ----- EXPIRED
 *              remove: cleaned up      (taken)           and cleans up (tracker_expired.c)
 *
 * A client is known by (protocol, key) and has an id that is never used again. A restart
 * disconnects everybody. Who was connected then has its recovery window to come back, from the
 * moment we are ready (R-GRACE-8); who was disconnected has what was left of its time, and the
 * window at least: nobody could come back while we were away. A window of its own is the
 * protocol's choice; the default is that of --window for its protocol, or --recovery-window, the
 * same for all (D10).
 *
 * Nothing is called back. Expired clients wait in a list for their protocol, which asks in its
 * turn. An expired one stays, durably, until its protocol removes it: what is cleaned up in the
 * same step is durable in the same batch, and a cleanup that a crash interrupts is found again by
 * the next start.
 *
 * These functions are called inside a step of the core. An answer that depends on one must wait for
 * core_gate_txn() as it is after the call (P1). Another process asks through tracking.h.
 */
#ifndef CORE_TRACKER_H
#define CORE_TRACKER_H

#include "base/hash_index.h"
#include "base/intern.h"
#include "base/list.h"
#include "base/table.h"
#include "base/timers.h"
#include "base/units.h"
#include "core/message.h"
#include "core/status.h"
#include "core/tracking.h"

struct core;

#define TRACKER_PROTOCOLS_MAX 16 /* with clients at the same time */
/* One that was taken and not removed is handed out again after that. A cleanup takes less, unless
 * who does it is gone. */
#define TRACKER_AGAIN_NS (30 * SECOND_NS)

struct tracked {
    uint64_t id, key_hash;
    uint64_t registered_ns, server_epoch, deadline_ns; /* see store/record.h */
    uint64_t until_ns;                                 /* monotonic: when its time has run out */
    struct address address;
    uint32_t protocol; /* slot in tracker.protocols, with a reference */
    uint32_t name;     /* slot in core.names, with a reference; SLOT_NONE: its key */
    uint32_t window_s, ttl_s, generation, state;
    uint32_t cell, bytes_len; /* of the arena; none while there are no bytes */
    uint32_t quota;           /* of its address, with a reference */
    uint32_t key_len;
    uint8_t key[RECORD_KEY_MAX];
    struct list expired; /* while it waits for its protocol, or was taken */
    uint64_t again_ns;   /* monotonic: it was taken, and is handed out again then; 0: it was not */
};

struct tracker {
    struct table table;       /* of struct tracked; slots are the store's keys */
    struct hash_index by_key; /* hash of (protocol, key) */
    struct intern protocols;
    struct list expired[TRACKER_PROTOCOLS_MAX]; /* by slot of the protocol; oldest first */
    struct list taken[TRACKER_PROTOCOLS_MAX];   /* the same, of those that were taken */
    /* The same: how many are in each state. */
    uint32_t counts[TRACKER_PROTOCOLS_MAX][RECORD_TRACKED_EXPIRED + 1];
    struct timers timers; /* of those that are disconnected */
    bool is_ready;
    struct tracker_counters counters;
};

__attribute__((warn_unused_result)) int tracker_init(struct core *core, const uint32_t slots[]);
void tracker_done(struct core *core);

enum tracker_result {
    TRACKER_ADDED,
    TRACKER_UPDATED,
    TRACKER_RECONNECTED,
    TRACKER_GONE,  /* no such client, or its time has run out, or it is connected elsewhere */
    TRACKER_LIMIT, /* a new one over --max-clients or the share of its address, or the first of too
                    * many protocols */
    TRACKER_BYTES, /* over --max-bytes, or a key or bytes longer than they may be */
    TRACKER_ROOM,  /* a new one, and the store has no space for it (R-PER-8) */
};

/* What a client says of itself. */
struct tracker_client {
    struct bytes protocol; /* "smb"; not "nlm" or "nsm" */
    struct bytes key;      /* 1 to RECORD_KEY_MAX bytes, compared as they are */
    struct bytes name;     /* for people, at most TRACKING_NAME_MAX; empty: its key */
    struct bytes bytes;    /* its protocol's own, at most RECORD_BYTES_MAX */
    struct address address;
    uint32_t window_s; /* 0: that of its protocol (--window), or --recovery-window */
};

/*
 * A client connects and says what it is. New: ADDED. Known and connected: UPDATED. Known and
 * disconnected: RECONNECTED, with the same id. Its older connections are over. GONE: it has expired
 * and is being cleaned up; after that it is new. Only the first three fill *ret.
 */
enum tracker_result tracker_register(struct core *core, const struct tracker_client *client,
                                     struct tracker_view *ret);
/* A client connects and wants what it had: RECONNECTED with id and bytes as they were, or GONE. */
enum tracker_result tracker_reconnect(struct core *core, struct bytes protocol, struct bytes key,
                                      const struct address *address, struct tracker_view *ret);
/* Other bytes, connected or not: UPDATED, GONE, BYTES. */
enum tracker_result tracker_update(struct core *core, struct tracker_ref ref, struct bytes bytes);
/* Its connection is lost: it has `ttl_s` from now to come back, 0: its window. UPDATED or GONE. */
enum tracker_result tracker_disconnect(struct core *core, struct tracker_ref ref, uint32_t ttl_s);
/* It left for good, or is cleaned up: nothing is kept. False: it was gone. */
bool tracker_remove(struct core *core, struct tracker_ref ref);

/*
 * The next expired client of this protocol that was not taken in this run, or so long ago that it
 * must be taken again (TRACKER_AGAIN_NS); false: none. It is still there, and still stored as
 * expired: clean up, then tracker_remove. A cleanup too large for one batch may take several; the
 * client goes with the last.
 */
bool tracker_take_expired(struct core *core, struct bytes protocol, struct tracker_view *ret);

/* SLOT_NONE: there is none. */
uint32_t tracker_find_id(const struct core *core, uint64_t id);
bool tracker_find(const struct core *core, struct bytes protocol, struct bytes key,
                  struct tracker_view *ret);
/* The same, and one whose time is over is expired then, although its turn has not come. */
bool tracker_look(struct core *core, struct bytes protocol, struct bytes key,
                  struct tracker_view *ret);
/* By index of the protocol, with how many are in each state; false: there is no such index. An
 * empty name: none is of it now. */
bool tracker_count(const struct core *core, uint32_t index, struct bytes *ret_protocol,
                   uint32_t ret_counts[static RECORD_TRACKED_EXPIRED + 1]);

bool tracker_load(struct core *core, uint32_t slot, const struct record_tracked *record);
uint32_t tracker_encode(const struct core *core, uint32_t slot, uint8_t *buffer);
/* After loading: everybody is disconnected. */
void tracker_start(struct core *core);
/* We serve: the windows begin. */
void tracker_ready(struct core *core);

/* Ends the time of those whose deadline has come, a bounded number of them. */
void tracker_work(struct core *core);
uint64_t tracker_deadline_ns(const struct core *core);

/* What the files of the tracker need of each other. */
bool tracker_is_protocol(struct bytes protocol); /* that may be tracked here */
uint32_t tracker_find_key(const struct core *core, struct bytes protocol, struct bytes key);
/* A client of this protocol and key in this slot, with this name and these bytes. False: no room
 * for them. */
bool tracker_fill(struct core *core, uint32_t slot, struct tracked content,
                  const struct tracker_client *said);
struct bytes tracker_bytes(const struct core *core, const struct tracked *tracked);
/* Keeps other bytes. False: there is no room for them, and the old ones are still there. */
bool tracker_set_bytes(struct core *core, struct tracked *tracked, struct bytes bytes);
/* The same of its name. */
bool tracker_set_name(struct core *core, struct tracked *tracked, struct bytes name);
void tracker_queue_expired(struct core *core, uint32_t slot);
struct tracked *tracker_at(const struct core *core, uint32_t slot);
enum record_tracked_state tracker_state(const struct core *core, const struct tracked *tracked);
void tracker_view_slot(const struct core *core, uint32_t slot, struct tracker_view *ret);

void tracker_check(const struct core *core);

#endif
