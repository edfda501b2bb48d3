/*
 * quota.h -- how much of each table one address may have (R-SEC-12).
 *
 * Without that one host fills a table alone, by as many names as it likes, and nobody else gets in.
 * So every address has a count per table, and --max-per-address says how many percent of a table's
 * limit one of them may take; at least one element. What was stored above that is kept: a limit
 * concerns only what is new.
 *
 * An address is known here while a client, registrant or tracked client of it is, a file that
 * counts for it, a question about a client, a notice that it sent and that waits, or its answer;
 * each of them holds a reference. Locks, shares and waiters count where their client is. Counting
 * costs the same however many there are (P7).
 */
#ifndef CORE_QUOTA_H
#define CORE_QUOTA_H

#include "base/address.h"
#include "base/hash_index.h"
#include "base/list.h"
#include "base/table.h"
#include "base/tree.h"
#include "core/status.h"

struct core;

enum quota_kind {
    QUOTA_CLIENT,
    QUOTA_REGISTRANT,
    QUOTA_TRACKED,
    QUOTA_LOCK,
    QUOTA_SHARE,
    QUOTA_WAITER,
    QUOTA_FILE, /* that programs see the locks of (mirror.h) */
    QUOTA_KIND_END,
};

/* One address. */
struct quota {
    struct address address;
    uint32_t references;
    uint32_t counts[QUOTA_KIND_END];
    uint32_t turning, calling; /* callbacks that may leave, in flight; of turn.h */
    bool is_silent;            /* the last one was not answered */
    uint32_t questions;        /* to its status monitor, because of its own word; of probe.h */
    uint32_t calibrations;     /* the same, of our own accord */
    struct list said;          /* its notices that wait for another one of it; of hearsay.h */
    uint32_t said_count;       /* all of its notices there, */
    uint32_t saying;           /* and the slot of the one whose turn it is, if there are any */
    uint32_t withheld_count;   /* answers to its notices that wait; of withheld.h */
    uint32_t keepers;          /* references of questions, notices and their answers */
    struct list parked;        /* its clients whose callbacks must wait for that */
    struct list woken_files;   /* where its waiter is the first to be looked at again (waiter.h) */
    struct list wake_turn;     /* its place among addresses with such files */
    struct list idle; /* its clients that may be forgotten for another one, longest idle first */
};

struct quotas {
    struct table table; /* of struct quota */
    struct hash_index by_address;
    uint32_t near[QUOTA_KIND_END]; /* addresses that have most of their share (quota_is_near) */
    struct quota_counters counters;
};

__attribute__((warn_unused_result)) int quota_init(struct core *core, const uint32_t slots[]);
void quota_done(struct core *core);

/* A reference to the counts of this address, which are new if it is. */
uint32_t quota_keep(struct core *core, const struct address *address);
void quota_release(struct core *core, uint32_t slot);
/* The counts of this address; SLOT_NONE: it has nothing here. */
uint32_t quota_find(const struct core *core, const struct address *address);
struct quota *quota_at(const struct core *core, uint32_t slot);

void quota_add(struct core *core, uint32_t slot, enum quota_kind kind, uint32_t count);
void quota_remove(struct core *core, uint32_t slot, enum quota_kind kind, uint32_t count);

/* Of so many, are `count` more than VIEW_NEAR_PERCENT? */
bool quota_is_near(uint64_t count, uint64_t max);
/* Limits of one address and of one client are larger: who is near them is counted again. */
void quota_grown(struct core *core);

/* The limit of the table, and the most of it that one address may have; UINT32_MAX: all. */
uint32_t quota_max(const struct core *core, enum quota_kind kind);
uint32_t quota_share(const struct core *core, enum quota_kind kind);

/* May this address have one more? */
bool quota_admits(const struct core *core, uint32_t slot, enum quota_kind kind);
/* The same of an address that may be unknown. */
bool quota_admits_address(const struct core *core, const struct address *address,
                          enum quota_kind kind);
/* A new one was refused for that: the operator hears of it. */
void quota_refused(struct core *core, const struct address *address, struct bytes name,
                   enum quota_kind kind);

void quota_check(const struct core *core);

#endif
