/*
 * echo.h -- what a server that we have replaced may still be saying (decision 025).
 *
 * It may have begun callbacks, and it, or its kernel, may go on sending them for a while: it does
 * not know that it was replaced. A client that cancelled and asked for the same again takes such a
 * GRANTED for the answer. So whatever was stored as an offer when we took over stays out of other
 * owners' reach until that is over, also when its client reclaims, unlocks or cancels it: a second
 * offer for the same bytes, an *echo*, stands beside it. The owner itself gets these bytes when it
 * asks: a late GRANTED then says what is true.
 *
 * An echo is stored (RECORD_LOCK_LINGERS), because we may be replaced ourselves meanwhile. One that
 * is found at a start is nobody's lock: it is an echo again, or goes at once where a start needs
 * none.
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
    uint64_t missed;  /* offers that found no slot for one */
};

/* At a start, before offers become anything else; `until_ns` not in the future: none is needed. */
void echo_begin(struct core *core, uint64_t until_ns);

bool echo_is(const struct core *core, uint32_t lock);

/* Their time is over: a bounded piece of freeing them. */
void echo_work(struct core *core);
uint64_t echo_deadline_ns(const struct core *core);

void echo_check(const struct core *core);

#endif
