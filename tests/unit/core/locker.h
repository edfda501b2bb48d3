/*
 * locker.h -- clients that lock, in a few words each: `lock(A, 0, 10, X | BLOCK)`.
 *
 * A locker is a process of a client. All of them use file "f" of a core made by locker_new, whose
 * batches are stored and whose work is done after every step, so that a test reads like what
 * happens. Where a test needs the moments in between it uses the core itself.
 */
#ifndef UNIT_CORE_LOCKER_H
#define UNIT_CORE_LOCKER_H

#include "fixture.h"

struct locker {
    const char *address, *name;
    uint32_t svid;
};

extern const struct locker A, B, C, D;
extern const struct locker A2;        /* another process of A's client */
extern const struct locker ELSEWHERE; /* A's name and svid from another address */
extern const struct locker NEIGHBOUR; /* another host behind A's address */

enum { S = 0, X = 1, BLOCK = 2, RECLAIM = 4, UNMONITORED = 8, MESSAGE = 16 };

/* A new core, in the place of the one before. */
void locker_new(const struct core_limits *limits);
void locker_done(void);
extern struct core *the_core;

/* For TEST_MAIN: a core with fixture_limits, and its end. */
int locker_set_up(void **state);
int locker_tear_down(void **state);

/* kill -9 and a start on what was stored, up to readiness; `restart_unready` stops before that. */
void restart(void);
void restart_unready(void);
void restart_with(const struct core_limits *limits); /* and from then on */

/* The request of a locker about [offset, offset + len); len 0: to the end. */
struct request locker_request(enum request_kind kind, struct locker who, uint64_t offset,
                              uint64_t len, int how);
struct response locker_step(struct locker who, const struct request *request);
/* The same, and nothing of what follows. */
enum lock_status step_only(enum request_kind kind, struct locker who, uint64_t offset, uint64_t len,
                           int how);

enum lock_status lock(struct locker who, uint64_t offset, uint64_t len, int how);
enum lock_status unlock(struct locker who, uint64_t offset, uint64_t len);
enum lock_status cancel(struct locker who, uint64_t offset, uint64_t len, int how);
enum lock_status test(struct locker who, uint64_t offset, uint64_t len, int how);
void free_all(struct locker who);

/*
 * All that as stories tell it (docs/TESTING.md), separated by semicolons; the test fails where it
 * goes another way: tell("A lock 0 10 X -> granted; B lock 3 end X wait -> blocked").
 *
 * A, A2, B, C, D, E for ELSEWHERE and N for NEIGHBOUR; behind the mode: wait, reclaim,
 * unmonitored, message, and state 5. "server restarts", "90 s pass", "grace is on", "grace is
 * over"; "there are 2 locks", waiters, offers, clients, crashes; "A frees all", "A share r deny w
 * -> granted", "A unshare". "A notifies 5 as web1 -> news", or nothing (notify); "A is asked and
 * says 7", "nobody is asked"; "B is called and says granted", "nobody is called"; "A has locks",
 * "A has no locks", "A has 2 shares"; "A is known in state 5".
 */
void tell(const char *story);

/* SHARE and UNSHARE of the file, by a client as a whole. */
enum lock_status share(struct locker who, uint32_t mode, uint32_t access, int how);
void unshare_file(struct locker who);

/* Are status monitors calibrated (R-SEC-4) as soon as their clients have told a state? True, unless
 * a test says otherwise; locker_new says so again. */
extern bool are_calibrated;

/* Stores what is open and does the work there is, until there is none. */
void settle(void);

/* The callback that leaves now; the test fails when there is none, or it is not for this locker. */
struct core_call granted(struct locker who);
bool nobody_called(void);
void answered(struct core_call call, enum lock_status status);
void failed(struct core_call call, enum core_call_outcome outcome);
void granted_res(struct locker who, uint64_t cookie, enum lock_status status);

#endif
