/*
 * workload.h -- a known sequence of calls to a recorded server, with kills in between.
 */
#ifndef POWERLOSS_WORKLOAD_H
#define POWERLOSS_WORKLOAD_H

#include <stdint.h>

struct workload_options {
    const char *directory; /* an existing one; the store becomes DIRECTORY/recorded-SYNC */
    const char *tape;      /* a new file */
    const char *sync;      /* full or process */
    uint64_t seed;
    uint32_t rounds;
};

/* NULL, or what went wrong. The last server was killed; its store is as it left it. *ret_missed:
 * how many starts did not come to the place where they were to be killed. */
const char *workload_run(const struct workload_options *options, uint32_t *ret_missed);
/* Where the store is; valid until the next call. */
const char *workload_store(const struct workload_options *options);

#endif
