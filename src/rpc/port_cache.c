/*
 * port_cache.c -- see port_cache.h.
 *
 * Invariant: entries are on the queue in the order in which they were put, so the head expires
 * first.
 */
#include "rpc/port_cache.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/list.h"
#include "base/table.h"

#include <stdlib.h>

struct cached {
    struct port_cache_key key;
    uint64_t put_ns;
    struct list by_age;
    uint32_t slot;
    uint16_t port; /* 0: not there */
};

_Static_assert(sizeof(struct port_cache_key) == sizeof(struct address) + 4 * sizeof(uint32_t),
               "a key has no padding");

struct port_cache {
    struct table table;
    struct hash_index by_key, by_host;
    struct list by_age; /* oldest first */
    uint64_t seed;
};

struct port_cache *port_cache_new(uint32_t entries_max, uint64_t seed)
{
    struct port_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->seed = seed;
    list_init(&cache->by_age);
    if (table_init(&cache->table, entries_max, sizeof(struct cached)) != 0 ||
        hash_index_init(&cache->by_key, entries_max) != 0 ||
        hash_index_init(&cache->by_host, entries_max) != 0) {
        port_cache_free(cache);
        return NULL;
    }
    return cache;
}

void port_cache_free(struct port_cache *cache)
{
    if (cache == NULL)
        return;
    table_done(&cache->table);
    hash_index_done(&cache->by_key);
    hash_index_done(&cache->by_host);
    free(cache);
}

static uint64_t host_hash(const struct port_cache *cache, const struct address *host)
{
    return hash_bytes(cache->seed, (struct bytes){(const uint8_t *)host, sizeof *host});
}

static uint64_t key_hash(const struct port_cache *cache, const struct port_cache_key *key)
{
    return hash_bytes(cache->seed, (struct bytes){(const uint8_t *)key, sizeof *key});
}

static struct cached *find(const struct port_cache *cache, const struct port_cache_key *key,
                           uint64_t hash)
{
    uint32_t slot = hash_index_first(&cache->by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&cache->by_key, slot)) {
        struct cached *c = table_at(&cache->table, slot);
        if (memcmp(&c->key, key, sizeof *key) == 0)
            return c;
    }
    return NULL;
}

static void drop(struct port_cache *cache, struct cached *c)
{
    list_remove(&c->by_age);
    hash_index_remove(&cache->by_key, c->slot);
    hash_index_remove(&cache->by_host, c->slot);
    table_remove(&cache->table, c->slot);
}

bool port_cache_get(struct port_cache *cache, const struct port_cache_key *key, uint64_t now_ns,
                    uint16_t *ret_port)
{
    struct cached *c = find(cache, key, key_hash(cache, key));
    if (c == NULL)
        return false;
    if (now_ns - c->put_ns >= (c->port == 0 ? PORT_CACHE_ABSENT_NS : PORT_CACHE_LIFE_NS)) {
        drop(cache, c);
        return false;
    }
    *ret_port = c->port;
    return true;
}

void port_cache_put(struct port_cache *cache, const struct port_cache_key *key, uint16_t port,
                    uint64_t now_ns)
{
    uint64_t hash = key_hash(cache, key);
    struct cached *old = find(cache, key, hash);
    if (old != NULL)
        drop(cache, old);
    else if (cache->table.count == cache->table.max)
        drop(cache, LIST_ELEMENT(cache->by_age.next, struct cached, by_age));
    uint32_t slot = table_add(&cache->table);
    CHECK(slot != SLOT_NONE);
    struct cached *c = table_at(&cache->table, slot);
    *c = (struct cached){.key = *key, .put_ns = now_ns, .port = port, .slot = slot};
    list_append(&cache->by_age, &c->by_age);
    hash_index_add(&cache->by_key, hash, slot);
    hash_index_add(&cache->by_host, host_hash(cache, &key->host), slot);
}

void port_cache_drop(struct port_cache *cache, const struct port_cache_key *key)
{
    struct cached *c = find(cache, key, key_hash(cache, key));
    if (c != NULL)
        drop(cache, c);
}

void port_cache_drop_host(struct port_cache *cache, const struct address *host)
{
    uint32_t slot = hash_index_first(&cache->by_host, host_hash(cache, host));
    while (slot != SLOT_NONE) {
        struct cached *c = table_at(&cache->table, slot);
        slot = hash_index_next(&cache->by_host, slot);
        if (address_equal(&c->key.host, host))
            drop(cache, c);
    }
}

uint32_t port_cache_count(const struct port_cache *cache)
{
    return cache->table.count;
}
