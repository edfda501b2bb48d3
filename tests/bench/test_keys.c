/*
 * test_keys.c -- the load generator's registrations: their count stays, no key is used twice, and
 * they are the same after a file.
 */
#include "bench/keys.h"
#include "unit/test.h"

#include <unistd.h>

#define CONNECTIONS 3
#define REGISTERED  10
#define REPLACED    100

TEST(test_keys__count_stays_and_no_key_returns)
{
    struct keys keys;
    bool is_live[REGISTERED + REPLACED * CONNECTIONS] = {false},
                                         was_used[sizeof(is_live)] = {false};
    uint32_t added, removed, count = 0;
    assert_true(keys_init(&keys, CONNECTIONS, REGISTERED));
    for (uint32_t i = 0; i < REGISTERED; i++)
        is_live[i] = was_used[i] = true;
    for (uint32_t i = 0; i < REPLACED; i++) {
        keys_replace(&keys, i % CONNECTIONS, i * 7919, &added, &removed);
        assert_in_range(added, 0, sizeof(is_live) - 1);
        assert_false(was_used[added]);
        assert_true(is_live[removed]);
        assert_int_equal(added % CONNECTIONS, i % CONNECTIONS);
        is_live[added] = was_used[added] = true;
        is_live[removed] = false;
    }
    for (size_t i = 0; i < sizeof(is_live); i++)
        count += is_live[i];
    assert_int_equal(count, REGISTERED);
    keys_done(&keys);
}

TEST(test_keys__without_any_a_key_replaces_itself)
{
    struct keys keys;
    uint32_t added, removed;
    assert_true(keys_init(&keys, CONNECTIONS, 0));
    keys_replace(&keys, 1, 5, &added, &removed);
    assert_int_equal(added, 1);
    assert_int_equal(removed, 1);
    keys_done(&keys);
}

TEST(test_keys__survive_in_a_file)
{
    char path[] = "/tmp/holdfast-keys-XXXXXX";
    struct keys keys, again;
    uint32_t added, removed;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(keys_init(&keys, CONNECTIONS, REGISTERED));
    keys_replace(&keys, 2, 1, &added, &removed);
    assert_true(keys_save(&keys, path));
    assert_false(keys_load(&again, CONNECTIONS + 1, path));
    assert_true(keys_load(&again, CONNECTIONS, path));
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(again.parts[i].next, keys.parts[i].next);
        assert_int_equal(again.parts[i].count, keys.parts[i].count);
        assert_memory_equal(again.parts[i].live, keys.parts[i].live,
                            keys.parts[i].count * sizeof(uint32_t));
    }
    keys_done(&again);
    assert_int_equal(truncate(path, 20), 0);
    assert_false(keys_load(&again, CONNECTIONS, path));
    unlink(path);
    assert_false(keys_load(&again, CONNECTIONS, path));
    keys_done(&keys);
}

TEST(test_keys__names_are_addresses)
{
    char name[KEYS_NAME_MAX];
    assert_string_equal(keys_name(0, name), "10.0.0.0");
    assert_string_equal(keys_name(0x010203, name), "10.1.2.3");
    assert_string_equal(keys_name(0xffffff, name), "10.255.255.255");
}

TEST_MAIN(NULL, NULL, NULL, NULL)
