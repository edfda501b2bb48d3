/*
 * view.h -- what operators see of clients, locks and waiters, read in pieces between two steps.
 *
 * Nothing here changes anything. A list is read with a cursor that is kept between steps while rows
 * come and go: it names a place among the slots of a table, and slots do not move. So a row that
 * is there all the time is seen exactly once, one that comes or goes meanwhile at most once, and an
 * old cursor is never wrong. 0 is the beginning, VIEW_END the end.
 *
 * Each call looks at no more slots than its budget has left, and takes what it looked at from it:
 * reading a million locks is many small pieces, and no lock request waits for more than one.
 *
 * Views die with the next step.
 */
#ifndef CORE_VIEW_H
#define CORE_VIEW_H

#include "core/message.h"
#include "core/status.h"
#include "core/tracking.h"

struct core;

#define VIEW_END UINT64_MAX

enum view_protocol { VIEW_NSM, VIEW_NLM, VIEW_OTHER };

/* What is known of telling a client that we restarted. */
enum view_news {
    VIEW_NOT_TOLD, /* it came after the restart, or took nothing that a restart concerns */
    VIEW_TOLD,
    VIEW_OWED, /* it is tried again */
    VIEW_CALLING,
    VIEW_GIVEN_UP, /* the next start tries again */
};

struct view_client {
    uint64_t id;
    enum view_protocol protocol;
    struct bytes protocol_name;
    struct bytes name;    /* caller_name, my_name, or what another protocol calls it */
    struct bytes my_name; /* NSM only: who registered it */
    struct address address, local;
    struct bytes mon_name, priv; /* NSM only, like what follows */
    uint32_t prog, vers, proc;
    uint32_t port, transport; /* enum transport */
    uint32_t state;           /* its own NSM state; 0: not known */
    uint64_t server_epoch, registered_ns, seen_ns, rebooted_ns; /* wall clock; 0: never */
    uint32_t lock_count, share_count, waiter_count;
    uint32_t unsettled_count; /* stored ranges and shares it has not reclaimed */
    uint32_t reclaimed_count; /* its reclaims in this recovery, without repeats */
    bool is_monitored, is_crashed, is_draining, is_moved;
    bool is_watched;     /* monitor: `name` and `address` are of the host that is watched, and */
    bool is_owed;        /* it is still to be notified of our last reboot; */
    bool is_current;     /* registered in this boot: its reboots are passed on */
    uint32_t upcall;     /* the state of its host that is owed to the lock manager; 0: none */
    uint64_t reached_ns; /* heard from in this run, monotonic; 0: not */
    uint64_t told_ns;    /* it answered that it knows of our restart, monotonic; 0: not */
    enum record_tracked_state tracked; /* VIEW_OTHER only, like what follows */
    uint32_t window_s;
    uint64_t deadline_ns; /* wall clock; 0: none */
    enum view_news news;
    uint32_t attempt_count; /* to tell it, that have ended */
    uint64_t next_try_ns;   /* monotonic; 0: none is planned */
};

/* The next client of any protocol. False: the end, or the budget is used up; *cursor says which. */
bool view_next_client(const struct core *core, uint64_t *cursor, uint32_t *budget,
                      struct view_client *ret);
/* The next lock client with something that nobody has reclaimed. */
bool view_next_unsettled(const struct core *core, uint64_t *cursor, uint32_t *budget,
                         struct view_client *ret);
/* The next watched host that something is owed to or for, or that no address is known of. */
bool view_next_owed(const struct core *core, uint64_t *cursor, uint32_t *budget,
                    struct view_client *ret);
/* The next client of a protocol that is neither NLM nor NSM. */
bool view_next_tracked(const struct core *core, uint64_t *cursor, uint32_t *budget,
                       struct tracker_view *ret);
bool view_find_tracked(const struct core *core, struct bytes protocol, struct bytes key,
                       struct tracker_view *ret);
/* The protocols of these by index, with how many clients are in each state; false: there is no such
 * index. An empty name: it stands for none now. */
struct view_protocol_counts {
    struct bytes name;
    uint32_t in[RECORD_TRACKED_EXPIRED + 1]; /* by enum record_tracked_state */
};
bool view_protocol(const struct core *core, uint32_t index, struct view_protocol_counts *ret);
bool view_find_client(const struct core *core, uint64_t id, struct view_client *ret);
/* The name of ours under which it is notified first (R-NOTIFY-2); valid until the next call. */
void view_name_used(struct core *core, const struct view_client *client, struct bytes *ret);

/* Whose lock or wait it is. */
struct view_owner {
    uint64_t client; /* id */
    struct bytes name;
    struct address address;
    uint32_t svid;
    uint64_t seen_ns; /* wall clock: the last call or answer of its client that is known */
};

enum view_lock_state {
    VIEW_HELD,
    VIEW_OFFERED,   /* taken for a waiter that has not said yes */
    VIEW_UNSETTLED, /* stored, and not reclaimed since the restart, or not all of it */
    VIEW_OVER,      /* its client rebooted: it is about to be freed */
};

/* Bytes of a file that somebody has, or wants. */
struct view_claim {
    struct view_owner owner;
    struct bytes oh, fh, file_set; /* the last: the name of its file set (D14) */
    uint64_t start, end;           /* inclusive; UINT64_MAX: to the end of the file */
    bool is_exclusive;
};

struct view_lock {
    struct view_claim claim;
    uint64_t granted_ns; /* wall clock */
    bool is_monitored;
    enum view_lock_state state;
    uint32_t waiter_count; /* that wait on it, counted up to VIEW_COUNT_MAX */
};

#define VIEW_COUNT_MAX 100

/* What of the locks is wanted; zeroed: all. */
struct view_filter {
    uint64_t client; /* what view_handle says; 0: any */
    struct bytes fh; /* len 0: any */
    bool has_file_set;
    uint32_t file_set; /* index in the limits */
};

/* The handle of the lock client with this id; false: there is none. */
bool view_handle(const struct core *core, uint64_t id, uint64_t *ret);
/* Is what that client held before its release or reboot still being freed? */
bool view_is_freeing(const struct core *core, uint64_t handle);

/*
 * The next lock or offer. With a filter by client or file a list of at most VIEW_DIRECT_MAX is read
 * from that client or file; a longer one is picked from all locks, within the budget. So a budget
 * is at least VIEW_DIRECT_MAX, or nothing is ever found.
 */
#define VIEW_DIRECT_MAX 1000
bool view_next_lock(const struct core *core, const struct view_filter *filter, uint64_t *cursor,
                    uint32_t *budget, struct view_lock *ret);

struct view_waiter {
    struct view_claim claim;
    uint64_t queued_ns; /* wall clock */
    const char *phase;  /* one word */
    bool is_blocked;    /* by what `blocker` holds; false: it is about to be served, or
                           ahead_count is VIEW_COUNT_MAX and nobody looked further */
    struct view_owner blocker;
    enum silent_phase blocker_phase; /* what asking it brought */
    uint64_t blocker_heard_ns;       /* monotonic: its last call, or the start of this run */
    uint32_t ahead_count;            /* waiters before it that it waits on, up to VIEW_COUNT_MAX */
};

bool view_next_waiter(const struct core *core, const struct view_filter *filter, uint64_t *cursor,
                      uint32_t *budget, struct view_waiter *ret);

/*
 * Who holds what each waiter waits for in the end, and since when it waits: for those who count
 * them all, in one go. `notes` is theirs: one for each of view_wait_slots, zeroed. The budget is of
 * the slots that are looked at; each is once, however long the queue, so as many as there are slots
 * reach the end.
 */
struct view_waits {
    uint32_t *notes;
    uint64_t cursor;
    uint32_t budget;
};
struct view_wait {
    uint64_t client;    /* id; 0: the waiter is about to be served */
    uint64_t queued_ns; /* wall clock */
};
uint32_t view_wait_slots(const struct core *core);
/* False: the end, or the budget is used up; the cursor says which. */
bool view_next_wait(const struct core *core, struct view_waits *waits, struct view_wait *ret);

/* A limit, and how much of it is used. */
struct view_limit {
    const char *name, *option; /* the option that raises it */
    uint64_t max, used;
    uint64_t address_max;    /* of one address; 0: as much as there is */
    uint32_t addresses_near; /* that use more than VIEW_NEAR_PERCENT of that */
};
#define VIEW_NEAR_PERCENT 80
/* By index; false: there are no more. */
bool view_limit(const struct core *core, uint32_t index, struct view_limit *ret);
/* The most locks of one client, and how many clients have more than VIEW_NEAR_PERCENT of it. */
uint32_t view_clients_near(const struct core *core, uint32_t *ret_max);

/* A client that others wait for and that does not answer (silent.h). */
struct view_silent {
    struct view_owner holder; /* without svid */
    uint32_t wait_count;
    uint64_t oldest_ns; /* monotonic: since when the first of them waits */
    uint64_t heard_ns;  /* monotonic: its last call, or the start of this run */
};
/* By index; false: there are no more. */
bool view_silent(const struct core *core, uint32_t index, struct view_silent *ret);

/* A request that was refused by a lock of its own name elsewhere (namesake.h): the two may be one
 * host whose address changed. ORDER_MOVE makes them one. */
struct view_namesake {
    struct view_owner holder; /* without svid; its address is the old one, if it has moved */
    struct address refused;   /* the other address: what `holdfast move` is given */
    uint64_t refused_seen_ns; /* wall clock: the last call from there that is known */
    uint64_t refused_count;   /* requests that were refused, in this run */
    uint64_t refused_client;  /* id of the client of that name there; 0: it has no record */
    bool is_taken;            /* that client holds something: ORDER_MOVE says ORDER_TAKEN */
};
/* By index; false: there are no more. */
bool view_namesake(const struct core *core, uint32_t index, struct view_namesake *ret);

/* The named sets of files (D14), by index; false: there is none of that index. */
struct view_file_set {
    struct bytes name, prefix;
    uint32_t lock_count; /* held and offered */
};
bool view_file_set(const struct core *core, uint32_t index, struct view_file_set *ret);
/* The index of a name; false: there is none. */
bool view_find_file_set(const struct core *core, struct bytes name, uint32_t *ret);

#endif
