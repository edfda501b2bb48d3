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

const char *seat_judge(const struct seat_contender *contender, const struct seat_found *found)
{
    bool is_stored = found->record_count > 0;
    if (found->record_count > 1)
        return "more than one lock is stored";
    if (is_stored && found->exclusive != contender->exclusive)
        return "a lock is stored in another mode than asked for";
    if (seat_relies(contender))
        return is_stored ? NULL : "an acknowledged lock is lost";
    if (!is_stored || contender->pending != SEAT_NO_CALL)
        return NULL;
    if (contender->state == SEAT_WAITING)
        return found->is_offer ? NULL : "a lock is stored as held before anybody said so";
    return "a lock is stored that was unlocked or cancelled";
}

void seat_adopt(struct seat_contender *contender, const struct seat_found *found)
{
    contender->state = found->record_count > 0 ? SEAT_HOLDING : SEAT_IDLE;
    contender->pending = SEAT_NO_CALL;
    contender->due_ns = 0;
}
