/*
 * call_world.h -- a scripted world around an rpc_client: virtual time, and a hand that takes each
 * thing the client wants done and plays what happens.
 *
 * What the client sends is read, and what it hears is built, with the tests' own XDR. After every
 * event the client's invariants are checked.
 */
#ifndef RPC_CALL_WORLD_H
#define RPC_CALL_WORLD_H

#include "peer/packet.h"
#include "rpc/client.h"

enum { WORLD_PROG = 100021, WORLD_VERS = 4, WORLD_PROC = 16, PORTMAPPER = 111 };

#define WORLD_MS UINT64_C(1000000)

struct world {
    struct rpc_client *client;
    uint64_t now_ns;
    uint64_t connection; /* the last one opened */
    uint32_t xid;        /* of the last call seen */
    uint32_t args_len;   /* of the last call seen */
    uint8_t args[4096];
    const char *playing; /* what world_play has yet to play */
};

void world_begin(struct world *world, uint32_t attempts_max, uint32_t connections_max);
/* Fails unless nothing is left: no attempt, no byte, nothing to do. */
void world_end(struct world *world);

/* Host `number` is 10.0.x.y; v6 ones are 2001:db8::x:y. */
struct address world_host(uint32_t number);
struct address world_host6(uint32_t number);

/* An attempt with `message_count` messages of different lengths and 5 s of time. */
struct client_attempt world_attempt(const struct world *world, uint64_t id, uint32_t message_count);
/* The usual one: host 1, one message. */
void world_start(struct world *world, uint64_t id, uint16_t port_hint);

/*
 * Plays one move after another, as the functions below do: "start 7 0; asked 2 6; port 700; connect
 * 700; open; sent 0; void; close; answered 7 1".
 *
 *   start ID HINT                      world_start
 *   asked VERS PROT, asked-tcp         the portmapper is asked; connect PORT
 *   sent INDEX, sent-udp PORT INDEX    a message leaves; close, abort: of the last connection
 *   nothing, no-result                 nothing is wanted done, no attempt has ended
 *   answered ID COUNT                  it has; also undelivered, unknown, refused
 *   port P, port-tcp P                 the portmapper answers; void, void-udp PORT: the service
 *   open, refuse, lose                 the connection; unreachable PORT; pass MS; cancel ID
 */
void world_play(struct world *world, const char *moves);

/* What the client wants done next, which must be of this kind; calls are read into the world. */
void world_expect_question(struct world *world, uint32_t vers, uint32_t prot); /* over UDP */
void world_expect_question_tcp(struct world *world, uint32_t vers, uint32_t prot);
void world_expect_connect(struct world *world, uint16_t port);
void world_expect_disconnect(struct world *world, uint64_t connection);
/* The same, and what the kernel has not delivered never arrives. */
void world_expect_abort(struct world *world, uint64_t connection);
void world_expect_message_tcp(struct world *world, uint32_t message_index);
void world_expect_message_udp(struct world *world, uint16_t port, uint32_t message_index);
void world_expect_nothing(const struct world *world);
void world_expect_result(struct world *world, uint64_t id, enum client_outcome outcome,
                         uint32_t answered_count);
void world_expect_no_result(struct world *world);

/* Time passes, step by step as the client's deadlines ask for it. Nothing may be left to do. */
void world_pass_ms(struct world *world, uint64_t ms);

/* What happens. Answers carry the xid of the last call seen. */
void world_datagram(struct world *world, uint32_t host, uint16_t port, const struct packet *answer);
void world_answer_port(struct world *world, uint32_t port);     /* PMAP, over UDP, from host 1 */
void world_answer_port_tcp(struct world *world, uint32_t port); /* over the connection */
void world_answer_void_udp(struct world *world, uint16_t port);
void world_answer_void_tcp(struct world *world);
void world_connected(struct world *world, bool is_open);
void world_lost(struct world *world);
void world_unreachable(struct world *world, uint16_t port);

/* Replies under construction. */
void world_put_accepted(struct packet *packet, uint32_t xid, uint32_t accept_stat);
void world_record(struct world *world, const struct packet *answer);

#endif
