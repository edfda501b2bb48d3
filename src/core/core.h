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
 *   name resolved ----> +---------------+ ---------> names to resolve (pulled)
 *                                         ---------> events for the operator
 *
 * The gate (P1). `after_txn` names the batch that must be durable before the answer may leave: the
 * open batch if anything changed since the last one was taken, else the last one taken. Every
 * answer has one, also those that wrote nothing: they observe state that a crash could still take
 * back. It never decreases, so answers wait in a queue. With a shared store it always is the open
 * batch: see core_fence.
 *
 * Batches are pulled, not pushed: changes mark table slots dirty, and core_take_batch turns the
 * dirty slots into records when the store is free. While one batch syncs the next one fills.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "base/lease.h"
#include "core/ahead.h"
#include "core/event.h"
#include "core/local.h"
#include "core/message.h"
#include "core/operate.h"
#include "core/status.h"
#include "core/tracking.h"

struct core;

#define CORE_NAMES_MAX      6                    /* beside the numeric address and its PTR name */
#define CORE_CALL_NAMES_MAX (CORE_NAMES_MAX + 2) /* with them: of one CALL_NOTIFY */
#define CORE_LOCALS_MAX     32                   /* of our addresses, with names of their own */
#define CORE_LATE_MAX       2048 /* answers that wait (callback.h, withheld.h): their tickets */

#define FILE_SETS_MAX 64

/* A named set of handles. Set 0 is "default" and has the empty prefix. */
struct file_set {
    struct bytes name, prefix; /* borrowed */
};

/* --window: how long clients of this protocol have to come back, unless they said it themselves. */
struct core_window {
    struct bytes protocol; /* borrowed */
    uint64_t ns;
};

struct core_limits {
    uint32_t clients_max; /* --max-clients, of registrants, lock clients and tracked ones each; what
                           * is stored above it is kept, new ones are refused */
    uint32_t locks_max;   /* --max-locks, of locks and of share reservations each */
    uint32_t locks_per_client_max;        /* --max-locks-per-client */
    uint32_t waiters_max;                 /* --max-waiters */
    uint32_t per_address_percent;         /* --max-per-address; 0 and 100: no share */
    uint32_t local_files_max;             /* that local.h has room for; 0: no matter */
    uint64_t bytes_max;                   /* --max-bytes: names */
    uint32_t batch_puts_max;              /* records that one batch may add or change */
    uint32_t slots_used[RECORD_KIND_END]; /* what the store holds already; see store_summary */
    bool mon_from_loopback;               /* --mon-from loopback */
    struct bytes server_name;             /* our name in calls to registrants; borrowed */
    const struct file_set *file_sets;     /* --share (D14); the first is "default"; borrowed */
    uint32_t file_set_count;              /* at least 1, at most FILE_SETS_MAX */
    uint64_t notify_timeout_ns;           /* --notify-timeout: one attempt, all in all (D4) */
    uint64_t window_ns;                   /* --recovery-window */
    const struct core_window *windows;    /* --window; borrowed */
    uint32_t window_count;
    uint64_t give_up_ns;       /* --give-up, after the window (R-NOTIFY-4) */
    uint64_t grace_ns;         /* --grace */
    bool hold_unreachable;     /* --unreachable hold (R-GRACE-5) */
    bool trust_reclaim;        /* --trust-reclaim (D11) */
    bool distrust_state;       /* --trust-state off (R-SEC-5) */
    bool verify_notices;       /* --verify-notify always (R-SEC-4) */
    bool resume;               /* --recovery resume (D12) */
    const struct lease *lease; /* of a shared store every answer waits for a batch that began after
                                  it; NULL: the store is ours alone */
    const struct bytes *names; /* R-NOTIFY-2: by which clients may know us; borrowed */
    uint32_t name_count;       /* at most CORE_NAMES_MAX */
    /* --role monitor: the status monitor of a machine whose own kernel locks (watched.h). No lock
     * tables; names: --name only. */
    bool is_monitor;
    bool has_callout;            /* monitor: --callout, core_next_callout */
    uint64_t notify_after_ns;    /* --notify-after */
    bool unmon_all_notifies;     /* --unmon-all notify */
    bool lockd_restart_notifies; /* --on-lockd-restart notify */
};

/* Records that one request may put into a batch beyond batch_puts_max, which is looked at before
 * it. */
#define CORE_PUTS_PER_REQUEST_MAX 128

struct core_boot {
    uint64_t now_ns;        /* monotonic, as in struct core_input */
    uint64_t wall_ns;       /* wall clock, for the state number of an incomplete store (D16) */
    bool may_have_lost;     /* D16: from store_summary, or --assume-lost */
    uint64_t echo_until_ns; /* a server that we replaced may call until then (echo.h); 0: none */
    uint8_t boot[RECORD_BOOT_LEN]; /* monitor: of the machine, and */
    uint64_t netns;                /* of the network that we are in: the identity of this run */
};

/* What is known of a call that ended. */
enum core_call_outcome {
    CALL_ANSWERED,    /* executed; of a CALL_STATUS, every status */
    CALL_REFUSED,     /* an RPC error came back */
    CALL_UNDELIVERED, /* provably, nothing reached the host */
    CALL_UNKNOWN,     /* something may have reached it; no answer came in time */
};

enum core_input_kind {
    CORE_REQUEST,
    CORE_STORED,
    CORE_READY,     /* we serve and are registered: notification begins (R-NOTIFY-7) */
    CORE_SERVED,    /* monitor: so does this machine's NFS server, or it has none */
    CORE_CALL_DONE, /* a call of core_next_call ended */
    CORE_RESOLVED,  /* a look-up of core_next_lookup ended */
    CORE_ORDER,     /* an operator changes something */
    CORE_FILE_GONE, /* a file was removed (gone.h) */
    CORE_TRACKING,  /* a server of another protocol speaks of a client (tracking.h) */
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
            enum core_call_outcome outcome;
            uint32_t answered_count; /* of its statuses, the first ones */
            uint32_t status;         /* GRANTED: what it answered, an enum lock_status */
            uint32_t state;          /* SM_STAT: the number it answered; 0: none */
            bool is_repeated;        /* it may have reached the host more than once */
        };
        struct {
            uint64_t lookup;                 /* its id */
            const struct address *addresses; /* that the name has; none: unknown, or a failure */
            uint32_t address_count;
        };
        const struct order *order;
        const struct tracking *tracking;
        struct bytes fh; /* of a file that was removed */
    };
};

/* The answer to a request, an order or a tracking. Other inputs have none, and leave it
 * untouched. */
struct core_answer {
    uint64_t after_txn;
    struct response response;        /* to a request */
    enum order_result order_result;  /* to an order */
    struct tracking_answer tracking; /* to a tracking */
};

enum core_call_kind {
    CALL_STATUS,      /* notifies a registrant of our restart or its host's (D3, D7) */
    CALL_GRANTED,     /* a waiter's client is asked; its answer is the result */
    CALL_GRANTED_MSG, /* the same; its answer comes later, as GRANTED_RES */
    CALL_NULL,        /* is anybody there? */
    CALL_STAT,        /* SM_STAT: which state is the host in? (8.3) */
    CALL_NOTIFY,      /* SM_NOTIFY: a lock client is notified of our restart (D3) */
};

/* One thing that a registrant is notified of. */
struct core_call_status {
    struct bytes mon_name;
    uint32_t state;
};

#define CORE_CALL_STATUS_MAX 2

/* A call to make: to this address only, found through its portmapper or at the hint (D3). */
struct core_call {
    uint64_t id;
    enum core_call_kind kind;
    struct address to, local;
    uint32_t
        version; /* CALL_GRANTED, CALL_GRANTED_MSG, CALL_NULL: NLM's, as the client speaks it */
    uint16_t port_hint;
    bool is_upcall; /* CALL_STATUS to this machine's lock manager: from a privileged port, or not
                     * at all, and never to a port of ours */
    uint32_t transport; /* enum transport: this one first; 0: TCP, else UDP (D4) */
    uint64_t deadline_ns;
    union {
        struct { /* CALL_STATUS: one after another, over one connection */
            uint32_t my_prog, my_vers, my_proc; /* what the registrant asked to be called */
            struct bytes priv;
            uint32_t status_count;
            struct core_call_status status[CORE_CALL_STATUS_MAX];
        };
        struct { /* CALL_NOTIFY: one after another, over one connection (D4) */
            uint32_t our_state, our_name_count;
            struct bytes our_names[CORE_CALL_NAMES_MAX];
        };
        struct bytes mon_name; /* CALL_STAT */
        struct { /* CALL_GRANTED, CALL_GRANTED_MSG: the lock as it was asked for (R-BLK-1) */
            struct bytes caller_name, fh, oh;
            uint64_t offset, len, cookie; /* the cookie is sent as 8 bytes, big-endian */
            uint32_t svid;
            bool exclusive;
        };
    };
};

/* Birth: reserve everything, replay the store, boot. NULL when memory cannot be reserved. */
struct core *core_new(const struct core_limits *limits, uint64_t seed);
void core_free(struct core *core);

/* One stored record. RECORD_CORRUPT is reported as an event, marks the store incomplete (D16) and
 * is not fatal; RECORD_NEWER is for the caller to refuse (exit 78). The server's record comes
 * first, then kind by kind in ascending order of slots. */
enum record_result core_load(struct core *core, enum record_kind kind, uint32_t slot,
                             struct bytes value);

/* All records were loaded; core_start says so too. Returns how many locks contradict others, which
 * is damage as above and found only now. */
uint32_t core_loaded(struct core *core);

/* What is loaded is of this role (limits.is_monitor), or there is nothing yet. */
bool core_is_of_role(const struct core *core);

/*
 * Ends loading. The next odd state and the next epoch go into the first batch, which is open when
 * this returns: no answer can leave before it is durable (R-PER-4, D6).
 */
void core_start(struct core *core, const struct core_boot *boot);

/* Life. */
void core_step(struct core *core, const struct core_input *input, struct core_answer *ret);

/*
 * Hosts that this step or core_work found to have restarted, one after another; false: no more. To
 * be asked after each of them (rpc_server_step): a restarted host repeats none of its old calls,
 * and its programs have other ports. Who says so does not matter: an SM_NOTIFY that is believed, a
 * newer state in a LOCK, FREE_ALL, or the answer of a status monitor that we asked. An address of
 * no family is this server, which simulated a crash (D6).
 */
bool core_next_restarted(struct core *core, struct address *ret);
/*
 * The client that an operator command of this step has taken locks from, where it was, once; false:
 * none. What it was answered before may not be true any more. The name is valid until the next
 * step.
 */
bool core_next_overridden(struct core *core, struct address *ret, struct bytes *ret_name);

/*
 * The changes since the last batch, or false when there are none. The batch's memory belongs to the
 * store until CORE_STORED names its txn; no other batch may be taken before.
 */
bool core_take_batch(struct core *core, struct store_batch *ret);

/*
 * The fence of a shared store: only its next commit tells whether another server has taken over.
 * From here on there is a batch to take, though nothing may have changed; what is decided now may
 * leave when that one is durable. With a store of our own: as core_answer says of an answer.
 */
uint64_t core_fence(struct core *core);

/* The gate: what waits for this batch, or an earlier one, may leave. */
uint64_t core_durable_txn(const struct core *core);

/* Does the caller have the lock or share that it asks for, as far as the store knows? */
bool core_has(const struct core *core, const struct peer *from, const struct request *request);

/* True when the open batch holds all it can: take it before the next request, order, ended call. */
bool core_is_full(const struct core *core);

/*
 * Work that is done in pieces between requests: waiters to be served, locks of a client that
 * rebooted to be freed, patience that ended. Called once per turn, and again soon while
 * core_deadline_ns says so.
 */
void core_work(struct core *core, uint64_t now_ns, uint64_t wall_ns);

/*
 * The sockets had something to accept or to read in this turn, or were not looked at: in the next
 * core_work grace does not end by the clock, and nothing is released, or a call that came in time
 * would find its locks gone. That has an end: a client that never stops talking delays it by 30 s,
 * or half a grace.
 */
void core_listen_first(struct core *core);

/* The next call whose time has come and whose content is durable; false: none. Views die with the
 * next call into the core. CORE_CALL_DONE must follow, sooner or later. */
bool core_next_call(struct core *core, uint64_t now_ns, struct core_call *ret);
/* The same, GRANTED callbacks only: for them there is room that nobody else's backlog uses up. */
bool core_next_callback(struct core *core, uint64_t now_ns, struct core_call *ret);
/* A call that is in flight for nobody any more: no copy of it may leave from now on, and by the
 * deadline nothing of it can arrive (rpc_client_finish). CORE_CALL_DONE follows when that is so. To
 * be asked before core_next_call; false: none. */
bool core_next_ending_call(struct core *core, uint64_t *ret_id, uint64_t *ret_deadline_ns);

/* An answer that had to wait (ANSWER_LATER) may leave when a batch is durable; false: none. */
struct core_late {
    uint32_t ticket;
    uint64_t after_txn;
    bool is_unknown; /* what it would have said is not known: an error, and the caller asks again */
};
bool core_next_answer(struct core *core, struct core_late *ret);
/* A name whose addresses the resolver is to say, off the loop. The view dies with the next call
 * into the core. CORE_RESOLVED must follow, sooner or later; false: none, or not yet. */
struct core_lookup {
    uint64_t id;
    struct bytes name; /* no address, and without a NUL */
};
bool core_next_lookup(struct core *core, uint64_t now_ns, struct core_lookup *ret);
/* When that may have one; UINT64_MAX: not as things are. */
uint64_t core_lookup_deadline_ns(const struct core *core);

/* When core_next_call may have one or core_work something to do; UINT64_MAX: not as things are. */
uint64_t core_deadline_ns(const struct core *core);
/* The same when only callbacks could be made. */
uint64_t core_callback_deadline_ns(const struct core *core);
/* The same when no call could be made: grace must end on time all the same (P4). */
uint64_t core_work_deadline_ns(const struct core *core);

/*
 * Names that a resolver knows (R-NOTIFY-2). Our addresses whose names clients to be notified may
 * know, at most `max`; returns how many. What is found is passed to the core, best before
 * CORE_READY: of the address, or (local NULL) of this host. What is no name is ignored.
 */
uint32_t core_list_locals(const struct core *core, struct address *ret, uint32_t max);
void core_learn_name(struct core *core, const struct address *local, struct bytes name);

/* Monitor: may a lock manager of this machine have a host of this name watched, and be told of its
 * reboots by this procedure? As SM_MON decides it. */
bool core_may_watch(struct bytes mon_name, uint32_t my_prog, uint32_t my_proc);

/* Monitor: every address of this machine, loopback too, at most CORE_LOCALS_MAX. SM_NOTIFY leaves
 * from each; what comes from them is not believed. */
void core_set_locals(struct core *core, const struct address *locals, uint32_t count);

/* From now on programs on this machine and clients exclude each other. What is loaded is mirrored
 * when this returns, or reported (mirror.h); before anybody is answered. */
void core_mirror(struct core *core, const struct local_locks *world);

/* The same of files that could not be had until now: there are other exports. */
void core_mirror_again(struct core *core);

/* What may change while the server runs. No table depends on these limits; they only go up, so that
 * nobody holds more than it may. The names are borrowed, as in the limits. */
struct core_changes {
    uint32_t locks_per_client_max, per_address_percent;
    struct bytes server_name;
    const struct bytes *names;
    uint32_t name_count;
};
void core_change(struct core *core, const struct core_changes *changes);

/* Monitor: what to report to the program of --callout next, durable and in order. The views die
 * with the next call into the core. False: nothing, or not yet. */
enum core_callout_kind { CALLOUT_ADD, CALLOUT_DELETE, CALLOUT_NOTIFY };
struct core_callout {
    enum core_callout_kind kind;
    struct bytes mon_name;
    struct bytes my_name; /* who registered it; CALLOUT_NOTIFY: empty, */
    struct address from;  /* but where SM_NOTIFY came from, */
    uint32_t state;       /* and what it says */
};
bool core_next_callout(struct core *core, struct core_callout *ret);
/* How many found no room since the start. */
uint64_t core_lost_callouts(const struct core *core);

struct event_ring *core_events(struct core *core);
/* What is not for the log, because it happens all the time: kinds of its own. Nobody needs to take
 * it; what does not fit is counted. */
struct event_ring *core_feed(struct core *core);

/* For tests and the simulator: abort on a broken invariant; compare two histories. */
void core_check(const struct core *core);
uint64_t core_digest(const struct core *core);

#endif
