/*
 * admit.c -- see admit.h.
 */
#include "core/admit.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/state.h"

static void report(struct core *core, enum event_kind kind, const struct peer *from,
                   const struct lock_request *r, uint64_t value)
{
    event_add(&core->events, kind, &from->address, r->caller_name, value);
}

uint32_t admit_client(struct core *core, const struct peer *from, const struct lock_request *r,
                      uint32_t slot)
{
    switch (slot != SLOT_NONE ? CLIENT_FOUND
                              : client_add(core, from, r->caller_name, core->wall_ns, &slot)) {
    case CLIENT_FOUND:
    case CLIENT_ADDED:
        client_asked(core, slot, from, r);
        return slot;
    case CLIENT_LIMIT:
        report(core, EVENT_LIMIT, from, r, core->limits.clients_max);
        return SLOT_NONE;
    case CLIENT_ADDRESS:
        quota_refused(core, &from->address, r->caller_name, QUOTA_CLIENT);
        return SLOT_NONE;
    case CLIENT_BYTES:
        report(core, EVENT_NO_BYTES, from, r, core->limits.bytes_max);
        return SLOT_NONE;
    case CLIENT_ROOM:
        report(core, EVENT_NO_ROOM, from, r, 0);
        return SLOT_NONE;
    }
    UNREACHABLE();
}

/* True when there is room; the reason is reported when there is not. */
static bool has_room(struct core *core, const struct peer *from, const struct lock_request *r,
                     enum lock_room room, enum quota_kind kind)
{
    switch (room) {
    case LOCK_ROOM:
        return true;
    case LOCK_ROOM_TOTAL:
        report(core, EVENT_LOCK_LIMIT, from, r, core->limits.locks_max);
        return false;
    case LOCK_ROOM_CLIENT:
        report(core, EVENT_CLIENT_LOCK_LIMIT, from, r, core->limits.locks_per_client_max);
        return false;
    case LOCK_ROOM_ADDRESS:
        quota_refused(core, &from->address, r->caller_name, kind);
        return false;
    case LOCK_ROOM_BYTES:
        report(core, EVENT_NO_BYTES, from, r, core->limits.bytes_max);
        return false;
    case LOCK_ROOM_STORE:
        report(core, EVENT_NO_ROOM, from, r, 0);
        return false;
    }
    UNREACHABLE();
}

/* The same question where the client may be unknown: its address has a share all the same. */
static enum lock_room room_for(const struct core *core, const struct peer *from, uint32_t client)
{
    enum lock_room room = lock_room(core, client);
    bool is_known = client != SLOT_NONE || room != LOCK_ROOM;
    return is_known || quota_admits_address(core, &from->address, QUOTA_LOCK) ? room
                                                                              : LOCK_ROOM_ADDRESS;
}

bool admit_lock(struct core *core, const struct peer *from, const struct lock_request *r,
                uint32_t client)
{
    return has_room(core, from, r, room_for(core, from, client), QUOTA_LOCK);
}

bool admit_waiter(struct core *core, const struct peer *from, const struct lock_request *r,
                  uint32_t client)
{
    if (waiter_count(core) >= core->limits.waiters_max) {
        MARK("waiter_limit");
        report(core, EVENT_WAITER_LIMIT, from, r, core->limits.waiters_max);
        return false;
    }
    if (!quota_admits(core, client_at(core, client)->quota, QUOTA_WAITER)) {
        quota_refused(core, &from->address, r->caller_name, QUOTA_WAITER);
        return false;
    }
    if (core->limits.resume && !core->has_room) {
        MARK("waiter_no_room_in_the_store");
        report(core, EVENT_NO_ROOM, from, r, 0);
        return false;
    }
    return true;
}

void admit_report_share(struct core *core, const struct peer *from, const struct lock_request *r,
                        uint32_t client)
{
    (void)has_room(core, from, r, share_room(core, client), QUOTA_SHARE);
}

void admit_report_bytes(struct core *core, const struct peer *from, const struct lock_request *r)
{
    report(core, EVENT_NO_BYTES, from, r, core->limits.bytes_max);
}

void admit_report_slots(struct core *core, const struct peer *from, const struct lock_request *r,
                        uint32_t client)
{
    if (lock_element_free_count(core) == 0)
        report(core, EVENT_LOCK_LIMIT, from, r, core->limits.locks_max);
    else if (client_at(core, client)->life.lock_count >= lock_most_pieces(core, client))
        report(core, EVENT_CLIENT_LOCK_LIMIT, from, r, core->limits.locks_per_client_max);
    else
        admit_report_bytes(core, from, r);
}
