/*
 * target.h -- who can be notified: registrants, lock clients, watched hosts, numbered together.
 *
 * The schedule (notify.h) knows targets by number and no kind of them. What a target is owed, what
 * call says it, and what an answer proves is decided here.
 *
 *   number                 kind          owed our restart while         told by
 *   0 ..                   registrants   told_state is older than it    status, to what it named
 *   after the last slot    lock clients  the same, and it took a        SM_NOTIFY under each of our
 *   for registrants                      monitored lock (R-NM-1)        names (R-NOTIFY-2)
 *   after the last slot    watched       its registrant's told_state    the same (watched.h)
 *   for clients            hosts         is older than it
 *
 * A registrant may also be owed a relay: the host that it watches rebooted (D7). There are watched
 * hosts in the monitor role only; the registrants are then the lock manager of this machine, which
 * knows of our restarts: they are owed relays, and nothing else.
 */
#ifndef CORE_TARGET_H
#define CORE_TARGET_H

#include "core/event.h"
#include "core/message.h"

struct core;
struct core_call;

/* What is owed, or was said in one call; 0: nothing of that. */
struct target_news {
    uint32_t state;  /* of ours */
    uint32_t notice; /* of the host that it watches */
};

enum target_kind { TARGET_REGISTRANT, TARGET_CLIENT, TARGET_WATCHED };

/* How many there may be. */
uint32_t target_max(const struct core *core, const uint32_t slots[]);
uint32_t target_of_registrant(uint32_t slot);
uint32_t target_of_client(const struct core *core, uint32_t slot);
uint32_t target_of_watched(const struct core *core, uint32_t slot);
enum target_kind target_kind(const struct core *core, uint32_t target);
bool target_is_client(const struct core *core, uint32_t target);
/* The slot of a target that is a client. */
uint32_t target_client(const struct core *core, uint32_t target);

/* Live targets in ascending order: start with SLOT_NONE; SLOT_NONE again at the end. */
uint32_t target_next(const struct core *core, uint32_t target);
/* The target that a handle of this kind names; SLOT_NONE: it is gone. */
uint32_t target_find(const struct core *core, enum target_kind kind, uint64_t handle);

/* Does a client with this told_state know of our last restart? */
bool target_knows(const struct record_server *server, uint32_t told_state);
struct target_news target_owed(const struct core *core, uint32_t target);
struct address target_address(const struct core *core, uint32_t target);
/* Wall clock of the last thing that is known of it. */
uint64_t target_seen_ns(const struct core *core, uint32_t target);
void target_report(struct core *core, enum event_kind kind, uint32_t target, uint64_t value);

/* The call that says this; its deadline is the caller's to set. */
void target_put_call(struct core *core, uint32_t target, struct target_news news,
                     struct core_call *ret);

/* A call that said this has ended, and so many of its messages were answered; `is_answered`: all
 * of them. What that proves is written down: the mark is cleared (P3). */
void target_answered(struct core *core, uint32_t target, struct target_news news, bool is_answered,
                     uint32_t answered_count);
/* Not answered; there is another way to it that was not tried yet. */
bool target_has_other_way(const struct core *core, uint32_t target);
/* It will not be tried again in this run, unless something happens. */
void target_given_up(struct core *core, uint32_t target);
/* Nothing is owed to it any more. True: there is no use for it either, and it is gone. */
bool target_clear_debt(struct core *core, uint32_t target);

#endif
