/*
 * test_files_key.c -- the key of file handles: made once, private, the same at every start; a
 * damaged one is an error, and never replaced.
 */
#include "daemon/files_key.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/holdfast-test-key-XXXXXX";
static char url[64], key_path[64], new_path[64], why[512];

static int get(const char *store, struct mac_key *ret)
{
    struct text text;
    text_init(&text, why, sizeof why);
    return files_key_get(store, ret, &text);
}

static void write_key(const void *bytes, size_t len)
{
    int fd = open(key_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
}

TEST_FIXTURE(set_up)
{
    assert_non_null(mkdtemp(directory));
    (void)snprintf(url, sizeof url, "lmdb:%s", directory);
    (void)snprintf(key_path, sizeof key_path, "%s/handle.key", directory);
    (void)snprintf(new_path, sizeof new_path, "%s/handle.key.new", directory);
}

TEST_FIXTURE(tear_down)
{
    assert_int_equal(rmdir(directory), 0);
}

TEST_FIXTURE(clear)
{
    (void)unlink(key_path);
    (void)unlink(new_path);
}

TEST(test_files_key__it_is_made_once)
{
    struct mac_key first = {0}, second = {0};
    struct stat st;
    assert_int_equal(get(url, &first), 0);
    assert_int_equal(get(url, &second), 0);
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(stat(key_path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 16);
    assert_int_equal(access(new_path, F_OK), -1); /* it was renamed */
    assert_int_equal(unlink(key_path), 0);
    assert_int_equal(get(url, &second), 0);
    assert_memory_not_equal(&first, &second, sizeof first); /* another one is another one */
}

TEST(test_files_key__its_bytes_are_big_endian)
{
    static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    struct mac_key key = {0};
    write_key(bytes, sizeof bytes);
    assert_int_equal(get(url, &key), 0);
    assert_int_equal(key.words[0], UINT64_C(0x0102030405060708));
    assert_int_equal(key.words[1], UINT64_C(0x090a0b0c0d0e0f10));
}

TEST(test_files_key__half_a_key_of_a_crash_is_made_anew)
{
    struct mac_key key;
    int fd = open(new_path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "half", 4), 4);
    assert_int_equal(close(fd), 0);
    assert_int_equal(get(url, &key), 0);
    assert_int_equal(access(key_path, F_OK), 0);
}

TEST(test_files_key__a_damaged_one_is_refused_and_kept)
{
    static const char bytes[17] = "sixteen and one.";
    static const size_t lengths[] = {0, 1, 15, 17};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct mac_key key;
        struct stat st;
        write_key(bytes, lengths[i]);
        assert_int_equal(get(url, &key), -EBADMSG);
        assert_non_null(strstr(why, key_path));
        assert_non_null(strstr(why, "restore it from a backup"));
        assert_int_equal(stat(key_path, &st), 0);
        assert_int_equal(st.st_size, lengths[i]);
    }
}

TEST(test_files_key__a_directory_that_is_not_there_is_named)
{
    struct mac_key key;
    assert_int_equal(get("lmdb:/no/such/directory", &key), -ENOENT);
    assert_non_null(strstr(why, "/no/such/directory/handle.key"));
    assert_non_null(strstr(why, "No such file"));
}

TEST(test_files_key__without_a_store_it_lasts_as_long_as_the_process)
{
    struct mac_key first = {0}, second = {0};
    assert_int_equal(get("memory:", &first), 0);
    assert_int_equal(get("memory:", &second), 0);
    assert_memory_not_equal(&first, &second, sizeof first);
}

TEST_MAIN(NULL, clear, set_up, tear_down)
