/*
 * takeover.h -- waits for the store without standing still, and says what it waits for.
 *
 * A shared store may be away, or in use by the active server for weeks (--standby). It is opened on
 * a thread of its own while the server is responsive: /healthz and /readyz are served, SIGTERM ends
 * the wait.
 *
 * What the store has to say it says through here too, from whatever thread, as long as it lives.
 */
#ifndef DAEMON_TAKEOVER_H
#define DAEMON_TAKEOVER_H

#include "base/lease.h"
#include "base/text.h"
#include "daemon/log.h"
#include "store/store.h"
#include "wire/clock.h"

#include <uv.h>

struct takeover;

/* NULL: no memory. All borrowed. */
struct takeover *takeover_new(uv_loop_t *loop, struct log *log, struct clock *clock,
                              struct lease *lease);
/* When the store is closed; free it when the loop has closed all handles. */
void takeover_close(struct takeover *takeover);
void takeover_free(struct takeover *takeover);

/*
 * Opens the store; `options` needs no functions. NULL with *ret_failure filled; with exit code 0 it
 * was told to stop.
 */
struct store *takeover_open(struct takeover *takeover, const char *url,
                            const struct store_options *options, struct store_failure *ret_failure);

/* For /readyz: what is being waited for; false when nothing is. */
bool takeover_explain(const struct takeover *takeover, struct text *ret_reason);

/*
 * --takeover-hook: runs it with the shell and waits for it, at most TAKEOVER_HOOK_MAX_S seconds.
 * Meanwhile the store is asked again and again whether this server is still active: one that is
 * not, or whose lease has run out, must not move an address (lease_may_move). 0; -EIO with
 * *ret_failure filled; or -ECANCELED: we were told to stop. Unless it is 0, whatever the hook has
 * started and not ended by then is killed, also if it ended by itself.
 */
#define TAKEOVER_HOOK_MAX_S 30
#define TAKEOVER_EXIT_HOOK  75
__attribute__((warn_unused_result)) int takeover_run_hook(struct takeover *takeover,
                                                          struct store *store, const char *command,
                                                          struct store_failure *ret_failure);

#endif
