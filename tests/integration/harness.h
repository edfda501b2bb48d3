/*
 * harness.h -- real server processes for the integration tests, and checks with words.
 *
 * Where things are comes from the environment, which meson sets: HOLDFAST (the command),
 * STORE_DUMP (prints a store). Every server gets a free port and lives in this test's own temporary
 * directory; it dies with the test, however the test ends, and the directory goes with it. With
 * HOLDFAST_STORE=postgres every store is a database of a private PostgreSQL instead.
 *
 * A check that fails prints where and why and the test goes on; harness_finish gives the verdict.
 */
#ifndef INTEGRATION_HARNESS_H
#define INTEGRATION_HARNESS_H

#include "peer/dial.h"

#include <sys/types.h>

#define HARNESS_EXTRA_MAX 16

/* The exit status that tells meson that a test was skipped. */
#define HARNESS_SKIPPED 77

struct harness_server {
    /* Set before harness_start; the rest is filled by it. */
    const char *listen;                   /* NULL: all addresses, the default of the server */
    const char *store;                    /* directory of the LMDB store, or postgres:... */
    const char *extra[HARNESS_EXTRA_MAX]; /* more options, NULL at the end */

    pid_t pid; /* 0: none */
    uint16_t port;
    uint32_t state, clients, locks, grace_s; /* from the readiness line */
    uint64_t start_ns;                       /* how long it took to be ready */
    char log[256];                           /* what it prints; a new file for each start */
};

/* Makes the temporary directory. A missing variable of the environment ends the test. */
void harness_init(const char *name);
/* A path inside the temporary directory; valid until the directory goes. */
const char *harness_path(const char *name);
/* Stops PostgreSQL, removes the directory, prints the count of checks. The exit status: 0 or 1. */
int harness_finish(void);

/* A private PostgreSQL for this test, started by the first call, and the store URL of an empty
 * database in it. Where there is none the test ends as skipped. */
struct cluster;
struct cluster *harness_cluster(void);
const char *harness_postgres(const char *database);

/* Starts and waits for the readiness line. False: it ended, or took over a minute; the log is
 * shown. */
bool harness_start(struct harness_server *server);
/* Starts without waiting; harness_wait_ready does that. */
void harness_spawn(struct harness_server *server);
bool harness_wait_ready(struct harness_server *server);
/* Sends the signal and waits, at most a minute. The exit code, or 128 + signal; -1: it did not
 * end. */
int harness_stop(struct harness_server *server, int signal);
/* True while the process has not ended. */
bool harness_is_alive(const struct harness_server *server);

struct dial_route harness_route(const struct harness_server *server, bool is_udp);
uint64_t harness_rss_kib(const struct harness_server *server);
uint32_t harness_log_lines(const struct harness_server *server);
bool harness_log_contains(const struct harness_server *server, const char *text);

/* One registrant or the server record of a store that no server uses now. */
struct harness_record {
    bool is_server;
    uint64_t epoch; /* server: its epoch; registrant: the epoch it registered in */
    uint32_t state; /* server */
    uint64_t id;
    uint32_t my_prog, my_vers, my_proc;
    char address[64], priv[33];
    char mon_name[3100], my_name[3100]; /* escaped by store_dump */
};
typedef void (*harness_record_fn)(void *context, const struct harness_record *record);
/* Every line of store_dump as it is. False: the store could not be read. */
typedef void (*harness_line_fn)(void *context, const char *line);
bool harness_dump_lines(const char *store, harness_line_fn visit, void *context);
/* The same, for these two kinds. */
bool harness_dump(const char *store, harness_record_fn visit, void *context);

/* A seed for this run: HOLDFAST_SEED, or the clock; printed, so that a failure can be repeated. */
uint64_t harness_seed(void);
uint64_t harness_random(uint64_t *seed);
/* A number from the environment, or the default. */
uint32_t harness_number(const char *variable, uint32_t otherwise);

#define HARNESS_EXPECT(condition, ...)                                                             \
    harness_expect((condition), __FILE__, __LINE__, #condition, __VA_ARGS__)
/* Returns the condition. */
__attribute__((format(printf, 5, 6))) bool harness_expect(bool condition, const char *file,
                                                          int line, const char *text,
                                                          const char *format, ...);

#endif
