/*
 * unreached.h -- lock clients whose address did not answer after a restart (D5).
 *
 * Judged per address: several targets may be at one (a status monitor and registrants, or several
 * clients behind one translator), and one answer proves that the host is there. When the first
 * attempts of all of them have ended in vain, the clients of that address that are still to be
 * notified are marked crashed, durably, and counted with what they have left unsettled. Nothing
 * else happens to their locks here: what is stored can be reclaimed until grace ends, and grace
 * does not end sooner for it (D5 (1), (2)). The mark goes when the client is heard from.
 *
 *            a round begins              the last first attempt at that address ended
 *   ---> members counted, by address -------------------------------------> nobody heard of: marked
 *                                                                          somebody was: nothing
 *
 * `--unreachable hold` marks nobody: their locks stay until the notifier gives up (R-GRACE-5).
 */
#ifndef CORE_UNREACHED_H
#define CORE_UNREACHED_H

#include "base/list.h"
#include "core/message.h"

struct core;

/* Addresses of clients, by their slot in that pool. */
struct unreached_host {
    uint32_t left;     /* members whose first attempt has not ended */
    bool is_reached;   /* something at that address was heard from */
    bool is_failed;    /* it is on the list, with a reference to the address */
    struct list queue; /* while it is */
};

struct unreached {
    struct unreached_host *hosts;
    uint32_t host_max;
    struct list failed; /* whose clients are to be marked */
};

__attribute__((warn_unused_result)) int unreached_init(struct core *core, uint32_t clients_max);
void unreached_done(struct core *core);

/* A round begins: nobody is a member yet. Members of a round before must have left. */
void unreached_begin(struct core *core);
/* This target is a member. Returns its host, with a reference that unreached_leave takes;
 * SLOT_NONE: no client is at its address, and nothing is to be judged. */
uint32_t unreached_join(struct core *core, uint32_t target);
/* Its first attempt has ended, or it went away, which only somebody alive can ask for. */
void unreached_leave(struct core *core, uint32_t host, bool is_reached);

/* Something at this address was heard from. */
void unreached_heard(struct core *core, const struct address *address);
/* This client was: its mark goes. */
void unreached_client_alive(struct core *core, uint32_t client);

/* Marks clients of addresses that have failed, some at a time. True: there are more. */
bool unreached_work(struct core *core);
bool unreached_has_work(const struct core *core);

void unreached_check(const struct core *core);

#endif
