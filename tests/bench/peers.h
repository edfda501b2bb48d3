/*
 * peers.h -- the programs that are measured, and one measurement of one of them.
 *
 * Ports are fixed: the bench has a network namespace of its own. Each start that fails says why in
 * words, for the line of the report that is skipped.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "bench/process.h"
#include "bench/report.h"

struct peers_paths {
    const char *holdfastd;
    const char *tools; /* where echo, traffic, hosts and the others are */
    const char *work;  /* everything that is written */
};

enum peers_kind { PEERS_HOLDFASTD, PEERS_ECHO, PEERS_STATD, PEERS_GANESHA };

struct peers_server {
    enum peers_kind kind;
    struct process process;
    uint16_t port;
    uint32_t state, clients, locks; /* holdfastd: from its readiness line */
    uint64_t started_ns, ready_ns;  /* when it was started, and when that line was seen */
};

struct peers_traffic {
    const char *kind; /* of tests/bench/traffic.c, or of locks.c */
    uint32_t connections, in_flight, milliseconds;
    uint32_t drain_ms; /* 0: answers that are late are nobody's fault */
    bool is_apart;     /* server on the last processor, generator on the others */
    uint32_t registered;
    const char *keys; /* file below work, or NULL */
    bool is_locks;    /* of locks.c; these are for it: */
    uint32_t files, held, sources;
    const char *source;  /* address, or NULL */
    const char *handles; /* file below work, or NULL */
};

void peers_init(const struct peers_paths *paths);
/* Why the last function that failed did so. */
const char *peers_why(void);
/* Sets that; always false. */
__attribute__((format(printf, 1, 2))) bool peers_fail(const char *format, ...);
/* A path below work; valid until the eighth call after it. */
const char *peers_path(const char *name);
/* The server, which is also the tool for its store. */
const char *peers_holdfastd(void);
/* One of our own tools; valid until the next call. */
const char *peers_tool(const char *name);
/* Removes a directory below work. */
void peers_remove(const char *name);

/* On the store `store` below work, or at that postgres: URL, which is kept; durable (--sync full).
 * `more` are options, with NULL at the end; or NULL for none. */
bool peers_start_holdfastd(struct peers_server *server, const char *store, uint32_t clients_max,
                           const char *const more[]);
/* The same with --role monitor; `clients` is then the number of hosts. */
bool peers_start_monitor(struct peers_server *server, const char *store, uint32_t clients_max,
                         const char *const more[]);
/* The machine of such a monitor boots: the next one that is started finds another boot id. */
bool peers_boot_machine(void);
bool peers_start_echo(struct peers_server *server);
/* With this many hosts in its directory `name` below work, which is made if it is not there. It
 * needs rpcbind, which is started once and stays until peers_stop_rpcbind. */
bool peers_start_statd(struct peers_server *server, const char *name, uint32_t registered);
void peers_stop(struct peers_server *server, int signal);
/* Started once; it stays. */
bool peers_start_rpcbind(void);
void peers_stop_rpcbind(void);
/* Files as rpc.statd writes them, one for each address from `first` on. */
bool peers_write_statd_directory(const char *name, uint32_t first, uint32_t count);

/* Starts the generator; peers_end_traffic waits for its line. */
bool peers_begin_traffic(const struct peers_server *server, const struct peers_traffic *traffic,
                         struct process *ret);
/* False: answers were wrong or missing. */
bool peers_end_traffic(struct process *process, const struct peers_traffic *traffic,
                       struct report_sample *ret, uint64_t *ret_answered);
/* Both, with the server's CPU time. */
bool peers_measure(const struct peers_server *server, const struct peers_traffic *traffic,
                   struct report_sample *ret);
/* The same for locks.c, and how many locks were taken and given up. */
bool peers_measure_locks(const struct peers_server *server, const struct peers_traffic *traffic,
                         struct report_sample *ret, uint64_t *ret_changes);
/* What holdfastd said of its commits when it was stopped with SIGTERM. */
struct peers_durable {
    uint64_t batches, records, lock_changes;
};
bool peers_read_durable(const struct peers_server *server, struct peers_durable *ret);

/* What tests/bench/hosts.c saw. */
struct peers_hosts {
    uint32_t called, asked, calls, foreign, unreadable, state_low, state_high;
    uint64_t first_ns, last_ns;
};
bool peers_start_hosts(struct process *process, const char *first, uint32_t count);
bool peers_read_hosts(const struct process *process, struct peers_hosts *ret);
/* What holdfastd said when everybody had been tried once after its restart. */
struct peers_round {
    uint32_t reached, count, failed, took_ms;
};
/* False: it has not said that yet. */
bool peers_read_round(const struct peers_server *server, struct peers_round *ret);
/* `how` is a word of tests/bench/enroll.c, or NULL. */
bool peers_enroll(const struct peers_server *server, const char *first, uint32_t count,
                  const char *how);
/* Runs a tool of the system to its end, at most 10 s. False: not installed, or it failed. */
bool peers_run(const char *const arguments[], struct process *ret);

#endif
