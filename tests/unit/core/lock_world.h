/*
 * lock_world.h -- the lock table alone: clients that do nothing, and waiters that only listen.
 *
 * The functions of client.c, waiter.c, grant.c and recover.c that the lock table calls are defined
 * here, so that a test sees each call. There is no core_step; a test calls the lock table directly
 * and says which client, process and file it means by small numbers.
 */
#ifndef UNIT_CORE_LOCK_WORLD_H
#define UNIT_CORE_LOCK_WORLD_H

#include "core/state.h"

enum {
    LOCK_WORLD_FILES_MAX = 4,
    LOCK_WORLD_LOST_MAX = 64,
};

/* What the lock table said since lock_world_forget. */
struct lock_world_log {
    uint32_t changed_count, holds_count, settled_count, lost_count, refused_count;
    uint32_t changed[1024]; /* slots, in order; more are only counted */
    uint32_t holds[64];     /* owners */
    uint32_t lost[LOCK_WORLD_LOST_MAX];
    uint32_t refused[LOCK_WORLD_LOST_MAX]; /* slots of damaged records */
};
extern struct lock_world_log lock_world_log;
void lock_world_forget(void);
bool lock_world_was_changed(uint32_t slot);
bool lock_world_was_lost(uint32_t waiter);

/* A lock table of this many slots for clients 0 .. clients - 1, each in its first incarnation. */
struct core *lock_world_new(uint32_t clients, uint32_t slots_max, const struct core_limits *limits);
void lock_world_free(struct core *core);
extern const struct core_limits lock_world_limits;

/* Who and what a test talks of. */
struct who {
    uint32_t client, svid, file;
};

/* What this owner has or wants there; owner and file are SLOT_NONE when they are not known. */
struct claim lock_world_claim(const struct core *core, struct who who, uint64_t start, uint64_t end,
                              bool exclusive);
/* "s" or "x", any range; the state is 1 and oh is "oh" unless the test sets them. */
struct lock_want lock_world_want(uint64_t start, uint64_t end, bool exclusive);
/* Owner and file exist for the want while it is carried out; afterwards only if something is on
 * them. */
bool lock_world_take(struct core *core, struct who who, uint64_t start, uint64_t end,
                     bool exclusive);
bool lock_world_carry_out(struct core *core, struct who who, struct lock_want *want);
uint32_t lock_world_offer(struct core *core, struct who who, struct lock_want *want,
                          uint32_t waiter);
bool lock_world_release(struct core *core, struct who who, uint64_t start, uint64_t end);

/* SLOT_NONE: not known. */
uint32_t lock_world_owner(const struct core *core, struct who who);
uint32_t lock_world_file(const struct core *core, uint32_t file);
struct bytes lock_world_handle(uint32_t file);

/* The first obstacle of that owner, or of nobody known; SLOT_NONE: none. */
uint32_t lock_world_obstacle(const struct core *core, struct who who, uint64_t start, uint64_t end,
                             bool exclusive);

/* The locks that an owner holds, as "s 0-9, x 12-end"; offers are not shown. */
const char *lock_world_held(const struct core *core, struct who who);

/* lock_check, owner_check and file_check. */
void lock_world_check(const struct core *core);

#endif
