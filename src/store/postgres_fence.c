/*
 * postgres_fence.c -- the advisory lock and the epoch; see postgres_fence.h.
 *
 * Advisory locks belong to a database. Servers that share one need a group each, which has a schema
 * and with it a key of its own; a schema that is not there cannot be locked.
 */
#include "store/postgres_fence.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

#define PAUSE_NS UINT64_C(50000000)

enum { SQL_MAX = 1024, ADDRESS_MAX = 200 };

/* The number of the group's schema as PostgreSQL's lock functions take it, signed. */
#define ID_OF_SCHEMA "oid::int8::bit(32)::int4 FROM pg_namespace WHERE nspname = "

/* Calls a function with the key of the lock. */
static void write_lock(const struct postgres_session *session, char sql[static SQL_MAX])
{
    if (session->schema[0] == '\0')
        (void)snprintf(sql, SQL_MAX,
                       "SELECT pg_try_advisory_lock((" POSTGRES_FENCE_HOLD
                       "::int8 << 32) | " POSTGRES_FENCE_FAST ")");
    else
        (void)snprintf(sql, SQL_MAX,
                       "SELECT pg_try_advisory_lock(" POSTGRES_FENCE_HOLD ", id) "
                       "FROM (SELECT " ID_OF_SCHEMA "'%s') AS schema (id)",
                       session->schema);
}

/* OTHERS may be an old session of this process. */
static enum postgres_lock try_lock(struct postgres_session *session, uint64_t deadline_ns)
{
    char sql[SQL_MAX];
    PGresult *result = NULL;
    write_lock(session, sql);
    if (postgres_session_run(session, sql, deadline_ns, &result) != POSTGRES_DONE)
        return POSTGRES_LOCK_FAILED;
    bool is_there = PQntuples(result) == 1;
    bool is_taken = is_there && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    if (is_there)
        return is_taken ? POSTGRES_LOCK_TAKEN : POSTGRES_LOCK_OTHERS;
    (void)snprintf(session->error.state, sizeof session->error.state, "3F000");
    (void)snprintf(session->error.text, sizeof session->error.text,
                   "the database has no schema \"%s\", so there is no such group", session->schema);
    return POSTGRES_LOCK_ABSENT;
}

static enum postgres_outcome show_wait(struct postgres_session *session, const char *function,
                                       uint64_t deadline_ns)
{
    char sql[SQL_MAX];
    if (session->schema[0] == '\0')
        (void)snprintf(sql, sizeof sql, "SELECT %s(" POSTGRES_FENCE_WAIT ", 0)", function);
    else
        (void)snprintf(sql, sizeof sql,
                       "SELECT %s(" POSTGRES_FENCE_WAIT ", id) "
                       "FROM (SELECT " ID_OF_SCHEMA "'%s') AS schema (id)",
                       function, session->schema);
    return postgres_session_run(session, sql, deadline_ns, NULL);
}

enum postgres_outcome postgres_fence_wait(struct postgres_session *session, uint64_t deadline_ns)
{
    return show_wait(session, "pg_advisory_lock_shared", deadline_ns);
}

enum postgres_outcome postgres_fence_wait_no_more(struct postgres_session *session,
                                                  uint64_t deadline_ns)
{
    return show_wait(session, "pg_advisory_unlock_shared", deadline_ns);
}

/* Which lock it is, for those who look for its holder. */
static void write_holder(const struct postgres_session *session, char sql[static SQL_MAX])
{
    char of[256] = "objid = " POSTGRES_FENCE_FAST " AND objsubid = 1";
    if (session->schema[0] != '\0')
        (void)snprintf(of, sizeof of,
                       "objid = (SELECT oid FROM pg_namespace WHERE nspname = '%s') "
                       "AND objsubid = 2",
                       session->schema);
    (void)snprintf(
        sql, SQL_MAX,
        "SELECT application_name, coalesce(host(client_addr), 'this machine'), "
        "application_name = current_setting('application_name'), "
        "CASE WHEN application_name = current_setting('application_name') "
        "THEN pg_terminate_backend(pid) END "
        "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted "
        "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND classid = " POSTGRES_FENCE_HOLD " AND %s",
        of);
}

/* Ends a session of our name that is not this one. *ret_ours: it was the holder, or there is none
 * any more; else the session's error names the holder. Whether it could be ended says nothing about
 * that: one that is about to end by itself cannot. */
static enum postgres_outcome look_at_holder(struct postgres_session *session, uint64_t deadline_ns,
                                            bool *ret_ours)
{
    char sql[SQL_MAX];
    PGresult *result = NULL;
    write_holder(session, sql);
    enum postgres_outcome outcome = postgres_session_run(session, sql, deadline_ns, &result);
    if (outcome != POSTGRES_DONE)
        return outcome;
    *ret_ours = PQntuples(result) == 0 || PQgetvalue(result, 0, 2)[0] == 't';
    if (!*ret_ours) {
        session->error.state[0] = '\0';
        (void)snprintf(session->error.text, sizeof session->error.text,
                       "the active server is session \"%.63s\" from %.45s",
                       PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1));
    }
    PQclear(result);
    return POSTGRES_DONE;
}

enum postgres_lock postgres_fence_lock(struct postgres_session *session, uint64_t deadline_ns)
{
    bool is_ours = true;
    for (;;) {
        enum postgres_lock lock = try_lock(session, deadline_ns);
        if (lock != POSTGRES_LOCK_OTHERS)
            return lock;
        if (look_at_holder(session, deadline_ns, &is_ours) != POSTGRES_DONE)
            return POSTGRES_LOCK_FAILED;
        if (!is_ours)
            return POSTGRES_LOCK_OTHERS;
        if (!postgres_pause(PAUSE_NS, deadline_ns)) {
            (void)snprintf(session->error.text, sizeof session->error.text,
                           "an old session of this server has not ended");
            return POSTGRES_LOCK_FAILED;
        }
    }
}

static enum postgres_outcome read_row(struct postgres_session *session, const char *sql,
                                      uint64_t deadline_ns, struct postgres_fence *ret)
{
    PGresult *result = NULL;
    enum postgres_outcome outcome = postgres_session_run(session, sql, deadline_ns, &result);
    if (outcome != POSTGRES_DONE)
        return outcome;
    bool is_there = PQntuples(result) == 1;
    if (is_there) {
        ret->epoch = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
        ret->txn = strtoull(PQgetvalue(result, 0, 1), NULL, 10);
    }
    PQclear(result);
    if (is_there)
        return POSTGRES_DONE;
    (void)snprintf(session->error.state, sizeof session->error.state, "P0002");
    (void)snprintf(session->error.text, sizeof session->error.text,
                   "table server lost its only row");
    return POSTGRES_REFUSED;
}

enum postgres_outcome postgres_fence_read(struct postgres_session *session, uint64_t deadline_ns,
                                          struct postgres_fence *ret)
{
    return read_row(session, "SELECT epoch, txn FROM server FOR UPDATE", deadline_ns, ret);
}

enum postgres_outcome postgres_fence_look(struct postgres_session *session, uint64_t deadline_ns,
                                          struct postgres_fence *ret)
{
    return read_row(session, "SELECT epoch, txn FROM server", deadline_ns, ret);
}

enum postgres_outcome postgres_fence_raise(struct postgres_session *session, const char *address,
                                           uint64_t deadline_ns, struct postgres_fence *ret)
{
    char sql[SQL_MAX] = "UPDATE server SET epoch = epoch + 1, host = NULL, address = NULL, "
                        "since = NULL RETURNING epoch, txn";
    char *literal = address == NULL ? NULL
                                    : PQescapeLiteral(session->connection, address,
                                                      strnlen(address, ADDRESS_MAX));
    if (literal != NULL)
        (void)snprintf(sql, sizeof sql,
                       "UPDATE server SET epoch = epoch + 1, "
                       "host = split_part(current_setting('application_name'), ' ', 2), "
                       "address = %s, since = now() RETURNING epoch, txn",
                       literal);
    PQfreemem(literal);
    return read_row(session, sql, deadline_ns, ret);
}

enum postgres_outcome postgres_fence_restart(struct postgres_session *session, uint64_t deadline_ns,
                                             struct postgres_fence *fence)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE server SET txn = 0 WHERE epoch = %lld RETURNING epoch, txn",
                   (long long)fence->epoch);
    return read_row(session, sql, deadline_ns, fence);
}
