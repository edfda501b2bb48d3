/*
 * store_from_statd.h -- what rpc.statd knew, as records of our own.
 *
 * A lock server gets clients that are notified at its first start. A status monitor gets
 * registrants: in the boot that they are of it continues where rpc.statd was, and notifies nobody.
 */
#ifndef DAEMON_STORE_FROM_STATD_H
#define DAEMON_STORE_FROM_STATD_H

#include "daemon/store_import.h"

/* Fills *import from the directory command->file. Returns the exit code, after a sentence if it is
 * not 0. */
__attribute__((warn_unused_result)) int store_from_statd(const struct store_command *command,
                                                         struct store_import *import);

#endif
