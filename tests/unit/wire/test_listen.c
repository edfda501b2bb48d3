/*
 * test_listen.c -- shows that binding is all or nothing: one port for every address and both
 * protocols, or a sentence for the operator and no descriptor left open. Real sockets on loopback
 * addresses; where the machine has no IPv6 the tests of it are skipped.
 */
#include "wire/listen.h"

#include "unit/test.h"
#include "wire/sockaddr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

static struct address address_of(const char *text)
{
    struct address address;
    assert_true(address_parse(bytes_of_text(text), &address));
    return address;
}

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    int count = 0;
    while (readdir(directory) != NULL)
        count++;
    assert_int_equal(closedir(directory), 0);
    return count;
}

static bool has_ipv6(void)
{
    struct address loopback = address_of("::1");
    struct listen_set set;
    struct listen_failure failure;
    if (listen_open(&loopback, 1, 0, &set, &failure) != 0)
        return false;
    listen_close(&set);
    return true;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void assert_bound(int fd, int type, const struct address *address, uint16_t port)
{
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof name;
    uint16_t bound_port = 0;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
    struct address bound = sockaddr_address((const struct sockaddr *)&name, &bound_port);
    assert_true(address_equal(&bound, address));
    assert_int_equal(bound_port, port);
    assert_int_equal(option(fd, SOL_SOCKET, SO_TYPE), type);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    if (address->family == 6)
        assert_int_equal(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
}

static void assert_set(const struct listen_set *set, const struct address *addresses,
                       uint32_t count)
{
    assert_int_equal(set->count, count);
    assert_true(set->port > 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(address_equal(&set->at[i].address, &addresses[i]));
        assert_bound(set->at[i].tcp_fd, SOCK_STREAM, &addresses[i], set->port);
        assert_bound(set->at[i].udp_fd, SOCK_DGRAM, &addresses[i], set->port);
    }
}

TEST(test_listen__one_port_for_all)
{
    const struct address addresses[] = {address_of("127.0.0.1"), address_of("127.0.0.2"),
                                        address_of("127.0.0.3")};
    struct listen_set set;
    struct listen_failure failure;
    int before = open_descriptors();
    assert_int_equal(listen_open(addresses, 3, 0, &set, &failure), 0);
    assert_set(&set, addresses, 3);
    assert_int_equal(open_descriptors(), before + 6);
    listen_close(&set);
    assert_int_equal(open_descriptors(), before);
    listen_close(&set); /* again is harmless */
}

TEST(test_listen__everywhere)
{
    const struct address everywhere[] = {address_of("0.0.0.0"), address_of("::")};
    struct listen_set set;
    struct listen_failure failure;
    assert_int_equal(listen_open(NULL, 0, 0, &set, &failure), 0);
    assert_set(&set, everywhere, has_ipv6() ? 2 : 1);
    listen_close(&set);
}

TEST(test_listen__ipv6_only_takes_ipv6)
{
    if (!has_ipv6()) {
        print_message("this machine has no IPv6\n");
        skip();
    }
    struct address loopback = address_of("::1");
    struct listen_set set;
    struct listen_failure failure;
    assert_int_equal(listen_open(&loopback, 1, 0, &set, &failure), 0);
    assert_set(&set, &loopback, 1);
    listen_close(&set);
}

/* The second address fails: the first one's sockets are closed again. */
TEST(test_listen__a_port_in_use_leaves_nothing_open)
{
    const struct address taken = address_of("127.0.0.2");
    const struct address addresses[] = {address_of("127.0.0.1"), taken};
    struct listen_set first, second = {.port = 77};
    struct listen_failure failure = {0};
    assert_int_equal(listen_open(&taken, 1, 0, &first, &failure), 0);
    assert_int_equal(listen(first.at[0].tcp_fd, 1), 0); /* else SO_REUSEADDR lets others bind */
    int before = open_descriptors();
    assert_int_equal(listen_open(addresses, 2, first.port, &second, &failure), -1);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(second.port, 77); /* untouched */
    assert_int_equal(failure.error, EADDRINUSE);
    assert_non_null(strstr(failure.text, "cannot bind TCP port "));
    assert_non_null(strstr(failure.text, " on 127.0.0.2: "));
    assert_non_null(strstr(failure.text, "choose another --port"));
    listen_close(&first);
}

TEST(test_listen__udp_in_use_is_told)
{
    const struct address loopback = address_of("127.0.0.1");
    struct listen_set first, second;
    struct listen_failure failure = {0};
    assert_int_equal(listen_open(&loopback, 1, 0, &first, &failure), 0);
    int before = open_descriptors();
    /* Its TCP socket does not listen and may be shared; the UDP socket may not. */
    assert_int_equal(listen_open(&loopback, 1, first.port, &second, &failure), -1);
    assert_non_null(strstr(failure.text, "cannot bind UDP port "));
    assert_int_equal(open_descriptors(), before);
    listen_close(&first);
}

TEST(test_listen__an_address_of_somebody_else)
{
    const struct address strange = address_of("192.0.2.77");
    struct listen_set set;
    struct listen_failure failure = {0};
    assert_int_equal(listen_open(&strange, 1, 0, &set, &failure), -1);
    assert_int_equal(failure.error, EADDRNOTAVAIL);
    assert_non_null(strstr(failure.text, "192.0.2.77"));
    assert_non_null(strstr(failure.text, "this machine has no such address, see --listen"));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
