/*
 * client.h -- calls that we make, without sockets: thousands at once, one attempt each.
 *
 * An attempt finds the port of a program at a host through the host's own portmapper, connects,
 * sends its messages one after another, waits for each answer, and says what is known of the
 * outcome when its time has run out. Who is called again and when is the core's business
 * (core/notify.c).
 *
 *            silent over UDP for 1 s, or nobody there: over TCP as well
 *            +------+
 *            |      v    port known, or the hint
 *   ---> LOOKING UP ---------------------> CONNECTING ----> ASKING ----> (ended: answered, refused)
 *         ^     |                               |             |
 *         |     | knows nothing, no hint        | refused     | connection lost
 *         |     v                               |             |
 *         +-- RESTING <-------------------------+-------------+
 *     0.5 s later
 *                                     deadline in any phase: (ended: undelivered, unknown)
 *
 * UDP: where the program is registered on UDP only, or UDP is preferred, there is no CONNECTING;
 * the call is repeated with the same xid until it is answered.
 *
 * A call can be one way: it leaves once, nobody hears how it ended, and it goes nowhere rather than
 * being tried again. Calls of that kind have room of their own, for a quarter as many as of the
 * others: a host that makes us send them cannot keep the others waiting, nor can hosts that let our
 * calls wait keep these from leaving.
 *
 * "Undelivered" is proof: no byte of a call was handed to the network. Everything else that was not
 * answered is "unknown" (D13 needs the difference).
 *
 * A connection on which something was written and not answered is aborted, never closed: the kernel
 * would go on delivering it. The result of an attempt without an answer is told after that, so
 * who has it knows that nothing of the call will leave us any more (decision 020).
 *
 * The client is pure. The wire asks it what to do (rpc_client_next_action) and tells it what
 * happened.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/lease.h"

#define CLIENT_MESSAGES_MAX 8
#define CLIENT_ARGS_MAX     2304 /* of one message */
#define CLIENT_RESULT_MAX   64   /* of an answer that is kept */

struct rpc_client;

struct rpc_client_limits {
    uint32_t attempts_max;     /* at once; those that are one way have room beside them */
    uint32_t connections_max;  /* of them, with a TCP connection; the others wait for one */
    uint64_t bytes_max;        /* of their messages; at least 1 MiB */
    const struct lease *lease; /* of a shared store nothing leaves before rpc_client_release; NULL:
                                  the store is ours alone */
    uint16_t our_ports[2];     /* where no upcall goes; 0: none */
};

enum client_way {
    CLIENT_TCP_FIRST, /* UDP where the program is not on TCP (D4) */
    CLIENT_UDP_FIRST, /* the other way round */
    CLIENT_UDP_ONLY,  /* neither the call nor its look-up uses TCP */
};

struct client_attempt {
    uint64_t id;              /* the caller's own */
    struct address to, local; /* local: our address that the host knows; family 0: any */
    uint32_t prog, vers, proc;
    uint16_t port_hint; /* to try when its portmapper is silent or knows nothing; 0: none */
    enum client_way way;
    bool from_listener; /* over UDP, the call leaves from the socket that we listen on (R-BLK-3) */
    bool is_one_way;    /* with one message */
    uint16_t sent_port; /* one way over UDP: the message is there already; 0: nowhere */
    bool is_privileged; /* called from a port below 1024 if we can get one (R-NOTIFY-3) */
    bool is_upcall;     /* to this machine's lock manager: a port of ours is not its */
    uint32_t message_count;
    struct bytes messages[CLIENT_MESSAGES_MAX]; /* arguments; copied */
    uint64_t deadline_ns;
};

enum client_outcome {
    CLIENT_ANSWERED,    /* every message was executed */
    CLIENT_REFUSED,     /* it answered with an RPC error; no later message left */
    CLIENT_UNDELIVERED, /* provably, no message reached it */
    CLIENT_UNKNOWN,     /* a message may have reached it; no answer came in time */
};

struct client_result {
    uint64_t id;
    enum client_outcome outcome;
    uint32_t answered_count; /* messages that were answered */
    bool is_repeated;        /* some message may have reached the host more than once */
    struct bytes body;       /* ANSWERED: result of the last message, empty when it is over
                        * CLIENT_RESULT_MAX bytes; valid until the next call into the client */
};

enum client_action_kind {
    CLIENT_DATAGRAM, /* send the bytes to (to, port) over UDP */
    CLIENT_CONNECT,  /* open a TCP connection to (to, port); tell the outcome under `connection` */
    CLIENT_WRITE,    /* write the bytes, a whole record, to `connection` */
    CLIENT_DISCONNECT, /* close or abort `connection`; nothing more is heard from it */
};

struct client_action {
    enum client_action_kind kind;
    uint64_t connection;
    struct address to, local;
    uint16_t port;
    bool from_listener; /* DATAGRAM: through the socket that listens at `local` */
    bool is_privileged; /* DATAGRAM, CONNECT: from a port below 1024 if one can be had */
    bool is_abort;      /* DISCONNECT: what the kernel still has to deliver must not arrive */
    struct bytes bytes; /* valid until the next call into the client */
};

/* NULL when memory cannot be reserved. `first_call` differs from start to start (D6); nobody else
 * knows `seed`, or they could tell our xids. */
struct rpc_client *rpc_client_new(const struct rpc_client_limits *limits, uint32_t first_call,
                                  uint64_t seed);
void rpc_client_free(struct rpc_client *client);

/* True when one more attempt that is not one way, with messages of any length, can be started. */
bool rpc_client_has_room(const struct rpc_client *client);

/* Three quarters of those attempts are in flight: what is left is for callbacks that somebody waits
 * for. */
bool rpc_client_is_crowded(const struct rpc_client *client);
/* False: as many attempts of its kind as there can be are in flight, or their bytes are. */
bool rpc_client_start(struct rpc_client *client, const struct client_attempt *attempt,
                      uint64_t now_ns);
/* For a call that somebody else sends: no attempt will have its number. */
uint32_t rpc_client_take_xid(struct rpc_client *client);
/*
 * Nobody needs the attempt with this id any more: no copy of it leaves from here on. It ends at
 * once, unless it waits for the answer to what it wrote to a connection: then with that answer, or
 * with the connection, which is aborted at the deadline at the latest. Its result follows.
 */
void rpc_client_finish(struct rpc_client *client, uint64_t id, uint64_t deadline_ns,
                       uint64_t now_ns);
/* Nothing more is heard from the attempt with this id, if there is one (the last one started). */
void rpc_client_cancel(struct rpc_client *client, uint64_t id);

/*
 * The fence (docs/decisions/025): whatever leaves, a repeat too, needs a commit that began after it
 * was due. Something is due for which no commit was asked: then ask for one, which begins after
 * rpc_client_ask returned its ticket, and release that ticket when it is durable.
 */
const struct lease *rpc_client_lease(const struct rpc_client *client);
bool rpc_client_is_due(const struct rpc_client *client);
uint64_t rpc_client_ask(struct rpc_client *client);
void rpc_client_release(struct rpc_client *client, uint64_t ticket);

/* The next thing to do; false: nothing, or nothing that is released. */
bool rpc_client_next_action(struct rpc_client *client, struct client_action *ret);
/* There is a result to take. */
bool rpc_client_has_result(const struct rpc_client *client);
/* The next attempt that ended; false: none. */
bool rpc_client_next_result(struct rpc_client *client, struct client_result *ret);

/* The host rebooted: where its programs were is no longer true. */
void rpc_client_host_restarted(struct rpc_client *client, const struct address *host);

/* What happened. Connections that are no longer known are ignored. */
void rpc_client_datagram(struct rpc_client *client, const struct address *from, uint16_t port,
                         struct bytes message, uint64_t now_ns);
/* The same, where we listen and not where we call from. */
void rpc_client_datagram_at_listener(struct rpc_client *client, const struct address *from,
                                     uint16_t port, struct bytes message, uint64_t now_ns);
/* The network says that nobody listens there (ICMP); for datagrams sent earlier. */
void rpc_client_unreachable(struct rpc_client *client, const struct address *to, uint16_t port,
                            uint64_t now_ns);
void rpc_client_connected(struct rpc_client *client, uint64_t connection, bool is_open,
                          uint64_t now_ns);
void rpc_client_record(struct rpc_client *client, uint64_t connection, struct bytes record,
                       uint64_t now_ns);
void rpc_client_lost(struct rpc_client *client, uint64_t connection, uint64_t now_ns);

/* Time: call rpc_client_tick when the deadline has come. */
uint64_t rpc_client_deadline_ns(const struct rpc_client *client);
void rpc_client_tick(struct rpc_client *client, uint64_t now_ns);

/* Attempts whose result was not taken, or whose connection is not yet told to close. */
uint32_t rpc_client_count(const struct rpc_client *client);
/* Of them, those that somebody waits for the answer of, and the most there may be of these. */
uint32_t rpc_client_awaited(const struct rpc_client *client);
uint32_t rpc_client_max(const struct rpc_client *client);
uint32_t rpc_client_connections_max(const struct rpc_client *client);
void rpc_client_check(const struct rpc_client *client);

#endif
