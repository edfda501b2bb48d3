/*
 * locker.h -- clients that lock: hosts with processes that lock, test, block, cancel and unlock.
 *
 * A locker is a host under one name. Two of them may share an address (behind a translator), two
 * may share a name. Its processes have one call outstanding each, or wait for a lock:
 *
 *             LOCK(block) sent           GRANTED: reply, *_RES, or a callback that it accepts
 *   IDLE -----------------------> WAITING -------------------------------------------> IDLE, relies
 *    ^                             |  ^  | BLOCKED: polls, or cancels and locks again
 *    |   CANCEL answered           |  +--+
 *    +-----------------------------+
 *
 *   locker_init.c  who they are
 *   locker.c       what they do next, reboots, the calm
 *   ask.c          calls: made, repeated, answered
 *   called.c       callbacks: GRANTED, GRANTED_MSG, *_RES at the host's own service
 *   mail.c         the network between them and the server
 *   statd.c        SM_NOTIFY to and from them, reclaims
 *   claim.c        the oracle: what they rely on, held against each other (P2)
 *   era.c          the same, over restarts (P2, P3, P4)
 *   claim_disk.c   the same, held against the disk (P1)
 *
 * A file has 16 cells: cell 15 stands for byte 15 and everything behind it.
 */
#ifndef SIM_LOCKER_H
#define SIM_LOCKER_H

#include "line.h"
#include "peer/peer_nlm.h"
#include "world.h"

enum {
    LOCKER_MAX = 6,
    LOCKER_PROCESSES_MAX = 3,
    LOCKER_FILES_MAX = 3,
    LOCKER_CELLS = 16,
    LOCKER_ANSWER_MAX = 160,
    LOCKER_GHOSTS_MAX = 8,
    LOCKER_KEPT_MAX = 8,
    STATD_NAMES = 3,
    STATD_NAME_MAX = 64,
};

#define STATD_SERVER_SHORT "holdfast"

enum locker_kind {
    LOCKER_LINUX,      /* polls; takes a callback also while it cancels, and gives it back */
    LOCKER_LINUX_2026, /* the same; GRANTED_MSG is an error */
    LOCKER_FREEBSD,    /* CANCEL answered DENIED: it owns the lock */
    LOCKER_MACOS,      /* messages; cancels and locks again; refuses callbacks meanwhile */
    LOCKER_SOLARIS,    /* TCP; wants its oh back; "in grace" at times */
    LOCKER_PCNFS,      /* not monitored: NM_LOCK, SHARE; FREE_ALL after a reboot */
    LOCKER_KIND_END,
};

/* Cells that somebody has; exclusive ones are in both. */
struct cells {
    uint16_t any, exclusive;
};

/* What a call is about. */
struct extent {
    uint32_t file;
    uint64_t offset, len;
    bool exclusive;
};

/* A share reservation; access and mode 0: none. */
struct reservation {
    uint32_t mode, access;
};

struct locker;

struct ask {
    struct process *process;
    uint32_t number;  /* order among the calls of its process */
    uint32_t program; /* of its locker */
    uint32_t xid, procedure, version;
    enum peer_nlm_procedure plain; /* LOCK also for LOCK_MSG and NM_LOCK, and so on */
    struct extent extent;
    bool block, is_message, reclaim;
    uint32_t heard_count;           /* of its locker, when it was made */
    struct reservation reservation; /* SHARE */
    struct cells held_before;       /* LOCK: of that file, to go on with when it is refused */
    struct reservation reserved_before;
    uint8_t cookie[8];
    uint32_t cookie_len;
    uint8_t *bytes;
    uint32_t len;
    bool is_done; /* nobody waits for its answer any more */

    /* What the server did with it, as seen from outside. */
    uint32_t taken_run, taken_port, before_port, taken_forgets;
    uint64_t taken_order, taken_order_host;
    uint32_t taken_era; /* in which this run first took it: its answer may be from there */
    uint64_t taken_ns;
    uint32_t ended_run; /* in which its answer left last; 0: it did not */
    uint64_t ended_ns;
    bool may_be_denied;    /* somebody may have had something in the way */
    struct cells nameable; /* TEST: what somebody may have had when a copy of it was executed */
    bool must_be_denied; /* TEST: somebody relied on something in the way, whenever it was asked */
    uint32_t programs;   /* TEST: those that were in the way, one bit each */
    bool is_new;         /* LOCK, SHARE: of what it asks for, it can have nothing */
    bool was_full;       /* the store took no new records when it was executed */
    bool is_refused;     /* so its process was told, and keeps what it had */
    bool may_be_grace, must_be_grace; /* grace could have stood, or must have */
    bool must_be_granted;             /* a reclaim of what was relied on */
    uint32_t answer_len;
    uint8_t answer[LOCKER_ANSWER_MAX];
};

/* What happened in the current era; see era.h. */
struct process_since {
    uint16_t confirmed[LOCKER_FILES_MAX]; /* granted or reclaimed */
    uint16_t settled[LOCKER_FILES_MAX];   /* asked for or unlocked, answered or not */
    bool share_confirmed[LOCKER_FILES_MAX], share_settled[LOCKER_FILES_MAX];
};
struct locker_since {
    bool is_owed;                 /* it relied on something, and was not told of a restart */
    bool is_reached, is_told;     /* for certain, */
    uint64_t reached_ns, told_ns; /* or perhaps since then; 0: not */
    bool has_reclaimed;           /* something, answered or not; */
    uint64_t reclaimed_ns;        /* the last that was granted */
};

struct process {
    struct locker *locker;
    uint32_t index, svid;
    struct ask *ask; /* outstanding */
    uint32_t tries, tries_max;
    uint64_t timeout_ns, timer;
    uint32_t number;      /* of its last call */
    uint32_t taken;       /* the newest of its calls that the server executed */
    uint32_t void_before; /* calls before this number died with their host */
    uint32_t
        released[LOCKER_FILES_MAX];     /* what calls up to this number got was released by order */
    struct extent last;                 /* what the last LOCK that was executed asked for, */
    uint64_t last_ns;                   /* and since when it does */
    uint64_t left_ns;                   /* when an answer to it last left the server */
    uint32_t called_xid, called_number; /* its last callback, and its last call then */

    struct extent wish;
    bool is_waiting;    /* for the wish: from the moment LOCK(block) is sent */
    bool is_blocked;    /* it was told so */
    bool is_cancelling; /* the outstanding call is the CANCEL of the wish */
    bool locks_again;   /* after that */
    bool is_in_doubt;   /* a LOCK was given up: unlock the wish before anything else */
    uint64_t patience_ns;
    uint32_t farewell;
    bool is_finished;
    bool has_polled; /* since it is calm, or the last restart */
    bool is_frozen;  /* until the server knows of the reboot */

    /* See claim.h. */
    struct cells held[LOCKER_FILES_MAX];
    uint32_t shared_number[LOCKER_FILES_MAX][LOCKER_CELLS];
    uint32_t exclusive_number[LOCKER_FILES_MAX][LOCKER_CELLS];
    struct extent ghosts[LOCKER_GHOSTS_MAX]; /* wishes of earlier lives: they may still be queued */
    uint32_t ghost_count;
    struct reservation reserved[LOCKER_FILES_MAX];
    uint32_t reserved_number[LOCKER_FILES_MAX];

    /* See era.h. */
    struct process_since since, since_before;
    struct cells believed[LOCKER_FILES_MAX]; /* not reclaimed in time: relied on in vain */

    /* See stranger.h. */
    bool has_offer;            /* of its wish, on the disk, */
    uint64_t offered_ns;       /* since then; */
    uint64_t offered_lived_ns; /* the same as the server has lived it */
    uint32_t clear_run;        /* the last run in which it had none */

    /* See statd.h. */
    bool must_reclaim;
    uint16_t pending[LOCKER_FILES_MAX]; /* still to be reclaimed */
    bool share_pending[LOCKER_FILES_MAX];
};

/* A TCP connection of a locker to the server. */
struct pipe {
    struct locker *locker;
    uint64_t route;
    uint16_t port;
    bool is_open; /* its locker uses it */
    bool is_dead; /* nothing arrives at the server any more: one of the two hosts is gone */
    struct kept kept;
    uint64_t to_server_ns, to_locker_ns; /* when the last message arrives: TCP keeps order */
    uint32_t sent, delivered;
};

struct locker {
    uint32_t index;
    enum locker_kind kind;
    struct host *host;
    char name[24];
    char label[32]; /* in traces, because names are not unique */
    uint32_t version;
    bool is_tcp, keeps_port;
    bool restarts;  /* a program that starts again counts its xids from one, */
    bool is_bound;  /* and has the port of its run before */
    bool frees_all; /* after a reboot */
    uint16_t port;
    uint32_t state;                  /* NSM */
    uint32_t state_taken, run_taken; /* of the last LOCK of it that the server executed */
    uint32_t oh_count;
    uint32_t xid_count, cookie_count, restart_count;
    uint32_t xid_base; /* clones count as their master does */
    uint32_t program;  /* which run of it, on this port */
    uint32_t life;     /* what was sent to it in another one does not reach it */
    uint32_t forgets;  /* how often the duplicate cache may have dropped what it holds of it */
    uint64_t
        overridden; /* calls until then were executed before an operator took something from it */
    struct pipe *pipe;  /* which the next call uses, */
    struct pipe *other; /* and another one that is open at the same time */
    bool has_two;
    uint64_t freed_ns; /* when the server said, as it lived, that it freed what was there before */
    uint32_t freed_run, freed_state; /* in that run, of the reboot to that state */

    /* See statd.h. */
    uint32_t mounted;      /* by which of our names */
    uint32_t server_state; /* ours, as its status monitor knows it */
    uint32_t heard_count;  /* how often it has learned of a restart, */
    uint64_t heard_ns;     /* and when it last did */
    bool notifies;         /* after a reboot, */
    bool is_multihomed;    /* from another address */
    uint32_t notice_xid, notice_tries;
    bool is_noticed[2]; /* answered: full name, short name */
    bool is_known;      /* the server knows that it rebooted */
    bool has_state;     /* it knows a state of it at all, */
    bool had_state;     /* and did before it last rebooted */
    bool is_forgotten;  /* an operator's release has removed its record since it last got a lock */
    bool says_state;    /* also when it reclaims */

    /* See era.h. */
    struct locker_since since, since_before;
    uint32_t told_state, told_era; /* the last that it was told, and when */

    struct process processes[LOCKER_PROCESSES_MAX];
    uint32_t process_count;
};

struct mail;

/* What a seed decides for them. */
struct locker_plan {
    uint32_t files, span; /* offsets are below the span */
    uint32_t blocking, exclusive, mute, reboots;
    uint64_t think_max_ns, poll_max_ns;
    uint32_t pieces;   /* percentage of reclaims that are partial */
    uint32_t orders;   /* of the operator, among what disturbs them */
    bool is_limited;   /* answers may be NOLOCKS */
    bool is_contended; /* all want the same, over TCP */
};

/* The time since a restart that was no resume; see era.h. */
struct era {
    uint32_t number; /* 0: none yet */
    uint32_t state;  /* ours, at its beginning */
    uint64_t start_ns, ready_ns;
    uint64_t died_ns;  /* of the last run in it; UINT64_MAX: it lives */
    bool has_stored;   /* something may have to be reclaimed */
    bool must_last;    /* the store may have lost records (D16) */
    bool is_cut_short; /* an operator has ended its grace */
    bool holds;        /* --unreachable hold, when it began */
};

struct lockers {
    struct locker at[LOCKER_MAX];
    uint32_t count;
    struct locker_plan plan;
    struct ask **asks;
    uint32_t ask_count, ask_max;
    struct pipe **pipes;
    uint32_t pipe_count, pipe_max;
    uint64_t cookie_seen;            /* of the last callback, for spoofers, */
    const struct host *cookie_host;  /* and who was called */
    uint64_t taken;                  /* calls that the server executed, */
    uint64_t taken_of[HOST_ALL_MAX]; /* and of one host */
    uint32_t grants, callbacks, denials;
    uint32_t put_off; /* repeats that were told to ask again */
    struct era era, era_before;
    uint32_t expired; /* times that something was not reclaimed in time: exclusion (2) */

    /* For scenarios. */
    enum peer_nlm_status answered; /* the last answer that any of them got, */
    struct peer_nlm_res heard;     /* and all of it */
    bool falls_silent;             /* who executes an SM_NOTIFY */
    bool is_mute;                  /* callbacks are executed, not answered */
    bool holds_results;            /* GRANTED_RES wait for called_release */
    bool holds_reclaims;           /* nobody reclaims */
    struct packet *kept[LOCKER_KEPT_MAX];
    struct process *kept_for[LOCKER_KEPT_MAX];
    uint32_t kept_count;
};

/* Their hosts follow those of the watchers. Nothing when the plan has no lockers. */
void locker_init(struct world *world);
void locker_done(struct world *world);

/* A process's time has come. */
void locker_act(struct world *world, struct process *process);
/* Everything on that host vanishes and starts anew. */
void locker_reboot(struct world *world, struct locker *locker);
/* From now on nothing fails: whoever waits must get his lock, then all is given back. */
void locker_be_calm(struct world *world);
/* The duplicate cache has forgotten everybody. */
void locker_forgotten(struct world *world);
/* The status monitor at its address is its own. */
bool locker_is_first(const struct world *world, const struct locker *locker);
/* The server started: in calm, whoever waits asks once more. */
void locker_server_started(struct world *world);
bool locker_all_finished(const struct world *world);

/* Who relies on what and waits for what; nothing unless verbose. */
void locker_trace(const struct world *world);

void locker_set_timer(struct world *world, struct process *process, uint64_t delay_ns);

/* The outstanding call was answered. */
void locker_answered(struct world *world, struct ask *ask, const struct peer_nlm_res *res);
/* The wish came true, by whatever message: from here on the process relies on it. `is_confirmed`:
 * the server said so in this era. */
void locker_has(struct world *world, struct process *process, const struct extent *extent,
                bool is_confirmed);

uint16_t locker_cells(uint64_t offset, uint64_t len);
struct peer_nlm_bytes locker_handle(uint32_t file);
struct peer_nlm_bytes locker_oh(const struct process *process);

#endif
