/*
 * state.h -- the insides of struct core, for the files of src/core only: the map of what there is.
 *
 * Everything is an element of a table and named by its slot. An arrow reads "names, and keeps":
 *
 *   address, name <---- client <---- owner <---- lock ----> file ----> handle
 *      (interned)       ^    ^         ^  ^       ^ |         ^         (interned)
 *         quota <-------+    |         |  |       | | held    |
 *                            |         |  |       | v         |
 *                          share ------|--|-------|-----------+
 *                                      |  |       | holding (of one owner in one file)
 *                                      |  |       |    ^
 *                                      |  |       |    +---- unsettled range
 *                                      |  |       | offer
 *                                      |  +---- waiter --------------> file
 *                                      |          |  ^
 *                                      |          v  | while it is in flight
 *                         late answer ----> callback
 *
 * Who lives how long, and who takes it away:
 *
 *   client     from its first lock, share or wait until 300 s after its last: client_forget only.
 *              With something here it stays, whatever it is owed.
 *   owner      while it has a lock, an offer or a waiter. Taking the last one away calls
 *              owner_release; an owner frees nothing itself.
 *   file       while a lock, offer, waiter or share refers to it: file_keep, file_release.
 *   lock       lock_element_remove only. An offer names its waiter or its lingering callback,
 *              and these end first: grant.c, callback.c.
 *   holding    with the first and the last lock of its owner in its file: lock_element.c.
 *   unsettled  part of what its owner holds, so whatever changes a lock settles it first. A whole
 *              lock is a bit of it, a part a range.
 *   waiter     waiter_remove only. Its offer is accepted, withdrawn or lost before.
 *   callback   begins with a waiter and may outlive it; gone when its call has ended.
 *   share      share.c, with its client's word or its client's end.
 *
 * What frees an element may free its owner, its file and, when nothing is left, set its client's
 * deadline, but never frees a client: so a client's slot is good for a whole step, while an owner
 * or a file is good only until something of it goes, unless the caller keeps it.
 *
 * Nothing that outlives a step is a pointer: calls, questions and tickets are handles, which do not
 * resolve when their element is gone.
 */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include "core/ask.h"
#include "core/callback.h"
#include "core/callout.h"
#include "core/client.h"
#include "core/core.h"
#include "core/dirty.h"
#include "core/echo.h"
#include "core/evict.h"
#include "core/file.h"
#include "core/gone.h"
#include "core/grace.h"
#include "core/grant.h"
#include "core/hearsay.h"
#include "core/leftover.h"
#include "core/lock.h"
#include "core/lock_offer.h"
#include "core/locking.h"
#include "core/mirror.h"
#include "core/namesake.h"
#include "core/notice.h"
#include "core/notify.h"
#include "core/owner.h"
#include "core/probe.h"
#include "core/quota.h"
#include "core/reboot.h"
#include "core/registrant.h"
#include "core/share.h"
#include "core/silent.h"
#include "core/tracker.h"
#include "core/turn.h"
#include "core/unsettled.h"
#include "core/waiter.h"
#include "core/watched.h"
#include "core/withheld.h"

/* A step is about one host; a notice may concern it under another address. */
enum { RESTARTED_MAX = 4 };

struct core {
    struct core_limits limits;
    uint64_t seed;            /* of every hash */
    uint64_t now_ns, wall_ns; /* of the current step */
    bool must_listen;         /* core_listen_first */

    /* Our own record, as it is now; `txn` is the number of the last batch taken. */
    struct record_server server;
    bool server_changed; /* must go into the open batch although no slot is dirty */
    bool sync_wanted;    /* the open batch adds a client or changes the state */
    uint64_t state_txn;  /* the batch that makes our state number durable */
    bool batch_out;      /* taken and not yet stored */
    uint64_t durable_txn;
    bool has_room;

    /* Loading, until core_start. */
    bool started, server_loaded;
    bool corrupt_found;
    uint32_t records_loaded;
    uint64_t id_seen_max, epoch_seen_max;
    uint32_t state_seen_max; /* of ours: the largest ever given out */

    bool is_resumed; /* this run continues with the state of the last one (D12) */

    /* Offers of the run before that could not become locks yet: how many, and how far the search
     * for those that can by now has come. */
    uint32_t offers_left, offer_at;
    uint64_t offer_next_ns;

    struct ahead ahead;
    struct arena *arena;
    struct intern names; /* as they were spelled */
    struct intern folds; /* monitored names without case: what notices and registrants share */
    struct quotas quotas;
    struct registrants registrants;
    struct notices notices;
    struct watching watching;
    struct notify notify;
    struct clients clients;
    struct owners owners;
    struct files files;
    struct locks locks;
    struct mirrors mirrors;
    struct gone gone;
    struct waiters waiters;
    struct grants grants;
    struct callbacks callbacks;
    struct shares shares;
    struct echoes echoes;
    struct namesakes namesakes;
    struct list asks[ASKER_END]; /* those that wait to be called */
    struct probes probes;
    struct hearsays hearsays;
    struct withhelds withhelds;
    struct callouts callouts;
    struct silent silent;
    struct reboot_counters reboots;
    struct address restarted[RESTARTED_MAX]; /* of this step: core_next_restarted */
    uint32_t restarted_count;
    uint32_t overridden; /* client whose locks an order of this step took: core_next_overridden */
    struct address overridden_from;
    struct unsettled unsettled;
    struct grace grace;
    struct tracker tracker;
    struct dirty dirty;
    uint8_t *batch_memory;
    uint64_t batch_memory_len;
    struct event_ring events;
    struct event_ring feed;
};

/* The next state number: odd, larger (R-PER-4). After 2^31 - 1, the largest the protocol's signed
 * number can say, it starts again at 1. */
uint32_t core_next_state(uint32_t state);
/* We take it. It leaves the server only when it is durable, or a crash could use it once more. */
void core_raise_state(struct core *core);

/* The host of this address restarted, as this step found out; of no family: we did
 * (core_next_restarted). */
void core_host_restarted(struct core *core, const struct address *host);
/* An order has taken something from this client, which was at this address (core_next_overridden).
 * Its record stays for this step. */
void core_client_overridden(struct core *core, uint32_t slot, const struct address *from);

/* Whose call it was: kept in the id beside the handle of a slot. */
enum core_caller {
    CALL_OF_NOTIFY, /* to a registrant */
    CALL_OF_NOTIFY_CLIENT,
    CALL_OF_GRANT,
    CALL_OF_PROBE,
    CALL_OF_SILENT,
    CALL_OF_WATCHED,
    CALL_OF_DOUBT, /* of a watched host, to its status monitor */
};
uint64_t core_call_id(enum core_caller caller, uint64_t handle);

/* A stored record is damaged: reports it, removes it with the first batch, and marks the store
 * incomplete (D16). */
void recover_refuse(struct core *core, enum record_kind kind, uint32_t slot);
/* Everything is held as far as the store knows; whether it still is its clients must say
 * (R-GRACE-3). */
void recover_unsettle_all(struct core *core);
/* Offers of the run before that are still to become locks, or to go when grace is over. */
void recover_work(struct core *core);
uint64_t recover_deadline_ns(const struct core *core);

/* The batch that must be durable before anything that depends on the state as it is now may leave:
 * the open one if it holds anything, else the last one taken (P1). */
uint64_t core_gate_txn(const struct core *core);
bool core_has_changes(const struct core *core);

/* A monitored name without case in the pool `folds`: a new reference, or the slot of one that is
 * there. SLOT_NONE: no room, or not there. */
uint32_t core_add_fold(struct core *core, struct bytes name);
uint32_t core_find_fold(const struct core *core, struct bytes name);
/* Where either will look first is fetched (ahead.h): the hash of the name without case. */
uint64_t core_fetch_fold(const struct core *core, struct bytes name);

#endif
