/*
 * event.h -- things worth reporting to an operator, as data.
 *
 * Code below the daemon does not log. It reports into a small ring that the daemon empties once per
 * turn; when the ring is full the newest are counted, not kept. Peer data is copied, cut to a fixed
 * length, and escaped when printed (R-SEC-8).
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/address.h"

#define EVENT_NAME_MAX 96
#define EVENT_FH_MAX   64 /* of a file handle */

enum event_kind {
    EVENT_BAD_NAME,         /* a name that R-NSM-1 refuses */
    EVENT_LIMIT,            /* a new registration over --max-clients */
    EVENT_NO_BYTES,         /* over --max-bytes */
    EVENT_NO_ROOM,          /* the store has no space for new records */
    EVENT_BAD_CALLBACK,     /* a my_prog that D1 refuses */
    EVENT_NOT_ALLOWED,      /* SM_MON family from an address that --mon-from excludes */
    EVENT_CRASH_REFUSED,    /* SM_SIMU_CRASH from elsewhere than a local privileged port */
    EVENT_CRASH_SIMULATED,  /* SM_SIMU_CRASH accepted */
    EVENT_NOTICE,           /* SM_NOTIFY accepted: name, value = state */
    EVENT_NOTICE_IGNORED,   /* SM_NOTIFY that nobody here has a reason to believe */
    EVENT_NOTICE_AMBIGUOUS, /* the same: several clients there have that name, with their domains */
    EVENT_NOTICE_FOREIGN,   /* the same: the resolver does not know that name at that address */
    EVENT_NOTICE_UNCONFIRMED, /* the same, and the client's own status monitor was asked */
    EVENT_TOLD,               /* a target answered: name = its own, value = the state that it was
                               * sent */
    EVENT_NOT_REACHED,        /* a first attempt failed: the same; it is tried again */
    EVENT_GIVEN_UP,           /* --give-up: the same; the next start tries again */
    EVENT_ROUND_OVER, /* all were tried once: name = how many, in words; value = milliseconds */
    EVENT_CLIENT_REBOOTED,   /* a lock client restarted: name = its caller_name, value = state */
    EVENT_CLIENT_UNREACHED,  /* D5: not reached: name = its caller_name, value = locks and shares */
    EVENT_CLIENT_RENEWED,    /* a lock client rebooted: name = its caller_name, value = id */
    EVENT_CLIENT_FREED,      /* all it held before is freed: value = how many locks and shares */
    EVENT_NAMESAKE_REFUSED,  /* D17: by a lock of its name elsewhere: name, value = holder's id */
    EVENT_CLIENT_MOVED,      /* D17: by an order: name, from = its new address, value = id */
    EVENT_NOT_RESUMED,       /* --recovery resume, but this start must reclaim: name = why */
    EVENT_GRACE_OVER,        /* value = stored locks and shares that nobody has reclaimed */
    EVENT_GRACE_SETTLED,     /* the same, and there are none */
    EVENT_CLIENT_RECLAIMED,  /* a client has reclaimed all it held: name, value of total */
    EVENT_CLIENT_LOST,       /* it has not, and the rest is released: the same */
    EVENT_RECLAIM_DENIED,    /* a reclaim that matches nothing stored, or conflicts: name */
    EVENT_HOLDER_SILENT,     /* others wait for it, and it does not answer: name, value = id */
    EVENT_FREE_ALL_IGNORED,  /* FREE_ALL of a name that has nothing here from that address */
    EVENT_LOCK_LIMIT,        /* a lock over --max-locks: name = caller_name, value = the limit */
    EVENT_CLIENT_LOCK_LIMIT, /* the same over --max-locks-per-client */
    EVENT_WAITER_LIMIT,      /* the same over --max-waiters */
    EVENT_ADDRESS_LIMIT,     /* the same over --max-per-address: value = the share in force */
    EVENT_RECORD_EVICTED,    /* a record that holds nothing went for a new one: name, value = id */
    EVENT_CORRUPT_RECORD,    /* at load: name = kind, value = slot */
    EVENT_RPC_VERSION,       /* another RPC version than 2 */
    EVENT_TOO_LONG,          /* a record or datagram over the limit */
    EVENT_SLOW_PEER,         /* a connection closed inside a record, or with answers unread */
    EVENT_EVICTED,           /* an idle connection closed for a new one: --max-connections */
    EVENT_TURNED_AWAY,       /* a new connection closed: --max-connections, or no memory */
    EVENT_NO_INTERFACE,      /* dropped: link-local, and its interface has gone or no good name */
    EVENT_MALFORMED,         /* no RPC call could be read */
    EVENT_BAD_ARGUMENTS,     /* GARBAGE_ARGS */
    EVENT_UNKNOWN_CALL,      /* unknown program, version or procedure: name says which, in words */
    EVENT_BAD_CREDENTIAL,    /* AUTH_ERROR */
    EVENT_UNPRIVILEGED,      /* --require-privileged-port refused a call */
    EVENT_LOCK_NOT_ALLOWED,  /* a lock for an address that --allow does not list: name */
    EVENT_LOCK_NOT_EXPORTED, /* a lock for a client that the export does not list: name */
    EVENT_LOCK_READ_ONLY,    /* an exclusive lock of a client that may only read there: name */
    EVENT_LOCK_NO_ACCESS,    /* a lock for a user who may not read the file: name */
    EVENT_LOCK_STUCK,        /* a lock of a file whose file system does not answer: name */
    EVENT_LOCAL_REFUSED,     /* a program on this machine holds what a client holds: its file */
    EVENT_LOCAL_UNSEEN,      /* a file with locks cannot be opened: programs do not see them */
    EVENT_LOCAL_NO_ROOM,     /* a lock of one more file than programs can be kept from: name */
    EVENT_FILE_GONE,         /* a file was removed: its locks are freed; value = how many */
    EVENT_OLD_CALL, /* a copy of a call that its owner has gone on from: value = procedure */
    EVENT_TOO_MANY_MESSAGES, /* dropped: one address sends more over UDP than R-SEC-6 allows */
    EVENT_UNRESOLVED,        /* monitor: no address is known of a watched host: name = mon_name */
    EVENT_RESOLVED,          /* monitor: it is by now: the same */
    EVENT_UPCALL,            /* monitor: the lock manager was notified of a host: mon_name, state */
    EVENT_UPCALL_FAILED,     /* monitor: it was not, at the first attempt, or for --give-up */
    EVENT_RESTART_NOTICE,    /* monitor: everybody is notified of a restart: value = state */
    EVENT_LOCKD_RESTARTED,   /* monitor: a new priv without SM_UNMON: name = mon_name, value = id */
    EVENT_REGISTERED,        /* of core_feed: a new SM_MON record: name = mon_name, value = id */
    EVENT_CLIENT_ADDED,      /* of core_feed: a new lock client: name, value = id */
    EVENT_BLOCKED,           /* of core_feed: a request waits: name = caller_name, value = id */
    EVENT_GRANTED,           /* of core_feed: and it has its lock: the same */
    EVENT_TRACKED_EXPIRED,   /* of core_feed: protocol and key, value = id */
    EVENT_KIND_END,
};

struct event {
    enum event_kind kind;
    struct address from; /* family 0 when it concerns no peer */
    uint64_t value;
    uint64_t total;    /* of which `value` is a part; 0: it is of nothing */
    uint32_t name_len; /* before it was cut */
    uint8_t name[EVENT_NAME_MAX];
    uint32_t fh_len; /* of the file it is about; 0: of none */
    uint8_t fh[EVENT_FH_MAX];
};

#define EVENT_RING_MAX 256

struct event_ring {
    struct event at[EVENT_RING_MAX];
    uint32_t head, count;
    uint64_t lost; /* reported while the ring was full */
};

void event_add(struct event_ring *ring, enum event_kind kind, const struct address *from,
               struct bytes name, uint64_t value);
/* The same about a file. */
void event_add_of_file(struct event_ring *ring, enum event_kind kind, const struct address *from,
                       struct bytes name, uint64_t value, struct bytes fh);
/* The same of so many out of a total. */
void event_add_part(struct event_ring *ring, enum event_kind kind, const struct address *from,
                    struct bytes name, uint64_t value, uint64_t total);
/* The same for what sums up others: in a full ring it takes the place of the newest. */
void event_add_summary(struct event_ring *ring, enum event_kind kind, struct bytes name,
                       uint64_t value);
/* The oldest event, removed. False: none. */
bool event_take(struct event_ring *ring, struct event *ret);

#endif
