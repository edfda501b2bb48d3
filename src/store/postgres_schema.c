/*
 * postgres_schema.c -- migrations, one by one; see postgres_schema.h.
 *
 * The version is a row of the table holdfast_schema, which is there from the first step up to the
 * last step down. A database in which somebody else has a table "server" is refused by the first
 * step and stays as it is.
 */
#include "store/postgres_schema.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

enum postgres_outcome postgres_schema_version(struct postgres_session *session,
                                              uint64_t deadline_ns, uint32_t *ret)
{
    PGresult *result = NULL;
    enum postgres_outcome outcome = postgres_session_run(
        session, "SELECT to_regclass('holdfast_schema') IS NOT NULL", deadline_ns, &result);
    if (outcome != POSTGRES_DONE)
        return outcome;
    bool is_there = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    if (!is_there) {
        *ret = 0;
        return POSTGRES_DONE;
    }
    outcome = postgres_session_run(session, "SELECT max(version) FROM holdfast_schema", deadline_ns,
                                   &result);
    if (outcome != POSTGRES_DONE)
        return outcome;
    *ret = PQntuples(result) == 1 ? (uint32_t)strtoul(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return POSTGRES_DONE;
}

char *postgres_schema_step(uint32_t from, uint32_t to)
{
    CHECK(from < to ? to == from + 1 : from == to + 1);
    CHECK(from <= postgres_migration_count && to <= postgres_migration_count);
    bool is_up = to > from;
    const char *sql = is_up ? postgres_migrations[from].up : postgres_migrations[to].down;
    static const char first[] = "CREATE TABLE holdfast_schema (version integer NOT NULL);\n"
                                "INSERT INTO holdfast_schema VALUES (0);\n";
    size_t size = strlen(sql) + sizeof first + 128;
    char *step = malloc(size);
    if (step == NULL)
        return NULL;
    char version[64] = "DROP TABLE holdfast_schema;\n";
    if (to > 0)
        (void)snprintf(version, sizeof version, "UPDATE holdfast_schema SET version = %u;\n", to);
    (void)snprintf(step, size, "BEGIN;\n%s%s%sCOMMIT;\n", from == 0 ? first : "", sql, version);
    return step;
}

enum postgres_outcome postgres_schema_move(struct postgres_session *session, uint32_t from,
                                           uint32_t to, uint64_t deadline_ns)
{
    while (from != to) {
        uint32_t next = from < to ? from + 1 : from - 1;
        char *step = postgres_schema_step(from, next);
        if (step == NULL) {
            (void)snprintf(session->error.text, sizeof session->error.text, "out of memory");
            return POSTGRES_REFUSED;
        }
        enum postgres_outcome outcome = postgres_session_run(session, step, deadline_ns, NULL);
        free(step);
        if (outcome == POSTGRES_REFUSED) {
            /* The error stays; the transaction that it broke is still open. */
            struct postgres_error error = session->error;
            (void)postgres_session_run(session, "ROLLBACK", deadline_ns, NULL);
            session->error = error;
        }
        if (outcome != POSTGRES_DONE)
            return outcome;
        from = next;
    }
    return POSTGRES_DONE;
}
