/*
 * storm.h -- what the processes of a storm and their referee say to each other.
 *
 * A message is four bytes, its answer one. Both run on machines of one byte order, and single bytes
 * have none.
 */
#ifndef REALCLIENT_STORM_H
#define REALCLIENT_STORM_H

#include <stdint.h>

#define STORM_BYTES 64 /* the part of the file that is fought for */

/* In the order of their strength. */
enum storm_mode { STORM_NOTHING, STORM_READING, STORM_WRITING };

enum storm_word {
    STORM_GIVES_UP, /* what it has in the range is at most `mode` from now on */
    STORM_HAS,      /* it relies on exactly `mode` in the range */
    STORM_LEAVES,   /* the last word */
};

struct storm_message {
    uint8_t word, mode, start, len;
};

#endif
