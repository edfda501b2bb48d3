/*
 * tracker_list.c -- the one list of all clients, of whatever protocol; see tracker.h.
 *
 * Three tables in a row: registrants, lock clients, and those of tracker.c. The cursor is the table
 * and the slot after the one seen last, so that a list can be read in pieces while clients come and
 * go: slots do not move.
 *
 * Nothing here changes anything. What NLM and NSM know of a client is said in the tracker's words:
 *
 *   nsm   told of our state ............................................... CONNECTED
 *         still to be told ................................................ DISCONNECTED
 *   nlm   heard of in this run, told of our state, or needs not be told ... CONNECTED
 *         else, while something that it held may still be reclaimed ....... DISCONNECTED
 *         else ............................................................ EXPIRED
 */
#include "base/check.h"
#include "core/state.h"

#define SECOND_NS UINT64_C(1000000000)

enum part { PART_NSM, PART_NLM, PART_TRACKED, PART_END };

static uint32_t seconds(uint64_t ns)
{
    return (uint32_t)((ns + SECOND_NS - 1) / SECOND_NS);
}

/* A moment of the monotonic clock by the wall clock. */
static uint64_t wall_of(const struct core *core, uint64_t ns)
{
    return core->wall_ns + (ns > core->now_ns ? ns - core->now_ns : 0);
}

void tracker_view_slot(const struct core *core, uint32_t slot, struct tracker_view *ret)
{
    const struct tracker *tracker = &core->tracker;
    const struct tracked *tracked = tracker_at(core, slot);
    *ret = (struct tracker_view){
        .id = tracked->id,
        .protocol = intern_bytes(&tracker->protocols, tracked->protocol),
        .name = {tracked->key, tracked->key_len},
        .address = tracked->address,
        .state = tracker_state(core, tracked),
        .registered_ns = tracked->registered_ns,
        .deadline_ns = tracked->deadline_ns,
        .window_s = seconds(tracker_window_ns(core, tracked)),
        .generation = tracked->generation,
        .ref = {table_handle(&tracker->table, slot), tracked->generation},
    };
    if (tracked->bytes_len > 0)
        ret->bytes = arena_at(core->arena, tracked->cell, tracked->bytes_len);
    if (timers_is_set(&tracker->timers, slot))
        ret->deadline_ns = wall_of(core, tracked->until_ns); /* a restart may have moved it */
}

static void view_registrant(const struct core *core, uint32_t slot, struct tracker_view *ret)
{
    const struct registrant *r = table_at(&core->registrants.table, slot);
    bool is_told = target_knows(&core->server, r->told_state);
    *ret = (struct tracker_view){
        .id = r->id,
        .protocol = bytes_of_text("nsm"),
        .name = intern_bytes(&core->names, r->my_name),
        .state = is_told ? RECORD_TRACKED_CONNECTED : RECORD_TRACKED_DISCONNECTED,
        .registered_ns = r->registered_ns,
        .window_s = seconds(core->limits.window_ns),
    };
    memcpy(&ret->address, intern_bytes(&core->registrants.addresses, r->address).at,
           sizeof ret->address);
}

static enum record_tracked_state client_state(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    bool is_owed = (client->flags & RECORD_CLIENT_MONITORED) != 0 && !target_is_told(core, slot);
    if (!is_owed || client->reached_ns != 0)
        return RECORD_TRACKED_CONNECTED;
    bool may_reclaim = grace_is_on(core) || client->unsettled_shares > 0 ||
                       unsettled_of_client(core, slot) != SLOT_NONE;
    return may_reclaim ? RECORD_TRACKED_DISCONNECTED : RECORD_TRACKED_EXPIRED;
}

static void view_client(const struct core *core, uint32_t slot, struct tracker_view *ret)
{
    const struct client *client = client_at(core, slot);
    *ret = (struct tracker_view){
        .id = client->id,
        .protocol = bytes_of_text("nlm"),
        .name = intern_bytes(&core->names, client->name),
        .address = client_address(core, slot),
        .state = client_state(core, slot),
        .registered_ns = client->registered_ns,
        .window_s = seconds(core->limits.grace_ns),
        .lock_count = client->lock_count,
        .generation = client->incarnation,
    };
    if (ret->state == RECORD_TRACKED_DISCONNECTED && core->grace.phase == GRACE_STANDING)
        ret->deadline_ns = wall_of(core, core->grace.end_ns);
}

/* A row per table: what it holds, and for which protocol; none: for any other. */
static const struct {
    const char *protocol;
    void (*view)(const struct core *core, uint32_t slot, struct tracker_view *ret);
} parts[PART_END] = {
    [PART_NSM] = {"nsm", view_registrant},
    [PART_NLM] = {"nlm", view_client},
    [PART_TRACKED] = {NULL, tracker_view_slot},
};

static const struct table *table_of(const struct core *core, enum part part)
{
    switch (part) {
    case PART_NSM:
        return &core->registrants.table;
    case PART_NLM:
        return &core->clients.table;
    case PART_TRACKED:
        return &core->tracker.table;
    case PART_END:
        break;
    }
    UNREACHABLE();
}

static bool is_wanted_part(enum part part, struct bytes protocol)
{
    bool is_nsm = bytes_equal(protocol, bytes_of_text(parts[PART_NSM].protocol));
    bool is_nlm = bytes_equal(protocol, bytes_of_text(parts[PART_NLM].protocol));
    if (protocol.len == 0)
        return true;
    return part == PART_NSM ? is_nsm : part == PART_NLM ? is_nlm : !is_nsm && !is_nlm;
}

static bool is_wanted(const struct tracker_filter *filter, const struct tracker_view *view)
{
    if (filter->protocol.len > 0 && !bytes_equal(filter->protocol, view->protocol))
        return false;
    return filter->states == 0 || (filter->states & UINT32_C(1) << view->state) != 0;
}

bool tracker_list(const struct core *core, const struct tracker_filter *filter, uint64_t *cursor,
                  struct tracker_view *ret)
{
    uint32_t first = (uint32_t)(*cursor >> 32);
    uint32_t after = (uint32_t)*cursor; /* slot + 1 of the last one seen; 0: none */
    for (uint32_t part = first; part < PART_END; part++, after = 0) {
        const struct table *table = table_of(core, (enum part)part);
        if (!is_wanted_part((enum part)part, filter->protocol))
            continue;
        uint32_t slot = table_next(table, after == 0 ? SLOT_NONE : after - 1);
        for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
            struct tracker_view view;
            parts[part].view(core, slot, &view);
            if (!is_wanted(filter, &view))
                continue;
            *ret = view;
            *cursor = (uint64_t)part << 32 | (slot + 1);
            return true;
        }
    }
    *cursor = (uint64_t)PART_END << 32;
    return false;
}
