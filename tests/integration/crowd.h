/*
 * crowd.h -- processes on many client hosts that lock, wait, unlock and give up for ever, and what
 * they know when the server dies.
 *
 * Each host has an address, a link to the server, and services that the server calls (callees.h).
 * Its processes have the same numbers on every host. Two sorts:
 *
 *   takers   keep up to three ranges of large files and ask without waiting
 *   waiters  want one range of a small, crowded file at a time, and wait for it
 *
 *            LOCK: BLOCKED          GRANTED, by an answer or a callback
 *   NOTHING -> ASKS -----> WAITS ------------------------------------> relies on it
 *      ^        |  \_________|_________________________________________/    |
 *      +--------+--CANCEL, UNLOCK---+---------------------------- UNLOCK ---+
 *
 * A process has one call in flight, and relies on what it has until it sends UNLOCK of it; a part
 * is often unlocked before the rest. Who relies on what is in reliance.h, which judges every grant.
 *
 * The server dies at any moment (crowd_recovery.h): everything in flight is then sent again, every
 * host that is told reclaims its locks one after another, and waiting clients keep waiting.
 */
#ifndef INTEGRATION_CROWD_H
#define INTEGRATION_CROWD_H

#include "callees.h"
#include "harness.h"
#include "lock_call.h"
#include "peer/load.h"
#include "reliance.h"

#define CROWD_HOSTS         120
#define CROWD_TAKERS        8 /* per host */
#define CROWD_WAITERS       3 /* per host */
#define CROWD_PER_HOST      (CROWD_TAKERS + CROWD_WAITERS)
#define CROWD_PROCESSES     (CROWD_HOSTS * CROWD_PER_HOST)
#define CROWD_FIRST_ADDRESS UINT32_C(0x7f070001) /* 127.7.0.1 */
#define CROWD_FILES         72
#define CROWD_NSM_STATE     3
#define CROWD_COOKIE_MAX    32
#define CROWD_MS            UINT64_C(1000000)

enum crowd_want { CROWD_WANTS_NOTHING, CROWD_ASKS, CROWD_WAITS };

struct crowd_process {
    enum crowd_want want;
    struct reliance_range wanted;

    /* The call in flight, NULL when there is none, and the bytes that it names. `again`: an UNLOCK
     * or CANCEL whose answer died with the server. */
    enum peer_nlm_procedure pending, again;
    struct reliance_range named;
    uint64_t posted_ns, due_ns; /* when it was sent; when the process does something next */

    bool gives_up;     /* does not want to wait any more */
    bool is_cancelled; /* CANCEL was answered DENIED: it is unlocked (what Linux does) */
    bool has_waited;   /* since before the crash */
    bool is_patient;   /* has waited since before the crash, and does not ask again */

    uint32_t cookie_len; /* of the last GRANTED that it took */
    uint8_t cookie[CROWD_COOKIE_MAX];
};

struct crowd_host {
    bool relied;   /* on something, when the server died */
    bool is_told;  /* of the restart */
    uint32_t told; /* the largest state that it was told ever */
    bool is_reclaiming;
    uint32_t reclaimer; /* the process whose lock that is */
    struct reliance_range reclaimed;
};

/* Since crowd_count_anew. */
struct crowd_counts {
    uint64_t grants;           /* acknowledged, by an answer or a callback */
    uint64_t callbacks, polls; /* of those: grants to waiting processes, in either way */
    uint64_t unlocks, gave_up;
};

struct crowd {
    uint64_t seed;
    struct load *load; /* NULL: the server is dead */
    struct callees *callees;
    struct reliance *reliance;
    struct crowd_process processes[CROWD_PROCESSES];
    struct crowd_host hosts[CROWD_HOSTS];
    struct crowd_counts counts;
    /* A GRANTED has just been read. */
    void (*granted)(void *context);
    void *context;
    bool is_over;    /* nobody sends anything any more */
    bool is_leaving; /* processes give back what they have and want nothing new */

    /* Of the run of the server; crowd_recovery.c. */
    bool must_reclaim; /* this run has grace, and tells everybody */
    uint32_t state;
    uint64_t ready_ns, open_ns; /* when a new lock was not answered "in grace" for the first time */
    uint32_t reclaims;
};

/* False: no memory, or no sockets. */
bool crowd_init(struct crowd *crowd, uint64_t seed);
void crowd_done(struct crowd *crowd);
/* A link for every host. False: one could not be had. */
bool crowd_connect(struct crowd *crowd, const struct harness_server *server);
void crowd_disconnect(struct crowd *crowd);

/* Everybody who is due does something, and what has arrived is handled. How much did. */
uint32_t crowd_turn(struct crowd *crowd, uint32_t timeout_ms);
void crowd_count_anew(struct crowd *crowd);

uint32_t crowd_waiting(const struct crowd *crowd);
/* Those of them who have waited since before the crash. */
uint32_t crowd_left_waiting(const struct crowd *crowd);
/* Those of them who do not ask again. */
uint32_t crowd_patient(const struct crowd *crowd);
/* Ranges that are relied on. */
uint32_t crowd_relied(const struct crowd *crowd);
/* Nobody relies on anything or waits, and nothing is in flight. */
bool crowd_is_idle(const struct crowd *crowd);

/* For crowd_recovery.c: the call of a process, and how it is known in messages. */
struct lock_call crowd_call(uint32_t process, enum peer_nlm_procedure procedure,
                            const struct reliance_range *range);
const char *crowd_name(uint32_t process);

#endif
