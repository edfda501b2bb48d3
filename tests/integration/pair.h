/*
 * pair.h -- servers on the machines of nodes.h, one database, a client with locks and some
 * without.
 */
#ifndef INTEGRATION_PAIR_H
#define INTEGRATION_PAIR_H

#include "lock_call.h"
#include "nodes.h"

#include <stdio.h>

#define PAIR_PATIENCE_MS 60000
#define PAIR_PATIENCE_NS UINT64_C(60000000000)
#define PAIR_LOCKS       50 /* held by client 0, one per file */

struct cluster;

extern struct harness_server pair_servers[NODES_COUNT];
/* For the servers that are started next. */
extern bool pair_resumes;  /* --recovery resume */
extern bool pair_is_hasty; /* --store-timeout 1 */

void pair_pause_briefly(void);

/* ---- clients 0 to 3 ---- */

struct lock_call pair_call_of(uint32_t client, uint32_t file, enum peer_nlm_procedure procedure);
/* One call of a client to an address; the status, or a negative errno. */
int pair_ask(uint32_t client, uint32_t address, uint16_t port, const struct lock_call *call);
void pair_demand(uint32_t client, uint32_t node, const struct lock_call *call, int expected);
/* The same, as long as the answer is another one: until grace is over, or a lock is given up. */
void pair_demand_after(uint32_t client, uint32_t node, const struct lock_call *call, int other,
                       int expected);
void pair_take_locks(uint32_t node);

/* ---- servers ---- */

bool pair_start_active(uint32_t node, const char *store);
void pair_start_standby(uint32_t node, const char *store, const char *hook);
/* The standby serves. How long that took is said. */
bool pair_wait_taken_over(uint32_t node, const char *why);
/* Its exit code. */
int pair_wait_exit(uint32_t node);
/* It ends with 76, and says why. */
void pair_demand_replaced(uint32_t node);
void pair_stop_all(void);
/* A command of the operator: its output. */
FILE *pair_command_at(uint32_t node, const char *words);
/* The session of a server ends, as an operator may have it. */
void pair_end_session_of(const struct cluster *cluster, const struct harness_server *server);

/* ---- what a hook has started ---- */

/* The pid in a file, when it is there. */
int pair_wait_for_pid(const char *path);
/* True: it runs. One that has ended may stay a zombie, if nobody takes note of its end. */
bool pair_runs(int pid);
void pair_demand_gone(int pid);

#endif
