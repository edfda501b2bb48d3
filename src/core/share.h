/*
 * share.h -- share reservations: open modes that deny others (R-SH-1).
 *
 * Known by (client, oh, file): here `oh` is who reserves, because the protocol has no svid for it.
 * Repeating a reservation replaces it. Two reservations conflict when what one may do is what the
 * other denies. They do not meet byte-range locks.
 */
#ifndef CORE_SHARE_H
#define CORE_SHARE_H

#include "base/chains.h"
#include "base/hash_index.h"
#include "base/table.h"
#include "core/admit.h"
#include "core/lock.h"

struct core;

struct share {
    uint64_t granted_ns;       /* wall clock */
    uint32_t client, file, oh; /* oh: slot in core->locks.ohs */
    uint32_t mode, access, state, incarnation, flags;
    bool is_unsettled; /* stored, and not reclaimed since the start (R-GRACE-3) */
};

/* How many shares of a file deny, and how many use, reading [0] and writing [1]. */
struct share_sums {
    uint32_t denied[2], used[2];
};

struct shares {
    struct table table;       /* of struct share; slots are the store's keys */
    struct hash_index by_key; /* hash of (client, oh, file) */
    struct chains by_file;    /* chain = file slot */
    struct chains by_client;  /* chain = client slot; what is new goes to the front */
    struct share_sums *sums;  /* by file slot */
};

/* After client_init, file_init and lock_init. */
__attribute__((warn_unused_result)) int share_init(struct core *core, const uint32_t slots[]);
void share_done(struct core *core);

struct share *share_at(const struct core *core, uint32_t slot);

/* Limits, bytes and store space allow one more share of this client; see lock_room. Replacing one
 * that is there needs none of it. */
enum admission share_room(const struct core *core, uint32_t client);

/* Would this reservation meet another's? A client of SLOT_NONE has none of its own. */
bool share_is_denied(const struct core *core, uint32_t client, const struct lock_request *request);
/* The same of one client's reservations in that file; of very many the newest are looked at. */
bool share_is_denied_by(const struct core *core, uint32_t client,
                        const struct lock_request *request);
/* SHARE of a file that exists in the pool or not; the client is known. */
enum lock_status share_take(struct core *core, uint32_t client, const struct lock_request *request,
                            uint64_t wall_ns);
/* UNSHARE: nothing happens when there is none. */
void share_release(struct core *core, uint32_t client, const struct lock_request *request);

/* It is to be freed: its client rebooted, and share_drain has not come by yet (R-SEC-3). */
bool share_is_over(const struct core *core, const struct share *share);
/* Frees those shares of a client, at most `max` looked at, from where the last
 * call stopped (struct client.share_drain_at); see lock_drain. */
uint32_t share_drain(struct core *core, uint32_t client, uint32_t max, uint32_t *ret_freed);

/* After loading: it waits to be reclaimed. */
void share_unsettle(struct core *core, uint32_t slot);
/* Does a reclaim match what is stored: this key, denying and using no more? */
bool share_matches(const struct core *core, uint32_t client, const struct lock_request *request);
/* Frees shares that the client did not reclaim, at most `max`. Returns how many. */
/* Frees what the client has on one file, which the caller keeps; returns how many. */
uint32_t share_free_file(struct core *core, uint32_t client, uint32_t file);
/* The same of everybody, at most so many. */
uint32_t share_free_all(struct core *core, uint32_t file, uint32_t max);
/* Frees those on this file, which the caller keeps, that are to be freed because their clients
 * rebooted; at most `max` are looked at. */
void share_free_doomed(struct core *core, uint32_t file, uint32_t max);
uint32_t share_drop_unsettled(struct core *core, uint32_t client, uint32_t max);

bool share_load(struct core *core, uint32_t slot, const struct record_share *record);
uint32_t share_encode(const struct core *core, uint32_t slot, uint8_t *buffer);
void share_check(const struct core *core);

#endif
