/*
 * daemon.c -- what every step of the start needs; see daemon.h.
 */
#include "daemon/daemon.h"

#include "base/check.h"

#include <sys/random.h>

/* Nothing is freed: what was opened before may point into the options that it was opened with. */
void daemon_join_group(struct daemon *daemon, uint32_t index)
{
    if (daemon->group_configs != NULL) {
        struct config before = daemon->config;
        daemon->config = daemon->group_configs[index];
        daemon->group_configs[index] = before;
    }
    daemon->log.group = daemon->config.group[0] != '\0' ? daemon->config.group : NULL;
}

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
