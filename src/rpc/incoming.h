/*
 * incoming.h -- the insides of the RPC server, and one call on its way through it. For server.c,
 * repeat.c, leaving.c and away.c; nobody else looks in here.
 */
#ifndef RPC_INCOMING_H
#define RPC_INCOMING_H

#include "base/network.h"
#include "codec/rpc_msg.h"
#include "rpc/drc.h"
#include "rpc/meter.h"
#include "rpc/outbox.h"
#include "rpc/rate.h"
#include "rpc/server.h"

/* Where an answer waits, as the cache knows it: in the outbox, or here, for its time to come. */
#define LATE_NUMBER (UINT64_C(1) << 63)

struct away;

/* One that waits for its time. */
struct late_answer {
    struct outbox_entry entry; /* as it will stand in the outbox */
    struct rpc_source to;
};

/* The name that was hashed last: the next call is mostly of the same client. */
struct hashed_name {
    uint8_t name[64]; /* longer ones, and none, are hashed each time */
    uint32_t len;
    uint64_t hash;
};

struct rpc_server {
    struct rpc_server_limits limits;
    const struct program *const *programs;
    uint32_t program_count;
    struct core *core;
    struct rpc_client *client; /* NULL: nobody makes calls */
    struct drc *cache;
    struct outbox *outbox;
    struct late_answer *late;      /* answers that core_next_answer will name, by ticket */
    uint8_t *late_bytes;           /* reply_max for each */
    struct away *away;             /* NULL: no program is executed elsewhere */
    const struct guard *guard;     /* NULL: files are not ours, and nothing is known of them */
    const struct network *allowed; /* --allow; none: everybody */
    uint32_t allowed_count;
    struct rate *rate;   /* NULL: no limit */
    struct meter *meter; /* NULL: nothing is measured */
    uint32_t record_max, record_max_files, reply_max;
    uint32_t next_xid; /* of calls, when there is no client to number them */
    struct hashed_name last_name;
};

/* A call whose procedure is known. */
struct incoming {
    const struct rpc_source *from;
    const struct rpc_call *call;
    const struct program *program;
    uint32_t program_index; /* of those that are served */
    const struct procedure *procedure;
    struct request request; /* when its arguments were read */
    bool is_message;
    uint64_t now_ns, wall_ns;
    struct xdr_out *reply; /* for what is answered at once */
};

/* The reply to a header that is not RPC_CALL_OK. */
enum rpc_verdict incoming_refuse(struct rpc_server *server, enum rpc_call_result result,
                                 const struct rpc_source *from, uint32_t xid,
                                 struct xdr_out *reply);
/* The row of a call, or NULL. */
const struct procedure *incoming_look(const struct rpc_server *server, const struct rpc_call *call,
                                      const struct rpc_source *from);
/* Finds the program and the row of a call. False: the refusal is in its reply. */
bool incoming_find(struct rpc_server *server, struct incoming *in);

void incoming_report(struct rpc_server *server, enum event_kind kind, const struct rpc_source *from,
                     uint64_t value);
/* A message arrived, whatever comes of it. */
void incoming_acknowledge(const struct incoming *in);
/* The answer to a call; SYSTEM_ERR if that does not fit. */
void incoming_answer(const struct incoming *in, const struct response *response,
                     struct xdr_out *out);
/* The answer to a call, or the call with the result of a message, as it will leave: its length. It
 * stands where outbox_add takes it from. */
uint32_t incoming_encode(struct rpc_server *server, const struct incoming *in,
                         const struct response *response);

/* leaving.c: keeps an answer whose time has not come, as it will leave. Returns what the cache
 * knows it by. */
uint64_t leaving_keep_late(struct rpc_server *server, uint32_t ticket,
                           const struct outbox_entry *entry, const struct rpc_source *to,
                           uint32_t len);

#endif
