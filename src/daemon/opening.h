/*
 * opening.h -- waits for the store without standing still, and says what it waits for.
 *
 * A shared store may be away, or in use by the active server for weeks (--standby). It is opened on
 * a thread of its own while the loop turns: /healthz and /readyz are served, SIGTERM ends the wait.
 *
 * What the store has to say it says through here too, from whatever thread, as long as it lives.
 */
#ifndef DAEMON_OPENING_H
#define DAEMON_OPENING_H

#include "base/text.h"
#include "daemon/log.h"
#include "store/store.h"
#include "wire/clock.h"

#include <uv.h>

struct opening;

/* NULL: no memory. All borrowed. */
struct opening *opening_new(uv_loop_t *loop, struct log *log, struct clock *clock);
/* When the store is closed; free it when the loop has closed all handles. */
void opening_close(struct opening *opening);
void opening_free(struct opening *opening);

/*
 * Opens the store; `options` needs no functions. NULL with *ret_failure filled; with exit code 0 it
 * was told to stop.
 */
struct store *opening_run(struct opening *opening, const char *url,
                          const struct store_options *options, struct store_failure *ret_failure);

/* For /readyz: what is being waited for; false when nothing is. */
bool opening_explain(const struct opening *opening, struct text *ret_reason);

/*
 * --takeover-hook: runs it with the shell and waits for it, at most OPENING_HOOK_MAX_S seconds.
 * Meanwhile the store is asked again and again whether this server is still in office: one that is
 * not, or that has heard nothing for OPENING_LEASE_S seconds, must not move an address. 0; -EIO
 * with *ret_failure filled; or -ECANCELED: we were told to stop. Unless it is 0, whatever the hook
 * has started and not ended by then is killed, also if it ended by itself.
 */
#define OPENING_HOOK_MAX_S 30
#define OPENING_LEASE_S    8 /* PostgreSQL gives a session up after 11 */
#define OPENING_EXIT_HOOK  75
__attribute__((warn_unused_result)) int opening_run_hook(struct opening *opening,
                                                         struct store *store, const char *command,
                                                         struct store_failure *ret_failure);

#endif
