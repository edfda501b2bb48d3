/*
 * source_port.c -- ranges of ports; see source_port.h.
 *
 * Privileged ports start where /etc/services has none assigned: a socket that keeps its port is
 * then in no service's way, as long as those last. Chance picks the exact start, so that two
 * servers on one machine rarely try the same, and nobody knows where answers to ours are awaited.
 */
#include "wire/source_port.h"

#include "wire/sockaddr.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    PRIVILEGED_LOW = 512, /* below are well-known services */
    PRIVILEGED_HIGH = 1023,
    NOBODYS_LOW = 954,
    NOBODYS_COUNT = 35,
};

struct source_ports source_ports_privileged(void)
{
    uint32_t chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance)
        chance = (uint32_t)getpid();
    uint32_t first = NOBODYS_LOW + chance % NOBODYS_COUNT;
    return (struct source_ports){PRIVILEGED_LOW, PRIVILEGED_HIGH, first - PRIVILEGED_LOW};
}

uint16_t source_ports_next(struct source_ports *ports)
{
    return (uint16_t)(ports->low + ports->next++ % source_ports_count(ports));
}

int source_ports_bind(struct source_ports *ports, int fd, const struct address *local)
{
    int result = -EADDRINUSE;
    for (uint32_t i = source_ports_count(ports); i > 0 && result == -EADDRINUSE; i--) {
        struct sockaddr_storage at;
        socklen_t at_len = sockaddr_of(local, source_ports_next(ports), &at);
        result = bind(fd, (const struct sockaddr *)&at, at_len) == 0 ? 0 : -errno;
    }
    return result;
}
