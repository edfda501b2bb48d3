/*
 * permit.h -- who may lock at all (--allow), and who may lock this file (proto/guard.h).
 *
 * Judged are the calls that want something: LOCK, NM_LOCK, TEST, SHARE. A refusal is written into
 * the request, and the core answers with it as with any other reason to refuse; so it is cached,
 * gated and counted as every answer is.
 */
#ifndef RPC_PERMIT_H
#define RPC_PERMIT_H

#include "rpc/incoming.h"

/* False: it is not known yet; the call must come again in another turn. */
bool permit_judge(struct rpc_server *server, struct incoming *in);

#endif
