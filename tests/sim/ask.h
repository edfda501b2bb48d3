/*
 * ask.h -- the calls of locking clients; see locker.h.
 */
#ifndef SIM_ASK_H
#define SIM_ASK_H

#include "locker.h"

/* What to ask; a procedure leaves out what it does not have. */
struct ask_what {
    enum peer_nlm_procedure procedure; /* the synchronous one; messages are chosen by kind */
    struct extent extent;
    bool block;
    struct reservation reservation;
    bool reclaim;
};

/* Makes the call the outstanding one of its process and sends it. */
struct ask *ask_begin(struct world *world, struct process *process, const struct ask_what *what);
/* The outstanding call once more. */
void ask_send(struct world *world, struct process *process);
/* Nobody waits for its answer any more. */
void ask_drop(struct process *process);

/* Bytes from the server arrived at the socket that the calls leave from. */
void ask_receive(struct world *world, struct locker *locker, uint16_t port, struct bytes message);
/* A *_RES arrived, there or at the host's service. */
void ask_result(struct world *world, struct locker *locker, uint32_t procedure,
                const struct peer_nlm_res *res);

/* Is this the answer to that call? A rebooted client uses its xids again. */
bool ask_reads(const struct ask *ask, struct bytes message, struct peer_nlm_res *ret);
/* The call that this message answers; NULL: of nobody. `ret` is filled when it could be read. */
struct ask *ask_of_answer(struct world *world, const struct locker *locker, uint16_t port,
                          struct bytes message, struct peer_nlm_res *ret);
/* The call whose result this is. */
struct ask *ask_of_cookie(struct world *world, const struct locker *locker, uint32_t procedure,
                          const struct peer_nlm_res *res);

#endif
