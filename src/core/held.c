/*
 * held.c -- what a caller has already, for those who judge its requests before the core does.
 */
#include "core/state.h"

bool core_has(const struct core *core, const struct peer *from, const struct request *request)
{
    const struct lock_request *r = &request->lock;
    uint32_t client = client_find(core, &from->address, r->caller_name);
    if (client == SLOT_NONE || r->is_bad_handle || r->is_too_big)
        return false;
    if (request->kind == REQUEST_NLM_SHARE)
        return share_matches(core, client, r);
    const struct claim claim = {r->start, r->end, owner_find(core, client, r->svid),
                                file_find(core, r->fh), r->exclusive};
    return claim.owner != SLOT_NONE && claim.file != SLOT_NONE &&
           (lock_covers(core, &claim) || leftover_covers(core, &claim));
}
