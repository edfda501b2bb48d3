/*
 * places.h -- where the server can be reached: HTTP, the ports of its programs, the control socket,
 * rpcbind; and who it is from then on (--user).
 */
#ifndef DAEMON_PLACES_H
#define DAEMON_PLACES_H

#include "daemon/daemon.h"
#include "daemon/privilege.h"

/* Without a store the control socket has a directory of its own, if it can be made. */
void places_make_directory(const struct daemon *daemon);
int places_take_http(struct daemon *daemon);
/* Bound, not yet listening. */
int places_take_ports(struct daemon *daemon);
/*
 * After the store is locked: what lies in its directory is then a dead server's. Without a store
 * nobody has asked for a socket, and a server that forgets everything can do without.
 */
int places_open_control(struct daemon *daemon);
/* Chooses how clients find us; while that may still need root and costs no state number. */
int places_choose_rpcbind(struct daemon *daemon, void (*on_settled)(void *context, int exit_code));
/* For good; the store's directory is given to the new user before. */
int places_drop_privileges(struct daemon *daemon, const struct privilege *privilege);

#endif
