/*
 * postgres_load.c -- one SELECT per table, row by row; see postgres_load.h.
 *
 * The tables are read in one transaction that sees one moment (repeatable read), so that a copy of
 * a database in use is whole too. Rows come one by one (single-row mode): a million locks are never
 * in memory at once.
 */
#include "store/postgres_load.h"

#include "store/postgres_table.h"

#include <stdio.h>
#include <stdlib.h>

enum { SQL_MAX = 256 };

enum postgres_outcome postgres_load_slots(struct postgres_session *session, uint64_t deadline_ns,
                                          uint32_t ret_slots_used[static RECORD_KIND_END])
{
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        char sql[SQL_MAX] = "SELECT count(*) FROM server WHERE record IS NOT NULL";
        PGresult *result = NULL;
        if (kind != RECORD_SERVER)
            (void)snprintf(sql, sizeof sql, "SELECT coalesce(max(slot) + 1, 0) FROM %s",
                           postgres_table_name((enum record_kind)kind));
        enum postgres_outcome outcome = postgres_session_run(session, sql, deadline_ns, &result);
        if (outcome != POSTGRES_DONE)
            return outcome;
        ret_slots_used[kind] = (uint32_t)strtoul(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
    }
    return POSTGRES_DONE;
}

struct loading {
    struct postgres_session *session;
    uint64_t silence_ns;
    enum postgres_load_epoch epoch;
    store_visit_fn visit;
    void *context;
    struct postgres_loaded loaded;
};

static struct bytes value_of(const PGresult *result, int column)
{
    return (struct bytes){(const uint8_t *)PQgetvalue(result, 0, column),
                          (uint32_t)PQgetlength(result, 0, column)};
}

/* record, epoch, txn */
static void visit_server(struct loading *loading, const PGresult *result)
{
    struct record_server server;
    uint8_t buffer[RECORD_VALUE_MAX];
    struct bytes value = value_of(result, 0);
    loading->loaded.has_server = record_get_server(value, &server) == RECORD_GOOD;
    if (loading->epoch != POSTGRES_LOAD_EPOCH_STORED && loading->loaded.has_server) {
        server.epoch = load_be64(value_of(result, 1).at) -
                       (loading->epoch == POSTGRES_LOAD_EPOCH_BEFORE ? 1 : 0);
        server.txn = load_be64(value_of(result, 2).at);
        value = (struct bytes){buffer, record_put_server(buffer, &server)};
    }
    loading->loaded.stop = loading->visit(loading->context, RECORD_SERVER, 0, value);
}

/* slot, record */
static void visit_row(struct loading *loading, enum record_kind kind, const PGresult *result)
{
    if (kind == RECORD_SERVER) {
        visit_server(loading, result);
        return;
    }
    uint32_t slot = load_be32(value_of(result, 0).at);
    loading->loaded.stop = loading->visit(loading->context, kind, slot, value_of(result, 1));
}

/* After the visitor stopped the rest is read and dropped. */
static enum postgres_outcome load_table(struct loading *loading, enum record_kind kind)
{
    struct postgres_session *session = loading->session;
    char sql[SQL_MAX] = "SELECT record, epoch, txn FROM server WHERE record IS NOT NULL";
    if (kind != RECORD_SERVER)
        (void)snprintf(sql, sizeof sql, "SELECT slot, record FROM %s ORDER BY slot",
                       postgres_table_name(kind));
    bool is_refused = false;
    if (PQsendQueryParams(session->connection, sql, 0, NULL, NULL, NULL, NULL, 1) == 0 ||
        PQsetSingleRowMode(session->connection) == 0) {
        postgres_session_note(session, NULL);
        postgres_session_cut(session);
        return POSTGRES_LOST;
    }
    for (;;) {
        PGresult *result = NULL;
        enum postgres_outcome outcome =
            postgres_session_next(session, postgres_now_ns() + loading->silence_ns, &result);
        if (outcome != POSTGRES_DONE)
            return outcome;
        if (result == NULL)
            break;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_SINGLE_TUPLE && loading->loaded.stop == 0)
            visit_row(loading, kind, result);
        if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK) {
            postgres_session_note(session, result);
            is_refused = true;
        }
        PQclear(result);
    }
    return is_refused ? POSTGRES_REFUSED : POSTGRES_DONE;
}

enum postgres_outcome postgres_load_begin(struct postgres_session *session, uint64_t silence_ns)
{
    return postgres_session_run(session,
                                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                                "SET LOCAL statement_timeout = 0",
                                postgres_now_ns() + silence_ns, NULL);
}

enum postgres_outcome postgres_load_all(struct postgres_session *session, uint64_t silence_ns,
                                        enum postgres_load_epoch epoch, store_visit_fn visit,
                                        void *context, struct postgres_loaded *ret)
{
    struct loading loading = {session, silence_ns, epoch, visit, context, {0}};
    enum postgres_outcome outcome = POSTGRES_DONE;
    for (int kind = RECORD_SERVER;
         outcome == POSTGRES_DONE && loading.loaded.stop == 0 && kind < RECORD_KIND_END; kind++)
        outcome = load_table(&loading, (enum record_kind)kind);
    if (outcome == POSTGRES_DONE)
        outcome = postgres_session_run(session, "COMMIT", postgres_now_ns() + silence_ns, NULL);
    *ret = loading.loaded;
    return outcome;
}
