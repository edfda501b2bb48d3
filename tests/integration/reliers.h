/*
 * reliers.h -- lock clients of a server that moves between machines, and what each relies on at any
 * moment.
 *
 * They behave as Linux does, only faster:
 *
 *           LOCK: BLOCKED            GRANTED, by an answer or a callback
 *   IDLE --> ASKS -----> WAITS -------------------------------------------> HOLDS
 *    ^  ^      \__________|________________________________________________/  |
 *    |  +-- CANCELS <-----+ tired                                             |
 *    |         | DENIED                                                       |
 *    +----- UNLOCKS <---------------------------------------------------------+
 *
 *  - one call of a process is in flight, and it is sent again with its number until it is answered:
 *    over UDP every 0.4 s, over TCP on a new connection when the old one fails or is silent for
 *    1.5 s;
 *  - a callback is matched by host, file, range and svid, by nothing else, while the process waits
 *    or asks. One that comes while a LOCK is in flight counts when that is answered with BLOCKED;
 *  - who waits asks again, or gives up and often asks for the same at once;
 *  - told of a restart, a host reclaims one lock after another, and its processes begin nothing new
 *    meanwhile. Who waits asks again.
 *
 * Every grant is judged at once (reliance.h): no two may rely on what conflicts, no reclaim may be
 * refused. What happened last is remembered and printed with the first failure.
 */
#ifndef INTEGRATION_RELIERS_H
#define INTEGRATION_RELIERS_H

#include "lock_call.h"
#include "nodes.h"

#define RELIERS_HOSTS     6 /* even ones speak TCP, odd ones UDP */
#define RELIERS_PER_HOST  3
#define RELIERS_PROCESSES (RELIERS_HOSTS * RELIERS_PER_HOST)
#define RELIERS_FILES     2
#define RELIERS_CELLS     9 /* of a file */
#define RELIERS_PORT      4045

struct reliers;

struct reliers_counts {
    uint64_t grants, callbacks, cancels, unlocks, reclaims, told;
};

/* They ask NODES_SERVICE, port RELIERS_PORT. NULL: no memory, or no sockets. */
struct reliers *reliers_new(uint64_t seed);
void reliers_free(struct reliers *reliers);

/* What is due is done, what has arrived is heard, for at most so long. */
void reliers_turn(struct reliers *reliers, uint32_t timeout_ms);
/* From now on they give back what they have and want nothing new. */
void reliers_leave(struct reliers *reliers);
bool reliers_are_idle(const struct reliers *reliers);
/* All of a file, asked for by the first process when nobody else has anything: true when it got
 * it, and has given it back, within the time. */
bool reliers_take_all(struct reliers *reliers, uint32_t file, uint64_t patience_ns);

/* Something that the others did, for the history. */
__attribute__((format(printf, 2, 3))) void reliers_note(struct reliers *reliers, const char *format,
                                                        ...);
/* So far: two that relied on the same, or a reclaim that was refused. */
uint32_t reliers_failures(const struct reliers *reliers);
void reliers_print_history(const struct reliers *reliers);
struct reliers_counts reliers_counts(const struct reliers *reliers);

#endif
