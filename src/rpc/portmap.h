/*
 * portmap.h -- a portmapper of our own: program 100000 in versions 2, 3 and 4 (RFC 1833), for
 * machines and containers that have none.
 *
 * It is a table of services and a struct program whose procedures answer from it. Everybody may
 * ask; only callers on this machine may add and remove, and nobody can touch the services that the
 * server itself added. There is no CALLIT, BCAST or INDIRECT: a portmapper that calls others on
 * behalf of its callers lends them its address (CERT CA-99.05).
 *
 * Nothing here is durable, and it need not be: a restart adds its services again.
 */
#ifndef RPC_PORTMAP_H
#define RPC_PORTMAP_H

#include "codec/portmap_xdr.h"
#include "proto/program.h"

enum { PORTMAP_SERVICES_MAX = 128 };

/* One program version over one protocol and family: what a portmapper has an entry for. */
struct portmap_service {
    uint32_t prog, vers;
    uint32_t prot;          /* of enum transport */
    struct address address; /* all zero bytes: every address of its family */
    uint16_t port;
};

struct portmap;

/* Empty. NULL when memory cannot be reserved. */
struct portmap *portmap_new(void);
void portmap_free(struct portmap *portmap);

/* A service of the server's own. False: the table is full, or another has its place. */
bool portmap_add(struct portmap *portmap, const struct portmap_service *service);

/* For a table of programs; lives as long as the portmap. */
const struct program *portmap_program(const struct portmap *portmap);

uint32_t portmap_count(const struct portmap *portmap);
/* SET and UNSET that were refused because they came from elsewhere; who sent the last one. */
uint64_t portmap_refused(const struct portmap *portmap, struct address *ret_last);

#endif
