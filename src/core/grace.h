/*
 * grace.h -- the grace period after a restart: who may take what until everyone had a chance to
 * reclaim.
 *
 * In grace only reclaims are granted (protocol.md 3.2). It lasts for `--grace` from the moment we
 * are registered (R-GRACE-8) and our new state is durable, because nobody can be notified before;
 * it ends earlier only when every stored byte is settled (R-GRACE-3).
 *
 *   core_start, something stored       CORE_READY            all settled, time, end-grace
 *   ------------------------> WAITING ------------> STANDING -------------------------> OVER
 *   nothing stored: OVER      (refuses, no clock)                                         |
 *                                              what is left unsettled is dropped, piece by piece,
 *                                              but for clients that are just coming back:
 *                                               - reached or told late: 30 s from then (D5 (5))
 *                                               - reclaiming: until quiet for 5 s (R-GRACE-10)
 *                                               - `--unreachable hold`, not told (R-GRACE-5)
 *
 * The end of grace changes what is granted from one request to the next; dropping then takes its
 * time, and a reclaim of what is not dropped yet is still granted: no reclaim is lost between.
 *
 * An incomplete store (D16) does not know what it misses: the grace period runs to its end, and
 * reclaims that conflict with nothing are accepted.
 */
#ifndef CORE_GRACE_H
#define CORE_GRACE_H

#include "base/timers.h"
#include "core/message.h"
#include "core/status.h"

struct core;

enum grace_phase { GRACE_OVER, GRACE_WAITING, GRACE_STANDING };

struct grace {
    enum grace_phase phase;
    bool must_last;       /* D16: never lifted early */
    bool is_cut_short;    /* the operator ended it: nobody gets more time */
    bool is_ready;        /* we are registered */
    uint64_t after_txn;   /* our new state is durable with this one */
    uint64_t end_ns;      /* while it is active */
    uint64_t last_end_ns; /* when it ended; extensions count from here */
    struct timers drop;   /* by client: when what it has left unsettled goes */
    uint32_t unsettled_shares;
    struct grace_counters counters;
};

__attribute__((warn_unused_result)) int grace_init(struct core *core, const uint32_t slots[]);
void grace_done(struct core *core);

/* After loading: grace is needed if something is unsettled, or the store is incomplete. */
void grace_begin(struct core *core);
/* SM_SIMU_CRASH: everything held or perhaps taken is unsettled, waiters are over (D6). */
void grace_begin_anew(struct core *core);
/* We are registered; everything up to durable_txn is durable: the clock starts after both. */
void grace_ready(struct core *core);
void grace_stored(struct core *core);

bool grace_is_on(const struct core *core);
/* A reclaim that matches nothing stored may be granted if nothing conflicts with it. */
bool grace_trusts(const struct core *core);

/* What is known of this client changed, and with it how long it has to reclaim. */
void grace_judge(struct core *core, uint32_t client);
/* It has answered SM_NOTIFY under every name of ours. */
void grace_told(struct core *core, uint32_t client);
/* It reclaimed something. */
void grace_reclaimed(struct core *core, uint32_t client);
/* The notifier gave up on it: `hold` ends (R-GRACE-5). */
void grace_given_up(struct core *core, uint32_t client);
/* It is active, and the state with which it began is not durable yet. */
bool grace_is_unstored(const struct core *core);
/* The operator ends it, and whatever of it is extended for single clients (P2 (4)). False: none of
 * it is active. */
bool grace_end_now(struct core *core);

/* Ends it when its time has come, and drops what is left. True: there is more. */
void grace_work(struct core *core);
uint64_t grace_deadline_ns(const struct core *core);

void grace_status(const struct core *core, struct grace_status *ret);

void grace_check(const struct core *core);

#endif
