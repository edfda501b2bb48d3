/*
 * statd_import.h -- the state directory of rpc.statd: which hosts it watches, and which it would
 * notify.
 *
 *   DIR/state     its state number, four bytes of this machine's order
 *   DIR/sm/       a file per monitored host, named after it: a line for each registration
 *   DIR/sm.bak/   those that are still to be notified of an earlier restart
 */
#ifndef DAEMON_STATD_IMPORT_H
#define DAEMON_STATD_IMPORT_H

#include "base/address.h"
#include "base/text.h"

#define STATD_IMPORT_CONTENT_MAX (1 << 20) /* of one file; no host has a thousandth of it */

struct statd_import_host {
    const char *name;  /* as it was monitored */
    uint64_t since_ns; /* wall clock, when the file was written */
    bool is_retired;   /* of sm.bak */
    bool is_known;     /* of sm.bak, and sm has it, too: it was visited before */
    int directory;     /* that it is in */
};

/* 0, or a negative errno, which stops. */
typedef int (*statd_import_visit_fn)(void *context, const struct statd_import_host *host);

/* Visits the hosts of sm, then those of sm.bak. What begins with a dot rpc.statd ignores, and so
 * does this, which says so; anything else that is no file is an error. 0 with the state number; or
 * a negative errno, also the visitor's, with *ret_why filled. */
__attribute__((warn_unused_result)) int statd_import_read(const char *directory,
                                                          statd_import_visit_fn visit,
                                                          void *context, uint32_t *ret_state,
                                                          struct text *ret_why);

/* Of the host that is visited: its address, family 0 if the name does not resolve; this waits for
 * the resolver. */
struct address statd_import_resolve(const struct statd_import_host *host);
/* Its file: the length of it, or a negative errno; -EBADMSG: it is none any more. */
__attribute__((warn_unused_result)) int
statd_import_content(const struct statd_import_host *host,
                     char ret[static STATD_IMPORT_CONTENT_MAX]);

#endif
