/*
 * postgres_migrate.c -- `holdfast store migrate`: the tables of a database, one version at a time.
 *
 * A start migrates by itself if it may. This is for those who let nobody but the owner of a
 * database change its tables, and for the way back, which throws away what the older version has no
 * table for.
 */
#include "store/backend.h"
#include "store/postgres_fence.h"
#include "store/postgres_schema.h"

#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_NS (UINT64_C(30) * 1000000000)

static int fail(const struct postgres_session *session, int exit_code, const char *what,
                const char *next, struct store_failure *ret_failure)
{
    store_fail(ret_failure, exit_code, "store postgres: %s: %.200s; %s", what, session->error.text,
               next);
    return -EIO;
}

static int step(struct postgres_session *session, uint32_t from, uint32_t to,
                const struct store_migration *how, struct store_failure *ret_failure)
{
    char *sql = postgres_schema_step(from, to);
    if (sql == NULL) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store postgres: out of memory");
        return -EIO;
    }
    how->visit(how->context, from, to, sql);
    free(sql);
    if (how->print_only)
        return 0;
    if (postgres_schema_move(session, from, to, postgres_now_ns() + TIMEOUT_NS) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "the migration failed",
                    "nothing of this step happened; the owner of the database must run it",
                    ret_failure);
    return 0;
}

static int migrate(struct postgres_session *session, const struct store_migration *how,
                   struct store_failure *ret_failure)
{
    uint64_t deadline_ns = postgres_now_ns() + TIMEOUT_NS;
    uint32_t version = 0;
    if (postgres_session_connect(session, deadline_ns) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot connect",
                    "psql with the same words must work", ret_failure);
    if (!how->print_only && postgres_fence_lock(session, deadline_ns) != POSTGRES_LOCK_TAKEN)
        return fail(session, STORE_EXIT_STORE, "in use", "stop the servers first", ret_failure);
    if (postgres_schema_version(session, deadline_ns, &version) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot read the version of its tables",
                    "psql with the same words must work", ret_failure);
    if (version > postgres_migration_count) {
        store_fail(ret_failure, STORE_EXIT_NEWER,
                   "store postgres: its tables have version %u, this holdfast knows %u; use the "
                   "holdfast that made them",
                   version, postgres_migration_count);
        return -EIO;
    }
    if (how->is_down)
        return version == 0 ? 0 : step(session, version, version - 1, how, ret_failure);
    for (; version < postgres_migration_count; version++)
        if (step(session, version, version + 1, how, ret_failure) != 0)
            return -EIO;
    return 0;
}

int postgres_migrate(const char *rest, const struct store_migration *how,
                     struct store_failure *ret_failure)
{
    struct postgres_session session;
    if (postgres_session_init(&session, rest) != 0) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store postgres: out of memory");
        return -EIO;
    }
    int result = migrate(&session, how, ret_failure);
    postgres_session_done(&session);
    return result;
}
