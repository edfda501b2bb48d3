/*
 * postgres_fence.h -- who may write to a shared database, and how a replaced server finds out.
 *
 * Two things, for two purposes:
 *
 *   the lock    an advisory lock of the session. It says who is active, ends with the session, and
 *               is what a standby waits for. It protects nothing by itself: a session can end
 *               without its owner noticing.
 *   the epoch   in the row of table server. A server that takes over raises it before
 *               reading anything, and every batch checks it. It is what protects.
 *
 * A server whose connection was cut takes the lock again before it commits again. It may find it
 * held by what PostgreSQL still has of its own old session, which it ends; or by another server,
 * and then it was replaced.
 */
#ifndef STORE_POSTGRES_FENCE_H
#define STORE_POSTGRES_FENCE_H

#include "store/postgres_session.h"

/*
 * The keys of advisory locks. Without a group: the number that reads "holdfast". Of a group, two
 * numbers: one of these words and the number of its schema; who waits without a group has 0 there,
 * which no schema has.
 */
#define POSTGRES_FENCE_HOLD "1752132708" /* "hold", 0x686f6c64: is active */
#define POSTGRES_FENCE_FAST "1717662580" /* "fast", 0x66617374 */
#define POSTGRES_FENCE_WAIT "2002872692" /* "wait", 0x77616974, shared: stands by */

enum postgres_lock {
    POSTGRES_LOCK_TAKEN,
    POSTGRES_LOCK_OTHERS, /* another session holds it; the session's error says which */
    POSTGRES_LOCK_ABSENT, /* the group has no schema; the session's error names it */
    POSTGRES_LOCK_FAILED, /* the session's error says why */
};

/* One try. A left-over session of this process is ended, and waited for until the deadline. */
enum postgres_lock postgres_fence_lock(struct postgres_session *session, uint64_t deadline_ns);

/* Shows that this session stands by for the lock, until it ends or says that it no longer does. */
enum postgres_outcome postgres_fence_wait(struct postgres_session *session, uint64_t deadline_ns);
enum postgres_outcome postgres_fence_wait_no_more(struct postgres_session *session,
                                                  uint64_t deadline_ns);

struct postgres_fence {
    uint64_t epoch, txn;
};

/* The numbers as they are now; waits for a commit that is in progress. It locks the row, which is a
 * change to PostgreSQL: what it saw is as durable, here and on a replica, as if written now. */
enum postgres_outcome postgres_fence_read(struct postgres_session *session, uint64_t deadline_ns,
                                          struct postgres_fence *ret);
/* The same, without waiting for anything: whatever another server has committed is seen. */
enum postgres_outcome postgres_fence_look(struct postgres_session *session, uint64_t deadline_ns,
                                          struct postgres_fence *ret);
/* The next epoch, durable when this returns, and with it where clients find its server; NULL: it is
 * no server's. */
enum postgres_outcome postgres_fence_raise(struct postgres_session *session, const char *address,
                                           uint64_t deadline_ns, struct postgres_fence *ret);

/* Batches count from 1 again, in this epoch; for a server without a record of how far they were. */
enum postgres_outcome postgres_fence_restart(struct postgres_session *session, uint64_t deadline_ns,
                                             struct postgres_fence *fence);

#endif
