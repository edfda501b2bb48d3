/*
 * fixture.h -- a core with ample limits, and the few things that tests do with one.
 */
#ifndef UNIT_CORE_FIXTURE_H
#define UNIT_CORE_FIXTURE_H

#include "core/core.h"

#define FIXTURE_SECOND UINT64_C(1000000000)

extern const struct core_limits fixture_limits;

struct address fixture_address(const char *text);
struct peer fixture_peer(const char *address, uint16_t port);

/* A started core on an empty store. */
struct core *fixture_new(const struct core_limits *limits);

/* core_check looks at all that is stored. Of little it does so after every step; of much so often
 * that a step costs the same. */
void fixture_check(const struct core *core);

struct core_answer fixture_step(struct core *core, const struct peer *from,
                                const struct request *request);

/* Names may be any C string; priv is `priv` repeated. */
struct core_answer fixture_mon(struct core *core, const char *from, const char *mon_name,
                               const char *my_name, uint8_t priv);
struct core_answer fixture_unmon(struct core *core, const char *from, const char *mon_name,
                                 const char *my_name);
struct core_answer fixture_unmon_all(struct core *core, const char *from, const char *my_name);
struct core_answer fixture_notify(struct core *core, const char *from, const char *mon_name,
                                  uint32_t state);
/* The name that the resolver is to be asked for has these addresses (NULL: it is unknown). False:
 * nothing is to be asked. */
bool fixture_resolve(struct core *core, const char *const *addresses);
/* SM_NOTIFY from the host of that name, as the resolver says. */
struct core_answer fixture_notify_named(struct core *core, const char *from, const char *mon_name,
                                        uint32_t state);
/* SM_NOTIFY; does a host count as restarted then? */
bool fixture_notify_restarts(struct core *core, const char *from, const char *mon_name,
                             uint32_t state);
struct core_answer fixture_stat(struct core *core, const char *mon_name);
struct core_answer fixture_simu_crash(struct core *core, const char *from, uint16_t port);

struct core_status fixture_status(const struct core *core);
/* Takes the open batch, if any, and reports it stored. Returns how many changes it had. */
uint32_t fixture_store(struct core *core);
void fixture_stored(struct core *core, uint64_t txn, bool has_room);

/* Time stands still unless a test lets it pass; fixture_new and fixture_reset set it to 0. */
void fixture_reset(void);
uint64_t fixture_now_ns(void);
void fixture_wait(uint64_t ns);

void fixture_ready(struct core *core);
bool fixture_next_call(struct core *core, struct core_call *ret);
void fixture_call_done(struct core *core, uint64_t id, bool is_answered, uint32_t answered_count);

#endif
