/*
 * commits.h -- the driver's side of the store: one batch out at a time, and how long it takes.
 *
 * The open batch goes to the store thread whenever that is idle; when it is durable the gate opens
 * that far (core_durable_txn). A commit that takes longer than --store-timeout ends the server: it
 * cannot be interrupted, nothing that waits for it was answered, and the next start finds out
 * whether it landed (D9).
 */
#ifndef DAEMON_COMMITS_H
#define DAEMON_COMMITS_H

#include "admin/http.h"
#include "base/histogram.h"
#include "core/core.h"
#include "rpc/server.h"
#include "store/worker.h"
#include "wire/clock.h"

/* All borrowed but the store, which the worker takes over. */
struct commits_parts {
    struct clock *clock;
    struct lease *lease;
    struct core *core;
    struct rpc_server *server;
    struct http *control; /* whose responses wait for the store; NULL: none */
    struct store *store;
    uint64_t timeout_ns; /* --store-timeout */
    bool is_metered;     /* --metrics */
};

/* What a run left in the store, for the line at its end. */
struct commits_totals {
    uint64_t batches, records, lock_changes;
};

struct commits_meter {
    struct histogram durations;     /* from the hand-over until it is durable */
    struct histogram writes, syncs; /* of that: see worker.h */
    struct histogram batch_records;
};

struct commits {
    struct commits_parts parts;
    struct worker *worker;        /* NULL: not started, or stopped */
    uint64_t since_ns;            /* when the last batch was handed over, by clock_raw_ns */
    uint64_t ticked_ns;           /* 0: not yet */
    bool has_forgiven;            /* a standstill, since then */
    struct commits_totals out;    /* of that batch */
    struct commits_totals stored; /* of all batches that are durable */
    struct commits_meter meter;   /* counted only with is_metered */
};

void commits_init(struct commits *commits, const struct commits_parts *parts);

/* Starts the store thread, on which `wake` runs whenever commits_take has something to do. False:
 * no thread could be started; the store is closed. */
__attribute__((warn_unused_result)) bool commits_start(struct commits *commits, worker_wake_fn wake,
                                                       void *context);
/* Waits briefly for the batch that is out, and ends the thread. A commit that hangs ends the
 * process with this exit code. */
void commits_stop(struct commits *commits, int exit_code);

/* Hands the open batch to an idle store. */
void commits_hand(struct commits *commits);
/* Takes the store thread's news. False: the store failed, and *ret_failure says how. */
__attribute__((warn_unused_result)) bool commits_take(struct commits *commits,
                                                      struct store_failure *ret_failure);
bool commits_is_busy(const struct commits *commits);
/* How long the commit in progress has taken so far; 0: none is. */
uint64_t commits_age_ns(const struct commits *commits);

/* Four times a second. False: the commit in progress has taken too long, as with commits_take. */
__attribute__((warn_unused_result)) bool commits_tick(struct commits *commits, bool is_draining,
                                                      struct store_failure *ret_failure);

#endif
