/*
 * ask.h -- one call to a client whose answer says something about it.
 *
 * Whom to ask, when, and what the answer means is up to the asking module (probe.h, silent.h). The
 * call goes to the client's recorded address and to no other (R-SEC-4), and its answer says nothing
 * if the client was forgotten or has moved meanwhile.
 *
 *              ask_start           there is room           answered, or silent too long
 *   (nothing) -----------> WAITING --------------> CALLING ---------------------> probe_answered,
 *                             |                                                   silent_answered
 *                             +----------------------------------------------------->
 *                               the client is gone
 */
#ifndef CORE_ASK_H
#define CORE_ASK_H

#include "base/address.h"
#include "base/list.h"

struct core;
struct core_call;
struct core_input;

/* The earlier goes first. */
enum asker { ASK_OF_PROBE, ASK_OF_SILENT, ASKER_END };

/* Part of what asks; no more than one for each client and asker. */
struct ask {
    uint64_t client; /* handle */
    enum asker asker;
    bool of_lock_manager; /* NULL of its lock manager, else SM_STAT of its status monitor */
    bool is_calling;
    struct address to; /* whom the call in flight asks */
    struct list queue; /* on core->asks while it waits */
};

/* Asks; not while it is waiting or calling. */
void ask_start(struct core *core, struct ask *ask);
/* Is it waiting or calling? CHECKed not to be both. */
bool ask_is_open(const struct ask *ask);

bool ask_next_call(struct core *core, struct core_call *ret);
void ask_call_done(struct core *core, enum asker asker, uint64_t client,
                   const struct core_input *input);
uint64_t ask_deadline_ns(const struct core *core);

#endif
