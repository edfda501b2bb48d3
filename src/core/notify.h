/*
 * notify.h -- who must still be notified, and when they are tried.
 *
 * Two kinds of targets (target.h) are notified that we restarted, while their told_state is older
 * than that: registrants, by the call that they asked for, and lock clients, by SM_NOTIFY. A
 * registrant is also notified that the host it monitors rebooted, while its relayed_state is not
 * the notice's state (D7). What is owed is durable in those numbers; the schedule here is not, and
 * begins again with every start (R-NOTIFY-4): a second crash in the middle loses nothing.
 *
 *          owed              its time has come, durable       answered
 *   IDLE --------> WAITING ----------------------------> CALLING ------------> IDLE
 *                     ^                                     |
 *                     |  failed: after at most 5 s while    |
 *                     |  the recovery window stands, then   |
 *                     |  2 s doubling to 120 s              |
 *                     +-------------------------------------+
 *                     |                                     | failed, --give-up after the window
 *                     |  it calls us, or news               v or after the last news
 *                     +--------------------------------- GIVEN UP (until the next start)
 *
 * The window is the longer one of --recovery-window and --grace. What a client's silence means for
 * its locks is in unreached.h.
 */
#ifndef CORE_NOTIFY_H
#define CORE_NOTIFY_H

#include "base/list.h"
#include "base/prng.h"
#include "base/timers.h"
#include "core/message.h"
#include "core/naming.h"
#include "core/status.h"
#include "core/target.h"
#include "core/unreached.h"

struct core;

enum notify_phase { NOTIFY_IDLE, NOTIFY_WAITING, NOTIFY_CALLING, NOTIFY_GIVEN_UP };

struct notify_job {
    enum notify_phase phase;
    uint32_t attempt_count;  /* ended since it was owed */
    uint32_t ladder_step;    /* of them, after the recovery window */
    uint64_t started_ns;     /* of the last attempt */
    uint64_t news_ns;        /* what it is owed is not older */
    uint64_t after_txn;      /* what it is notified of must be durable */
    struct target_news sent; /* in the call in flight */
    bool has_turn;           /* a relay whose time to leave was given out (D7) */
    bool is_in_round;        /* not tried yet since our last restart */
    bool is_marked;          /* found unreached since then (unreached.h) */
    uint32_t host;           /* while it is in the round: of unreached_join */
    struct list by_gate;     /* due, but not durable yet */
    struct list by_age;      /* while it is GIVEN UP and a registrant: longest first */
};

/*
 * The first attempts after a restart, real or simulated: who was owed the news when we became ready
 * leaves the round when an attempt with that news has ended, or when it unregisters. An event
 * reports when the last one left. A restart in the middle begins a new round with everybody in it.
 */
struct notify_round {
    uint64_t start_ns;
    uint32_t count, left; /* members at its beginning, and now */
    uint32_t reached, failed;
};

struct notify {
    struct notify_job *jobs; /* by target */
    struct timers timers;
    struct list gated;
    struct list given_up; /* registrants */
    struct prng prng;
    uint64_t window_end_ns;
    uint64_t relay_next_ns; /* the next relay may leave then: at most 100 per second (D7) */
    bool is_ready;
    uint32_t spare_at; /* slot of a client: those from here on may be spared; SLOT_NONE: none */
    struct notify_round round;
    struct histogram durations;      /* of first attempts */
    struct notify_counters counters; /* of restarts; of a lock server, of relays, too */
    struct notify_counters upcalls;  /* monitor: of calls to the lock manager of this machine */
    struct naming naming;
    struct unreached unreached;
};

__attribute__((warn_unused_result)) int notify_init(struct core *core, const uint32_t slots[]);
void notify_done(struct core *core);

/*
 * We restarted, by a start or while we serve (D6, SM_SIMU_CRASH); `before` is our record of before.
 * Everybody is owed the news but clients that held nothing, waited for nothing, and knew of the
 * restart before.
 */
void notify_restarted(struct core *core, const struct record_server *before);
/* We serve: everybody who is owed something is tried, and the recovery window begins (R-NOTIFY-7).
 */
void notify_ready(struct core *core);
/* Everybody who is owed something is tried now, as in a first round. */
void notify_begin(struct core *core);
/* The recovery window begins, once more when grace does: the notifier gives up on nobody before
 * its end. */
void notify_open_window(struct core *core);
/* A notice of this name is new: its registrants are owed it. `fold`: the name without case. */
void notify_relay(struct core *core, uint32_t fold);
/* What this target is owed is new. */
void notify_news(struct core *core, uint32_t target);
/* This target was heard from: if it is still owed something, it is worth trying now. */
void notify_heard(struct core *core, uint32_t target);
/* Nothing is owed to this target any more, though it was not notified. */
void notify_dismiss(struct core *core, uint32_t target);
/* This target goes away. */
void notify_forget(struct core *core, uint32_t target);
/* Everything up to durable_txn is durable. */
void notify_stored(struct core *core);

struct core_call;
bool notify_next_call(struct core *core, struct core_call *ret);
/* `target` is what target_find says; SLOT_NONE: it is gone. */
void notify_call_done(struct core *core, uint32_t target, bool is_answered,
                      uint32_t answered_count);
/* What is done in pieces. */
void notify_work(struct core *core);
uint64_t notify_deadline_ns(const struct core *core);

/* Was it tried for as long as --give-up says, in vain? */
bool notify_is_given_up(const struct core *core, uint32_t target);
/* The registrant of which that is so for longest; SLOT_NONE: none. */
uint32_t notify_first_given_up(const struct core *core);

void notify_check(const struct core *core);

/* notify_spare.c: after a restart, who is spared; and that is written down, as far as the open
 * batch takes it. A crash before that only has them called in vain. */
void notify_spare_idle(struct core *core, const struct record_server *before);
void notify_write_spared(struct core *core);

/* It is looked at soon. */
void notify_fetch(const struct core *core, uint32_t target);
struct notify_job *notify_job(const struct core *core, uint32_t target);
/* notify_round.c: a round begins with everybody who is owed our state; a target's attempt has
 * ended, which counts if it announced that state; a target leaves, untried. */
void notify_round_begin(struct core *core);
void notify_round_tried(struct core *core, uint32_t target, bool is_reached);
void notify_round_leave(struct core *core, uint32_t target, bool is_heard);

#endif
