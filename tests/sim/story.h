/*
 * story.h -- what the stories of lockers are told with.
 *
 * A story runs in a world without faults in which processes do only what they are told. Five
 * lockers with two processes each: alpha and beta are Linux, gamma is macOS, delta is FreeBSD, the
 * last is Linux again; all speak version 4, over UDP unless a story says otherwise, can be called,
 * and reclaim when they are told of a restart. Grace is 20 s. The oracle watches as always.
 */
#ifndef SIM_STORY_H
#define SIM_STORY_H

#include "locker.h"
#include "operator.h"
#include "scenario.h"

enum who { ALPHA, BETA, GAMMA, DELTA, OTHER };

/* Everything is about the same bytes, unless said otherwise. */
extern const struct extent story_bytes;

/* A scenario of lockers; see scenario.h. */
#define STORY(name, about, allows) SCENARIO_RUN(name, about, allows, story_run)
void story_run(const struct scenario *scenario, bool verbose);
/* The same in parts: a world that is not booted yet, whose plan and lockers may be changed; up and
 * ready; judged and gone. */
struct world *story_new(const char *name, uint32_t allows, bool verbose);
void story_boot(struct world *world);
void story_end(struct world *world);

struct locker *story_locker(struct world *world, enum who who);
struct process *story_process(struct world *world, enum who who);
struct core_status story_status(const struct world *world);
/* These bytes of a file, exclusively. */
struct extent story_part(uint32_t file, uint64_t offset, uint64_t len);

void story_wait_ms(struct world *world, uint64_t ms);
/* Until so many milliseconds after the end of grace; before it, when negative. */
void story_wait_for_end(struct world *world, int64_t ms);

/* It sends that; nothing happens yet. */
void story_ask(struct world *world, enum who who, enum peer_nlm_procedure procedure,
               const struct extent *extent, bool block);
/* Asks about story_bytes and is answered. */
void story_do(struct world *world, enum who who, enum peer_nlm_procedure procedure, bool block);
/* LOCK that does not wait; LOCK(reclaim): what is answered. */
enum peer_nlm_status story_lock(struct world *world, enum who who, struct extent extent);
enum peer_nlm_status story_reclaim(struct world *world, enum who who, struct extent extent);
/* Does it rely on some of story_bytes, or on all of these? */
bool story_has(struct world *world, enum who who);
bool story_holds(struct world *world, enum who who, struct extent extent);
bool story_is_waiting(struct world *world, enum who who);
void story_take(struct world *world, enum who who);
void story_wait_for(struct world *world, enum who who);
void story_give_back(struct world *world, enum who who);

void story_be(struct world *world, enum who who, enum callee_mood mood);
/* Kill, start, ready. */
void story_restart(struct world *world);
/* SM_SIMU_CRASH from this machine (D6). */
void story_simulate_crash(struct world *world);
/* It knows our state. */
bool story_is_told(struct world *world, enum who who);

/* A call of a client that the oracle does not know, from "192.0.2.14" port 800 unless said
 * otherwise; exclusive, version 4. */
struct story_raw {
    enum peer_nlm_procedure procedure;
    const char *name, *from;
    uint32_t file, svid, state, xid; /* xid 0: the next one */
    uint32_t cookie_len;             /* 0: a short one */
    uint64_t offset, len;
    bool is_shared, block, reclaim;
    uint32_t wait_ms; /* after a turn of the server; 0: it is only sent */
};
void story_raw(struct world *world, const struct story_raw *call);

/* Raw bytes from an address; SM_NOTIFY from one, which is executed at once; an operator command. */
void story_send(struct world *world, const char *from, uint16_t port, const struct packet *packet);
void story_notice(struct world *world, const char *from, const char *name, uint32_t state);
enum order_result story_order(struct world *world, enum order_kind kind, enum who who,
                              const struct extent *extent);

#endif
