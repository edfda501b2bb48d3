/*
 * status.h -- what the core counts, for people to see.
 *
 * Each part of the core keeps its own counters and includes this file for their form, so that
 * nobody outside needs to see a part.
 */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include "base/histogram.h"

#include <stdbool.h>

struct core;

struct grant_counters {
    uint64_t granted;     /* acknowledged by an answer to a callback */
    uint64_t denied;      /* refused by one */
    uint64_t failed;      /* callbacks that got no answer */
    uint64_t passed_over; /* D13 */
};

struct reboot_counters {
    uint64_t crashes_detected; /* clients found to have rebooted, or not reached (D5) */
    uint64_t cleanups;         /* of them, of which something was freed */
    uint64_t locks_cleaned;    /* and how much: locks and shares, when they are freed */
    uint64_t released;         /* locks and shares that an operator freed: no crash */
};

struct grace_counters {
    uint64_t reclaims_granted, reclaims_denied;
    uint64_t dropped; /* locks and shares released at the end */
};

struct grace_status {
    bool is_on;
    uint64_t remaining_ns;
    uint32_t unsettled; /* ranges and shares */
};

struct notify_counters {
    uint64_t started, succeeded, failed;        /* first attempts */
    uint64_t retries_succeeded, retries_failed; /* later ones */
    uint64_t given_up;
    uint32_t owed;  /* targets that something is owed to now, */
    uint32_t tried; /* and of these, those that an attempt has not reached */
};

struct silent_counters {
    uint64_t oldest_since_ns; /* of all waiters; 0: nobody waits */
    uint32_t waits_on_silent; /* waiters blocked by clients that do not answer */
};

/* What asking a client brought that others wait for (silent.h). */
enum silent_phase { SILENT_NOT_ASKED, SILENT_ASKING, SILENT_ANSWERS, SILENT_NO_ANSWER };

struct tracker_counters {
    uint32_t connected, disconnected, expired; /* now */
    uint64_t added, reconnected, lost;         /* since the start; lost: their time was over */
};

struct quota_counters {
    uint64_t refused;                              /* new elements above an address's share */
    uint64_t evicted_clients, evicted_registrants; /* forgotten for a new one */
};

struct core_status {
    uint64_t epoch;
    uint32_t state;
    uint32_t registrants, clients, locks, offers, waiters, shares;
    uint32_t notices, names;
    bool is_monitor;        /* hosts that a lock manager of this machine watches, and no locks */
    uint32_t missed;        /* clients that have something to reclaim and were not reached */
    uint32_t unresolved;    /* monitor: names of watched hosts that no address is known of */
    uint32_t hosts_owed;    /* monitor: hosts that are still to be notified of our last reboot */
    bool is_same_boot;      /* monitor: the machine did not reboot since the last run */
    bool is_served;         /* monitor: their hosts are being notified, not waiting for a server */
    uint32_t local_refused; /* files whose locks programs are not kept from (mirror.h) */
    uint32_t local_waiting; /* waiters in whose way a program is */
    uint32_t namesakes;     /* pairs of view_namesake (D17) */
    uint64_t bytes_used;
    uint64_t durable_txn;
    bool incomplete, has_room;
    struct grant_counters grants;
    struct reboot_counters reboots;
    struct grace_counters reclaims;
    struct grace_status grace;
    struct notify_counters notify;  /* monitor: of watched hosts */
    struct notify_counters upcalls; /* monitor: of its lock manager; else zero */
    struct silent_counters silent;
    struct tracker_counters tracked;
    struct quota_counters quota;
    const struct histogram *notify_durations; /* lives as long as the core */
};
void core_status(const struct core *core, struct core_status *ret);

#endif
