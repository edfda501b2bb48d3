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
#include "base/units.h"
#include "core/core.h"
#include "rpc/meter.h"

#include <sys/types.h>

/* The peer of the control socket, according to the kernel; see caller.h. */
struct admin_caller {
    uint32_t uid, gid;
    int32_t pid;
};

/* Of the file service. */
struct admin_files {
    bool is_served; /* --export; everything else is 0 without it */
    uint32_t exports, open_files;
    uint32_t calls, queued; /* in flight, and of these waiting for a thread */
    uint64_t refused, sync_errors;
    uint64_t sync_error_age_ns; /* since the last of them */
    bool has_local_locks;       /* --local-locks: programs on this machine see what is locked: */
    uint32_t local_files;       /* in so many files; */
    uint32_t local_waiting;     /* so many requests wait for a program, */
    uint32_t local_conflicts;   /* and of so many not: see the log */
    uint64_t repeats;           /* of what a server before this one had executed */
};

/* Where this server is. */
struct admin_places {
    char host[256];               /* the name of its machine */
    const struct address *listen; /* borrowed */
    uint32_t listen_count;        /* 0: everywhere */
    uint16_t port;                /* of lock clients; 0: nobody is served yet */
    uint16_t nsm_port;            /* of the status monitor; 0: the same */
    uint16_t nfs_port;            /* of files; 0: none are served */
    char page[128];               /* the address of the web page; empty: there is none */
};

/* Facts outside the core. The strings live until the next turn. */
struct admin_facts {
    uint64_t now_ns, wall_ns;
    uint64_t uptime_ns;
    const char *store;       /* its URL */
    bool is_standby;         /* another server has the store; this one is waiting */
    const char *group;       /* that it serves; NULL: none, or not known yet */
    uint64_t commit_age_ns;  /* of the commit in progress; 0: none */
    const char *rpcbind;     /* the value of --rpcbind in force */
    bool is_found;           /* clients can find us through a portmapper */
    char not_found_why[256]; /* if not */
    /* NULL: not measured, all of them */
    const struct histogram *commit_durations, *commit_writes, *commit_syncs, *batch_records;
    struct admin_files files;
    struct admin_places places;
    const char *recovery; /* the value of --recovery */
};

/* A commit that runs for so long stalls the store: replies wait, and the server is not ready. */
#define ADMIN_STALLED_NS (5 * SECOND_NS)

/* A limit of the daemon, and how much of it is used. */
struct admin_limit {
    const char *name;
    const char *option; /* that raises it; NULL: none does */
    uint64_t max, used;
    bool may_be_full; /* then the server is busy, and the rest waits or replaces what is idle: no
                         trouble */
};

/* What the kernel says of this process. */
struct admin_process {
    uint64_t cpu_ns, start_wall_ns;
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_fds, max_fds;
};

/* One exported directory. The strings live until the next turn. */
struct admin_export {
    const char *directory;
    uint32_t id; /* its fsid; names it among the others */
    uint32_t client_count, mounts, open_files;
    bool is_stuck; /* its file system does not answer */
};

/* Who may use it, and how. */
struct admin_export_client {
    const char *name;  /* as it was written */
    char options[160]; /* as in exports(5) */
    bool is_async;     /* what it is told may not be durable yet */
};

/* One option of the server. */
struct admin_option {
    const char *name; /* NULL: not shown */
    const char *help;
    const char *default_text; /* or the default in words; NULL: none */
    const char *origin;       /* "default", "file", "group", "command line" */
};

/* One option that a reload changes. NULL: it had, or has, no value; an export is new, or gone. */
struct admin_change {
    const char *option;
    char *from, *to;
};

struct admin_reload {
    bool is_done;    /* false: nothing has changed, and `why` says why */
    const char *why; /* a sentence */
    uint32_t change_count, restart_count;
    const struct admin_change *changes;
    const char *const *needs_restart; /* options that differ, too, and stay as they are */
};

/* What a file is called. */
enum admin_path {
    ADMIN_PATH_NONE, /* it is of no export, or gone */
    ADMIN_PATH_KNOWN,
    ADMIN_PATH_LATER, /* asked for; who sleeps is woken (http_wake_all) when it is known, or not */
    ADMIN_PATH_UNKNOWN, /* it may have one, which cannot be learned in time */
};

/* A copy of the store that somebody asked for. */
struct admin_copy {
    void *copy;               /* NULL: refused, */
    const char *error, *hint; /* for this reason */
    const char *store;        /* which store it is of (store_url_identify) */
};

enum {
    ADMIN_COPY_WHOLE = -1, /* that was all of it */
    ADMIN_COPY_CUT = -2,   /* it broke off; its last line says why */
};

struct events;
struct samples;

struct admin {
    struct core *core;         /* NULL: the store is not loaded yet */
    const struct meter *meter; /* of calls; NULL: nothing is measured (--metrics off) */
    struct events *events;     /* for streams; see events.h */
    struct samples *samples;   /* of the last hour; see samples.h. NULL: none are taken */
    bool has_tracker_group;    /* --tracker-group: */
    uint32_t tracker_group;    /* who is in it may track clients over the control socket */
    void *context;
    /* True: clients are served. Otherwise *ret_reason says why not. */
    bool (*is_ready)(void *context, struct text *ret_reason);
    void (*facts)(void *context, struct admin_facts *ret);
    /* Do clients call just now? Then HTTP takes less of the server's time. NULL: they do not. */
    bool (*is_in_use)(void *context);
    void (*process)(void *context, struct admin_process *ret);
    /* Limits outside the core by index; false: no more. NULL: there are none. */
    bool (*limit)(void *context, uint32_t index, struct admin_limit *ret);
    /* The options by index, and their values by index; false: no more. */
    bool (*option)(void *context, uint32_t index, struct admin_option *ret);
    bool (*option_value)(void *context, uint32_t option, uint32_t index, struct text *ret);
    /* Exports by index, and their clients by index; false: no more. */
    bool (*export)(void *context, uint32_t index, struct admin_export *ret);
    bool (*export_client)(void *context, uint32_t index, uint32_t client,
                          struct admin_export_client *ret);
    /* The id of the export that a file is of; false: of none. */
    bool (*export_of)(void *context, struct bytes fh, uint32_t *ret_id);
    /* The name lives until the next call. NULL: no file has one. */
    enum admin_path (*path)(void *context, struct bytes fh, struct bytes *ret);
    /* Steps the command and logs who gave it. */
    void (*obey)(void *context, const struct order *order, const struct admin_caller *who,
                 struct core_answer *ret);
    /* Steps what is said of a tracked client. */
    void (*track)(void *context, const struct tracking *tracking, struct core_answer *ret);
    /* Reads the options again, and logs who said so. The number of that reading; its report is NULL
     * while it is not over, and lives until the next turn. */
    uint64_t (*reload)(void *context, const struct admin_caller *who);
    const struct admin_reload *(*reload_report)(void *context, uint64_t number);
    /* Begins a copy of the store as of one batch, in lines of JSON, and logs who asked. */
    void (*copy_begin)(void *context, const struct admin_caller *who, struct admin_copy *ret);
    /* Its next bytes; 0: none yet, and who sleeps is woken (http_wake_all). */
    ssize_t (*copy_read)(void *copy, char *buffer, size_t max);
    /* Nobody reads it any more. */
    void (*copy_end)(void *copy, bool is_too_slow);
};

static inline bool admin_is_in_use(const struct admin *admin)
{
    return admin->is_in_use != NULL && admin->is_in_use(admin->context);
}

#endif
