/*
 * talk.h -- one fake client that keeps a TCP connection and a UDP socket open and checks answers.
 *
 * Every check is made over both. A connection that the server closed is opened again.
 */
#ifndef INTEGRATION_TALK_H
#define INTEGRATION_TALK_H

#include "harness.h"
#include "peer/peer_nsm.h"

struct talk {
    const struct harness_server *server;
    int tcp, udp;
    uint32_t xid;
};

/* What a reply must be; the fields of packet_reply that matter for it. */
struct talk_expected {
    bool accepted;
    uint32_t status;
    uint32_t low, high, auth_why;
};

bool talk_open(struct talk *talk, const struct harness_server *server);
void talk_close(struct talk *talk);
uint32_t talk_next_xid(struct talk *talk);

/* Sends the call over TCP and UDP and demands this error. `what` names the case in messages. */
void talk_demand_error(struct talk *talk, const struct packet *call,
                       const struct talk_expected *expected, const char *what);
/* The same for SM_STAT and SM_MON: a result with this `res` and the server's state. */
void talk_demand_res(struct talk *talk, const struct packet *call, uint32_t res, const char *what);
/* SM_UNMON, SM_UNMON_ALL: the state, four bytes. */
void talk_demand_state(struct talk *talk, const struct packet *call, const char *what);
/* SM_NULL, SM_SIMU_CRASH, SM_NOTIFY. */
void talk_demand_void(struct talk *talk, const struct packet *call, const char *what);
/* No answer may come to this message; the one behind it is answered. TCP may also be closed. */
void talk_demand_silence(struct talk *talk, const void *bytes, uint32_t len, const char *what);

/* SM_STAT, SM_MON and SM_UNMON over both, as an honest client: all must succeed. */
void talk_demand_service(struct talk *talk, const char *what);

#endif
