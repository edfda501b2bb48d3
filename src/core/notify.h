/*
 * notify.h -- who must still be told something, and when they are tried.
 *
 * Two things are told to a registrant, both as a `status` call to its my_prog, my_vers, my_proc at
 * the address it registered from (D3, R-SEC-2): that we restarted, while its told_state is not our
 * state, and that the host it watches rebooted, while its relayed_state is not the notice's state
 * (D7). What is owed is durable in those two numbers; the schedule here is not, and begins anew
 * with every start (R-NOTIFY-4): a second crash in the middle loses nothing.
 *
 *          owed              its time has come, durable       answered
 *   IDLE --------> WAITING ----------------------------> CALLING ------------> IDLE
 *                     ^                                     |
 *                     |  failed: after at most 5 s while    |
 *                     |  the recovery window stands, then   |
 *                     |  2 s doubling to 120 s              |
 *                     +-------------------------------------+
 *                     |                                     | failed, --give-up after the window
 *                     |  SM_MON again, or news              v or after the last news
 *                     +--------------------------------- GIVEN UP (the next start begins anew)
 *
 * The engine knows registrants by slot. Lock clients will be a second kind of target.
 */
#ifndef CORE_NOTIFY_H
#define CORE_NOTIFY_H

#include "base/list.h"
#include "base/prng.h"
#include "base/timers.h"
#include "core/message.h"

struct core;

enum notify_phase { NOTIFY_IDLE, NOTIFY_WAITING, NOTIFY_CALLING, NOTIFY_GIVEN_UP };

struct notify_job {
    enum notify_phase phase;
    uint32_t attempt_count; /* ended since it was owed */
    uint32_t ladder_step;   /* of them, after the recovery window */
    uint64_t started_ns;    /* of the last attempt */
    uint64_t give_up_ns;    /* no attempt begins after that */
    uint64_t after_txn;     /* what it is told must be durable */
    uint32_t sent_state;    /* of ours, in the call under way; 0: not part of it */
    uint32_t sent_notice;   /* the same for the host it watches */
    bool has_turn;          /* a relay whose time to leave was given out (D7) */
    bool is_in_round;       /* not tried yet since our last restart */
    struct list by_gate;    /* due, but not durable yet */
};

/*
 * The first attempts after a restart, real or simulated: who was owed the news when we became ready
 * leaves the round when an attempt with that news has ended, or when it unregisters. The operator
 * is told when the last one left. A restart in the middle begins a new round with everybody in it.
 */
struct notify_round {
    uint64_t start_ns;
    uint32_t count, left; /* members at its beginning, and now */
    uint32_t reached, failed;
};

struct notify_counters {
    uint64_t started, succeeded, failed;        /* first attempts */
    uint64_t retries_succeeded, retries_failed; /* later ones */
    uint64_t given_up;
    uint32_t owed; /* registrants that something is owed to now */
};

struct notify {
    struct notify_job *jobs; /* by slot of the registrant */
    struct timers timers;
    struct list gated;
    struct prng prng;
    uint64_t window_end_ns;
    uint64_t relay_next_ns; /* the next relay may leave then: at most 100 per second (D7) */
    bool is_ready;
    struct notify_round round;
    struct notify_counters counters;
};

__attribute__((warn_unused_result)) int notify_init(struct core *core, uint32_t slots_max);
void notify_done(struct core *core);

/* We serve: whoever is owed something is tried, and the recovery window begins (R-NOTIFY-7). */
void notify_ready(struct core *core);
/* Our state number changed while we serve: everybody is owed the news (D6, SM_SIMU_CRASH). */
void notify_restarted(struct core *core);
/* A notice of this name is new: its registrants are owed it. `fold`: the name without case. */
void notify_relay(struct core *core, uint32_t fold);
/* This registrant called us: if it is still owed something, it is worth trying now. */
void notify_heard(struct core *core, uint32_t slot);
/* This registrant goes away. */
void notify_forget(struct core *core, uint32_t slot);
/* Everything up to durable_txn is durable. */
void notify_stored(struct core *core);

struct core_call;
bool notify_next_call(struct core *core, struct core_call *ret);
void notify_call_done(struct core *core, uint64_t id, bool is_answered, uint32_t answered_count);
uint64_t notify_deadline_ns(const struct core *core);

void notify_check(const struct core *core);

#endif
