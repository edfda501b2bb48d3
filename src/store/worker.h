/*
 * worker.h -- the store thread: it commits one batch at a time while the server works on.
 *
 * The server thread hands over a batch and continues to fill the next one; the worker calls the
 * back end and posts the outcome through a callback that runs on the worker's thread and may only
 * wake the server's loop. Between batches it tends the store, and makes a copy of it if asked to:
 * in small steps, with rests between them while there are batches to commit. This hand-off holds
 * the only mutex that locks depend on.
 *
 * All functions here belong to the server thread.
 */
#ifndef STORE_WORKER_H
#define STORE_WORKER_H

#include "store/copy.h"

struct worker;

/* Runs on the store thread whenever worker_poll has news or another has_room. */
typedef void (*worker_wake_fn)(void *context);

enum worker_news {
    WORKER_NOTHING,
    WORKER_COMMITTED, /* the batch handed over last is durable */
    WORKER_FAILED,    /* it is not known to be: stop the server; failure is filled */
};

struct worker_report {
    enum worker_news news;
    uint64_t txn;
    bool has_room;       /* valid with every report */
    bool has_copied;     /* who waits for bytes of the copy, or for its end, can go on */
    uint64_t checked_ns; /* of a shared store, see store_checked_ns */
    /* How long the commit took: the thread ran, and it waited for the disk, the database, or a
     * processor. The back ends cannot tell writing from syncing, which one call does; this can. */
    uint64_t write_ns, sync_ns;
    struct store_failure failure;
};

/* Starts the thread; the worker owns the store from here on. NULL: no thread could be started, and
 * the store is still the caller's. */
struct worker *worker_new(struct store *store, worker_wake_fn wake, void *context);

/* True while a batch is out: no other may be handed over. */
bool worker_is_busy(const struct worker *worker);

/* The memory behind the batch belongs to the worker until its outcome was polled. Not allowed while
 * busy, nor after WORKER_FAILED. */
void worker_commit(struct worker *worker, const struct store_batch *batch);

/* Takes the news, if any. has_room is always filled. */
void worker_poll(struct worker *worker, struct worker_report *ret);

/* Begins to copy the store; the worker is its second holder until the copy is over. False: another
 * one is being made, the store cannot be walked, or has failed. */
bool worker_copy(struct worker *worker, struct copy *copy);
/* A copy wants to go on (copy_is_wanting), or is not wanted any more. */
void worker_copy_on(struct worker *worker);

/*
 * Waits at most `patience_ns` for the batch that is out, then ends the thread and closes the store;
 * the wake function may still run until this returns. False: the commit (or the closing) did not
 * end in time; the thread still runs, and the process must _exit or call this again.
 */
bool worker_free(struct worker *worker, uint64_t patience_ns);

#endif
