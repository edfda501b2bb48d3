/*
 * store_to_statd.h -- `holdfast store export --to rpc.statd DIR`: the way home to rpc.statd.
 *
 * Writes what a status monitor knows as the files of rpc.statd (statd_import.h): registrations of
 * this boot into DIR/sm, hosts that are still to be notified into DIR/sm.bak, and the state number.
 */
#ifndef DAEMON_STORE_TO_STATD_H
#define DAEMON_STORE_TO_STATD_H

#include "daemon/store_command.h"

/* Returns the exit code. */
__attribute__((warn_unused_result)) int store_to_statd(struct store_command *command);

#endif
