/*
 * postgres_migrate.c -- `holdfast store migrate`: the tables of a database, one version at a time;
 * and `holdfast groups`: which ones it has.
 *
 * A start migrates by itself if it may. This is for sites where only the owner of a database may
 * change its tables, and for downgrades.
 *
 * A step back that drops tables refuses as long as there is a record in any. Their clients would
 * be forgotten, and the next start would not know that (P2, P3): `holdfast store clear` is the one
 * that removes records, and leaves the mark that some are missing (D16).
 *
 * That mark, the state number and the epoch are in table server, which only the step from version 1
 * to nothing drops. Clearing leaves them, so this step is for a database that no server has ever
 * used; any other one ends by dropping the database.
 */
#include "base/units.h"
#include "store/backend.h"
#include "store/postgres_fence.h"
#include "store/postgres_group.h"
#include "store/postgres_schema.h"
#include "store/postgres_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_NS (30 * SECOND_NS)

static int fail(const struct postgres_session *session, int exit_code, const char *what,
                const char *next, struct store_failure *ret_failure)
{
    store_fail(ret_failure, exit_code, "store postgres: %s: %.200s; %s", what, session->error.text,
               next);
    return -EIO;
}

/* The SQL of a step, for somebody who runs it elsewhere: then it says where. NULL: no memory. */
static char *write_step(const struct postgres_session *session, uint32_t from, uint32_t to)
{
    char *sql = postgres_schema_step(from, to), *all = NULL;
    if (session->schema[0] == '\0' || sql == NULL)
        return sql;
    char first[128] = "";
    if (from == 0)
        (void)snprintf(first, sizeof first, "CREATE SCHEMA IF NOT EXISTS \"%s\";\n",
                       session->schema);
    size_t size = strlen(sql) + sizeof first + 128;
    all = malloc(size);
    if (all != NULL)
        (void)snprintf(all, size, "%sSET search_path = \"%s\", pg_temp;\n%s", first,
                       session->schema, sql);
    free(sql);
    return all;
}

static int step(struct postgres_session *session, uint32_t from, uint32_t to,
                const struct store_migration *how, struct store_failure *ret_failure)
{
    char *sql = write_step(session, from, to);
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
                    "nothing was changed; the database owner must run it", ret_failure);
    return 0;
}

/* A question that has one answer: true or false. */
static enum postgres_outcome ask(struct postgres_session *session, const char *sql,
                                 uint64_t deadline_ns, bool *ret)
{
    PGresult *result = NULL;
    enum postgres_outcome outcome = postgres_session_run(session, sql, deadline_ns, &result);
    if (outcome == POSTGRES_DONE)
        *ret = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return outcome;
}

/* The first table with a record in it, of those that this version has; NULL: all are empty. */
static enum postgres_outcome find_records(struct postgres_session *session, uint64_t deadline_ns,
                                          const char **ret_table)
{
    *ret_table = NULL;
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END && *ret_table == NULL; kind++) {
        const char *table = postgres_table_name((enum record_kind)kind);
        char sql[128];
        bool is_there = false, has_records = false;
        (void)snprintf(sql, sizeof sql, "SELECT to_regclass('%s') IS NOT NULL", table);
        enum postgres_outcome outcome = ask(session, sql, deadline_ns, &is_there);
        (void)snprintf(sql, sizeof sql, "SELECT EXISTS (SELECT FROM %s)", table);
        if (outcome == POSTGRES_DONE && is_there)
            outcome = ask(session, sql, deadline_ns, &has_records);
        if (outcome != POSTGRES_DONE)
            return outcome;
        if (has_records)
            *ret_table = table;
    }
    return POSTGRES_DONE;
}

static int step_down(struct postgres_session *session, uint32_t version,
                     const struct store_migration *how, struct store_failure *ret_failure)
{
    const char *table = NULL;
    bool was_used = false;
    uint64_t deadline_ns = postgres_now_ns() + TIMEOUT_NS;
    enum postgres_outcome outcome = POSTGRES_DONE;
    if (version == 0)
        return 0;
    bool is_harmless = strstr(postgres_migrations[version - 1].down, "DROP TABLE") == NULL;
    if (!how->print_only && !is_harmless)
        outcome = find_records(session, deadline_ns, &table);
    if (!how->print_only && outcome == POSTGRES_DONE && version == 1)
        outcome =
            ask(session, "SELECT EXISTS (SELECT FROM server WHERE record IS NOT NULL OR epoch > 0)",
                deadline_ns, &was_used);
    if (outcome != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot read its tables",
                    "psql must work with the same connection string", ret_failure);
    if (table != NULL) {
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store postgres: table %s has records, which a downgrade would drop; save them "
                   "with \"holdfast store export\", remove them with \"holdfast store clear\", "
                   "then try again. Nothing was changed",
                   table);
        return -EIO;
    }
    if (was_used) {
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store postgres: a server has used it, and this downgrade would lose its state "
                   "number and whether records are missing; drop the database if you no longer "
                   "need it. Nothing was changed");
        return -EIO;
    }
    return step(session, version, version - 1, how, ret_failure);
}

static int take_lock(struct postgres_session *session, uint64_t deadline_ns,
                     struct store_failure *ret_failure)
{
    switch (postgres_fence_lock(session, deadline_ns)) {
    case POSTGRES_LOCK_TAKEN:
        return 0;
    case POSTGRES_LOCK_OTHERS:
        return fail(session, STORE_EXIT_STORE, "in use", "stop the servers first", ret_failure);
    case POSTGRES_LOCK_ABSENT:
    case POSTGRES_LOCK_FAILED:
        break;
    }
    return fail(session, STORE_EXIT_STORE, "cannot take its lock",
                "psql must work with the same connection string", ret_failure);
}

static int migrate(struct postgres_session *session, const struct store_migration *how,
                   struct store_failure *ret_failure)
{
    uint64_t deadline_ns = postgres_now_ns() + TIMEOUT_NS;
    uint32_t version = 0;
    bool is_stray = false;
    if (postgres_session_connect(session, deadline_ns) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot connect",
                    "psql must work with the same connection string", ret_failure);
    if (!how->print_only && how->group != NULL &&
        postgres_group_make(session, deadline_ns) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot create the schema of the group",
                    "the database owner must run it", ret_failure);
    if (!how->print_only && take_lock(session, deadline_ns, ret_failure) != 0)
        return -EIO;
    if (how->group == NULL &&
        postgres_group_find_stray(session, deadline_ns, &is_stray) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot find its tables",
                    "psql must work with the same connection string", ret_failure);
    if (is_stray)
        return fail(session, STORE_EXIT_STORE, POSTGRES_GROUP_STRAY, POSTGRES_GROUP_STRAY_ADVICE,
                    ret_failure);
    if (postgres_schema_version(session, deadline_ns, &version) != POSTGRES_DONE)
        return fail(session, STORE_EXIT_STORE, "cannot read the version of its tables",
                    "psql must work with the same connection string", ret_failure);
    if (version > postgres_migration_count) {
        store_fail(ret_failure, STORE_EXIT_NEWER,
                   "store postgres: its tables have version %u, this holdfast supports %u; use the "
                   "holdfast that created them",
                   version, postgres_migration_count);
        return -EIO;
    }
    if (how->is_down)
        return step_down(session, version, how, ret_failure);
    for (; version < postgres_migration_count; version++)
        if (step(session, version, version + 1, how, ret_failure) != 0)
            return -EIO;
    return 0;
}

/* 0, or -EIO with *ret_failure filled. The session is to be ended in any case. */
static int begin(struct postgres_session *session, const char *rest,
                 struct store_failure *ret_failure)
{
    int result = postgres_session_init(session, rest);
    if (result == -ENOMEM)
        store_fail(ret_failure, STORE_EXIT_STORE, "store postgres: out of memory");
    else if (result != 0)
        (void)fail(session, STORE_EXIT_USAGE, "cannot connect", "use postgres:CONNINFO",
                   ret_failure);
    return result == 0 ? 0 : -EIO;
}

int postgres_migrate(const char *rest, const struct store_migration *how,
                     struct store_failure *ret_failure)
{
    struct postgres_session session;
    int result = begin(&session, rest, ret_failure);
    postgres_group_choose(&session, how->group);
    if (result == 0)
        result = migrate(&session, how, ret_failure);
    postgres_session_done(&session);
    return result;
}

int postgres_list_groups(const char *rest, uint64_t timeout_ns, store_group_fn visit, void *context,
                         struct store_failure *ret_failure)
{
    struct postgres_session session;
    uint64_t deadline_ns = postgres_now_ns() + timeout_ns;
    int stop = 0, result = begin(&session, rest, ret_failure);
    if (result == 0 &&
        (postgres_session_connect(&session, deadline_ns) != POSTGRES_DONE ||
         postgres_group_list(&session, deadline_ns, visit, context, &stop) != POSTGRES_DONE))
        result = fail(&session, STORE_EXIT_STORE, "cannot list its groups",
                      "psql must work with the same connection string", ret_failure);
    postgres_session_done(&session);
    return result == 0 ? stop : result;
}
