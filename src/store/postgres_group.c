/*
 * postgres_group.c -- groups as schemas; see postgres_group.h.
 *
 * A name that we were given has been checked before it gets here (store/group.h), so no character
 * of it means anything to SQL; as a schema it is quoted all the same, for its hyphens. A name that
 * was found in the database was chosen by anybody who may make schemas there: PostgreSQL quotes it,
 * and what is no name of a group is skipped.
 *
 * Who serves what is read from two places that cannot lie together: the advisory lock says who is
 * active now, and ends with its session; the row of table server, written with the epoch, says
 * since when and where.
 */
#include "store/postgres_group.h"

#include "base/check.h"
#include "store/postgres_fence.h"

#include <stdio.h>
#include <stdlib.h>

#define PREFIX "holdfast_"

enum { SQL_MAX = 512 };

_Static_assert(sizeof PREFIX + STORE_GROUP_NAME_MAX <= POSTGRES_NAME_MAX,
               "PostgreSQL cuts longer identifiers, and two groups could be one");

void postgres_group_choose(struct postgres_session *session, const char *group)
{
    session->schema[0] = '\0';
    if (group == NULL)
        return;
    CHECK(store_group_is_name(group));
    (void)snprintf(session->schema, sizeof session->schema, PREFIX "%s", group);
}

/* pg_temp last: where it is not named it comes first. */
enum postgres_outcome postgres_group_enter(struct postgres_session *session, uint64_t deadline_ns)
{
    char sql[SQL_MAX];
    (void)snprintf(sql, sizeof sql, "SET search_path = \"%s\", pg_temp", session->schema);
    return postgres_session_run(session, sql, deadline_ns, NULL);
}

/* Where the tables are; if there are none, where they would be made. */
enum postgres_outcome postgres_group_find_stray(struct postgres_session *session,
                                                uint64_t deadline_ns, bool *ret)
{
    PGresult *result = NULL;
    enum postgres_outcome outcome = postgres_session_run(
        session,
        "SELECT place FROM (SELECT coalesce((SELECT nspname FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = relnamespace WHERE c.oid = to_regclass('holdfast_schema')), current_schema())) "
        "AS it (place) WHERE starts_with(place, '" PREFIX "')",
        deadline_ns, &result);
    *ret = outcome == POSTGRES_DONE && PQntuples(result) == 1;
    if (*ret)
        (void)snprintf(session->error.text, sizeof session->error.text,
                       "the search_path of role \"%.63s\" leads to schema \"%.63s\"",
                       PQuser(session->connection), PQgetvalue(result, 0, 0));
    PQclear(result);
    return outcome;
}

/* Looked for first: who may not make schemas may have been given one. Two servers of a new group
 * may come at once, and then it is there although we were refused. */
enum postgres_outcome postgres_group_make(struct postgres_session *session, uint64_t deadline_ns)
{
    char sql[SQL_MAX];
    (void)snprintf(sql, sizeof sql, "SELECT FROM pg_namespace WHERE nspname = '%s'",
                   session->schema);
    PGresult *result = NULL;
    enum postgres_outcome outcome = postgres_session_run(session, sql, deadline_ns, &result);
    bool is_there = outcome == POSTGRES_DONE && PQntuples(result) == 1;
    PQclear(result);
    if (outcome != POSTGRES_DONE || is_there)
        return outcome;
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA \"%s\"", session->schema);
    outcome = postgres_session_run(session, sql, deadline_ns, NULL);
    bool is_made_meanwhile =
        outcome == POSTGRES_REFUSED &&
        (strcmp(session->error.state, "42P06") == 0 || strcmp(session->error.state, "23505") == 0);
    return is_made_meanwhile ? POSTGRES_DONE : outcome;
}

/* ---- the list ---- */

/*
 * What has a version is ours. `id` is what stands in the key of a lock; `source`, NULL if there is
 * none to be trusted, is the table server as it is written in SQL. A user who lists groups, maybe a
 * superuser, must run nobody's code: so it is a table and no view, without policies, of types that
 * come with PostgreSQL.
 */
static const char places[] =
    "WITH place AS (SELECT CASE WHEN starts_with(nspname, '" PREFIX "') THEN n.oid ELSE 0::oid END "
    "AS id, CASE WHEN starts_with(nspname, '" PREFIX "') THEN nspname ELSE '' END AS schema, "
    "(SELECT format('%I.server', nspname) FROM pg_class s WHERE s.relnamespace = n.oid "
    "AND s.relname = 'server' AND s.relkind = 'r' AND NOT s.relrowsecurity "
    "AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = s.oid AND atttypid >= 16384)) "
    "AS source FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid "
    "WHERE relname = 'holdfast_schema' AND relkind = 'r' "
    "AND (starts_with(nspname, '" PREFIX "') OR c.oid = to_regclass('holdfast_schema'))), "
    "held AS (SELECT classid, objsubid, split_part(application_name, ' ', 2) AS host, "
    "CASE WHEN objsubid = 1 THEN 0::oid ELSE objid END AS id "
    "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND (objsubid = 2 OR objid = " POSTGRES_FENCE_FAST ")) "
    "SELECT schema, (SELECT min(host) FROM held WHERE held.id = place.id "
    "AND classid = " POSTGRES_FENCE_HOLD " AND objsubid = CASE WHEN schema = '' THEN 1 ELSE 2 END),"
    " count(held.id), string_agg(DISTINCT held.host, ', '), source FROM place LEFT JOIN held "
    "ON held.id = place.id AND classid = " POSTGRES_FENCE_WAIT " AND objsubid = 2 "
    "GROUP BY place.id, schema, source ORDER BY schema COLLATE \"C\"";

/* An older version has no such columns yet: as JSON they are only absent. */
#define DETAILS                                                                                    \
    "SELECT epoch, to_jsonb(server) ->> 'host', to_jsonb(server) ->> 'address', "                  \
    "to_char((to_jsonb(server) ->> 'since')::timestamptz AT TIME ZONE 'UTC', "                     \
    "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM ONLY "

static const char *value_at(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

/* A group that is another role's, or went meanwhile, has no details: that is no failure. */
static enum postgres_outcome read_details(struct postgres_session *session, const char *source,
                                          uint64_t deadline_ns, PGresult **ret)
{
    char sql[SQL_MAX];
    *ret = NULL;
    if (source == NULL)
        return POSTGRES_REFUSED;
    int len = snprintf(sql, sizeof sql, DETAILS "%s", source);
    CHECK(len > 0 && (size_t)len < sizeof sql);
    return postgres_session_run(session, sql, deadline_ns, ret);
}

static enum postgres_outcome visit_place(struct postgres_session *session, const PGresult *found,
                                         int row, uint64_t deadline_ns, store_group_fn visit,
                                         void *context, int *ret_stop)
{
    const char *schema = PQgetvalue(found, row, 0);
    PGresult *details = NULL;
    bool has_group = schema[0] != '\0';
    if (has_group && !store_group_is_name(schema + strlen(PREFIX)))
        return POSTGRES_DONE;
    enum postgres_outcome outcome =
        read_details(session, value_at(found, row, 4), deadline_ns, &details);
    if (outcome == POSTGRES_LOST)
        return outcome;
    struct store_group group = {.name = has_group ? schema + strlen(PREFIX) : NULL,
                                .is_served = !PQgetisnull(found, row, 1),
                                .host = value_at(found, row, 1),
                                .waiting = (uint32_t)strtoul(PQgetvalue(found, row, 2), NULL, 10),
                                .waiting_from = value_at(found, row, 3)};
    if (outcome == POSTGRES_DONE && PQntuples(details) == 1) {
        group.epoch = strtoull(PQgetvalue(details, 0, 0), NULL, 10);
        group.host = group.is_served ? group.host : value_at(details, 0, 1);
        group.address = value_at(details, 0, 2);
        group.since = value_at(details, 0, 3);
    }
    *ret_stop = visit(context, &group);
    PQclear(details);
    return POSTGRES_DONE;
}

enum postgres_outcome postgres_group_list(struct postgres_session *session, uint64_t deadline_ns,
                                          store_group_fn visit, void *context, int *ret_stop)
{
    PGresult *found = NULL;
    enum postgres_outcome outcome = postgres_session_run(session, places, deadline_ns, &found);
    *ret_stop = 0;
    for (int row = 0; outcome == POSTGRES_DONE && *ret_stop == 0 && row < PQntuples(found); row++)
        outcome = visit_place(session, found, row, deadline_ns, visit, context, ret_stop);
    PQclear(found);
    return outcome;
}
