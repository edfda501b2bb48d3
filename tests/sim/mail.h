/*
 * mail.h -- the network between locking clients and the server.
 *
 * Datagrams are lost, repeated, delayed and reordered; TCP keeps its order and breaks. As in net.h
 * it does not do one thing, unless the world allows it (WORLD_LATE: P2, exclusion (5)): it delivers
 * no datagram of a process after a later call of it was executed, except while the duplicate cache
 * protects; nor, the other way round, an answer from before a restart, a callback that left before
 * an answer to that process did, or a second copy of one after the next call of that process:
 * clients look at neither mode nor cookie.
 */
#ifndef SIM_MAIL_H
#define SIM_MAIL_H

#include "locker.h"

/* There is a way to send: a connection, or UDP. `anew`: not the one that was silent. */
bool mail_is_connected(struct world *world, struct locker *locker, bool anew);
/* It is given up: what was sent on it may still arrive, for as long as the kernel likes. */
void mail_close(struct locker *locker);
/* The same of both, if it has two. */
void mail_close_all(struct locker *locker);
/* Its host is gone, and all its connections with it. */
void mail_reset(struct world *world, struct locker *locker);
/* The server died; or it was replaced, and its kernel lives on. */
void mail_break_all(struct world *world, bool is_replaced);
/* The server of this run, which was replaced, ends. */
void mail_end(struct world *world, uint32_t run);

void mail_send_call(struct world *world, struct ask *ask);
/* A GRANTED_RES, so much later. */
void mail_send_result(struct world *world, struct process *process, struct bytes message,
                      uint64_t after_ns);
/* The void answer to a *_RES that came over UDP. */
void mail_send_void(struct world *world, struct locker *locker, uint32_t xid);

/* Another copy of a call, sent long ago, arrives now, from this port. */
void mail_arrive_late(struct world *world, struct ask *ask, uint16_t port);

void mail_arrive(struct world *world, struct mail *mail);
bool mail_is_to_server(const struct mail *mail);
bool mail_is_datagram(const struct mail *mail);
/* An answer, or the result of a message, leaves the server. False: for nobody here. */
bool mail_release(struct world *world, const struct rpc_reply *reply);

/* The duplicate cache knows this call for certain. */
bool mail_is_cached(const struct world *world, const struct ask *ask);

/* The locker at this address with this name; NULL: nobody. */
struct locker *mail_find(struct world *world, const struct address *address, const char *name);

void mail_done(struct world *world);

#endif
