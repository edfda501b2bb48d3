/*
 * call_memory.h -- memory for calls in flight: limited, and used again.
 *
 * A call is one piece: itself, its reply with what stands in front of it, and a copy of its
 * arguments. Pieces come in a few sizes and are kept for the next call, so that a READ of a
 * megabyte does not fetch and clear a megabyte of pages each time. Long arguments are not copied:
 * the call keeps what they lie in (proto/job.h), and such a piece, when its call is over, is what
 * the next one gives in exchange. The server's thread alone uses this.
 */
#ifndef FILE_CALL_MEMORY_H
#define FILE_CALL_MEMORY_H

#include "file/call.h"

enum { CALL_SIZE_CLASSES = 4, CALL_RECORDS_KEPT_MAX = 64 };

struct call_memory {
    uint32_t calls, calls_max;
    uint64_t bytes, bytes_max; /* of calls in flight */
    struct list kept[CALL_SIZE_CLASSES];
    uint32_t kept_count[CALL_SIZE_CLASSES];
    struct job_memory records[CALL_RECORDS_KEPT_MAX]; /* of calls that are over; the warmest last */
    uint32_t record_count;
};

void call_memory_init(struct call_memory *memory, uint32_t calls_max, uint64_t bytes_max);
void call_memory_done(struct call_memory *memory);
/* Zeroed but for the reply and the room for arguments. NULL: one of the limits, or no memory. */
struct call *call_memory_take(struct call_memory *memory, uint32_t payload_max, uint32_t args_len);
/* The call owns what was lent but for an inlet, and it counts; another piece or nothing is lent in
 * its place. False: the limit, and nothing has changed. */
bool call_memory_keep(struct call_memory *memory, struct call *call, struct job_memory *lent);
/* A small one that no limit refuses; NULL: no memory. */
struct call *call_memory_take_spare(struct call_memory *memory);
void call_memory_give_back(struct call_memory *memory, struct call *call);

#endif
