/*
 * buffers.h -- memory in which records are gathered that do not lie whole in one read.
 *
 * A short record gets what it needs, for as long as it is gathered. All long ones get the same
 * length: a file server fills hundreds of them in a second, so they are kept for the next one, and
 * the kernel need not find and clear the pages each time. A call may keep its long record and give
 * another piece for it (proto/job.h); whatever is in the reader when it is done is kept here.
 */
#ifndef WIRE_BUFFERS_H
#define WIRE_BUFFERS_H

#include "codec/record_mark.h"

enum {
    BUFFERS_LONG_MIN = 128 * 1024, /* from this length on a record is long */
    BUFFERS_KEPT_MAX = 16,
};

/* Only buffers.c touches the fields. */
struct buffers {
    uint32_t long_len;
    uint32_t kept_count;
    uint8_t *kept[BUFFERS_KEPT_MAX]; /* the warmest last; owned */
};

/* The longest record has record_max bytes. */
void buffers_init(struct buffers *buffers, uint32_t record_max);
void buffers_done(struct buffers *buffers);

/* Replaces the reader's buffer by one with the room that it needs. False: no memory, and it has
 * none. */
__attribute__((warn_unused_result)) bool buffers_lend(struct buffers *buffers,
                                                      struct record_reader *reader);
/* The reader has none any more. */
void buffers_take_back(struct buffers *buffers, struct record_reader *reader);

#endif
