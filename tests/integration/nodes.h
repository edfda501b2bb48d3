/*
 * nodes.h -- machines and a network between them and the clients, as network namespaces.
 *
 *   clients, this process        node 0            node 1            node 2
 *   bridge 10.99.0.254      eth0 10.99.0.1    eth0 10.99.0.2    eth0 10.99.0.3     a server each
 *        10.99.0.11 ...
 *
 * PostgreSQL is reached by its unix socket, as if it had a network of its own, and who cuts a node
 * off cuts that way with a proxy (tests/postgres); or over the bridge.
 */
#ifndef INTEGRATION_NODES_H
#define INTEGRATION_NODES_H

#include "harness.h"

#define NODES_COUNT   3
#define NODES_CLIENT  UINT32_C(0x0a63000b) /* 10.99.0.11 and on */
#define NODES_CLIENTS 20
#define NODES_SERVICE UINT32_C(0x0a630064) /* 10.99.0.100: an address that moves */

/* False: it needs root, or the kernel has none; the reason was printed. */
bool nodes_init(void);
void nodes_done(void);

/* Starts a server on a node, without waiting. */
void nodes_spawn(uint32_t node, struct harness_server *server);
/* What is forked meanwhile is on that node; NODES_HERE: back again. */
#define NODES_HERE NODES_COUNT
void nodes_enter(uint32_t node);
/* A command there, with the shell. */
void nodes_run(uint32_t node, const char *command);
/* One here; true when it succeeds. */
bool nodes_try(const char *command);
/* Its address, in host byte order. */
uint32_t nodes_address(uint32_t node);
/* Pulls the cable, or plugs it in again. */
void nodes_set_link(uint32_t node, bool is_up);
/* Clients find NODES_SERVICE there, whoever else has it. */
void nodes_move_service(uint32_t node);
/* Clients forget which machine has which address. */
void nodes_forget_neighbours(void);

#endif
