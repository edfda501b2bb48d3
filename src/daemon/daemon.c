/*
 * daemon.c -- what every step of the start needs; see daemon.h.
 */
#include "daemon/daemon.h"

#include "base/check.h"

#include <sys/random.h>

int daemon_fail(struct daemon *daemon, int exit_code, const char *sentence)
{
    log_say(&daemon->log, LOG_LEVEL_ERROR, clock_wall_ns(&daemon->clock), LOG_MESSAGE(sentence));
    return exit_code;
}

uint64_t daemon_seed(void)
{
    uint64_t seed = 0;
    CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
    return seed;
}
