/*
 * mac.h -- eight bytes that only the holder of a key can compute: SipHash-2-4.
 *
 * For what leaves the server and comes back, and must be the server's own then: file handles.
 */
#ifndef BASE_MAC_H
#define BASE_MAC_H

#include "base/bytes.h"

struct mac_key {
    uint64_t words[2];
};

uint64_t mac_of(const struct mac_key *key, struct bytes data);

#endif
