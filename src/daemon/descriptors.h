/*
 * descriptors.h -- enough file descriptors for the connections that were promised, or as many
 * connections as there are descriptors for.
 *
 * A connection that cannot be accepted for lack of a descriptor is closed unseen: nobody makes room
 * for it, and nothing is logged. So there must always be descriptors for one more than we count.
 */
#ifndef DAEMON_DESCRIPTORS_H
#define DAEMON_DESCRIPTORS_H

#include <stdint.h>

/*
 * Raises the limit of open files to at least `needed`, as far as we may: to the hard limit, as root
 * beyond it; never lowers it. Returns the limit now in force, 0 when it cannot be known.
 */
uint64_t descriptors_reserve(uint64_t needed);

/* What the open files are divided into, beside some for sockets, the store and HTTP. */
struct descriptors_shares {
    uint32_t callers; /* connections of those who call us */
    uint32_t calls;   /* of our own calls */
};

enum { DESCRIPTORS_SPARE = 256 };

/* As many callers as wanted, if there is room, then calls; some of both in any case. */
struct descriptors_shares descriptors_divide(uint64_t limit,
                                             const struct descriptors_shares *wanted);

/* How many the files that are served may keep open: as many as wanted where the limit is what was
 * needed for everything, and otherwise a quarter of it. */
uint32_t descriptors_for_files(uint64_t limit, uint64_t needed, uint32_t wanted);
/* How many pipes long answers may go through, with two descriptors each: as many as wanted where
 * the limit is what was needed for everything, and otherwise a thirty-second part of it. */
uint32_t descriptors_for_pipes(uint64_t limit, uint64_t needed, uint32_t wanted);
/* How many files may be kept open, twice each, for their locks: half of what the others leave of
 * the limit, because our own calls take from the rest too, and some of it in any case. */
uint32_t descriptors_for_mirror(uint64_t limit, uint64_t needed, uint32_t wanted);

#endif
