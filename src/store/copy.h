/*
 * copy.h -- a copy of the store as of one batch, made while the server serves.
 *
 *   store thread: snapshot -> lines ->  queue  -> server thread: bytes for who asked
 *
 * Lines are those of lines.h; the last one proves that nothing is missing, or says why the copy
 * broke off.
 *
 * The queue is short, and filled only while there is nothing more urgent: a step takes a fraction
 * of a millisecond, and one who reads slowly makes the copy slow, never a commit. What a batch is
 * about to change must be copied at once (snapshot.h): that may make the queue long, up to a limit
 * at which the copy breaks off.
 *
 * A copy has two holders, the worker and who asked for it. It ends with the second of them.
 */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include "store/store.h"

#include <sys/types.h>

struct copy;

/* NULL: no memory. Held once. */
struct copy *copy_new(void);

/* ---- the server thread ---- */

enum {
    COPY_WHOLE = -1, /* that was all of it */
    COPY_CUT = -2,   /* it broke off; the last line said why */
};

/* Takes up to `max` bytes; how many; 0: none yet, and worker_report.has_copied says when. */
ssize_t copy_take(struct copy *copy, char *buffer, size_t max);
/* Would the worker go on with it now? Then it must be told (worker_copy_on) after copy_take. */
bool copy_is_wanting(struct copy *copy);
/* Why it broke off. */
#define COPY_WHY_MAX 600
void copy_get_why(struct copy *copy, char ret[static COPY_WHY_MAX]);
/* Records, so far. */
uint64_t copy_count(struct copy *copy);
/* Who asked does not want it any more. The worker must be told, if it has it: false says it has
 * not. Ends this hold. */
bool copy_cancel(struct copy *copy);

/* ---- the worker's thread ---- */

/* One more holder. */
void copy_hold(struct copy *copy);
/* Copies for a moment. True: it is over, for better or worse. */
bool copy_step(struct copy *copy, struct store *store);
/* Before a batch is committed. */
void copy_keep(struct copy *copy, struct store *store, const struct store_batch *batch);
/* True, once: somebody waits for bytes, and there are some, or the end. */
bool copy_has_news(struct copy *copy);
/* Ends the worker's hold. A copy that is not over breaks off with this sentence. True: as above. */
bool copy_leave(struct copy *copy, const char *why);

#endif
