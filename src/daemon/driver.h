/*
 * driver.h -- carries bytes and batches between the parts, once per turn of the loop. It decides
 * nothing about locks; it decides when the process stops.
 */
#ifndef DAEMON_DRIVER_H
#define DAEMON_DRIVER_H

#include "admin/events.h"
#include "admin/http.h"
#include "base/text.h"
#include "core/core.h"
#include "daemon/callout_runner.h"
#include "daemon/commits.h"
#include "daemon/log.h"
#include "daemon/registrar.h"
#include "daemon/resolving.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "wire/caller.h"
#include "wire/wire.h"

#include <uv.h>

struct driver;

/* All borrowed but the store. */
struct driver_parts {
    uv_loop_t *loop;
    struct log *log;
    struct commits_parts store; /* and what it has in common with the rest: clock, core, server */
    struct rpc_client *client;
    struct wire *wire;
    struct caller *caller;
    struct registrar *registrar;
    struct resolving *resolving;
    struct callout_runner *callout; /* NULL: none */
    struct events *events;          /* for streams; NULL: none */
    bool keeps_nothing;             /* the store is memory: */
};

/* NULL: no memory; the store is then still the caller's. */
struct driver *driver_new(const struct driver_parts *parts);

/* Starts the store thread and the turns. False: no thread; abandon the driver. */
__attribute__((warn_unused_result)) bool driver_start(struct driver *driver);

/* For /readyz: false with the reason in words while clients are not served. */
bool driver_is_ready(struct driver *driver, struct text *ret_reason);

/* Steps an order of the operator; it is not now, when the open batch is full. */
void driver_order(struct driver *driver, const struct order *order, struct core_answer *ret);

/* The same of what is said of a tracked client. */
void driver_track(struct driver *driver, const struct tracking *tracking, struct core_answer *ret);

/* As worker_copy and worker_copy_on; the second while the copy is not over. */
bool driver_copy(struct driver *driver, struct copy *copy);
void driver_copy_on(struct driver *driver);

/* The store's side, to be shown. */
const struct commits *driver_commits(const struct driver *driver);

/*
 * We serve, and can be found: from here on clients are notified of the restart (R-NOTIFY-7). Not
 * before `wait_ns` are over: a server that lets clients reclaim must know everything that a server
 * before us has said.
 */
void driver_ready(struct driver *driver, uint64_t wait_ns);

/* Ends driver_run with this exit code, also before it was called. */
void driver_stop(struct driver *driver, int exit_code);

/* Runs the loop until SIGTERM or SIGINT, or until the store fails. Returns the exit code. */
int driver_run(struct driver *driver);

/* Instead of driver_run, when the start failed after driver_new, with this exit code. */
void driver_abandon(struct driver *driver, int exit_code);

/* After either, when the loop has closed all handles. */
void driver_free(struct driver *driver);

#endif
