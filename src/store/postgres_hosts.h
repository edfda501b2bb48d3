/*
 * postgres_hosts.h -- the hosts that a connection string names, one at a time.
 *
 * libpq goes through such a list by itself, but only waits with a limit for each host in calls that
 * wait for all of it. Here each host is tried alone, so that one that drops all packets does not
 * use up the time of the others.
 */
#ifndef STORE_POSTGRES_HOSTS_H
#define STORE_POSTGRES_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define POSTGRES_HOSTS_MAX 16

struct postgres_hosts {
    uint32_t count; /* at least 1 */
    /* Owned, parallel lists with commas as in the string; NULL: the string does not say. All NULL
     * when there is one host: then the string itself says everything. */
    char *host, *hostaddr, *port;
};

/* One of them, in words that libpq takes; NULL: nothing to be said. */
struct postgres_host {
    char host[256], hostaddr[64], port[16];
    const char *host_value, *hostaddr_value, *port_value;
};

/* A string that cannot be read, or whose lists do not fit together, counts as one host: libpq finds
 * the words for what is wrong with it. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int postgres_hosts_init(struct postgres_hosts *hosts,
                                                            const char *conninfo);
void postgres_hosts_done(struct postgres_hosts *hosts);

/* The host at an index below count. */
void postgres_hosts_at(const struct postgres_hosts *hosts, uint32_t index,
                       struct postgres_host *ret);

#endif
