/*
 * test_port_cache.c -- what was found is found again for 120 s, and no longer, and what was not
 * found for 10 s; the oldest makes room; a host that rebooted is forgotten whole.
 */
#include "rpc/port_cache.h"

#include "base/prng.h"
#include "unit/test.h"

static struct address host(uint32_t number)
{
    const uint8_t bytes[] = {10, 0, (uint8_t)(number >> 8), (uint8_t)number};
    return address_v4(bytes);
}

static struct port_cache_key key_of(uint32_t number, uint32_t prog)
{
    return (struct port_cache_key){.host = host(number), .prog = prog, .vers = 1, .prot = 6};
}

/* The port, or 0. */
static uint32_t get(struct port_cache *cache, uint32_t number, uint32_t prog, uint64_t now_ns)
{
    struct port_cache_key key = key_of(number, prog);
    uint16_t port;
    return port_cache_get(cache, &key, now_ns, &port) ? port : 0;
}

static void put(struct port_cache *cache, uint32_t number, uint32_t prog, uint16_t port,
                uint64_t now_ns)
{
    struct port_cache_key key = key_of(number, prog);
    port_cache_put(cache, &key, port, now_ns);
}

TEST(test_port_cache__lives_for_120_s)
{
    struct port_cache *cache = port_cache_new(4, 1);
    put(cache, 1, 100024, 700, 1000);
    assert_int_equal(get(cache, 1, 100024, 1000), 700);
    assert_int_equal(get(cache, 1, 100024, 1000 + PORT_CACHE_LIFE_NS - 1), 700);
    assert_int_equal(get(cache, 1, 100024, 1000 + PORT_CACHE_LIFE_NS), 0);
    assert_int_equal(port_cache_count(cache), 0);
    /* Being put again begins a new life. */
    put(cache, 1, 100024, 701, 0);
    put(cache, 1, 100024, 702, 5);
    assert_int_equal(port_cache_count(cache), 1);
    assert_int_equal(get(cache, 1, 100024, 4 + PORT_CACHE_LIFE_NS), 702);
    port_cache_free(cache);
}

TEST(test_port_cache__absence_is_known_for_10_s)
{
    struct port_cache *cache = port_cache_new(4, 1);
    struct port_cache_key key = key_of(1, 100021);
    uint16_t port = 99;
    assert_false(port_cache_get(cache, &key, 1000, &port));
    port_cache_put(cache, &key, 0, 1000);
    assert_true(port_cache_get(cache, &key, 1000 + PORT_CACHE_ABSENT_NS - 1, &port));
    assert_int_equal(port, 0);
    assert_false(port_cache_get(cache, &key, 1000 + PORT_CACHE_ABSENT_NS, &port));
    port_cache_put(cache, &key, 0, 2000);
    port_cache_put(cache, &key, 700, 2001); /* it is there after all */
    assert_int_equal(get(cache, 1, 100021, 2000 + PORT_CACHE_ABSENT_NS), 700);
    port_cache_free(cache);
}

TEST(test_port_cache__the_key_is_host_program_version_protocol)
{
    struct port_cache *cache = port_cache_new(8, 1);
    struct address address = host(1);
    struct port_cache_key key = key_of(1, 100024), other_vers = key, other_prot = key;
    other_vers.vers = 4;
    other_prot.prot = 17;
    uint16_t port;
    put(cache, 1, 100024, 700, 0);
    put(cache, 1, 100021, 701, 0);
    put(cache, 2, 100024, 702, 0);
    port_cache_put(cache, &other_vers, 900, 0);
    port_cache_put(cache, &other_prot, 901, 0);
    assert_int_equal(get(cache, 1, 100024, 1), 700);
    assert_int_equal(get(cache, 1, 100021, 1), 701);
    assert_int_equal(get(cache, 2, 100024, 1), 702);
    assert_int_equal(get(cache, 2, 100021, 1), 0);
    assert_true(port_cache_get(cache, &other_vers, 1, &port));
    assert_int_equal(port, 900);
    assert_true(port_cache_get(cache, &other_prot, 1, &port));
    assert_int_equal(port, 901);

    port_cache_drop(cache, &key);
    assert_int_equal(get(cache, 1, 100024, 1), 0);
    port_cache_drop(cache, &key); /* not there: nothing happens */
    assert_true(port_cache_get(cache, &other_prot, 1, &port));
    assert_int_equal(get(cache, 1, 100021, 1), 701);

    port_cache_drop_host(cache, &address);
    assert_int_equal(port_cache_count(cache), 1);
    assert_int_equal(get(cache, 2, 100024, 1), 702);
    port_cache_free(cache);
}

TEST(test_port_cache__the_oldest_makes_room)
{
    struct port_cache *cache = port_cache_new(3, 1);
    for (uint32_t i = 0; i < 3; i++)
        put(cache, i, 1, (uint16_t)(100 + i), i);
    put(cache, 0, 1, 200, 3); /* now the youngest */
    put(cache, 3, 1, 103, 4);
    assert_int_equal(get(cache, 1, 1, 5), 0);
    assert_int_equal(get(cache, 0, 1, 5), 200);
    assert_int_equal(get(cache, 2, 1, 5), 102);
    assert_int_equal(get(cache, 3, 1, 5), 103);
    port_cache_free(cache);
}

enum { HOSTS = 12, PROGS = 3, ROOM = 64, STEPS = 20000 };

/* With room for everything, the cache and a plain table agree on every answer. */
TEST(test_port_cache__random_history)
{
    struct port_cache *cache = port_cache_new(ROOM, 7);
    struct {
        uint16_t port;
        uint64_t put_ns;
    } model[HOSTS][PROGS] = {0};
    struct prng prng = {99};
    uint64_t now_ns = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t h = (uint32_t)prng_below(&prng, HOSTS), p = (uint32_t)prng_below(&prng, PROGS);
        struct address address = host(h);
        struct port_cache_key key = key_of(h, p);
        now_ns += prng_below(&prng, PORT_CACHE_LIFE_NS / 16);
        switch (prng_below(&prng, 8)) {
        case 0:
            port_cache_drop(cache, &key);
            model[h][p].port = 0;
            break;
        case 1:
            port_cache_drop_host(cache, &address);
            for (uint32_t i = 0; i < PROGS; i++)
                model[h][i].port = 0;
            break;
        case 2:
        case 3:
        case 4:
            model[h][p].port = (uint16_t)(1 + prng_below(&prng, 65535));
            model[h][p].put_ns = now_ns;
            put(cache, h, p, model[h][p].port, now_ns);
            break;
        default:
            if (now_ns - model[h][p].put_ns >= PORT_CACHE_LIFE_NS)
                model[h][p].port = 0;
            assert_int_equal(get(cache, h, p, now_ns), model[h][p].port);
        }
        assert_in_range(port_cache_count(cache), 0, HOSTS * PROGS);
    }
    port_cache_free(cache);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
