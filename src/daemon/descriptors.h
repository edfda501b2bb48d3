/*
 * descriptors.h -- enough file descriptors for the connections that were promised.
 */
#ifndef DAEMON_DESCRIPTORS_H
#define DAEMON_DESCRIPTORS_H

#include <stdint.h>

/*
 * Raises the limit of open files to at least `needed`, as far as we may: to the hard limit, as root
 * beyond it; never lowers it. Returns the limit now in force, 0 when it cannot be known. Less than
 * `needed` is for the caller to say: connections beyond it will be refused by accept.
 */
uint64_t descriptors_reserve(uint64_t needed);

#endif
