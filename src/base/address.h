/*
 * address.h -- the address of a host, in the one form in which addresses are compared (R-ID-2).
 *
 * IPv4 and IPv6 share a struct without padding, so two addresses are equal when their bytes are. An
 * IPv4 address that arrived inside IPv6 (::ffff:a.b.c.d) is folded to IPv4 when it enters the
 * program. Ports are not part of an address: a client is the same client on another port.
 *
 * A link-local address means a host only together with a link. That is the *name* of our interface,
 * which stays over a restart of the machine; its number, which the kernel uses, does not. wire/
 * translates.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include "base/bytes.h"

/* The name of an interface has 15 characters at most. There is room for a few more, so that the
 * length of an address is a multiple of eight and keys that it is part of have no padding. */
#define ADDRESS_ZONE_LEN_MAX 15
#define ADDRESS_ZONE_MAX     20

struct address {
    uint8_t bytes[16];           /* IPv4: the first four, the rest zero */
    char zone[ADDRESS_ZONE_MAX]; /* IPv6 link-local: the interface; NUL behind it, and otherwise */
    uint32_t family;             /* 0 none, 4, 6 */
};

#define ADDRESS_TEXT_MAX 64 /* the longest text of an address with its zone, and a NUL */

struct address address_v4(const uint8_t bytes[static 4]);
/* Folds v4-mapped addresses; keeps the zone (NULL or "": none) only for link-local ones, where it
 * means something. */
struct address address_v6(const uint8_t bytes[static 16], const char *zone);
/* May this be a zone? The name of an interface, or a number in its place. */
bool address_is_zone(struct bytes zone);
/* An address as others know it: our interfaces mean nothing to them. */
struct address address_without_zone(const struct address *address);

bool address_equal(const struct address *a, const struct address *b);
bool address_is_link_local(const struct address *address);
bool address_is_loopback(const struct address *address);
/* Does it name one host? Not the one that means none, nor that of a group, nor a link-local one
 * without its link. */
bool address_is_host(const struct address *address);

/* Numeric text, NUL-terminated, "%zone" appended where there is one; "none" for family 0. */
void address_text(const struct address *address, char ret_text[static ADDRESS_TEXT_MAX]);

/* Parses a literal address, also "fe80::1%eth0". False: not a literal; *ret is then untouched. */
bool address_parse(struct bytes text, struct address *ret);

#endif
