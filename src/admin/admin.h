/*
 * admin.h -- what the HTTP endpoints show and do, and where they get it.
 *
 * The endpoints read the core themselves: they run in the server's thread, between two steps. Facts
 * outside the core come from the daemon, and so do changes: a command is stepped like any request,
 * and its response leaves when it is durable (P1).
 *
 * Reads do not wait for the store: an operator must be able to look while it is stalled, and nobody
 * takes a lock because of a list.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "base/text.h"
#include "core/core.h"
#include "rpc/meter.h"

/* The peer of the control socket, according to the kernel. */
struct admin_caller {
    uint32_t uid, gid;
    int32_t pid;
};

/* Of the file service. */
struct admin_files {
    bool is_served; /* --export; everything else is 0 without it */
    uint32_t exports, open_files, calls;
    uint64_t refused, sync_errors;
};

/* Facts outside the core. The strings live until the next turn. */
struct admin_facts {
    uint64_t now_ns, wall_ns;
    uint64_t uptime_ns;
    const char *store;       /* its URL */
    bool is_standby;         /* another server has the store; this one is waiting */
    uint64_t commit_age_ns;  /* of the commit in progress; 0: none */
    const char *rpcbind;     /* the value of --rpcbind in force */
    bool is_found;           /* clients can find us through a portmapper */
    char not_found_why[256]; /* if not */
    const struct histogram *commit_durations, *batch_records; /* NULL: not measured */
    struct admin_files files;
};

/* One option of the server. */
struct admin_option {
    const char *name; /* NULL: not shown */
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
    /* True: clients are served. Otherwise *ret_reason says why not. */
    bool (*is_ready)(void *context, struct text *ret_reason);
    void (*facts)(void *context, struct admin_facts *ret);
    /* The options by index, and their values by index; false: no more. */
    bool (*option)(void *context, uint32_t index, struct admin_option *ret);
    bool (*option_value)(void *context, uint32_t option, uint32_t index, struct text *ret);
    /* Steps the command and logs who gave it. */
    void (*obey)(void *context, const struct order *order, const struct admin_caller *who,
                 struct core_answer *ret);
};

#endif
