/*
 * tracking.h -- what a server of another protocol asks of the tracker over the control socket, and
 * what it is answered.
 *
 * It is another process: it knows its clients by (protocol, key), and repeats what it was not
 * answered. So each of these may be said twice without harm, and each answer waits for core_fence
 * as it is after it (P1), also one that changed nothing.
 *
 *   REGISTER     the same client again: connected, with what it says of itself now
 *   RECONNECT    the same
 *   DISCONNECT   its time begins again, from the repeat
 *   UPDATE       the same bytes again
 *   REMOVE       UNKNOWN: it is gone. With the id it cannot mean a newer client of that key
 *   TAKE         the one that got lost comes again after TRACKER_AGAIN_NS (tracker.h)
 *
 * A `connection` is the number of a client's last register or reconnect, stored with it. Who names
 * an older one is REPLACED: the late "connection closed" of a connection that was replaced cannot
 * disconnect the new one.
 */
#ifndef CORE_TRACKING_H
#define CORE_TRACKING_H

#include "base/address.h"
#include "store/record.h"

struct core;

#define TRACKING_NAME_MAX 255

/* One connection of one client: gone as soon as it has another one, and after a restart. */
struct tracker_ref {
    uint64_t handle;
    uint32_t generation;
};

/* One client as anybody may see it. Views die with the next call that changes the core. */
struct tracker_view {
    uint64_t id;
    struct bytes protocol, key;
    struct bytes name; /* what it is called; its key, when nobody said */
    struct address address;
    enum record_tracked_state state;
    uint64_t registered_ns;
    uint64_t deadline_ns; /* wall clock: it has until then to come back; 0: no such time is known */
    uint32_t window_s;    /* in force */
    uint32_t generation;  /* of its connections */
    struct bytes bytes;
    struct tracker_ref ref;
};

enum tracking_kind {
    TRACKING_REGISTER,
    TRACKING_RECONNECT,
    TRACKING_DISCONNECT,
    TRACKING_UPDATE,
    TRACKING_REMOVE,
    TRACKING_TAKE,
    TRACKING_LOOK, /* changes nothing */
};

/* Views of the caller's memory. The caller has checked the lengths: tracking_is_good. */
struct tracking {
    enum tracking_kind kind;
    struct bytes protocol;
    struct bytes key;       /* all but TAKE */
    uint64_t id;            /* DISCONNECT, UPDATE, REMOVE: of this client; 0: of that key */
    uint32_t connection;    /* the same: said by this connection of it; 0: by any */
    struct bytes name;      /* REGISTER; empty: its key */
    struct bytes bytes;     /* REGISTER, UPDATE */
    struct address address; /* REGISTER, RECONNECT; RECONNECT: of no family: as it was */
    uint32_t window_s;      /* REGISTER: its own; 0: that of its protocol, or the shared one */
    uint32_t timeout_s;     /* DISCONNECT: how long it may stay away; 0: its window */
};

enum tracking_result {
    TRACKING_ADDED,
    TRACKING_UPDATED, /* was connected, or only its bytes changed */
    TRACKING_RECONNECTED,
    TRACKING_DISCONNECTED,
    TRACKING_REMOVED,
    TRACKING_TAKEN, /* an expired one: clean up, then REMOVE */
    TRACKING_FOUND,
    TRACKING_NONE,     /* TAKE: none is expired, or all were taken a moment ago */
    TRACKING_UNKNOWN,  /* no such client */
    TRACKING_EXPIRED,  /* its time has run out, and nobody has cleaned up after it yet */
    TRACKING_REPLACED, /* it has a newer connection */
    TRACKING_LIMIT,    /* a new one over --max-clients, --max-per-address, or of a 17th protocol */
    TRACKING_BYTES,    /* over --max-bytes */
    TRACKING_ROOM,     /* a new one, and the store has no space */
    TRACKING_LATER,    /* the batch is full, says the driver: ask again */
};

struct tracking_answer {
    enum tracking_result result;
    bool has_view; /* of the client as it is now; dies with the next step */
    struct tracker_view view;
};

/* A word that may be tracked: not "nlm" or "nsm", which have tables of their own. */
bool tracking_is_protocol(struct bytes protocol);
/* Its words are not longer than they may be, and the key is not empty. */
bool tracking_is_good(const struct tracking *tracking);

void tracking_answer(struct core *core, const struct tracking *tracking,
                     struct tracking_answer *ret);

#endif
