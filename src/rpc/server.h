/*
 * server.h -- the RPC server without sockets: messages in, messages out.
 *
 * It finds the program, version and procedure of a call, decodes, asks the duplicate request cache,
 * steps the core, and keeps the encoded answer in the outbox until the transaction it depends on is
 * durable (P1). The simulator and the daemon run this same code; only what carries the bytes
 * differs.
 *
 * An answer that observes no state (NULL, every RPC-level error) is returned at once: a stalled
 * store must not look like a dead server.
 *
 * Messages (the _MSG procedures of NLM) are acknowledged at once with a void; that says only that
 * they arrived. Their result passes the gate like any answer and leaves as a call of ours, once:
 *
 *   over UDP   from the socket and the address that the message was sent to, back to where it came
 *              from: clients connect their sockets to us. And, because others listen only where
 *              their portmapper says, through the client to that port if it is another one.
 *   over TCP   through the client, over a connection of its own.
 *
 * Replies that arrive where we listen over UDP belong to calls that left from there; the client
 * gets them.
 *
 * An answer may have to wait for something else than the store (ANSWER_LATER, decision 020): it is
 * kept beside the outbox until the core says that its time has come.
 *
 * Memory is fixed at start. When the outbox is full a gated call is not taken (RPC_BUSY): the wire
 * leaves it in the connection and asks again later, or drops the datagram. That is the
 * back-pressure.
 */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include "core/core.h"
#include "proto/job.h"
#include "proto/program.h"
#include "rpc/client.h"

struct rpc_server;
struct guard;
struct meter;
struct network;

struct rpc_server_limits {
    uint32_t outbox_max;          /* answers that may wait for the store */
    uint32_t cache_max;           /* entries of the duplicate request cache */
    bool require_privileged_port; /* R-SEC-7 */
    bool trusts_registrations;    /* those of NSM are of this machine, and each is a new call: who
                                     counts its xids from 1 on every connection is no repeat */
    const struct lease *lease;    /* of a shared store repeated answers wait for a commit, too (see
                                     core_fence); NULL: the store is ours alone */
    /* Messages over UDP from one address: so many, and so many more each second (R-SEC-6); 0 per
     * second: no limit. */
    uint32_t messages_burst, messages_per_second;
    bool is_metered;   /* calls are counted and timed; see rpc_server_meter */
    uint32_t away_max; /* calls that may be executed elsewhere at a time; 0: there are none */
};

/* A caller, and the wire's own word for the way back: a connection, or a UDP socket. */
struct rpc_source {
    struct peer peer;
    uint64_t route;
    bool has_files; /* it came where files are served: programs that are `is_away` answer */
};

enum rpc_verdict {
    RPC_ANSWERED,     /* the answer is in *reply: send it now */
    RPC_WAITING,      /* it comes out of rpc_server_next when it is durable */
    RPC_ACKNOWLEDGED, /* both: *reply is the void for a message, its result comes out later */
    RPC_NO_ANSWER,    /* there is none: not a call, or a repeat of a call in progress */
    RPC_BUSY,         /* not taken: the outbox is full */
};

/* An answer whose time has come. Valid until the next call into the server. */
struct rpc_reply {
    uint64_t route; /* the way back, as in rpc_source */
    enum transport transport;
    /* Who gets it: over UDP, and the result of a message. NULL for answers over TCP: a connection
     * knows who is at its other end. */
    const struct peer *peer;
    uint64_t taken_by;    /* the route whose call this ends, also when it was repeated elsewhere */
    struct bytes message; /* empty: nothing leaves this way, the client carries it */
    bool is_call;         /* the result of a message, not an answer */
};

/* The reply to a call that was executed elsewhere (rpc/away.h). The bytes are the job's: they stay
 * until it is released, and four more in front of them may be written, for a record mark. Where
 * the job has a pipe, what is in there belongs behind the first `before_pipe` of them. */
struct rpc_finished {
    struct rpc_source to;
    uint64_t taken_by;
    uint8_t *message;
    uint32_t len, before_pipe;
    uint32_t weight; /* what rpc_server_weight said when it was taken */
    struct job *job;
};

/* Programs and core are borrowed. NULL when memory cannot be reserved. */
struct rpc_server *rpc_server_new(const struct rpc_server_limits *limits,
                                  const struct program *const *programs, uint32_t program_count,
                                  struct core *core, uint64_t seed);
void rpc_server_free(struct rpc_server *server);

/* Who makes calls for the server and gets the replies to them, and forgets the ports of a host that
 * is found to have rebooted (D7). Borrowed; NULL, as at first: nobody, and results of
 * messages leave only over UDP. */
void rpc_server_set_client(struct rpc_server *server, struct rpc_client *client);

/* Who executes the calls of programs that are `is_away`, before the first arrives. Borrowed. */
void rpc_server_set_desk(struct rpc_server *server, const struct job_desk *desk);

/* Who says which files may be locked by whom; NULL, as at first: the core alone. Borrowed. */
void rpc_server_set_guard(struct rpc_server *server, const struct guard *guard);
/* --allow: who may lock at all, from now on; none: everybody. Borrowed. */
void rpc_server_set_allowed(struct rpc_server *server, const struct network *networks,
                            uint32_t count);

/* The largest call, where files are served and elsewhere, and the largest reply of any program that
 * is not executed elsewhere: sizes for the wire's buffers. */
uint32_t rpc_server_record_max(const struct rpc_server *server, bool has_files);
uint32_t rpc_server_reply_max(const struct rpc_server *server);

/* core_step and core_work, for everybody who has a server: what was cached of hosts that they find
 * to have restarted goes, answers here and ports with the client (core_next_restarted). */
void rpc_server_step(struct rpc_server *server, const struct core_input *input,
                     struct core_answer *ret);
void rpc_server_work(struct rpc_server *server, uint64_t now_ns, uint64_t wall_ns);

/* A message of `len` bytes that begins with `start`: may what is missing come through a pipe? NULL:
 * no, or there is none. Otherwise *ret_data_at says where the data begins. */
struct job_inlet *rpc_server_open_inlet(struct rpc_server *server, const struct rpc_source *from,
                                        struct bytes start, uint32_t len, uint32_t *ret_data_at);
/* One that no call has taken. */
void rpc_server_close_inlet(struct rpc_server *server, struct job_inlet *inlet);
/* What the next message lies in, which a desk may keep if it is a call elsewhere: then another
 * piece, or nothing, is in its place when rpc_server_receive returns (proto/job.h). With an inlet,
 * which was opened for it, the end of the message lies there. */
void rpc_server_lend(struct rpc_server *server, struct job_memory *memory);
/* One whole message. `reply` has room for rpc_server_reply_max bytes. */
enum rpc_verdict rpc_server_receive(struct rpc_server *server, const struct rpc_source *from,
                                    struct bytes message, uint64_t now_ns, uint64_t wall_ns,
                                    struct xdr_out *reply);

/* Everything up to txn is durable: steps the core and opens the gate that far. */
void rpc_server_stored(struct rpc_server *server, uint64_t txn, bool has_room, uint64_t now_ns,
                       uint64_t wall_ns);

/* The next answer that may leave, oldest first. False: none. */
bool rpc_server_next(struct rpc_server *server, uint64_t now_ns, struct rpc_reply *ret);

/* The next reply that was made elsewhere, to be released when its bytes are not needed any more.
 * False: none now. */
bool rpc_server_next_job(struct rpc_server *server, uint64_t now_ns, struct rpc_finished *ret);
void rpc_server_release_job(struct rpc_server *server, struct job *job);
/* The memory, about, that the last call of rpc_server_receive needs elsewhere; 0 if it did not go
 * there. */
uint32_t rpc_server_weight(const struct rpc_server *server);
/* How much of such memory is left for everybody. */
uint64_t rpc_server_room(const struct rpc_server *server);

/* Answers waiting for the store, or made elsewhere. */
uint32_t rpc_server_waiting(const struct rpc_server *server);
/* True while every call that observes state would be refused as busy. */
bool rpc_server_is_busy(const struct rpc_server *server);

/* Counts and durations of calls; NULL: the limits ask for none. */
const struct meter *rpc_server_meter(const struct rpc_server *server);
/* Of the limits. */
const struct lease *rpc_server_lease(const struct rpc_server *server);

/* Something that the wire saw a peer do, for the operator. */
void rpc_server_report(struct rpc_server *server, enum event_kind kind, const struct address *from);

/* For tests and the simulator: abort on a broken invariant here, in the cache or in the core. */
void rpc_server_check(const struct rpc_server *server);

#endif
