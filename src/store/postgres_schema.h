/*
 * postgres_schema.h -- which tables a database has, and how it gets them.
 *
 * The schema has a version: the number of migrations that were applied. Each migration is a pair of
 * SQL files of src/store/sql, up and down, which are part of the program. They are applied one by
 * one, each in a transaction of its own together with the new version.
 */
#ifndef STORE_POSTGRES_SCHEMA_H
#define STORE_POSTGRES_SCHEMA_H

#include "store/postgres_session.h"

struct postgres_migration {
    const char *up, *down;
};

extern const struct postgres_migration postgres_migrations[];
extern const uint32_t postgres_migration_count;

/* The version of the database; 0: it has no tables of ours. */
enum postgres_outcome postgres_schema_version(struct postgres_session *session,
                                              uint64_t deadline_ns, uint32_t *ret);

/* Goes up or down to that version, which is at most postgres_migration_count. The caller
 * holds the lock (postgres_fence.h). */
enum postgres_outcome postgres_schema_move(struct postgres_session *session, uint32_t from,
                                           uint32_t to, uint64_t deadline_ns);

/* What postgres_schema_move would run for this one step. The caller frees it; NULL: no memory. */
char *postgres_schema_step(uint32_t from, uint32_t to);

#endif
