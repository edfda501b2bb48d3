/*
 * sockaddr.h -- between the kernel's socket addresses and ours.
 *
 * The kernel knows interfaces by number. Numbers change when an interface is recreated, as at every
 * boot, so ours are names (base/address.h), looked up whenever a message of a link-local client
 * comes or goes: a recreated interface is found.
 */
#ifndef WIRE_SOCKADDR_H
#define WIRE_SOCKADDR_H

#include "base/address.h"

#include <sys/socket.h>

/* The address and port of an AF_INET or AF_INET6 socket address; family 0 for any other, and for a
 * link-local one whose interface is gone or has a name that cannot be stored: unidentified. */
struct address sockaddr_address(const struct sockaddr *from, uint16_t *ret_port);

/* The same from an IPv6 address and the number of an interface. */
struct address sockaddr_v6(const uint8_t bytes[static 16], uint32_t index);

/* The same without its interface: all that is known if the interface has no name. */
struct address sockaddr_bare(const struct sockaddr *from);

/* The number that the interface of an address has now; 0: no zone, or no such interface. A zone of
 * digits is a name, too: records of older versions have numbers, and what has such a number now is
 * another link. */
uint32_t sockaddr_index(const struct address *address);

/* A typed address: an interface number becomes the interface's name, unless an interface has that
 * name. */
struct address sockaddr_typed(const struct address *address);

/* The length written to *ret. If the interface of a link-local address is missing, the kernel
 * refuses the result. */
socklen_t sockaddr_of(const struct address *address, uint16_t port, struct sockaddr_storage *ret);

#endif
