/*
 * cluster.h -- a private PostgreSQL for one test: its own directory, a unix socket, and no network
 * unless it is asked for.
 *
 * It is made by initdb and run by the test itself as an unprivileged user (root may not run it),
 * beside whatever PostgreSQL the machine has, which it never touches. It dies with the test. Its
 * log is not synced to the disk, as only processes are killed here and the page cache survives
 * that, unless the test asks for it.
 */
#ifndef TESTS_POSTGRES_CLUSTER_H
#define TESTS_POSTGRES_CLUSTER_H

#include <stdbool.h>
#include <sys/types.h>

struct cluster {
    char directory[128]; /* its data, log and socket are in there */
    char programs[128];  /* where initdb and postgres are */
    uid_t user;
    gid_t group;
    /* Set before cluster_start: */
    bool is_synced;      /* as a database that matters has it */
    const char *address; /* serves its port 5432 there, too, to whoever comes; NULL: no network */
    pid_t pid;           /* 0: does not run */
};

/* False: there is no PostgreSQL to be had here; `ret_why` says what is missing. */
bool cluster_init(struct cluster *cluster, const char **ret_why);
/* A replica of one that runs, in a directory of its own, not yet started. False: its log was
 * printed. */
bool cluster_copy(struct cluster *copy, const struct cluster *of);
/* Stops it and removes its directory. */
void cluster_done(struct cluster *cluster);

/* Waits until it takes connections. False: it does not start; its log was printed. */
bool cluster_start(struct cluster *cluster);
/* SIGTERM: waits for sessions; SIGINT: ends them; SIGQUIT, SIGKILL: a crash. Waits for its end. */
void cluster_stop(struct cluster *cluster, int signal);

/* Runs SQL in a database as its superuser. False: it was refused, or cannot be reached. */
bool cluster_run(const struct cluster *cluster, const char *database, const char *sql);
/* The first value of the first row, or NULL. Valid until the next call. */
const char *cluster_ask(const struct cluster *cluster, const char *database, const char *sql);
/* An empty database of this name, whatever it was before. */
bool cluster_fresh(const struct cluster *cluster, const char *database);

/* The store URL of a database. Valid until the next call. */
const char *cluster_url(const struct cluster *cluster, const char *database);

#endif
