/*
 * move.h -- clients that came back under another address (D17).
 *
 * A request that is refused by a lock of a client of the same name at another address may come from
 * that very client, whose address changed: nobody will ever unlock what it holds there. Or from
 * another host that happens to have the same name. So both addresses are asked:
 *
 *    client_maybe_moved        silent                    60 s of silence
 *   -------------------> OLD ---------> OLD (again) ... -----------------> NEW
 *                         |                                                 |  SM_STAT equals
 *                         | any answer: it is there                         |  state_seen
 *                         v                                                 v
 *                      (ended)                                   the record moves, durably
 *
 * The old address is asked NULL at its lock manager and SM_STAT at its status monitor in turn. The
 * record moves only if nothing is recorded under the new address and name yet.
 */
#ifndef CORE_MOVE_H
#define CORE_MOVE_H

#include "base/table.h"
#include "base/timers.h"
#include "core/message.h"

struct core;
struct core_call;
struct core_input;

enum move_phase { MOVE_ASK_LOCKS, MOVE_ASK_STATUS, MOVE_ASK_NEW };

struct move {
    uint64_t client; /* handle */
    struct address to, to_local, from_local;
    uint64_t started_ns;
    enum move_phase phase;
    bool is_calling;
};

struct moves {
    struct table table; /* of struct move */
    struct timers timers;
    uint64_t moved; /* records that moved */
};

__attribute__((warn_unused_result)) int move_init(struct core *core);
void move_done(struct core *core);

/* Asks both addresses, unless that is under way, or too many others are. */
void move_begin(struct core *core, uint32_t client, const struct peer *to);

bool move_next_call(struct core *core, struct core_call *ret);
void move_call_done(struct core *core, uint64_t handle, const struct core_input *input);
uint64_t move_deadline_ns(const struct core *core);

#endif
