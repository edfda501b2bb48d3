/*
 * admit.c -- see admit.h.
 */
#include "core/admit.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/state.h"

static void report_limit(struct core *core, const struct peer *from, struct bytes name,
                         enum quota_kind kind)
{
    const struct core_limits *limits = &core->limits;
    bool is_client = kind == QUOTA_CLIENT || kind == QUOTA_REGISTRANT || kind == QUOTA_TRACKED;
    if (is_client)
        event_add(&core->events, EVENT_LIMIT, &from->address, name, limits->clients_max);
    else if (kind == QUOTA_WAITER)
        event_add(&core->events, EVENT_WAITER_LIMIT, &from->address, name, limits->waiters_max);
    else
        event_add(&core->events, EVENT_LOCK_LIMIT, &from->address, name, limits->locks_max);
}

bool admit_refuses(struct core *core, enum admission admission, const struct peer *from,
                   struct bytes name, enum quota_kind kind)
{
    switch (admission) {
    case ADMIT_NEW:
    case ADMIT_FOUND:
        return false;
    case ADMIT_LIMIT:
        report_limit(core, from, name, kind);
        return true;
    case ADMIT_CLIENT:
        event_add(&core->events, EVENT_CLIENT_LOCK_LIMIT, &from->address, name,
                  core->limits.locks_per_client_max);
        return true;
    case ADMIT_ADDRESS:
        quota_refused(core, &from->address, name, kind);
        return true;
    case ADMIT_BYTES:
        event_add(&core->events, EVENT_NO_BYTES, &from->address, name, core->limits.bytes_max);
        return true;
    case ADMIT_STORE:
        event_add(&core->events, EVENT_NO_ROOM, &from->address, name, 0);
        return true;
    }
    UNREACHABLE();
}

uint32_t admit_client(struct core *core, const struct peer *from, const struct lock_request *r,
                      uint32_t slot)
{
    enum admission admission = slot != SLOT_NONE
                                   ? ADMIT_FOUND
                                   : client_add(core, from, r->caller_name, core->wall_ns, &slot);
    if (admit_refuses(core, admission, from, r->caller_name, QUOTA_CLIENT))
        return SLOT_NONE;
    client_asked(core, slot, from, r);
    return slot;
}

uint32_t admit_file(struct core *core, const struct peer *from, const struct lock_request *r,
                    uint32_t file)
{
    if (file != SLOT_NONE) {
        file_keep(core, file);
        return file;
    }
    enum admission admission = ADMIT_ADDRESS;
    if (mirror_admits(core, &from->address)) {
        file = file_add(core, r->fh);
        admission = file == SLOT_NONE ? ADMIT_BYTES : ADMIT_NEW;
    }
    if (admit_refuses(core, admission, from, r->caller_name, QUOTA_FILE))
        return SLOT_NONE;
    mirror_charge(core, file, &from->address);
    return file;
}

bool admit_lock(struct core *core, const struct peer *from, const struct lock_request *r,
                uint32_t client)
{
    enum admission admission = lock_room(core, client);
    if (client == SLOT_NONE && admission == ADMIT_NEW &&
        !quota_admits_address(core, &from->address, QUOTA_LOCK))
        admission = ADMIT_ADDRESS;
    return !admit_refuses(core, admission, from, r->caller_name, QUOTA_LOCK);
}

void admit_report_slots(struct core *core, const struct peer *from, const struct lock_request *r,
                        uint32_t client)
{
    enum admission admission = ADMIT_BYTES;
    if (lock_element_free_count(core) == 0)
        admission = ADMIT_LIMIT;
    else if (client_at(core, client)->life.lock_count >= lock_most_pieces(core, client))
        admission = ADMIT_CLIENT;
    (void)admit_refuses(core, admission, from, r->caller_name, QUOTA_LOCK);
}
