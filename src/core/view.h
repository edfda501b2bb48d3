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

#include "base/address.h"

struct core;

#define VIEW_END UINT64_MAX

enum view_protocol { VIEW_NSM, VIEW_NLM, VIEW_OTHER };

/* What is known of telling a client that we restarted. */
enum view_news {
    VIEW_NOT_TOLD, /* nothing has to be told: it took nothing that a restart concerns */
    VIEW_TOLD,
    VIEW_OWED, /* it is tried again */
    VIEW_CALLING,
    VIEW_GIVEN_UP, /* the next start tries again */
};

struct view_client {
    uint64_t id;
    enum view_protocol protocol;
    struct bytes protocol_name;
    struct bytes name; /* caller_name, my_name, or the key of another protocol */
    struct address address, local;
    struct bytes mon_name, priv; /* NSM only, like what follows */
    uint32_t prog, vers, proc;
    uint32_t port, transport; /* enum record_transport */
    uint32_t state;           /* its own NSM state; 0: not known */
    uint64_t server_epoch, registered_ns, seen_ns, rebooted_ns; /* wall clock; 0: never */
    uint32_t lock_count, share_count, waiter_count;
    uint32_t unsettled_count; /* stored ranges and shares it has not reclaimed */
    uint32_t reclaim_count;   /* requests that reclaimed something, in this run */
    bool is_monitored, is_crashed, is_draining, is_moved;
    uint64_t reached_ns; /* heard of in this run, monotonic; 0: not */
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
bool view_find_client(const struct core *core, uint64_t id, struct view_client *ret);

#endif
