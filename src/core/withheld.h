/*
 * withheld.h -- answers to SM_NOTIFY that wait until it is known what the notice is worth.
 *
 * The void answer says "I have it", and its sender never says it again. A notice in doubt, whose
 * name the resolver (hearsay.h) or whose host (watched_doubt.c) is asked about, is in memory only.
 * So its answer waits for the end of the doubt, and for the batch that makes durable what came of
 * it: a crash before that leaves a sender that repeats its notice (docs/decisions/030).
 *
 *               withheld_keep           the resolver, or its host, has spoken
 *   (nothing) ---------------> HANGING --------------------------------------> READY ---> (nothing)
 *                               ^   |
 *                               +---+ its host is asked as well, or another registrant's is
 *
 * If nobody could say whose name it is, the answer is an error: its sender says it again.
 *
 * An address has WITHHELD_SHARE of the WITHHELD_MAX places. Who finds none is not answered, and
 * says it again, though what it said may be believed meanwhile.
 */
#ifndef CORE_WITHHELD_H
#define CORE_WITHHELD_H

#include "base/chains.h"
#include "base/list.h"
#include "base/table.h"
#include "core/message.h"

struct core;
struct core_late;

#define WITHHELD_MAX   1024
#define WITHHELD_SHARE 16

struct withheld {
    uint32_t quota;   /* of its sender, with a reference */
    uint32_t state;   /* that it says */
    uint32_t hearsay; /* what it hangs on: a slot there; SLOT_NONE, */
    uint32_t doubt;   /* or the registrant whose host is asked; both SLOT_NONE: it is ready */
    bool is_unknown;  /* nobody could say */
    struct list ready;
};

struct withhelds {
    struct table table; /* of struct withheld; a slot is a ticket, after those of callback.h */
    struct chains on_hearsay, on_doubt;
    struct list ready;
};

__attribute__((warn_unused_result)) int withheld_init(struct core *core, const uint32_t slots[]);
void withheld_done(struct core *core);

/* How the answer to a notice leaves that was just heard. */
enum answer_when withheld_keep(struct core *core, const struct address *from,
                               const struct request *request, uint32_t *ret_ticket);

/* The resolver has spoken; `is_unknown`: it knows nothing of that name. */
void withheld_resolved(struct core *core, uint32_t hearsay, bool is_unknown);
/* The host of this registrant has spoken, was silent for too long, or is not watched any more. */
void withheld_decided(struct core *core, uint32_t registrant);

/* An answer that waits no longer; false: none. */
bool withheld_next_answer(struct core *core, struct core_late *ret);

void withheld_check(const struct core *core);

#endif
