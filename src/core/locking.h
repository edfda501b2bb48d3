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

#endif
