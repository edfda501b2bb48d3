/*
 * oracle.h -- what the clients were promised, and whether it is still true.
 *
 *  O1  An acknowledged registration is on the disk after any crash, with the priv that was
 *      acknowledged last or a newer one that is not acknowledged yet (P1, R-PER-1).
 *  O2  One acknowledged as removed does not come back, and nothing is there that nobody asked for.
 *  O3  The state is odd; a restart and an SM_SIMU_CRASH carry it beyond every state that any answer
 *      ever carried; the epoch grows at every start (R-PER-4, D6).
 *  O4  When everything is unregistered, the tables are empty.
 *  O5  A new registration is never accepted above the limit, an update never refused, and a new one
 *      not refused without a reason (D2).
 *  O6  With faults off, every call that is repeated gets an answer.
 *  O7  A repeat of an answered call gets the same answer (R-DRC-1, 2).
 *  O8  An accepted SM_NOTIFY of an address is on the disk once it is answered, while anybody
 *      watches it; no notice is there from another than the host of that name (D7).
 *
 * A promise is made when the answer leaves the server, not when it arrives: the server cannot know
 * which of the two a crash will separate.
 *
 * Only one owner ever changes a key, and it has one call outstanding. Calls that it gave up may
 * still be executed, but not after a later one was (exclusion (5) of P2, kept by net.c). Hence a
 * record is what the last answered call left, or what a call sent after that one leaves; nothing
 * else is allowed.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "world.h"

/* The call leaves the client for the first time. */
void oracle_sent(struct world *world, struct call *call);
/* The server executed it, as far as can be seen from outside: it was no repeat. */
void oracle_executed(struct world *world, struct call *call, uint16_t port);
/* Its answer leaves the server. */
void oracle_answered(struct world *world, struct call *call, struct bytes reply);

/* True while the duplicate cache must recognise this call when it comes from this port. */
bool oracle_is_cached(const struct world *world, const struct call *call);

/* One more thing that the key may become: the call was sent, or may be executed again. */
void oracle_add_later(struct key *key, struct call *call, bool is_present);

/* Keys that may be registered. */
uint32_t oracle_possible_count(const struct world *world);

#endif
