/*
 * start_net.h -- the steps of the start that decide where the server can be reached (HTTP, the
 * ports of its programs, the control socket, rpcbind) and who it is from then on (--user).
 */
#ifndef DAEMON_START_NET_H
#define DAEMON_START_NET_H

#include "daemon/daemon.h"

/* From here on SIGHUP is for us. */
int start_net_reload(struct daemon *daemon);
/* Finds the user of --user. */
int start_net_user(struct daemon *daemon);
/* May we serve files, if we are to? */
int start_net_files(struct daemon *daemon);
/* Without a store the control socket has a directory of its own, if it can be made. */
int start_net_directory(struct daemon *daemon);
int start_net_http(struct daemon *daemon);
/* Bound, not yet listening. */
int start_net_ports(struct daemon *daemon);
/*
 * After the store is locked: what lies in its directory is then a dead server's. Without a store
 * nobody has asked for a socket, and a server that forgets everything can do without.
 */
int start_net_control(struct daemon *daemon);
/* Chooses how clients find us; while that may still need root and costs no state number. */
int start_net_rpcbind(struct daemon *daemon);
/* For good; the store's directory is given to the new user before. */
int start_net_privileges(struct daemon *daemon);

/* Where files are served, if they are. */
struct listen_set *start_net_files_at(struct daemon *daemon);

#endif
