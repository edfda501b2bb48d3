/*
 * store_import.h -- `holdfast store import`: fills an empty store, from lines of JSON or from the
 * directory of rpc.statd.
 */
#ifndef DAEMON_STORE_IMPORT_H
#define DAEMON_STORE_IMPORT_H

#include "daemon/store_command.h"
#include "store/digest.h"

/* A batch that grows, and the server record that goes with it. */
struct store_import {
    struct batch_writer writer;
    struct record_server server;
    bool has_server;
    struct digest digest; /* of what is written */
};

/* Returns the exit code. */
int store_import_run(struct store_command *command);

/* False: out of memory. */
bool store_import_add(struct store_import *import, enum record_kind kind, uint32_t slot,
                      struct bytes value);

#endif
