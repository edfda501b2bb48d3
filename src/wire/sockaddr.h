/*
 * sockaddr.h -- between the kernel's socket addresses and ours.
 */
#ifndef WIRE_SOCKADDR_H
#define WIRE_SOCKADDR_H

#include "base/address.h"

#include <sys/socket.h>

/* The address and port of an AF_INET or AF_INET6 socket address; family 0 for any other. */
struct address sockaddr_address(const struct sockaddr *from, uint16_t *ret_port);

/* The length of what was written to *ret. */
socklen_t sockaddr_of(const struct address *address, uint16_t port, struct sockaddr_storage *ret);

#endif
