/*
 * transactions.c -- one transaction per request: what a lock server gets out of PostgreSQL that
 * commits every LOCK and every UNLOCK by itself. The other side of the row `postgres`.
 *
 * usage: transactions CONNINFO MILLISECONDS        prints: transactions PER-SECOND
 *
 * Each transaction counts itself, and adds or removes one row like a lock's: one prepared statement
 * and one round trip, as cheap as that can be made. There is no client and no RPC around it.
 */
#include <libpq-fe.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOCKS 1024

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void run(PGconn *connection, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf(stderr, "transactions: %s", PQerrorMessage(connection));
        exit(1);
    }
    PQclear(result);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: transactions CONNINFO MILLISECONDS\n");
        return 2;
    }
    PGconn *connection = PQconnectdb(arguments[1]);
    if (PQstatus(connection) != CONNECTION_OK) {
        fprintf(stderr, "transactions: %s", PQerrorMessage(connection));
        return 1;
    }
    run(connection, PQexec(connection, "SET client_min_messages = error"));
    run(connection,
        PQexec(connection, "CREATE TABLE IF NOT EXISTS one_locks (slot integer PRIMARY KEY, "
                           "client_id bigint, fh bytea, record bytea NOT NULL)"));
    run(connection, PQexec(connection, "CREATE TABLE IF NOT EXISTS one_server (txn bigint)"));
    run(connection, PQexec(connection, "TRUNCATE one_locks, one_server"));
    run(connection, PQexec(connection, "INSERT INTO one_server VALUES (0)"));
    run(connection, PQprepare(connection, "lock",
                              "WITH counted AS (UPDATE one_server SET txn = txn + 1) "
                              "INSERT INTO one_locks VALUES ($1, 17, repeat('f', 32)::bytea, "
                              "repeat('r', 120)::bytea)",
                              1, NULL));
    run(connection, PQprepare(connection, "unlock",
                              "WITH counted AS (UPDATE one_server SET txn = txn + 1) "
                              "DELETE FROM one_locks WHERE slot = $1",
                              1, NULL));
    uint64_t start_ns = now_ns(), done = 0;
    uint64_t end_ns = start_ns + strtoull(arguments[2], NULL, 10) * 1000000;
    while (now_ns() < end_ns) {
        char slot[16];
        const char *const values[] = {slot};
        snprintf(slot, sizeof(slot), "%u", (unsigned)(done / 2 % LOCKS));
        run(connection, PQexecPrepared(connection, done % 2 == 0 ? "lock" : "unlock", 1, values,
                                       NULL, NULL, 0));
        done++;
    }
    printf("transactions %.1f\n", (double)done * 1e9 / (double)(now_ns() - start_ns));
    PQfinish(connection);
    return 0;
}
