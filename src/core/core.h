/*
 * core.h -- the lock service as a pure state machine. START READING HERE.
 *
 * No clock, socket, disk, thread, or allocation after core_new(). The same limits, seed, records
 * and inputs give the same outputs, byte for byte. The driver owns the world: it reads the clock,
 * feeds requests, carries batches to the store, and holds back every answer until the batch it
 * depends on is durable.
 *
 *            inputs                                  outputs
 *   request ----------> +---------------+ ---------> answer, with after_txn
 *   stored up to txn -> |     core      | ---------> batch of changed records (pulled)
 *   call ended -------> |               | ---------> calls to registrants (pulled)
 *                       +---------------+ ---------> events for the operator
 *
 * The gate (P1). `after_txn` names the batch that must be durable before the answer may leave: the
 * open batch if anything changed since the last one was taken, else the last one taken. Every
 * answer has one, also those that wrote nothing: they observe state that a crash could still take
 * back. It never decreases, so answers wait in a queue.
 *
 * Batches are pulled, not pushed: changes mark table slots dirty, and core_take_batch turns the
 * dirty slots into records when the store is free. While one batch syncs the next one fills.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "core/event.h"
#include "core/message.h"
#include "core/notify.h"

struct core;

struct core_limits {
    uint32_t clients_max; /* --max-clients; what is stored above it is kept, new ones are refused */
    uint64_t bytes_max;   /* --max-bytes: names */
    uint32_t batch_puts_max;              /* records that one batch may add or change */
    uint32_t slots_used[RECORD_KIND_END]; /* what the store holds already; see store_summary */
    bool mon_from_loopback;               /* --mon-from loopback */
    struct bytes server_name;             /* our name in calls to registrants; borrowed */
    uint64_t notify_timeout_ns;           /* --notify-timeout: one attempt, all in all (D4) */
    uint64_t window_ns;                   /* --recovery-window */
    uint64_t give_up_ns;                  /* --give-up, after the window (R-NOTIFY-4) */
};

struct core_boot {
    uint64_t wall_ns;   /* wall clock, for the state number of an incomplete store (D16) */
    bool may_have_lost; /* D16: from store_summary, or --assume-lost */
};

enum core_input_kind {
    CORE_REQUEST,
    CORE_STORED,
    CORE_READY,     /* we serve and are registered: notification begins (R-NOTIFY-7) */
    CORE_CALL_DONE, /* a call of core_next_call ended */
};

struct core_input {
    enum core_input_kind kind;
    uint64_t now_ns;  /* monotonic; CHECKed never to go backwards */
    uint64_t wall_ns; /* wall clock; only ever stored and shown */
    union {
        struct {
            const struct peer *from;
            const struct request *request;
        };
        struct {
            uint64_t txn;  /* every batch up to this one is durable */
            bool has_room; /* the store takes new records */
        };
        struct {
            uint64_t call; /* its id */
            bool is_answered;
            uint32_t answered_count; /* of its statuses, the first ones */
        };
    };
};

/* The answer to a request. Other inputs have none and leave it untouched. */
struct core_answer {
    uint64_t after_txn;
    struct response response;
};

/* One thing told to a registrant. */
struct core_call_status {
    struct bytes mon_name;
    uint32_t state;
};

#define CORE_CALL_STATUS_MAX 2

/* A call to make: to this address only, found through its portmapper or at the hint (D3). */
struct core_call {
    uint64_t id;
    struct address to, local;
    uint32_t prog, vers, proc;
    uint16_t port_hint;
    uint64_t deadline_ns;
    struct bytes priv;
    uint32_t status_count; /* one after another, over one connection */
    struct core_call_status status[CORE_CALL_STATUS_MAX];
};

/* Birth: reserve everything, replay the store, boot. NULL when memory cannot be reserved. */
struct core *core_new(const struct core_limits *limits, uint64_t seed);
void core_free(struct core *core);

/* One stored record. RECORD_CORRUPT is reported as an event, marks the store incomplete (D16) and
 * is not fatal; RECORD_NEWER is for the caller to refuse (exit 78). */
enum record_result core_load(struct core *core, enum record_kind kind, uint32_t slot,
                             struct bytes value);

/*
 * Ends loading. The next odd state and the next epoch go into the first batch, which is open when
 * this returns: no answer can leave before it is durable (R-PER-4, D6).
 */
void core_start(struct core *core, const struct core_boot *boot);

/* Life. */
void core_step(struct core *core, const struct core_input *input, struct core_answer *ret);

/*
 * The changes since the last batch, or false when there are none. The batch's memory belongs to the
 * store until CORE_STORED names its txn; no other batch may be taken before.
 */
bool core_take_batch(struct core *core, struct store_batch *ret);

/* True when the open batch holds all it can: take it before the next request or ended call. */
bool core_is_full(const struct core *core);

/* The next call whose time has come and whose content is durable; false: none. Views die with the
 * next call into the core. CORE_CALL_DONE must follow, sooner or later. */
bool core_next_call(struct core *core, uint64_t now_ns, struct core_call *ret);
/* When core_next_call may have one; UINT64_MAX: not as things are. */
uint64_t core_deadline_ns(const struct core *core);

/* What operators see. */
struct core_status {
    uint64_t epoch;
    uint32_t state;
    uint32_t registrants;
    uint32_t notices, names;
    uint64_t bytes_used;
    uint64_t durable_txn;
    bool incomplete, has_room;
    struct notify_counters notify;
};
void core_status(const struct core *core, struct core_status *ret);
struct event_ring *core_events(struct core *core);

/* For tests and the simulator: abort on a broken invariant; compare two histories. */
void core_check(const struct core *core);
uint64_t core_digest(const struct core *core);

#endif
