/*
 * test_source_port.c -- ports are taken in turn, all of a range before one comes again; binding
 * finds the free one among taken ones and says so when there is none. Real UDP sockets on 127.0.0.1
 * (who gets a privileged port is in test_caller.c, which has a network of its own).
 */
#include "wire/source_port.h"

#include "unit/test.h"
#include "wire/sockaddr.h"

#include <errno.h>
#include <unistd.h>

static const struct address loopback = {.family = 4, .bytes = {127, 0, 0, 1}};

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    return fd;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof name;
    uint16_t port;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
    struct address address = sockaddr_address((const struct sockaddr *)&name, &port);
    assert_true(port == 0 || address_equal(&address, &loopback));
    return port;
}

TEST(test_source_port__goes_round)
{
    struct source_ports three = {.low = 65533, .high = 65535, .next = 1};
    static const uint16_t expected[] = {65534, 65535, 65533, 65534};
    assert_int_equal(source_ports_count(&three), 3);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(source_ports_next(&three), expected[i]);
}

TEST(test_source_port__every_privileged_one_once)
{
    struct source_ports ports = source_ports_privileged();
    bool seen[1024] = {false};
    assert_int_equal(source_ports_count(&ports), 512);
    for (uint32_t i = 0; i < 512; i++) {
        uint16_t port = source_ports_next(&ports);
        assert_in_range(port, 512, 1023);
        if (i == 0)
            assert_in_range(port, 954, 988); /* nobody's in /etc/services */
        assert_false(seen[port]);
        seen[port] = true;
    }
}

TEST(test_source_port__any)
{
    struct source_ports any = {0};
    int fds[2] = {new_socket(), new_socket()};
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(source_ports_bind(&any, fds[i], &loopback), 0);
        assert_true(port_of(fds[i]) > 0);
    }
    assert_int_not_equal(port_of(fds[0]), port_of(fds[1]));
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(close(fds[1]), 0);
}

/* In a range of one that is taken there is none; in one with neighbours there is. */
TEST(test_source_port__finds_the_free_one)
{
    struct source_ports any = {0};
    int taken = new_socket(), fd = new_socket();
    assert_int_equal(source_ports_bind(&any, taken, &loopback), 0);
    uint16_t port = port_of(taken);
    struct source_ports one = {.low = port, .high = port};
    assert_int_equal(source_ports_bind(&one, fd, &loopback), -EADDRINUSE);
    assert_int_equal(port_of(fd), 0); /* still unbound */

    /* A neighbour that somebody else may take meanwhile; whoever has it, it is not `port`. */
    struct source_ports few = {.low = port > 60000 ? (uint16_t)(port - 50) : port,
                               .high = port > 60000 ? port : (uint16_t)(port + 50)};
    few.next = (uint32_t)(port - few.low);
    assert_int_equal(source_ports_bind(&few, fd, &loopback), 0);
    assert_in_range(port_of(fd), few.low, few.high);
    assert_int_not_equal(port_of(fd), port);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(taken), 0);
}

/* Another error than "taken" is not tried on the next port. */
TEST(test_source_port__an_address_that_is_not_ours)
{
    struct source_ports few = {.low = 20000, .high = 20009};
    const struct address elsewhere = {.family = 4, .bytes = {192, 0, 2, 1}};
    int fd = new_socket();
    assert_int_equal(source_ports_bind(&few, fd, &elsewhere), -EADDRNOTAVAIL);
    assert_int_equal(few.next, 1);
    assert_int_equal(close(fd), 0);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
