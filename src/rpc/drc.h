/*
 * drc.h -- the duplicate request cache (R-DRC-1, 2).
 *
 * A repeated call must not be executed twice: a late copy of an SM_UNMON would remove a newer
 * registration. A call is known by (source address, xid, program, version, procedure, and a
 * checksum of the arguments), from whichever port it comes: a client that gives up a connection
 * repeats its call on another, and the rest of the first copy may arrive at any time (decision
 * 020). While the first copy is in progress a repeat only redirects its answer; afterwards a repeat
 * gets the same bytes again.
 *
 * A restarted program may reuse its xids and arguments, from any port. The old reply may no longer
 * be true then. So a repeat is *old*, and does not get it, once a later call of the same owner was
 * executed, or if the reply was only momentary (BLOCKED) and the repeat comes from another port. A
 * FREE_ALL belongs to a client: a call of any of its processes makes it old. So do orders of an
 * operator with whatever their client was answered. A LOCK that is told to ask again changes
 * nothing, and makes nothing old: a reclaim that is repeated must not be told that.
 *
 *        drc_begin: new             drc_end
 *   ---> IN PROGRESS ----------------------------> DONE ----> (gone: 120 s, or room needed)
 *
 * Bounded: at most `entries_max` entries, of which one address may hold DRC_PER_ADDRESS that are
 * done; beyond that its own oldest goes first, so one caller cannot flush the others' entries. Long
 * replies are kept apart, in memory of which each address has a share; there, older long ones go.
 * Entries die with the process: what they protected is durable, and handlers stay idempotent.
 */
#ifndef RPC_DRC_H
#define RPC_DRC_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"

#define DRC_LIFE_NS     (120 * SECOND_NS)
#define DRC_PER_ADDRESS 1024
#define DRC_REPLY_MAX   2304 /* a longer reply is not kept: its call is executed again */
#define DRC_NONE        UINT64_MAX

struct drc;

struct drc_key {
    struct address address;
    uint32_t xid, prog, vers, proc, args_len;
    uint32_t owner;  /* whose call it is, a hash; it follows from the arguments. 0: nobody's */
    uint32_t client; /* like the owner: the client as a whole */
    /* A hash of the argument bytes, and of who asks where that matters; with a seed that callers do
     * not know, because entries are found by it. */
    uint64_t args_hash;
};

enum drc_verdict {
    DRC_NEW,         /* not seen before */
    DRC_IN_PROGRESS, /* ret->entry and ret->waiting are those of the first copy */
    DRC_DONE,        /* ret->reply is the cached reply, valid until the next call */
    DRC_OLD,         /* the same, but it may not be true any more */
};

struct drc_found {
    uint64_t entry;
    uint64_t waiting; /* what drc_wait said */
    struct bytes reply;
    bool is_moved; /* DRC_DONE, DRC_OLD: the repeat comes from another port */
};

/* NULL when memory cannot be reserved. */
struct drc *drc_new(uint32_t entries_max, uint64_t seed);
void drc_free(struct drc *drc);

uint64_t drc_args_hash(const struct drc *drc, struct bytes args);

/* Looks only: for a call that is not taken yet, because a repeat needs nothing and a new one may
 * have to wait. */
enum drc_verdict drc_find(struct drc *drc, const struct drc_key *key, uint16_t port,
                          uint64_t now_ns, struct drc_found *ret);
/* A call begins that drc_find has just found to be new: its entry, in progress. Earlier ones of its
 * owner are old from here on. DRC_NONE: every entry is in progress, go on without the cache. */
uint64_t drc_begin(struct drc *drc, const struct drc_key *key, uint16_t port);
/* A call of one of its owners begins that makes what the client asked as a whole old, too. */
void drc_supersede_whole(struct drc *drc, const struct address *address, uint32_t client);
/* What this client was answered, or will be, may not be true any more: all its calls are old. Its
 * FREE_ALL is not: what it said is. */
void drc_supersede_client(struct drc *drc, const struct address *address, uint32_t client);
/* Where the answer of an entry in progress waits, for a retransmission of the call. `is_passing`:
 * the answer is for the moment, and not to be said again to another port. */
void drc_wait(struct drc *drc, uint64_t entry, uint64_t waiting, bool is_passing);
/* The call in progress has changed nothing, and is told to ask again: what its owner called before
 * is not old for it. It is old itself: its repeat is told the same. */
void drc_void(struct drc *drc, uint64_t entry);
/* It waits elsewhere now. */
void drc_move(struct drc *drc, uint64_t entry, uint64_t waiting);
/* There will be no reply: a repeat is a new call. */
void drc_abandon(struct drc *drc, uint64_t entry);
/* One that is done is of no use any more: the call is executed again. */
void drc_discard(struct drc *drc, uint64_t entry);
/* The reply leaves now, hence is durable (R-DRC-2): keep it for repeats. */
void drc_end(struct drc *drc, uint64_t entry, struct bytes reply, uint64_t now_ns);

/* A rebooted client restarts its xids: forget its calls and replies. */
void drc_forget(struct drc *drc, const struct address *address);
/* The same of one client at that address; what is in progress is kept. */
void drc_forget_client(struct drc *drc, const struct address *address, uint32_t client);
/* We rebooted, or act as if: what was granted before may be released, and must not be repeated. */
void drc_forget_all(struct drc *drc);

/* For tests: aborts on a broken invariant; how many calls it knows. */
uint32_t drc_check(struct drc *drc);

#endif
