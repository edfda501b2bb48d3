/*
 * told.h -- who was told what, held against what the disk says is still owed (P3).
 *
 *  O9   A mark leaves the disk only when the host was told: told_state and relayed_state change to
 *       what the registrant's service executed, or what its registration began with.
 *  O10  What is told is durable when it is sent: our state, the notice, the registration and its
 *       priv. It goes to the address from which the registration came, from the address it knows,
 *       to its own program, and says what that registrant asked for, nothing else (R-SEC-2, D3).
 *  O11  With faults off, every mark ends.
 *  O12  Nothing is told once more after its mark has gone (D7: one relay per registrant and state),
 *       and nothing after --give-up until there is news (R-NOTIFY-4).
 *
 * An attempt may take as long as --notify-timeout. What it says was chosen when it began, so what
 * was durable that long ago is allowed.
 */
#ifndef SIM_TOLD_H
#define SIM_TOLD_H

#include "world.h"

struct client_action;

#define TOLD_SERVER_NAME "holdfast.example"
#define TOLD_TIMEOUT_NS  (5 * SECOND)

/* One `status` call, as it was read. */
struct told_call {
    struct key *key;
    struct call *value; /* whose priv it carries */
    bool is_restart;    /* of ours; else a relay */
    uint32_t xid, prog, vers, proc, state;
};

/* Reads a call to a registrant; a malformed one, or one that is nobody's, ends the world. */
void told_read(struct world *world, struct bytes message, struct told_call *ret);

/* The call leaves the server for this host. */
void told_sent(struct world *world, const struct host *host, const struct address *local,
               struct bytes message);
/* The host executed it. */
void told_executed(struct world *world, const struct told_call *call);

/* A record of this key is on the disk; `is_loss`: power was lost, and what is there counts. */
void told_audit(struct world *world, struct key *key, struct call *value,
                const struct record_registrant *record, bool is_loss);
/* No record of this key is on the disk any more. */
void told_audit_absent(struct world *world, struct key *key);
/* The notifier may have given up on it: its time, --give-up after the window or the last news, is
 * over. */
bool told_may_be_given_up(const struct world *world, const struct key *key);
/* The notice of this name on the disk; state 0: none. */
void told_audit_notice(struct world *world, struct name *name, uint32_t state);

/* Nothing is owed to anybody, as the disk sees it. */
bool told_all_ended(const struct world *world);

#endif
