/*
 * statd_import.h -- the state directory of rpc.statd: which hosts it would notify after a restart.
 *
 *   DIR/state     its state number, four bytes of this machine's order
 *   DIR/sm/       a file per monitored host, named after it
 *   DIR/sm.bak/   those that an earlier start has not reached yet
 */
#ifndef DAEMON_STATD_IMPORT_H
#define DAEMON_STATD_IMPORT_H

#include "base/address.h"
#include "base/text.h"

struct statd_import_host {
    struct bytes name;      /* as it was monitored */
    struct address address; /* family 0: the name could not be resolved */
    uint64_t since_ns;      /* wall clock, when the file was written */
};

/* A host of both directories; the same name twice is visited once. Non-zero stops. */
typedef int (*statd_import_visit_fn)(void *context, const struct statd_import_host *host);

/* 0 with the state number; what the visitor returned; or a negative errno with *ret_why filled. */
__attribute__((warn_unused_result)) int statd_import_read(const char *directory,
                                                          statd_import_visit_fn visit,
                                                          void *context, uint32_t *ret_state,
                                                          struct text *ret_why);

#endif
