/*
 * away.h -- calls that are executed elsewhere (proto/job.h), from the desk's submit to the reply.
 *
 * A call of a program that is `is_away` gets a slot, which remembers where its answer goes, and is
 * submitted. Its job comes back at once or later; either way its reply leaves at the end of a turn,
 * through rpc_server_next_job. The slot's handle is the job's token.
 *
 * Calls that must not be executed twice have a duplicate request cache of their own. A call is
 * known by its client's address, xid, procedure, credential and a checksum of its arguments. A
 * repeat of one that is in flight redirects its answer; of one that is done it gets the same bytes
 * again. The port is no part of the key, because a client that lost its connection may come back
 * from another one. But a program that was restarted may use its xids again: from another port, an
 * answer counts only as long as its client has changed nothing else under the same name since.
 */
#ifndef RPC_AWAY_H
#define RPC_AWAY_H

#include "proto/job.h"
#include "rpc/incoming.h"

struct away;

/* At most so many calls elsewhere at a time. NULL: no memory. */
struct away *away_new(uint32_t calls_max, uint64_t seed);
void away_free(struct away *away);
void away_set_desk(struct away *away, const struct job_desk *desk);

/* See rpc_server_lend. */
void away_lend(struct away *away, struct job_memory *memory);
/* A message arrives, of whichever program: no call has been taken of it yet. */
void away_listen(struct away *away);
/* A call whose row is found: RPC_WAITING, RPC_ANSWERED, RPC_NO_ANSWER or RPC_BUSY. */
enum rpc_verdict away_take(struct rpc_server *server, const struct incoming *in);

/* A host restarted; NULL: we act as if we had. */
void away_forget(struct away *away, const struct address *host);

uint32_t away_count(const struct away *away);
void away_check(const struct away *away);

#endif
