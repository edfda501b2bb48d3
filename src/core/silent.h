/*
 * silent.h -- the dead holder: requests blocked by a client that does not answer (U50).
 *
 * A client that is gone for good, and did not reboot, holds its locks forever: that is what the
 * protocol promises it. Only an operator can help the clients waiting for them, and must know whom
 * to release. So when a waiter has been blocked for 30 s by a client silent for 5 min, that client
 * is probed, once: NULL to its lock manager, then SM_STAT to its status monitor.
 *
 *                 somebody waits 30 s,            NULL and SM_STAT
 *                 silent for 5 min               answered neither
 *   NOT ASKED ------------------------> ASKING -------------------> DOES NOT ANSWER: an event,
 *       ^                                  | one was answered              |   and in the status
 *       |                                  v                               |
 *       |                               ANSWERS                            |
 *       +----------------------------------+-------------------------------+
 *                                    it calls, or nobody waits for it
 *
 * Nothing is released here: silence is no proof (D13). But an SM_STAT with a newer state number is
 * a reboot that we missed, and is treated as one.
 *
 * Waiters are looked at in pieces, all of them once in PASS_NS; times are known that exactly.
 */
#ifndef CORE_SILENT_H
#define CORE_SILENT_H

#include "core/ask.h"
#include "core/status.h"

struct core;
struct core_input;

/* A client that was asked, or is to be; by its slot. */
struct silent_holder {
    struct ask ask; /* of another client: the slot was used again */
    enum silent_phase phase;
    bool has_answered;
    uint64_t asked_ns;
    uint32_t wait_count, next_count;    /* waiters that it blocks: in the last pass, so far */
    uint64_t oldest_ns, next_oldest_ns; /* since when the first of them waits */
    struct list listed;                 /* on silent.holders while it is not NOT_ASKED */
};

/* Since when a waiter is known to wait. */
struct silent_wait {
    uint64_t waiter; /* handle */
    uint64_t since_ns;
};

struct silent {
    struct silent_holder *holders_at; /* by client slot */
    struct silent_wait *waits_at;     /* by waiter slot */
    uint32_t client_max, waiter_max;
    struct list holders;
    uint32_t at;      /* the waiter to go on with */
    uint64_t pass_ns; /* when the next pass begins, or the present one began */
    bool is_passing;
    uint64_t pass_oldest_ns; /* of the present pass so far */
    struct silent_counters counters;
};

__attribute__((warn_unused_result)) int silent_init(struct core *core, const uint32_t slots[]);
void silent_done(struct core *core);

/* Looks at some waiters. */
void silent_work(struct core *core);
uint64_t silent_deadline_ns(const struct core *core);

/* For ask.h: the question about this client, NULL: there is none any more; and what came of it,
 * SLOT_NONE: nothing. */
struct ask *silent_ask(const struct core *core, uint64_t client);
void silent_answered(struct core *core, struct ask *ask, uint32_t client,
                     const struct core_input *input);

/* What is known of this client; NOT_ASKED: nothing. */
enum silent_phase silent_phase_of(const struct core *core, uint32_t client);

void silent_check(const struct core *core);

#endif
