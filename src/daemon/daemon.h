/*
 * daemon.h -- everything that lives as long as the process serves, for those who start it.
 *
 * main.c has the order of the start and undoes it at the end. Its steps are in start_net.h (ports
 * and sockets), start_store.h (from the store to a core) and start_serve.h (the parts that turn).
 * Each takes the daemon and returns 0, or the exit code of the process after a sentence in the log.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "admin/control.h"
#include "daemon/admin_hooks.h"
#include "daemon/config.h"
#include "daemon/descriptors.h"
#include "daemon/driver.h"
#include "daemon/files.h"
#include "daemon/machine.h"
#include "daemon/names.h"
#include "daemon/privilege.h"
#include "daemon/registrar.h"
#include "daemon/reload.h"
#include "daemon/takeover.h"
#include "daemon/watchdog.h"

enum {
    DAEMON_EXIT_USAGE = 2,
    DAEMON_EXIT_UNAVAILABLE = 69,
    DAEMON_EXIT_INTERNAL = 70,
    DAEMON_EXIT_STORE = 74,
    DAEMON_EXIT_NEWER = 78,
    DAEMON_STOPPED = -1, /* while it waited for the store: no failure */

    DAEMON_CALLS_MAX = 16384, /* calls of our own at once */
};

/* What is NULL or zero was not reached by the start. */
struct daemon {
    struct config config;
    /* A standby of several groups: what `config` becomes with each, and when it has, what it was
     * before; NULL: it is of one group, or of none. */
    struct config *group_configs;
    int argc; /* the command line; a reload reads it again */
    char **argv;
    struct log log;
    struct clock clock;
    struct lease lease; /* of a shared store; the one there is */
    uv_loop_t loop;
    struct watchdog watchdog;
    struct privilege privilege;
    struct listen_set sockets;     /* of every program */
    struct listen_set nsm_sockets; /* if the status monitor has a port of its own */
    struct listen_set nfs_sockets; /* if files are served, and not on one of those */
    struct file_set file_sets[FILE_SETS_MAX];
    struct core_window windows[CONFIG_WINDOW_MAX];
    struct takeover *takeover;
    struct store *store;
    struct store_summary summary;
    uint64_t loaded_count; /* records, so far */
    struct core *core;
    struct descriptors_shares connections;
    uint32_t files_open_max;     /* of files that are served, */
    uint32_t files_pipes_max;    /* of pipes that their data goes through, */
    uint32_t files_mirrored_max; /* and beside them, with locks that programs see */
    struct rpc_server *server;
    struct files *files; /* NULL: no --export */
    struct reload *reload;
    struct rpc_client *client;
    struct wire *wire;
    struct caller *caller;
    struct names *names;
    struct resolving *resolving;
    struct callout_runner *callout; /* NULL: no --callout */
    struct registrar *registrar;
    bool is_registered, is_named; /* both: ready */
    struct driver *driver;
    struct admin_hooks hooks;
    struct machine_identity identity; /* --role monitor: of this run, */
    int privileged_fd;                /* the port of its upcalls; 0: none, or the caller's */
    struct monitor *monitor;          /* and its watch over the machine */
    struct http *http;
    struct control control;    /* the file of the control socket, */
    struct http *control_http; /* and who serves it */
};

/* The options of one of several groups are in force from here on. */
void daemon_join_group(struct daemon *daemon, uint32_t index);

/* Logs the sentence and returns the code. */
int daemon_fail(struct daemon *daemon, int exit_code, const char *sentence);

/* Random bits from the kernel. */
uint64_t daemon_seed(void);

#endif
