/*
 * port_cache.h -- where programs of other hosts were found, for 120 s; and that they were not, for
 * 10 s.
 *
 * Ports change when a host reboots, so an entry dies with the first failure of a call that used it,
 * and when the host says that it rebooted. The cache is bounded: the oldest entry makes room.
 */
#ifndef RPC_PORT_CACHE_H
#define RPC_PORT_CACHE_H

#include "base/address.h"
#include "base/units.h"

#define PORT_CACHE_LIFE_NS   (120 * SECOND_NS)
#define PORT_CACHE_ABSENT_NS (10 * SECOND_NS)

struct port_cache;

/* What is looked for: a program of a host. */
struct port_cache_key {
    struct address host;
    uint32_t prog, vers;
    uint32_t prot; /* 6 or 17 */
    uint32_t zero; /* a key is hashed and compared as bytes, so it has no padding */
};

struct port_cache *port_cache_new(uint32_t entries_max, uint64_t seed);
void port_cache_free(struct port_cache *cache);

/* False: not known. Port 0: it is not there. */
bool port_cache_get(struct port_cache *cache, const struct port_cache_key *key, uint64_t now_ns,
                    uint16_t *ret_port);
void port_cache_put(struct port_cache *cache, const struct port_cache_key *key, uint16_t port,
                    uint64_t now_ns);
void port_cache_drop(struct port_cache *cache, const struct port_cache_key *key);
/* Everything known of a host. */
void port_cache_drop_host(struct port_cache *cache, const struct address *host);

uint32_t port_cache_count(const struct port_cache *cache);

#endif
