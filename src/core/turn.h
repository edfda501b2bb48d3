/*
 * turn.h -- whose GRANTED callback leaves next.
 *
 * Clients take turns: each has a queue of offers whose callback may leave, and every turn takes one
 * of the next client's. So a client with a hundred thousand offers delays nobody by more than one
 * call. An address has a bounded number of callbacks in flight, and one that does not answer a few
 * only: what is silent holds an attempt for seconds, and attempts are finite. One that lingers
 * counts like the others, or who asks and cancels would have any number of them.
 *
 *              an offer is ready                 its turn has come
 *   (nothing) ------------------> ON TURN ----------------------------> callback in flight
 *                  |                ^                                        |
 *                  | its address    | a callback to the address ended,       |
 *                  v has enough     | or one that was on turn has nothing    |
 *                PARKED ------------+ <--------------------------------------+
 */
#ifndef CORE_TURN_H
#define CORE_TURN_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct core;

enum {
    TURN_CALLS_MAX = 64,  /* callbacks in flight to one address */
    TURN_SILENT_MAX = 16, /* the same while it does not answer */
};

/* A waiter's callback may leave; or, if it was to, it need not any more. */
void turn_add(struct core *core, uint32_t waiter);
void turn_remove(struct core *core, uint32_t waiter);
/* The waiter whose callback leaves now, which counts as in flight; SLOT_NONE: none may leave. */
uint32_t turn_take(struct core *core);
/* The callback that was in flight for this client is over, also as far as it lingered (callback.h);
 * what that says of its address. */
enum turn_end { TURN_ANSWERED, TURN_SILENT, TURN_UNKNOWN };
void turn_ended(struct core *core, uint32_t client, enum turn_end how);
bool turn_has_any(const struct core *core);

/* This client goes, or counts at another address from now on; turn_join afterwards. */
void turn_leave(struct core *core, uint32_t client);
void turn_join(struct core *core, uint32_t client);

void turn_check(const struct core *core);

#endif
