/*
 * postgres.h -- what the parts of the PostgreSQL back end share: an open store, and its sentences.
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include "store/postgres_batch.h"
#include "store/postgres_fence.h"

#define POSTGRES_PAUSE_MIN_NS UINT64_C(20000000)

/* What to do about a database that cannot be reached. */
#define POSTGRES_ADVICE                                                                            \
    "start PostgreSQL or fix the connection string (psql must work with it), then start again; "   \
    "nothing is lost"

struct postgres {
    struct postgres_session session;
    struct store_options options;
    struct postgres_batch *batch;
    struct postgres_fence fence; /* as it is in the database, as far as we know */
    uint64_t checked_ns;         /* it was ours then, or later, by CLOCK_BOOTTIME */
    char shown[160];             /* the URL, for messages */
    char said[512];              /* the last sentence of this wait */
    uint32_t group;              /* of options.groups: the one that it is of */
    bool has_places;             /* the schemas of its groups were there, or it made them */
    bool has_failed;
};

/* "store postgres:...: WHAT: CAUSE; NEXT STEP". Returns -EIO. */
int postgres_fail(const struct postgres *postgres, int exit_code, const char *what,
                  const char *next, struct store_failure *ret_failure);
/* "store postgres:...: WHAT: CAUSE", once, and again when the cause is another one. */
void postgres_say(struct postgres *postgres, const char *what);
/* The pause after this one. */
uint64_t postgres_grow_pause(uint64_t pause_ns);

/* In postgres_open.c: connected, locked, with tables and an epoch; or not 0. */
__attribute__((warn_unused_result)) int postgres_open_begin(struct postgres *postgres,
                                                            struct store_summary *ret_summary,
                                                            struct store_failure *ret_failure);

#endif
