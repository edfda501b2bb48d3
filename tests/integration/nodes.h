/*
 * nodes.h -- two machines and a network between them and the clients, as network namespaces.
 *
 *   clients, this process        node 0            node 1
 *   bridge 10.99.0.254      eth0 10.99.0.1    eth0 10.99.0.2     one server each
 *        10.99.0.11 ...
 *
 * PostgreSQL is reached by its unix socket, as if it had a network of its own; who cuts a node off
 * cuts that way with a proxy (tests/postgres).
 */
#ifndef INTEGRATION_NODES_H
#define INTEGRATION_NODES_H

#include "harness.h"

#define NODES_COUNT   2
#define NODES_CLIENT  UINT32_C(0x0a63000b) /* 10.99.0.11 and on */
#define NODES_CLIENTS 20
#define NODES_SERVICE UINT32_C(0x0a630064) /* 10.99.0.100: an address that moves */

/* False: it needs root, or the kernel has none; the reason was printed. */
bool nodes_init(void);
void nodes_done(void);

/* Starts a server on a node, without waiting. */
void nodes_spawn(uint32_t node, struct harness_server *server);
/* Its address, in host byte order. */
uint32_t nodes_address(uint32_t node);
/* Pulls the cable, or plugs it in again. */
void nodes_set_link(uint32_t node, bool is_up);
/* Clients forget which machine has which address. */
void nodes_forget_neighbours(void);

#endif
