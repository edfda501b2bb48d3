/*
 * reload.h -- options read again while the server runs: SIGHUP, `holdfast reload` and
 * POST /api/v1/reload.
 *
 *   asked --> read, on a thread: the file of options, the exports, their directories and hostnames
 *         --> taken, on the loop, all at once; or refused, and nothing has changed
 *
 * What may change is in the table of options (config_change.h); of the rest the report says what
 * needs a restart. One reading at a time: a request while one is in progress gets the next, since
 * the current one may have read the file before it was written.
 */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "admin/admin.h"
#include "daemon/config.h"
#include "daemon/files.h"
#include "daemon/names.h"

struct reload;

/* Borrowed. */
struct reload_parts {
    uv_loop_t *loop;
    struct log *log;
    struct clock *clock;
    struct config *config; /* in force */
    int argc;              /* the command line, which is read again */
    char *const *argv;
};

/* SIGHUP is taken from here on; while we do not serve it is answered with a sentence in the log.
 * NULL: no memory. */
struct reload *reload_new(const struct reload_parts *parts);
/* We serve, with these. `files` NULL: none are exported. */
void reload_serve(struct reload *reload, struct core *core, struct rpc_server *server,
                  struct names *names, struct files *files);

/* Reads once more. The number of that reading. */
uint64_t reload_ask(struct reload *reload);
/* NULL: that reading is not over. The report of it, or of a later one; lives until the next turn.
 */
const struct admin_reload *reload_report(const struct reload *reload, uint64_t number);

/*
 * False: a reading is in progress and cannot be interrupted; the process must then end without
 * waiting for it. True: reload_free may follow when the loop has closed all handles. NULL is legal.
 */
__attribute__((warn_unused_result)) bool reload_close(struct reload *reload);
void reload_free(struct reload *reload);

#endif
