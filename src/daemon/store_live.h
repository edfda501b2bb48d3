/*
 * store_live.h -- every record of a store that a server is using, from the server itself.
 *
 * Asks over the control socket for a copy as of one batch (GET /api/v1/store), of the store that
 * the command names and of no other. A copy that is cut, for whatever reason, is an error.
 */
#ifndef DAEMON_STORE_LIVE_H
#define DAEMON_STORE_LIVE_H

#include "daemon/store_command.h"
#include "store/store.h"

/* 0; what the visitor returned; or, negative, an exit code after a sentence. `in_use` is why the
 * store could not be opened; NULL: there is none but the server's. */
__attribute__((warn_unused_result)) int store_live_load(struct store_command *command,
                                                        const struct store_failure *in_use,
                                                        store_visit_fn visit, void *context);

#endif
