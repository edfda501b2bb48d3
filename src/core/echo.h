/*
 * echo.h -- what a server that we have replaced may still be saying (decision 025).
 *
 * It may have begun callbacks, and it, or its kernel, may go on sending them for a while: it does
 * not know that it was replaced. A client that cancelled and asked for the same again takes such a
 * GRANTED for the answer. So whatever was stored as an offer when we took over stays out of other
 * owners' reach until that is over, whatever becomes of it:
 *
 *   OFFER of the run before ---- reclaimed, taken, unlocked, cancelled, freed ----> ECHO
 *            |                                                                       |
 *            | the time is over: an offer like any other                             | likewise
 *            v                                                                       v
 *     (its waiter is called, or it becomes its owner's lock)                     (nothing)
 *
 * An *echo* is what would have been removed: the same element of the lock table, in its slot, with
 * RECORD_LOCK_LINGERS. It is nobody's. Its owner gets these bytes when it asks, as a lock of its
 * own beside it: a late GRANTED then says what is true.
 *
 * So a takeover writes nothing for its offers and needs no room for them, however many there are.
 * A successor that has to take over within the time finds offers and echoes, and keeps both.
 */
#ifndef CORE_ECHO_H
#define CORE_ECHO_H

#include <stdbool.h>
#include <stdint.h>

struct core;

struct echoes {
    uint64_t until_ns;
    uint32_t at;      /* the slot that was looked at last */
    bool may_be_some; /* in the lock table */
};

/* At a start, before offers become anything else; `until_ns` not in the future: none is needed. */
void echo_begin(struct core *core, uint64_t until_ns);

bool echo_is(const struct core *core, uint32_t lock);

/* Must this offer stay, as an echo, when its owner has no use for it any more? */
bool echo_is_due(const struct core *core, uint32_t lock);
/* An offer without a callback would go: it becomes an echo instead. False: none is due. */
bool echo_keep(struct core *core, uint32_t lock);

/* Their time is over: a bounded piece of freeing them. */
void echo_work(struct core *core);
uint64_t echo_deadline_ns(const struct core *core);

void echo_check(const struct core *core);

#endif
