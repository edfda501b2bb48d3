/*
 * watched_fixture.h -- a status monitor in virtual time, its store, and the lock manager that
 * registers hosts with it; over restarts of the process and reboots of the machine.
 */
#ifndef UNIT_CORE_WATCHED_FIXTURE_H
#define UNIT_CORE_WATCHED_FIXTURE_H

#include "core/state.h"
#include "fixture.h"

#define SECOND FIXTURE_SECOND

extern struct core *the_monitor;
extern struct core_limits limits; /* of the next start */
extern uint8_t boot;              /* which one this is */

/* A first start, with the NFS server up; the end. */
void begin(void);
void end(void);
/* The process starts anew from what is durable; so does the machine. */
void restart(void);
void reboot(void);
void input(enum core_input_kind kind);
void set_locals(const char *const *texts);
/* What is to be stored is. */
void store(void);
/* A record; its length is 0: there is none. */
struct bytes stored(enum record_kind kind, uint32_t slot);

/* The lock manager of this machine. */
struct core_answer mon(const char *mon_name, const char *my_name, uint8_t priv);
void unmon(const char *mon_name, const char *my_name);
/* SM_NOTIFY. */
void notice(const char *from, const char *name, uint32_t state);

/* The call that leaves now; none does; how it ended. */
struct core_call next(enum core_call_kind kind, const char *to);
void assert_quiet(void);
void done(const struct core_call *call, bool is_answered);
/* It is this upcall, and it is answered. */
void assert_upcall(const char *mon_name, uint32_t state, uint8_t priv);
/* It speaks of us under that name. */
bool has_name(const struct core_call *call, const char *name);

#endif
