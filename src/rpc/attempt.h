/*
 * attempt.h -- one attempt and the moves between its phases. For client.c, which is the surface;
 * nobody else looks in here.
 *
 * client.h has the drawing of the phases, attempt.c the rules.
 */
#ifndef RPC_ATTEMPT_H
#define RPC_ATTEMPT_H

#include "base/arena.h"
#include "base/hash_index.h"
#include "base/list.h"
#include "base/table.h"
#include "base/timers.h"
#include "rpc/client.h"
#include "rpc/lookup.h"
#include "rpc/port_cache.h"

enum attempt_phase {
    ATTEMPT_LOOKING_UP,
    ATTEMPT_CONNECTING,
    ATTEMPT_ASKING,
    ATTEMPT_RESTING,
    ATTEMPT_ENDED
};

/* What the wire has to do for an attempt, in this order. */
enum attempt_todo {
    ATTEMPT_DISCONNECT = 1,
    ATTEMPT_CONNECT = 2,
    ATTEMPT_LOOKUP_UDP = 4,
    ATTEMPT_LOOKUP_TCP = 8, /* write the question to the open connection */
    ATTEMPT_ASK = 16,       /* send the current message, over whichever transport */
};

/* Which of those who have something to do comes first. */
enum attempt_rank {
    ATTEMPT_CLOSES, /* never waits for a commit */
    ATTEMPT_GOES_ON,
    ATTEMPT_BEGINS,
    ATTEMPT_PARTS, /* closes what was answered: nor does it, and nobody waits for it */
    ATTEMPT_RANK_END,
};

static inline bool attempt_only_closes(enum attempt_rank rank)
{
    return rank == ATTEMPT_CLOSES || rank == ATTEMPT_PARTS;
}

struct attempt {
    struct client_attempt call; /* of its messages only the lengths: the bytes are in the arena */
    uint32_t cells[CLIENT_MESSAGES_MAX];
    uint32_t slot;
    enum attempt_phase phase;
    uint32_t todo;          /* enum attempt_todo, ored */
    enum attempt_rank rank; /* which queue it is in */
    uint64_t ticket;        /* what must be released before it is done, but for DISCONNECT */
    uint32_t xid;           /* of the question or message that is asked */
    uint64_t phase_since_ns;

    uint64_t connection;   /* 0: none; otherwise serial and slot */
    bool wants_connection; /* a new one, when its old one is closed and it has its turn */
    bool is_connected;
    bool is_portmapper;    /* the connection goes to the portmapper */
    bool is_unanswered;    /* something was written to the connection, and no answer came */
    uint16_t awaited_port; /* datagrams went to it, and what the network says of it is of interest;
                              0: none */

    struct lookup lookup;
    bool is_question_open;   /* the portmapper has not answered it yet */
    bool was_silent;         /* the portmapper, the last time */
    bool is_udp_unreachable; /* the portmapper's UDP port, in this phase */
    bool has_tried_tcp;      /* to reach the portmapper */

    uint32_t prot; /* of the service: TRANSPORT_TCP or TRANSPORT_UDP */
    uint16_t port;
    bool is_guess; /* the port is the hint's or the cache's: its portmapper did not name it now */
    bool is_maybe_delivered; /* a message was handed to the network */
    bool was_refused;        /* the last message sent was answered with an RPC error */
    bool is_sent;            /* the current message was handed to the network, and not refused */
    bool is_repeated;        /* that happened to some message twice */
    uint32_t message_index;
    bool is_finishing; /* nobody needs it any more: nothing leaves again */

    enum client_outcome outcome;
    bool has_result;   /* which is told once an unanswered connection is aborted */
    uint32_t body_len; /* of the last answer */
    uint8_t body[CLIENT_RESULT_MAX];
    struct list by_todo, by_result, by_turn;
};

struct rpc_client {
    struct rpc_client_limits limits;
    struct table attempts;
    struct timers timers;
    struct hash_index by_xid, by_id;
    struct hash_index by_awaited; /* attempts with an awaited_port, by host and that port */
    struct arena *arena;
    struct port_cache *ports;
    struct list todo[ATTEMPT_RANK_END]; /* who has something to do */
    uint64_t ticket;                    /* of what becomes due now */
    uint64_t released;                  /* the last one; UINT64_MAX: there is no fence */
    bool is_due;                        /* something has the ticket of now */
    struct list results;
    struct list waiting_turn; /* who wants a connection and has none to close first */
    uint64_t seed;
    uint32_t serial;    /* of connections */
    uint32_t next_call; /* how many there were; their xids are in another order */
    uint32_t open_count;
    uint32_t one_way_count;
    uint8_t message[CLIENT_ARGS_MAX + 128]; /* the one that an action points to */
    uint8_t body[CLIENT_RESULT_MAX];        /* the one that a result points to */
};

struct attempt *attempt_at(const struct rpc_client *client, uint32_t slot);
uint64_t attempt_xid_hash(const struct rpc_client *client, uint32_t xid);
uint64_t attempt_awaited_hash(const struct rpc_client *client, const struct address *host,
                              uint16_t port);

/* Has it a result that may be taken? */
bool attempt_is_tellable(const struct attempt *a);

/* attempt_wire.c. A new question gets a new xid; an answer to an older one is then nobody's. */
uint32_t attempt_next_xid(struct rpc_client *client);
void attempt_change_xid(struct rpc_client *client, struct attempt *a);
void attempt_add_todo(struct rpc_client *client, struct attempt *a, enum attempt_todo todo);
void attempt_drop_todo(struct rpc_client *client, struct attempt *a, uint32_t todo);
/* What the network says of a port is of interest from the first datagram to it on; 0: no more. */
void attempt_await(struct rpc_client *client, struct attempt *a, uint16_t port);
/* Asks for a connection to the portmapper or to the service; it may have to wait for its turn. */
void attempt_want_connection(struct rpc_client *client, struct attempt *a, bool is_portmapper);
/* The connection is gone: the next attempt in turn gets one. */
void attempt_release_connection(struct rpc_client *client, struct attempt *a);
/* No connection, and no wish for one; nothing is to be done but to close it. */
void attempt_disconnect(struct rpc_client *client, struct attempt *a);

/* The first phase, of a new attempt or again after a rest. */
void attempt_look_up(struct rpc_client *client, struct attempt *a, uint64_t now_ns);
/* It has a result from here on; its connection, if any, must still be closed. */
void attempt_end(struct rpc_client *client, struct attempt *a, enum client_outcome outcome);

/* Nobody needs it any more; see rpc_client_finish. */
void attempt_finish(struct rpc_client *client, struct attempt *a, uint64_t deadline_ns,
                    uint64_t now_ns);

/* Takes the first thing to do off an attempt that has one. */
void attempt_act(struct rpc_client *client, struct attempt *a, struct client_action *ret);

/* What happened to it. `way` is TRANSPORT_TCP or TRANSPORT_UDP. */
void attempt_answered(struct rpc_client *client, struct attempt *a, uint32_t way,
                      const struct rpc_answer *answer, uint64_t now_ns);
void attempt_unreachable(struct rpc_client *client, struct attempt *a, uint64_t now_ns);
void attempt_connected(struct rpc_client *client, struct attempt *a, uint64_t now_ns);
void attempt_lost(struct rpc_client *client, struct attempt *a, uint64_t now_ns);
void attempt_time_out(struct rpc_client *client, struct attempt *a, uint64_t now_ns);

void attempt_check(const struct rpc_client *client, const struct attempt *a);

#endif
