/*
 * sockaddr.h -- between the kernel's socket addresses and ours.
 *
 * The kernel knows interfaces by number. Numbers change when an interface is made anew, as at every
 * restart of the machine, so ours are names (base/address.h), looked up whenever a message of a
 * link-local client comes or goes: an interface that was made anew in between is found.
 */
#ifndef WIRE_SOCKADDR_H
#define WIRE_SOCKADDR_H

#include "base/address.h"

#include <sys/socket.h>

/* The address and port of an AF_INET or AF_INET6 socket address; family 0 for any other, and for a
 * link-local one whose interface has gone or has a name that cannot be kept: nobody knows who it
 * is. */
struct address sockaddr_address(const struct sockaddr *from, uint16_t *ret_port);

/* The same from an IPv6 address and the number of an interface. */
struct address sockaddr_v6(const uint8_t bytes[static 16], uint32_t index);

/* The same without its interface: all that can be said of one whose interface has no name. */
struct address sockaddr_bare(const struct sockaddr *from);

/* The number that the interface of an address has now; 0: it has no zone, or none is called so. A
 * zone of digits is a name, too: records of older programs have numbers, and what has such a number
 * now is another link. */
uint32_t sockaddr_index(const struct address *address);

/* An address that somebody typed: the number of an interface in place of its name becomes the name,
 * unless an interface is called so. */
struct address sockaddr_typed(const struct address *address);

/* The length of what was written to *ret. Where the interface of a link-local address is missing,
 * the kernel refuses what is written. */
socklen_t sockaddr_of(const struct address *address, uint16_t port, struct sockaddr_storage *ret);

#endif
