/*
 * store_export.h -- `holdfast store export`: every record as a line of JSON, or what a status
 * monitor knows as the directory of rpc.statd.
 */
#ifndef DAEMON_STORE_EXPORT_H
#define DAEMON_STORE_EXPORT_H

#include "daemon/store_command.h"
#include "store/store.h"

/* Returns the exit code. */
int store_export_run(struct store_command *command);

/* The store as a reader, having said what is to be known of it; NULL after a sentence, with the
 * exit code in *ret_code. */
struct store *store_export_open(struct store_command *command, struct store_summary *ret_summary,
                                int *ret_code);

#endif
