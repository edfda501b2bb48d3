/*
 * postgres_batch.h -- one batch, one transaction, one round trip.
 */
#ifndef STORE_POSTGRES_BATCH_H
#define STORE_POSTGRES_BATCH_H

#include "store/postgres_session.h"

struct postgres_batch;

/* NULL: no memory. */
struct postgres_batch *postgres_batch_new(void);
void postgres_batch_free(struct postgres_batch *batch);

/* Takes in the changes of a batch, for as many attempts as it needs. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int postgres_batch_fill(struct postgres_batch *batch,
                                                            const struct store_batch *from);

/* After each connect: tells PostgreSQL the statements. */
enum postgres_outcome postgres_batch_prepare(struct postgres_session *session,
                                             uint64_t deadline_ns);

/*
 * One attempt. The transaction changes the server's row from `epoch` to `next_epoch` and from the
 * number before to this one, or nothing at all: POSTGRES_REFUSED with state "HF076".
 */
enum postgres_outcome postgres_batch_send(const struct postgres_batch *batch,
                                          struct postgres_session *session, uint64_t epoch,
                                          uint64_t next_epoch, uint64_t deadline_ns);

#endif
