/*
 * postgres_batch.c -- a batch as a pipeline of prepared statements; see postgres_batch.h.
 *
 *   fence                 the server's row, epoch and number checked
 *   put, per kind         INSERT ... SELECT FROM unnest(array per column) ON CONFLICT DO UPDATE
 *   delete, per kind      DELETE ... WHERE slot = ANY(array)
 *   sync                  which ends the transaction
 *
 * All of it is sent at once and answered at once. Statements between two syncs are one transaction:
 * it commits when PostgreSQL reads the sync, unless one of them failed. So a batch costs one round
 * trip and one flush of the log of PostgreSQL, however many records it has.
 *
 * A slot may be changed twice in a batch, and the last change wins; one statement must not touch a
 * row twice. So the changes are sorted by kind, slot and place, and only the last of each is sent.
 */
#include "store/postgres_batch.h"

#include "base/check.h"
#include "store/postgres_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SQL_MAX = 2048, ARRAY_HEADER_LEN = 20 };

/* In the order of enum postgres_type; the numbers are fixed in PostgreSQL. */
static const Oid element_types[POSTGRES_TYPE_END] = {23, 20, 25, 17, 1184};
static const char *const type_names[POSTGRES_TYPE_END] = {"int4", "int8", "text", "bytea",
                                                          "timestamptz"};

/* An array in PostgreSQL's binary format, while it grows. */
struct array {
    uint8_t *at;
    size_t len, max;
    uint32_t count;
    bool has_null;
};

struct change {
    enum record_kind kind;
    uint32_t slot, place;
    bool deleted;
    struct bytes value;
};

struct postgres_batch {
    struct change *changes;
    uint32_t changes_max;
    uint64_t txn;
    struct bytes server; /* the server's record; at NULL: not in this batch */
    struct array puts[RECORD_KIND_END][POSTGRES_COLUMNS_MAX];
    struct array deletes[RECORD_KIND_END];
    struct postgres_scratch scratch;
};

struct postgres_batch *postgres_batch_new(void)
{
    return calloc(1, sizeof(struct postgres_batch));
}

void postgres_batch_free(struct postgres_batch *batch)
{
    if (batch == NULL)
        return;
    for (int kind = 0; kind < RECORD_KIND_END; kind++) {
        for (int column = 0; column < POSTGRES_COLUMNS_MAX; column++)
            free(batch->puts[kind][column].at);
        free(batch->deletes[kind].at);
    }
    free(batch->changes);
    free(batch);
}

/* ---- arrays ---- */

static bool array_reserve(struct array *array, size_t more)
{
    if (array->max - array->len >= more)
        return true;
    size_t max = array->max * 2 > array->len + more ? array->max * 2 : array->len + more + 4096;
    uint8_t *at = realloc(array->at, max);
    if (at == NULL)
        return false;
    array->at = at;
    array->max = max;
    return true;
}

static bool array_begin(struct array *array)
{
    array->len = array->count = 0;
    array->has_null = false;
    if (!array_reserve(array, ARRAY_HEADER_LEN))
        return false;
    array->len = ARRAY_HEADER_LEN;
    return true;
}

static bool array_add(struct array *array, const struct postgres_cell *cell)
{
    uint32_t len = cell->is_null ? 0 : cell->bytes.len;
    if (!array_reserve(array, 4 + (size_t)len))
        return false;
    store_be32(array->at + array->len, cell->is_null ? UINT32_MAX : len);
    if (len > 0)
        memcpy(array->at + array->len + 4, cell->bytes.at, len);
    array->len += 4 + (size_t)len;
    array->count++;
    array->has_null |= cell->is_null;
    return true;
}

static void array_end(struct array *array, enum postgres_type type)
{
    store_be32(array->at, 1); /* dimensions */
    store_be32(array->at + 4, array->has_null);
    store_be32(array->at + 8, element_types[type]);
    store_be32(array->at + 12, array->count);
    store_be32(array->at + 16, 1); /* the first index */
}

/* ---- from changes to arrays ---- */

static int compare_changes(const void *a, const void *b)
{
    const struct change *one = a, *other = b;
    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    if (one->slot != other->slot)
        return one->slot < other->slot ? -1 : 1;
    return one->place < other->place ? -1 : 1;
}

static bool begin(struct postgres_batch *batch, const struct store_batch *from)
{
    if (from->count > batch->changes_max) {
        struct change *changes =
            realloc(batch->changes, (size_t)from->count * sizeof(struct change));
        if (changes == NULL)
            return false;
        batch->changes = changes;
        batch->changes_max = from->count;
    }
    batch->txn = from->txn;
    batch->server = (struct bytes){0};
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++) {
        for (int column = 0; column < POSTGRES_COLUMNS_MAX; column++)
            if (!array_begin(&batch->puts[kind][column]))
                return false;
        if (!array_begin(&batch->deletes[kind]))
            return false;
    }
    return true;
}

static bool add_change(struct postgres_batch *batch, const struct change *change)
{
    if (change->kind == RECORD_SERVER) {
        batch->server = change->value;
        return true;
    }
    if (change->deleted) {
        uint8_t slot[4];
        store_be32(slot, change->slot);
        return array_add(&batch->deletes[change->kind],
                         &(struct postgres_cell){.bytes = {slot, sizeof slot}});
    }
    struct postgres_cell cells[POSTGRES_COLUMNS_MAX];
    uint32_t width =
        postgres_table_fill(change->kind, change->slot, change->value, &batch->scratch, cells);
    for (uint32_t i = 0; i < width; i++)
        if (!array_add(&batch->puts[change->kind][i], &cells[i]))
            return false;
    return true;
}

int postgres_batch_fill(struct postgres_batch *batch, const struct store_batch *from)
{
    if (!begin(batch, from))
        return -ENOMEM;
    struct record_change change;
    uint64_t at = 0;
    uint32_t count = 0;
    for (; store_batch_next(from, &at, &change); count++) {
        CHECK(count < from->count);
        batch->changes[count] =
            (struct change){change.kind, change.slot, count, change.deleted, change.value};
    }
    if (count > 0)
        qsort(batch->changes, count, sizeof(struct change), compare_changes);
    for (uint32_t i = 0; i < count; i++) {
        const struct change *one = &batch->changes[i];
        bool is_last = i + 1 == count || one[1].kind != one->kind || one[1].slot != one->slot;
        if (is_last && !add_change(batch, one))
            return -ENOMEM;
    }
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++) {
        struct postgres_column columns[POSTGRES_COLUMNS_MAX];
        uint32_t width = postgres_table_columns((enum record_kind)kind, columns);
        for (uint32_t i = 0; i < width; i++)
            array_end(&batch->puts[kind][i], columns[i].type);
        array_end(&batch->deletes[kind], POSTGRES_INT4);
    }
    return 0;
}

/* ---- statements ---- */

__attribute__((format(printf, 3, 4))) static void append(char sql[static SQL_MAX], size_t *len,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(sql + *len, SQL_MAX - *len, format, arguments);
    va_end(arguments);
    CHECK(added >= 0 && (size_t)added < SQL_MAX - *len);
    *len += (size_t)added;
}

static void write_put(enum record_kind kind, char sql[static SQL_MAX])
{
    struct postgres_column columns[POSTGRES_COLUMNS_MAX];
    uint32_t width = postgres_table_columns(kind, columns);
    size_t len = 0;
    append(sql, &len, "INSERT INTO %s (", postgres_table_name(kind));
    for (uint32_t i = 0; i < width; i++)
        append(sql, &len, "%s%s", i > 0 ? ", " : "", columns[i].name);
    append(sql, &len, ") SELECT * FROM unnest(");
    for (uint32_t i = 0; i < width; i++)
        append(sql, &len, "%s$%u::%s[]", i > 0 ? ", " : "", i + 1, type_names[columns[i].type]);
    append(sql, &len, ") ON CONFLICT (slot) DO UPDATE SET ");
    for (uint32_t i = 1; i < width; i++)
        append(sql, &len, "%s%s = excluded.%s", i > 1 ? ", " : "", columns[i].name,
               columns[i].name);
}

/* "put 5": the name of a prepared statement. */
static void write_name(char name[static 16], const char *verb, int kind)
{
    (void)snprintf(name, 16, "%s %d", verb, kind);
}

static bool send_prepares(PGconn *connection)
{
    char sql[SQL_MAX], name[16];
    if (PQsendPrepare(connection, "fence", "SELECT holdfast_fence($1, $2, $3, $4)", 0, NULL) == 0)
        return false;
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++) {
        write_put((enum record_kind)kind, sql);
        write_name(name, "put", kind);
        if (PQsendPrepare(connection, name, sql, 0, NULL) == 0)
            return false;
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s WHERE slot = ANY($1::int4[])",
                       postgres_table_name((enum record_kind)kind));
        write_name(name, "delete", kind);
        if (PQsendPrepare(connection, name, sql, 0, NULL) == 0)
            return false;
    }
    return true;
}

/* ---- the pipeline ---- */

static enum postgres_outcome lose(struct postgres_session *session)
{
    postgres_session_note(session, NULL);
    postgres_session_cut(session);
    return POSTGRES_LOST;
}

/* Reads everything up to the answer to the sync. The first refusal counts. */
static enum postgres_outcome finish(struct postgres_session *session, uint64_t deadline_ns)
{
    bool is_refused = false, is_synced = false;
    while (!is_synced) {
        PGresult *result = NULL;
        enum postgres_outcome outcome = postgres_session_next(session, deadline_ns, &result);
        if (outcome != POSTGRES_DONE)
            return outcome;
        if (result == NULL && PQstatus(session->connection) == CONNECTION_BAD)
            return lose(session);
        ExecStatusType status = PQresultStatus(result);
        is_synced = status == PGRES_PIPELINE_SYNC;
        if (result != NULL && status == PGRES_FATAL_ERROR && !is_refused) {
            postgres_session_note(session, result);
            is_refused = true;
        }
        PQclear(result);
        if (is_refused && PQstatus(session->connection) == CONNECTION_BAD) {
            postgres_session_cut(session); /* what it said last is kept */
            return POSTGRES_LOST;
        }
    }
    if (PQexitPipelineMode(session->connection) == 0)
        return lose(session);
    return is_refused ? POSTGRES_REFUSED : POSTGRES_DONE;
}

enum postgres_outcome postgres_batch_prepare(struct postgres_session *session, uint64_t deadline_ns)
{
    PGconn *connection = session->connection;
    if (PQenterPipelineMode(connection) == 0 || !send_prepares(connection) ||
        PQpipelineSync(connection) == 0)
        return lose(session);
    return finish(session, deadline_ns);
}

/* Binary parameters and results. */
static bool send_prepared(PGconn *connection, const char *name, int count,
                          const struct array *arrays)
{
    const char *values[POSTGRES_COLUMNS_MAX];
    int lengths[POSTGRES_COLUMNS_MAX], formats[POSTGRES_COLUMNS_MAX];
    for (int i = 0; i < count; i++) {
        if (arrays[i].len > INT32_MAX)
            return false;
        values[i] = (const char *)arrays[i].at;
        lengths[i] = (int)arrays[i].len;
        formats[i] = 1;
    }
    return PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1) != 0;
}

static bool send_fence(const struct postgres_batch *batch, PGconn *connection, uint64_t epoch,
                       uint64_t next_epoch)
{
    uint8_t numbers[3][8];
    store_be64(numbers[0], epoch);
    store_be64(numbers[1], next_epoch);
    store_be64(numbers[2], batch->txn);
    const char *values[4] = {(const char *)numbers[0], (const char *)numbers[1],
                             (const char *)numbers[2], (const char *)batch->server.at};
    const int lengths[4] = {8, 8, 8, (int)batch->server.len}, formats[4] = {1, 1, 1, 1};
    return PQsendQueryPrepared(connection, "fence", 4, values, lengths, formats, 1) != 0;
}

static bool send_changes(const struct postgres_batch *batch, PGconn *connection)
{
    char name[16];
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++) {
        const struct array *puts = batch->puts[kind], *deletes = &batch->deletes[kind];
        struct postgres_column columns[POSTGRES_COLUMNS_MAX];
        uint32_t width = postgres_table_columns((enum record_kind)kind, columns);
        write_name(name, "put", kind);
        if (puts->count > 0 && !send_prepared(connection, name, (int)width, puts))
            return false;
        write_name(name, "delete", kind);
        if (deletes->count > 0 && !send_prepared(connection, name, 1, deletes))
            return false;
    }
    return true;
}

enum postgres_outcome postgres_batch_send(const struct postgres_batch *batch,
                                          struct postgres_session *session, uint64_t epoch,
                                          uint64_t next_epoch, uint64_t deadline_ns)
{
    PGconn *connection = session->connection;
    postgres_session_begin(session);
    if (PQenterPipelineMode(connection) == 0 || !send_fence(batch, connection, epoch, next_epoch) ||
        !send_changes(batch, connection) || PQpipelineSync(connection) == 0)
        return lose(session);
    return finish(session, deadline_ns);
}
