/*
 * admin.h -- what the HTTP endpoints show and do, and whom they ask for it.
 *
 * The endpoints read the core themselves: they run in the server's thread, between two steps. What
 * lies outside the core they ask the daemon for, and changes they leave to it: an order is stepped
 * like any request, and its answer leaves when it is durable (P1).
 *
 * What is only read is not held back. An operator must be able to look while the store stalls, and
 * nobody takes a lock because of a list.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "base/text.h"
#include "core/core.h"
#include "rpc/meter.h"

/* Who is at the other end of the control socket, as the kernel says. */
struct admin_caller {
    uint32_t uid, gid;
    int32_t pid;
};

/* What is not in the core. The strings live until the next turn. */
struct admin_facts {
    uint64_t now_ns, wall_ns;
    uint64_t uptime_ns;
    const char *store;       /* its URL */
    bool is_standby;         /* another server has the store; we wait for our turn */
    uint64_t commit_age_ns;  /* of the batch under way; 0: none is */
    const char *rpcbind;     /* the word of --rpcbind in force */
    bool is_found;           /* clients can find us through a portmapper */
    char not_found_why[256]; /* if not */
    const struct histogram *commit_durations, *batch_records; /* NULL: not measured */
};

/* One option of the server. */
struct admin_option {
    const char *name; /* NULL: not one to be shown */
    const char *help;
    const char *default_text; /* or the default in words; NULL: none */
    const char *origin;       /* "default", "file", "command line" */
};

struct events;

struct admin {
    struct core *core;         /* NULL: the store is not loaded yet */
    const struct meter *meter; /* of calls; NULL: nothing is measured (--metrics off) */
    struct events *events;     /* for streams; see events.h */
    void *context;
    /* True: clients are served. Otherwise *ret_reason says, in words, why they are not. */
    bool (*is_ready)(void *context, struct text *ret_reason);
    void (*facts)(void *context, struct admin_facts *ret);
    /* The options by index, and their values by index; false: there are no more. */
    bool (*option)(void *context, uint32_t index, struct admin_option *ret);
    bool (*option_value)(void *context, uint32_t option, uint32_t index, struct text *ret);
    /* Steps the order and logs who gave it. */
    void (*obey)(void *context, const struct order *order, const struct admin_caller *who,
                 struct core_answer *ret);
};

#endif
