/*
 * postgres_fence.c -- the advisory lock and the epoch; see postgres_fence.h.
 *
 * The lock's key is the word "holdfast" as a number. Advisory locks belong to a database, so each
 * service needs one of its own.
 */
#include "store/postgres_fence.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

#define PAUSE_NS UINT64_C(50000000)

/* 0x686f6c64 and 0x66617374: "hold", "fast". */
#define KEY "7525352680829580148"
#define HOLDERS                                                                                    \
    "pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted "          \
    "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "    \
    "AND classid = 1752132708 AND objid = 1717662580 AND objsubid = 1"

static enum postgres_outcome try_lock(struct postgres_session *session, uint64_t deadline_ns,
                                      bool *ret)
{
    PGresult *result = NULL;
    enum postgres_outcome outcome =
        postgres_session_run(session, "SELECT pg_try_advisory_lock(" KEY ")", deadline_ns, &result);
    if (outcome != POSTGRES_DONE)
        return outcome;
    *ret = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return POSTGRES_DONE;
}

/* Ends a session of our name that is not this one. *ret_ours: it was the holder, or there is none
 * any more; else the session's error names the holder. Whether it could be ended says nothing about
 * that: one that is about to end by itself cannot. */
static enum postgres_outcome look_at_holder(struct postgres_session *session, uint64_t deadline_ns,
                                            bool *ret_ours)
{
    PGresult *result = NULL;
    enum postgres_outcome outcome = postgres_session_run(
        session,
        "SELECT application_name, coalesce(host(client_addr), 'this machine'), "
        "application_name = current_setting('application_name'), "
        "CASE WHEN application_name = current_setting('application_name') "
        "THEN pg_terminate_backend(pid) END FROM " HOLDERS,
        deadline_ns, &result);
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
    bool is_taken = false, is_ours = true;
    for (;;) {
        if (try_lock(session, deadline_ns, &is_taken) != POSTGRES_DONE)
            return POSTGRES_LOCK_FAILED;
        if (is_taken)
            return POSTGRES_LOCK_TAKEN;
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

enum postgres_outcome postgres_fence_raise(struct postgres_session *session, uint64_t deadline_ns,
                                           struct postgres_fence *ret)
{
    return read_row(session, "UPDATE server SET epoch = epoch + 1 RETURNING epoch, txn",
                    deadline_ns, ret);
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
