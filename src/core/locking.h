/*
 * locking.h -- the lock procedures: what TEST, LOCK, UNLOCK, CANCEL, SHARE and the rest decide.
 *
 * The tables (lock.h, waiter.h, share.h, client.h) know what is; here is what is done about it, in
 * the order of the protocol's rules.
 */
#ifndef CORE_LOCKING_H
#define CORE_LOCKING_H

#include "core/message.h"

struct core;

/* Any REQUEST_NLM_*; fills status and holder. */
void locking_answer(struct core *core, const struct peer *from, const struct request *request,
                    struct response *ret);

/* For locking_share.c: the client that asks; SLOT_NONE: not known. It calls: it is alive (D5). */
uint32_t locking_find_client(struct core *core, const struct peer *from, struct bytes name);
/* A reclaim ended like this. `is_news`: nobody has confirmed that before, or not all of it. */
void locking_note_reclaim(struct core *core, const struct peer *from, const struct lock_request *r,
                          enum lock_status status, bool is_news);
/* locking_share.c. */
enum lock_status locking_share(struct core *core, const struct peer *from,
                               const struct lock_request *r);
void locking_unshare(struct core *core, const struct peer *from, const struct lock_request *r);

#endif
