/*
 * seat.c -- contenders for the same bytes; see seat.h.
 */
#include "seat.h"

#include "peer/peer_nlm.h"

#include <stddef.h>

void seat_begin(struct seat_contender *contender, enum seat_call call)
{
    contender->pending = call;
}

bool seat_answered(struct seat_contender *contender, uint32_t status)
{
    enum seat_call call = contender->pending;
    contender->pending = SEAT_NO_CALL;
    contender->is_adopted = false;
    switch (call) {
    case SEAT_NO_CALL:
        return false;
    case SEAT_LOCK:
        if (status == PEER_NLM_IS_GRANTED) {
            contender->state = SEAT_HOLDING;
            return true;
        }
        /* A callback may have overtaken this answer. */
        if (status == PEER_NLM_IS_BLOCKED && contender->state != SEAT_HOLDING)
            contender->state = SEAT_WAITING;
        return status == PEER_NLM_IS_BLOCKED;
    case SEAT_UNLOCK:
        contender->state = SEAT_IDLE;
        return status == PEER_NLM_IS_GRANTED;
    case SEAT_CANCEL: /* DENIED: it was granted before, and that was not known here */
        contender->state = status == PEER_NLM_IS_DENIED ? SEAT_HOLDING : SEAT_IDLE;
        return status == PEER_NLM_IS_GRANTED || status == PEER_NLM_IS_DENIED;
    }
    return false;
}

uint32_t seat_called(struct seat_contender *contender, bool exclusive)
{
    bool is_wanted = contender->exclusive == exclusive &&
                     (contender->pending == SEAT_LOCK ||
                      (contender->pending == SEAT_NO_CALL && contender->state != SEAT_IDLE));
    if (!is_wanted)
        return PEER_NLM_IS_DENIED;
    contender->state = SEAT_HOLDING;
    return PEER_NLM_IS_GRANTED;
}

bool seat_relies(const struct seat_contender *contender)
{
    return contender->state == SEAT_HOLDING && contender->pending != SEAT_UNLOCK;
}

bool seat_is_owned(const struct seat_found *found)
{
    return found->held + found->offered + found->alone > 0;
}

bool seat_is_stored(const struct seat_found *found)
{
    return seat_is_owned(found) || found->echoes > 0;
}

/* What no contender may have, whatever it knows. */
static const char *judge_records(const struct seat_contender *contender,
                                 const struct seat_found *found)
{
    if (found->held > 1 || found->offered > 1 || found->alone > 1)
        return "more than one lock is stored";
    if (found->held == 1 && found->waits)
        return "a lock is stored, and the request that it was granted to";
    if (seat_is_stored(found) && (found->is_mixed || found->exclusive != contender->exclusive))
        return "a lock is stored in another mode than asked for";
    if (found->offered == 1 && !found->waits)
        return "an offer is stored for a request that is not";
    return NULL;
}

const char *seat_judge(const struct seat_contender *contender, const struct seat_found *found)
{
    const char *wrong = judge_records(contender, found);
    if (wrong)
        return wrong;
    bool is_known = found->held + found->offered > 0 || (contender->is_adopted && found->alone > 0);
    if (seat_relies(contender))
        return is_known ? NULL : "an acknowledged lock is lost";
    if (contender->pending != SEAT_NO_CALL)
        return NULL;
    if (contender->state == SEAT_WAITING) {
        if (found->held > 0)
            return "a lock is stored as held before anybody said so";
        if (found->alone > 0)
            return "an offer is stored without its request, which goes on";
        return found->waits ? NULL : "a request that waits is not stored";
    }
    if (found->waits)
        return "a request is stored that was ended";
    return seat_is_owned(found) ? "a lock is stored that was unlocked or cancelled" : NULL;
}

void seat_adopt(struct seat_contender *contender, const struct seat_found *found)
{
    contender->state = seat_is_owned(found) ? SEAT_HOLDING
                       : found->waits       ? SEAT_WAITING
                                            : SEAT_IDLE;
    contender->is_adopted = contender->state == SEAT_HOLDING;
    contender->pending = SEAT_NO_CALL;
    contender->due_ns = 0;
}
