/*
 * repeat.h -- calls that were seen before, and what becomes of them.
 */
#ifndef RPC_REPEAT_H
#define RPC_REPEAT_H

#include "rpc/incoming.h"

/* True: this call was seen, and what becomes of it is in *ret; *ret_key is its key either way. */
bool repeat_find(struct rpc_server *server, const struct incoming *in, struct drc_key *ret_key,
                 enum rpc_verdict *ret);
/* A new one: its entry in the cache, DRC_NONE when that is full. */
uint64_t repeat_begin(struct rpc_server *server, const struct incoming *in,
                      const struct drc_key *key);
/* Its FREE_ALL was executed: no answer from before is sent again. */
void repeat_forget_client(struct rpc_server *server, const struct address *host, struct bytes name);
/* An operator took locks from it: what it was answered before is not said again. */
void repeat_override_client(struct rpc_server *server, const struct address *host,
                            struct bytes name);

#endif
