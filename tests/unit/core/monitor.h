/*
 * monitor.h -- clients' status monitors, played by hand: the notices they send, and what they
 * answer when they are asked for their state. Uses the core of locker.h.
 */
#ifndef UNIT_CORE_MONITOR_H
#define UNIT_CORE_MONITOR_H

#include "lock_fixture.h"
#include "locker.h"

/* LOCK of the byte at `offset` by a client in this state. */
enum lock_status lock_in(uint32_t client_state, struct locker who, uint64_t offset, int how);
/* The same of `count` bytes, every second one; without core_check, which looks at all of them. All
 * of them are granted. */
void lock_many(struct core *core, uint32_t client_state, struct locker who, uint64_t offset,
               uint32_t count);

/* SM_NOTIFY from where this locker is. True: the caller was said to have rebooted. */
bool notify(struct locker from, const char *name, uint32_t client_state);

struct client *client_of(struct locker who);
bool has_locks(struct locker who);

/* The question to this client's status monitor that leaves now; other calls are passed over. */
struct core_call asked(struct locker who);
bool nobody_asked(void);
/* The answer to it; 0: there is none. */
void says(struct core_call call, uint32_t client_state);

/* How many events of that kind there were; all events are dropped. */
uint32_t events_of(enum event_kind kind);

#endif
