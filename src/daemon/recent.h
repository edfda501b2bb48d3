/*
 * recent.h -- what was done in the last seconds, from totals that only grow.
 *
 * A mark is set once a second; the difference to the oldest one is what was done since.
 */
#ifndef DAEMON_RECENT_H
#define DAEMON_RECENT_H

#include "admin/admin.h"

enum { RECENT_SECONDS = 10 };

struct recent {
    struct recent_mark {
        uint64_t at_ns, requests, commits, commit_ns;
    } marks[RECENT_SECONDS];
    uint32_t count; /* of all that were set */
};

/* Several times a second, and whenever somebody asks; a NULL meter or histogram counts nothing. */
void recent_tick(struct recent *recent, uint64_t now_ns, const struct meter *meter,
                 const struct histogram *commits);
/* What was done since the oldest mark. */
void recent_get(const struct recent *recent, uint64_t now_ns, const struct meter *meter,
                const struct histogram *commits, struct admin_recent *ret);

#endif
