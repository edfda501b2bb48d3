/*
 * locking_share.c -- what SHARE and UNSHARE decide; see locking.h.
 *
 * As for locks: grace lets only reclaims through, and a reclaim gets what is stored, or anything
 * that fits where the store may have lost something.
 */
#include "core/locking.h"

#include "base/check.h"
#include "core/admit.h"
#include "core/state.h"

/* As for locks: what is stored, or anything that fits where the store may have lost something. */
static bool may_reclaim_share(struct core *core, uint32_t client, const struct lock_request *r)
{
    bool is_known = client != SLOT_NONE && share_matches(core, client, r);
    return is_known || (grace_is_on(core) && grace_trusts(core));
}

/* Who rebooted is in nobody's way. */
static void free_doomed_shares(struct core *core, struct bytes fh)
{
    uint32_t file = file_find(core, fh);
    if (file == SLOT_NONE)
        return;
    file_keep(core, file);
    share_free_doomed(core, file, CLIENT_DRAIN_MAX);
    file_release(core, file);
}

static enum lock_status take_share(struct core *core, const struct peer *from,
                                   const struct lock_request *r, uint32_t client)
{
    free_doomed_shares(core, r->fh);
    if (share_is_denied(core, client, r)) {
        MARK("share_denied");
        namesake_of_share(core, from, r);
        return LOCK_DENIED;
    }
    uint32_t file = admit_file(core, from, r, file_find(core, r->fh));
    if (file == SLOT_NONE)
        return LOCK_NO_RESOURCES;
    enum lock_status status = LOCK_NO_RESOURCES;
    client = admit_client(core, from, r, client);
    if (client != SLOT_NONE) {
        status = share_take(core, client, r, core->wall_ns);
        if (status == LOCK_NO_RESOURCES)
            (void)admit_refuses(core, share_room(core, client), from, r->caller_name, QUOTA_SHARE);
        client_counts_changed(core, client); /* one that is new and was refused has nothing here */
    }
    file_release(core, file);
    return status;
}

enum lock_status locking_share(struct core *core, const struct peer *from,
                               const struct lock_request *r)
{
    if (r->is_bad_handle)
        return LOCK_STALE_HANDLE;
    if (r->refusal != LOCK_GRANTED)
        return r->refusal;
    uint32_t client = locking_find_client(core, from, r->caller_name);
    if (!r->reclaim)
        return grace_is_on(core) ? LOCK_GRACE : take_share(core, from, r, client);
    enum lock_status status = grace_is_on(core) ? LOCK_DENIED : LOCK_GRACE;
    bool is_known = client != SLOT_NONE && share_matches(core, client, r);
    uint32_t unsettled = is_known ? client_at(core, client)->recovery.unsettled_shares : 0;
    if (may_reclaim_share(core, client, r))
        status = take_share(core, from, r, client);
    else
        namesake_of_share_reclaim(core, from, r);
    bool is_news = !is_known || client_at(core, client)->recovery.unsettled_shares < unsettled;
    locking_note_reclaim(core, from, r, status, is_news);
    return status;
}

void locking_unshare(struct core *core, const struct peer *from, const struct lock_request *r)
{
    uint32_t client = locking_find_client(core, from, r->caller_name);
    if (client != SLOT_NONE)
        share_release(core, client, r);
}
