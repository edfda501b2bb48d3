/*
 * lock_fixture.h -- a core as its parts see it, and a store that keeps what its batches say.
 *
 * Tests of clients, shares and locks call these parts directly, below core_step, and then look at
 * what a crash would leave: lock_fixture_restart() starts a new core on what was stored, so a
 * change that nobody marked dirty is a change that is lost.
 */
#ifndef UNIT_CORE_LOCK_FIXTURE_H
#define UNIT_CORE_LOCK_FIXTURE_H

#include "core/state.h"

#define LOCK_FIXTURE_WALL_NS UINT64_C(1700000000000000000)

extern const struct core_limits lock_fixture_limits;

/* A started core on an empty store, which is stored. */
struct core *lock_fixture_new(const struct core_limits *limits);
void lock_fixture_free(struct core *core);

/* Stores the open batch. Returns how many records it changed, without our own; *ret_must_sync may
 * be NULL. */
uint32_t lock_fixture_store(struct core *core, bool *ret_must_sync);
/* From the next batch on the store has no room for new records, or has again; lock_fixture_free
 * ends it. */
void lock_fixture_fill(bool full);
/* The stored value of a record; length 0: there is none. */
struct bytes lock_fixture_stored(enum record_kind kind, uint32_t slot);

/* From the next start on: for how long a server that was replaced may call; 0: it cannot. */
extern uint64_t lock_fixture_echo_ns;
/* kill -9: what is not stored is gone. The clock of the new core stands at `now_ns`. */
struct core *lock_fixture_restart(struct core *core, const struct core_limits *limits,
                                  uint64_t now_ns);

/* Time passes for both clocks. */
void lock_fixture_wait(struct core *core, uint64_t seconds);

/* Finds or makes the client, which must be possible. */
uint32_t lock_fixture_client(struct core *core, const char *address, const char *name);

struct lock_request lock_fixture_request(const char *fh, const char *oh);
enum lock_status lock_fixture_share(struct core *core, uint32_t client, const char *fh,
                                    const char *oh, uint32_t mode, uint32_t access);
/* One byte for one of its processes; nobody may be in the way. */
void lock_fixture_lock(struct core *core, uint32_t client, uint32_t svid, const char *fh,
                       uint64_t at);

/* Drops the events so far. */
void lock_fixture_forget_events(struct core *core);
/* The next event of this kind; those before it are dropped. False: none. */
bool lock_fixture_event(struct core *core, enum event_kind kind, struct event *ret);

#endif
