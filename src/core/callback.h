/*
 * callback.h -- GRANTED callbacks in flight, also those whose request is over (decision 020).
 *
 *              grant_next_call              answered, or failed
 *   (nothing) -----------------> CALLING -----------------------> (nothing; grant.c continues)
 *                                   |
 *                                   | CANCEL, UNLOCK, a poll that was granted, FREE_ALL, ...
 *                                   v
 *                               LINGERING ----------------------> (nothing; its bytes are free)
 *                                            answered, failed, or aborted 5 s later
 *
 * What was written to a connection is delivered by the kernel whenever it can. A client that asks
 * for the same bytes again takes it for the answer then. So a callback that was begun outlives its
 * request: it lingers until nothing of it can arrive any more, and until then its offer blocks
 * other owners, whatever its own owner has and gives up meanwhile. Its owner gets these bytes when
 * it asks: a late GRANTED then says what is true.
 *
 * The answer to CANCEL and UNLOCK of bytes with a lingering callback of that owner waits for its
 * end: from that answer on the client may ask again and be blocked again.
 *
 * While it lingers the offer is stored like any offer. A crash ends the callback with the process
 * (wire/caller_tcp.c), so what is left then is an offer that nobody has taken.
 */
#ifndef CORE_CALLBACK_H
#define CORE_CALLBACK_H

#include "base/chains.h"
#include "base/list.h"
#include "base/table.h"
#include "base/units.h"
#include "core/claim.h"
#include "core/core.h"

struct core;
struct core_input;

#define CALLBACK_LINGER_NS (5 * SECOND_NS)

#define CALLBACK_LATE_MAX            1024 /* answers that wait */
#define CALLBACK_LATE_PER_CLIENT_MAX 128  /* of them, to one client */

struct callback {
    uint32_t waiter;      /* CALLING: whose it is; SLOT_NONE: it lingers */
    uint32_t offer;       /* LINGERING: what it keeps; SLOT_NONE: nothing */
    uint64_t deadline_ns; /* LINGERING: it is aborted then */
    uint64_t serial;      /* LINGERING: the how many-eth that began to */
    struct list ending;   /* it lingers, and its carrier does not know yet */
};

/* A delayed answer: it waits on one lingering callback after another. */
struct late_answer {
    uint32_t client;
    struct claim claim; /* what it is about; the mode is not looked at */
    uint64_t serial;    /* callbacks that began to linger later do not concern it */
    uint32_t hangs_on;  /* SLOT_NONE: it may leave */
    struct list ready;
};

struct callbacks {
    struct table table;                      /* of struct callback */
    uint32_t calling_count, lingering_count; /* of them; the others keep nothing, and are aborted */
    struct chains by_owner;    /* chain = owner slot: the lingering ones that keep something */
    struct list ending;        /* to be reported to their carrier */
    struct table late;         /* of struct late_answer; a slot is the answer's ticket */
    struct chains on_callback; /* chain = callback slot: answers that wait on it */
    struct list ready;         /* late answers that may leave */
    uint64_t serial;
    uint64_t lingered, unanswered; /* how many did; answers that found no place to wait */
};

__attribute__((warn_unused_result)) int callback_init(struct core *core, const uint32_t slots[]);
void callback_done(struct core *core);

/* How many are in flight, or linger and keep something. */
uint32_t callback_count(const struct core *core);
/* Is there any that lingers and keeps something? Mostly not. */
bool callback_is_any_lingering(const struct core *core);
/* One more may begin. */
bool callback_has_room(const struct core *core);
/* A callback of this waiter begins; only while callback_has_room. Its id for core_call. */
uint32_t callback_begin(struct core *core, uint32_t waiter);
uint64_t callback_id(const struct core *core, uint32_t slot);

/* Its request is over. The offer, which has no waiter any more, stays until it has ended. */
void callback_linger(struct core *core, uint32_t slot, uint32_t offer);
/* The same without an offer: it is aborted at once. */
void callback_abort(struct core *core, uint32_t slot);
/* It has ended. */
void callback_ended(struct core *core, uint64_t handle, const struct core_input *input);
/* Its carrier must end it: at once if nothing of it can arrive, at the deadline at the
 * latest. callback_ended follows. False: none. */
bool callback_next_ending(struct core *core, uint64_t *ret_id, uint64_t *ret_deadline_ns);

/* How an answer about these bytes leaves: at once, later (with a ticket), or not at all, because
 * there are too many that wait: its client asks again. */
enum answer_when callback_defer(struct core *core, const struct claim *claim, uint32_t *ret_ticket);
/* An answer that waits no longer; false: none. */
bool callback_next_answer(struct core *core, struct core_late *ret);

void callback_check(const struct core *core);

#endif
