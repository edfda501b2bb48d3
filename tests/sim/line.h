/*
 * line.h -- the network between the server as a caller and the hosts that it calls back.
 *
 * It carries out what rpc_client asks for: datagrams, and TCP connections, which are called lines
 * here. Datagrams are lost, repeated, delayed and reordered; lines are refused, hang, keep their
 * order, and break. What was written to a line arrives at some time, also when it is closed, unless
 * it is aborted: kernels send again what was lost. Sometimes a stranger answers in another's name:
 * nobody may believe that.
 */
#ifndef SIM_LINE_H
#define SIM_LINE_H

#include "world.h"

enum letter_kind {
    /* To a host. */
    LETTER_DATAGRAM,
    LETTER_CONNECT,
    LETTER_RECORD, /* with its record mark */
    /* To the server. */
    LETTER_ANSWER,      /* a datagram */
    LETTER_UNREACHABLE, /* ICMP: nobody listens there */
    LETTER_CONNECTED,
    LETTER_REFUSED,
    LETTER_ANSWER_RECORD,
    LETTER_LOST,
};

struct line {
    uint64_t connection; /* the client's own number for it */
    uint32_t run;
    struct host *host;
    uint16_t port;
    bool is_open;
    bool is_aborted; /* the server's kernel delivers nothing on it any more */
    struct kept kept;
    uint64_t to_host_ns, to_server_ns; /* when the last letter arrives: TCP keeps order */
};

struct letter {
    enum letter_kind kind;
    struct line *line; /* NULL: UDP */
    struct host *host; /* the one that is called, or answers */
    uint16_t port;     /* there */
    uint32_t tries;    /* CONNECT: how often it was in vain */
    uint32_t len;
    bool from_listener; /* DATAGRAM: its answer comes to where we listen */
    uint64_t sent_ns;
    uint8_t bytes[];
};

/* Everything that the client wants done now. */
void line_turn(struct world *world);
/* The same of a server that was replaced: datagrams, and what it writes to connections that it has.
 */
void line_turn_ghost(struct world *world);
/* A letter reaches its end of the network. */
void line_arrive(struct world *world, struct letter *letter);
bool line_is_to_server(const struct letter *letter);
/* The server died; or it was replaced, and its kernel lives on. */
void line_cut_all(struct world *world, bool is_replaced);
/* The server of this run, which was replaced, ends. */
void line_end(struct world *world, uint32_t run);
void line_done(struct world *world);

/* What hosts do with a letter that they got: answer it, or break the connection (UDP: an ICMP
 * message), so much later. */
void line_answer(struct world *world, const struct letter *to, struct bytes message,
                 uint64_t after_ns);
void line_break(struct world *world, const struct letter *to, uint64_t after_ns);
void line_accept(struct world *world, const struct letter *to, bool is_open);

#endif
