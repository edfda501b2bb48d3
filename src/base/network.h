/*
 * network.h -- a range of addresses: 192.0.2.0/24, 2001:db8::/32, or one address alone.
 */
#ifndef BASE_NETWORK_H
#define BASE_NETWORK_H

#include "base/address.h"

struct network {
    struct address address;
    uint32_t prefix_len; /* bits that must agree; of one address alone, all */
};

/*
 * "ADDRESS", "ADDRESS/LEN", or "ADDRESS/NETMASK" for IPv4. NETWORK_BAD_ADDRESS and _BAD_LENGTH say
 * which half is wrong; *ret is then untouched.
 */
enum network_result { NETWORK_OK, NETWORK_BAD_ADDRESS, NETWORK_BAD_LENGTH };
enum network_result network_parse(const char *text, struct network *ret);

/* Is it one address, not a range? */
bool network_is_address(const struct network *network);
bool network_has(const struct network *network, const struct address *address);

#endif
