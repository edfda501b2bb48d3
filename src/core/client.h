/*
 * client.h -- the hosts that lock here, each under one of its names (R-ID-1).
 *
 * A client is known by (source address, caller_name without case): transport, port and NLM version
 * are not part of it. It is stored by its first lock, share or wait, before the answer leaves (D1),
 * and forgotten 300 s after it had nothing here any more; after an SM_NOTIFY from it, not before
 * 24 h (R-SEC-5).
 *
 * A client that rebooted gets a new incarnation at once, durably. What its older incarnations
 * held is then freed piece by piece (client_drain), so that a hundred thousand locks delay nobody;
 * a crash in between finds them by their incarnation and continues (P7).
 *
 *             client_add                client_start_over: incarnation + 1
 *   (nothing) ----------> SETTLED --------------------------> DRAINING ---> SETTLED
 *                            |                      old locks and shares go, oldest incarnation
 *                            v  300 s with nothing  and newest mixed as they come
 *                        (nothing)
 */
#ifndef CORE_CLIENT_H
#define CORE_CLIENT_H

#include "base/list.h"
#include "base/table.h"
#include "base/timers.h"
#include "core/admit.h"
#include "core/host_index.h"
#include "core/message.h"

struct core;

/* The most elements that one turn frees of clients that rebooted. */
#define CLIENT_DRAIN_MAX 2000

/* Doubtful notices about a client, by sender: each has its own budget of questions, so that nobody
 * uses up another's. */
enum client_doubt {
    CLIENT_DOUBT_OWN,        /* its address and name */
    CLIENT_DOUBT_OTHER_NAME, /* its address */
    CLIENT_DOUBT_ELSEWHERE,  /* its name: anybody */
    CLIENT_DOUBT_END,
};
struct client_doubts {
    uint64_t since_ns; /* since then it was asked, ... */
    uint32_t count;    /* ... so often */
};

/* What the store has of it: a change marks the record dirty. */
struct client_stored {
    uint64_t id;
    uint64_t registered_ns, seen_wall_ns, rebooted_ns, untold_ns; /* wall clock */
    uint64_t server_epoch;
    uint32_t address; /* slot of the pool of addresses, with a reference */
    uint32_t name;    /* caller_name as first spelled: slot in core->names */
    struct address local;
    uint32_t transport, versions, grant_proc;
    uint32_t state_seen, free_below, told_state;
    uint32_t incarnation, flags;
};

/* What it has here, when it was heard from, and what is freed of its earlier lives. */
struct client_life {
    uint64_t seen_ns;       /* monotonic: its last call */
    uint64_t heard_wall_ns; /* wall clock: its last call or answer in this run */
    uint32_t lock_count, share_count, waiter_count; /* locks: held and offered */
    uint32_t current_count;  /* of locks and shares: those of its present incarnation */
    uint32_t drain_at;       /* where lock_drain continues, slot + 1; 0: at the end */
    uint32_t share_drain_at; /* the same of share_drain */
    uint32_t drained_count;  /* freed since the drain began */
    bool is_counted;         /* as crashed, and not heard from since */
    bool is_cleaned;         /* that something was freed for that crash is counted, too */
    bool drain_is_search;    /* only when it finds something was there a crash, */
    bool has_found;          /* and it has */
    bool is_released;        /* the drain is an operator's: it is no crash */
    struct list draining;    /* on core->clients.draining while older incarnations hold something */
    struct list idle, idle_here; /* of all, of its address: it may be forgotten (evict.h) */
};

/* How far it has been notified of our restart, and what it has yet to reclaim: of this run only. */
struct client_recovery {
    uint64_t reached_ns;       /* heard from in this run: an answer or a call of its own; 0: no */
    uint64_t told_ns;          /* it answered SM_NOTIFY in this run, or reclaims; 0: not */
    uint64_t reclaimed_ns;     /* its last reclaim in this run; 0: none */
    uint32_t must_know;        /* our state since an order, until it is notified (operate.h);
                                * else 0 */
    uint32_t loaded_count;     /* locks that the store had of it when we started */
    uint32_t left_over_count;  /* offers of a run before that are still to be confirmed */
    uint32_t unsettled_count;  /* ranges it has not reclaimed yet */
    uint32_t unsettled_at;     /* where whole ones begin among its locks (unsettled.h), slot + 1 */
    uint32_t unsettled_shares; /* shares it has not reclaimed yet */
    uint32_t reclaimed_count;  /* its reclaims in this recovery, without repeats */
    uint32_t lost_count;       /* ranges and shares released because it did not reclaim them */
    bool is_summed_up;         /* how that ended was reported */
    bool is_given_up;          /* the notifier gave up on it in this run */
    bool is_spared;            /* it need not be notified of our last restart (notify.c) */
};

/* What we ask of it: callbacks, and questions about its state. */
struct client_asked {
    struct list ready, turn; /* its offers to be called; its place among others (turn.h) */
    uint32_t calling;        /* callbacks in flight */
    uint32_t late_count;     /* its answers that wait for the end of a callback */
    bool is_on_turn;
    uint64_t probe_next_ns;     /* not asked for its state again because of a request before */
    uint64_t calibrate_next_ns; /* its status monitor is not asked for its sake again before */
    struct list calibrating;    /* on core->probes.calibrate while it is to be */
    struct client_doubts doubts[CLIENT_DOUBT_END];
};

struct client {
    struct client_stored stored;
    struct client_life life;
    struct client_recovery recovery;
    struct client_asked asked;
    uint64_t key_hash; /* of (address, fold) */
    uint32_t fold;     /* its name without case: slot in core->folds */
    uint32_t quota;    /* of its address, with a reference */
};

struct clients {
    struct table table;      /* of struct client; slots are the store's keys */
    struct host_index index; /* the key is (address, fold) */
    uint32_t near_count;     /* that hold most of --max-locks-per-client (quota_is_near) */
    uint32_t missed_count;   /* that have something to reclaim and were not reached (missed.h) */
    struct list draining;
    struct list idle;     /* may be forgotten when the table is full; longest idle first */
    struct timers expiry; /* of clients with nothing here */
};

__attribute__((warn_unused_result)) int client_init(struct core *core, const uint32_t slots[]);
void client_done(struct core *core);

struct client *client_at(const struct core *core, uint32_t slot);
uint32_t client_slot(const struct core *core, const struct client *client);
struct address client_address(const struct core *core, uint32_t slot);

/* The client of this address and name; SLOT_NONE: not known. */
uint32_t client_find(const struct core *core, const struct address *address, struct bytes name);

/* The same, or a new one. ADMIT_NEW and ADMIT_FOUND fill *ret_slot. */
enum admission client_add(struct core *core, const struct peer *from, struct bytes name,
                          uint64_t wall_ns, uint32_t *ret_slot);

/* It was heard from just now, by a call or by an answer: what depends on that follows (D5). */
void client_alive(struct core *core, uint32_t slot);
/* The same of a call to the lock manager: it is not the one to be forgotten first. */
void client_called(struct core *core, uint32_t slot);
/* It asked for a lock or a share: remembers from where, and in which version; writes what recovery
 * needs (local address, transport, versions, monitored, a newer state of its own) when it changed.
 * Only LOCK and SHARE: no other call makes a client one that must be notified. */
void client_asked(struct core *core, uint32_t slot, const struct peer *from,
                  const struct lock_request *request);
/* When it was last heard from, as far as that is known; wall clock. */
uint64_t client_last_seen_ns(const struct client *client);
/*
 * The status monitor at its address is calibrated when it has said the very state that the client
 * itself sent us, in a LOCK or in a notice that was believed (R-SEC-4): then it is the client's
 * own, and not that of a box before it. A new state that the client tells must be said again, and
 * another address is another status monitor.
 */
static inline bool client_is_calibrated(const struct client *client)
{
    return client->stored.flags & RECORD_CLIENT_CALIBRATED;
}
/* That status monitor says this state. */
void client_calibrate(struct core *core, uint32_t slot, uint32_t state);
/* It waits for a lock. That is stored, because a wait is not (R-BLK-14): after a restart only one
 * one that is notified asks again at once. */
void client_waits(struct core *core, uint32_t slot);
/* GRANTED worked with this procedure (R-BLK-2). */
void client_granted_by(struct core *core, uint32_t slot, uint32_t proc);

/* It has no lock, share or wait here, and nothing of it is being freed. */
bool client_has_nothing(const struct client *client);
/* A client that has nothing is forgotten, whatever it is owed. */
void client_forget(struct core *core, uint32_t slot);

/* Its counts changed: with nothing left it will be forgotten, with something it will not. */
void client_counts_changed(struct core *core, uint32_t slot);

/* State numbers go round in a circle: newer is what lies less than half of it ahead. 0 is none, and
 * everything is newer than none. */
bool client_is_newer_state(uint32_t state, uint32_t than);
/* A newer state of its own that frees nothing: a reclaim's, or the first that it says. */
void client_saw_state(struct core *core, uint32_t slot, uint32_t state);

/* Of what it has here, is something with this stamp over (R-SEC-3)? It is then freed, or about to
 * be. What was taken before its state was known is over with its incarnation, or when its counter
 * starts over. */
static inline bool client_is_over(const struct client *client, uint32_t incarnation, uint32_t state)
{
    if (incarnation != client->stored.incarnation)
        return true;
    if (client->stored.free_below == 0)
        return false;
    if (client->stored.flags & RECORD_CLIENT_RECOUNTED)
        return state != client->stored.free_below;
    return state != 0 && (int32_t)(state - client->stored.free_below) < 0;
}
/* The stamp of what is taken now: never one that is over. */
static inline uint32_t client_stamp(const struct client *client, uint32_t state)
{
    return client_is_over(client, client->stored.incarnation, state) ? client->stored.free_below
                                                                     : state;
}

/* It rebooted: everything it has here is freed, its waiters at once. */
void client_start_over(struct core *core, uint32_t slot);
/* The same by an operator command: no crash, and counted apart. */
void client_release(struct core *core, uint32_t slot);
/* As client_start_over for what is stamped with an older state than state_seen. False: there is
 * nothing, or it is being freed already. */
bool client_free_older(struct core *core, uint32_t slot);
/* The same for what is stamped with any other state: its counter started over at this one. */
void client_recount(struct core *core, uint32_t slot, uint32_t state);
/* So many locks and shares of it were freed because it crashed: counted now (metrics.md). */
void client_count_freed(struct core *core, uint32_t slot, uint32_t count);
/* Frees up to CLIENT_DRAIN_MAX elements of this client now. True: nothing is left to be freed. */
bool client_drain_now(struct core *core, uint32_t slot);
/* FREE_ALL: the client of that address and name, if there is one (R-NLM-8), in this state (0: it
 * does not say). False: there is none. */
bool client_free_all(struct core *core, const struct address *from, struct bytes name,
                     uint32_t state);

/* Frees up to CLIENT_DRAIN_MAX elements of clients that rebooted. True: there is more. */
bool client_drain(struct core *core);
/* Forgets clients whose time has run out. */
void client_expire(struct core *core);
uint64_t client_deadline_ns(const struct core *core);

/* Its address is another now, because an operator says so (D17): all that it has goes with it. A
 * record of its name there gives way if it holds nothing; its waiters end. */
/* Does this record give way to one of the same name that moves to its address? */
bool client_may_give_way(const struct core *core, uint32_t slot);
/* By a walk: people do not ask often enough for an index of ids. SLOT_NONE: there is none. */
uint32_t client_find_id(const struct core *core, uint64_t id);

enum client_move_result { CLIENT_MOVED, CLIENT_MOVE_TAKEN, CLIENT_MOVE_BYTES };
enum client_move_result client_move(struct core *core, uint32_t slot, const struct address *address,
                                    const struct address *local);

bool client_load(struct core *core, uint32_t slot, const struct record_client *record);
uint32_t client_encode(const struct core *core, uint32_t slot, uint8_t *buffer);
/* After loading: clients with nothing are timed, those with old incarnations drained. */
void client_start(struct core *core);
/* Of one client: false when nothing that it has is over. */
bool client_life_start(struct core *core, uint32_t slot);

void client_check(const struct core *core);
void client_life_check(const struct core *core, uint32_t slot);

#endif
