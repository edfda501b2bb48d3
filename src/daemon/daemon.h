/*
 * daemon.h -- everything that lives as long as the process serves, for those who start it.
 *
 * main.c has the order of the start and undoes it at the end; places.c takes ports and sockets,
 * restoring.c makes a core of the store, serving.c joins the parts that turn. Each step returns 0,
 * or the exit code of the process after a sentence in the log.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "admin/control.h"
#include "daemon/config.h"
#include "daemon/console.h"
#include "daemon/descriptors.h"
#include "daemon/driver.h"
#include "daemon/names.h"
#include "daemon/opening.h"
#include "daemon/registrar.h"

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
    struct log log;
    struct clock clock;
    uv_loop_t loop;
    struct listen_set sockets;     /* of every program */
    struct listen_set nsm_sockets; /* if the status monitor has a port of its own */
    struct file_share shares[FILE_SHARES_MAX];
    struct opening *opening;
    struct store *store;
    bool is_shared;     /* the store: other machines can reach it */
    uint64_t raised_ns; /* and then its epoch became ours, by CLOCK_BOOTTIME */
    struct store_summary summary;
    struct core *core;
    struct descriptors_shares connections;
    struct rpc_server *server;
    struct rpc_client *client;
    struct wire *wire;
    struct caller *caller;
    struct names *names;
    struct resolving *resolving;
    struct registrar *registrar;
    bool is_registered, is_named; /* both: ready */
    struct driver *driver;
    struct console console;
    struct http *http;
    struct control control;    /* the file of the control socket, */
    struct http *control_http; /* and who serves it */
};

/* Logs the sentence and returns the code. */
int daemon_fail(struct daemon *daemon, int exit_code, const char *sentence);

/* Random bits from the kernel. */
uint64_t daemon_seed(void);

#endif
