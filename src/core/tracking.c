/*
 * tracking.c -- what REGISTER, RECONNECT, DISCONNECT, UPDATE, REMOVE and TAKE of another process
 * decide; see tracking.h.
 *
 * The tracker itself knows connections by refs, which die with a run. Others know them by numbers
 * that are stored. Here one becomes the other, and GONE becomes a reason.
 */
#include "core/tracking.h"

#include "base/check.h"
#include "core/state.h"

bool tracking_is_protocol(struct bytes protocol)
{
    return tracker_is_protocol(protocol);
}

bool tracking_is_good(const struct tracking *tracking)
{
    bool has_key = tracking->kind != TRACKING_TAKE;
    return tracker_is_protocol(tracking->protocol) && (tracking->key.len > 0) == has_key &&
           tracking->key.len <= RECORD_KEY_MAX && tracking->name.len <= TRACKING_NAME_MAX &&
           tracking->bytes.len <= RECORD_BYTES_MAX;
}

/* Why the tracker says that a client of this key is gone. */
static enum tracking_result reason(const struct core *core, const struct tracking *tracking)
{
    struct tracker_view view;
    if (!tracker_find(core, tracking->protocol, tracking->key, &view))
        return TRACKING_UNKNOWN;
    return view.state == RECORD_TRACKED_EXPIRED ? TRACKING_EXPIRED : TRACKING_REPLACED;
}

static enum tracking_result word_of(const struct core *core, const struct tracking *tracking,
                                    enum tracker_result result)
{
    switch (result) {
    case TRACKER_ADDED:
        return TRACKING_ADDED;
    case TRACKER_UPDATED:
        return tracking->kind == TRACKING_DISCONNECT ? TRACKING_DISCONNECTED : TRACKING_UPDATED;
    case TRACKER_RECONNECTED:
        return TRACKING_RECONNECTED;
    case TRACKER_GONE:
        return reason(core, tracking);
    case TRACKER_LIMIT:
        return TRACKING_LIMIT;
    case TRACKER_BYTES:
        return TRACKING_BYTES;
    case TRACKER_ROOM:
        return TRACKING_ROOM;
    }
    UNREACHABLE();
}

static enum tracking_result enrol(struct core *core, const struct tracking *tracking)
{
    struct tracker_client client = {.protocol = tracking->protocol,
                                    .key = tracking->key,
                                    .name = tracking->name,
                                    .bytes = tracking->bytes,
                                    .address = tracking->address,
                                    .window_s = tracking->window_s};
    struct tracker_view view;
    return word_of(core, tracking, tracker_register(core, &client, &view));
}

static enum tracking_result reconnect(struct core *core, const struct tracking *tracking)
{
    struct tracker_view view;
    struct address address = tracking->address;
    if (address.family == 0 && tracker_find(core, tracking->protocol, tracking->key, &view))
        address = view.address;
    return word_of(core, tracking,
                   tracker_reconnect(core, tracking->protocol, tracking->key, &address, &view));
}

/* What concerns one that is there: of that id, and said by its last connection. */
static enum tracking_result change(struct core *core, const struct tracking *tracking)
{
    struct tracker_view view;
    if (!tracker_find(core, tracking->protocol, tracking->key, &view) ||
        (tracking->id != 0 && view.id != tracking->id))
        return TRACKING_UNKNOWN;
    if (tracking->connection != 0 && view.generation != tracking->connection)
        return TRACKING_REPLACED;
    if (tracking->kind == TRACKING_REMOVE) {
        CHECK(tracker_remove(core, view.ref));
        return TRACKING_REMOVED;
    }
    return word_of(core, tracking,
                   tracking->kind == TRACKING_DISCONNECT
                       ? tracker_disconnect(core, view.ref, tracking->timeout_s)
                       : tracker_update(core, view.ref, tracking->bytes));
}

static enum tracking_result decide(struct core *core, const struct tracking *tracking)
{
    struct tracker_view view;
    switch (tracking->kind) {
    case TRACKING_REGISTER:
        return enrol(core, tracking);
    case TRACKING_RECONNECT:
        return reconnect(core, tracking);
    case TRACKING_DISCONNECT:
    case TRACKING_UPDATE:
    case TRACKING_REMOVE:
        return change(core, tracking);
    case TRACKING_LOOK:
        return tracker_look(core, tracking->protocol, tracking->key, &view) ? TRACKING_FOUND
                                                                            : TRACKING_UNKNOWN;
    case TRACKING_TAKE:
        break;
    }
    UNREACHABLE();
}

void tracking_answer(struct core *core, const struct tracking *tracking,
                     struct tracking_answer *ret)
{
    CHECK(tracking_is_good(tracking));
    *ret = (struct tracking_answer){.result = TRACKING_NONE};
    if (tracking->kind == TRACKING_TAKE) {
        ret->has_view = tracker_take_expired(core, tracking->protocol, &ret->view);
        if (ret->has_view)
            ret->result = TRACKING_TAKEN;
        return;
    }
    ret->result = decide(core, tracking);
    if (ret->result != TRACKING_UNKNOWN)
        ret->has_view = tracker_find(core, tracking->protocol, tracking->key, &ret->view);
}
