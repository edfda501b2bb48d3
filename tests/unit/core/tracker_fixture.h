/*
 * tracker_fixture.h -- a small core whose tracker is called directly, below core_step; what its
 * batches say is kept by lock_fixture.h, and new cores are started on it.
 */
#ifndef UNIT_CORE_TRACKER_FIXTURE_H
#define UNIT_CORE_TRACKER_FIXTURE_H

#include "fixture.h"
#include "lock_fixture.h"

#define SECOND FIXTURE_SECOND

extern struct core *core;
extern struct core_limits limits;

/* Cores are made by the hundred: small ones. */
struct core_limits small_limits(void);

int set_up(void **state);
int tear_down(void **state);
/* A new core with other limits. */
void begin_with(const struct core_limits *other);

void store(void);
/* kill -9; `away_s` later, by the wall clock, the next run is ready. */
void restart_after(int64_t away_s);
void wait_s(uint64_t seconds);

struct tracker_client client_of(const char *protocol, const char *key, const char *bytes);
/* Registers a client, which must be new. */
struct tracker_view add(const char *protocol, const char *key, const char *bytes);

#endif
