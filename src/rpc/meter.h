/*
 * meter.h -- counts calls by procedure and result, and times them.
 *
 * A row per program and procedure number; versions of a program share their rows. A call counts
 * when its answer leaves: its duration is from the turn that read it to the turn in which what it
 * says is durable. Repeats that the duplicate request cache answers are counted apart.
 */
#ifndef RPC_METER_H
#define RPC_METER_H

#include "base/histogram.h"
#include "core/message.h"
#include "proto/program.h"

#define METER_PROCEDURES_MAX 32
#define METER_NONE           UINT32_MAX

struct meter_row {
    uint64_t succeeded, failed;
    uint64_t bytes; /* of files, read or written */
    struct histogram durations;
};

struct meter {
    const struct program *const *programs; /* borrowed */
    uint32_t program_count;
    uint64_t repeats; /* answered by the duplicate request cache, or still in progress */
    uint64_t unknown; /* of no program, version or procedure that is served, or no call */
    struct meter_row *rows;
};

/* NULL: no memory. */
struct meter *meter_new(const struct program *const *programs, uint32_t program_count);
void meter_free(struct meter *meter);

/* The row of a procedure; the program is the one of that index. */
static inline uint32_t meter_row(uint32_t program, uint32_t proc)
{
    return program * METER_PROCEDURES_MAX + proc;
}
/* METER_NONE is not counted. */
void meter_count(struct meter *meter, uint32_t row, bool is_error, uint64_t duration_ns);
/* The same call read or wrote so many bytes of a file. */
void meter_count_bytes(struct meter *meter, uint32_t row, uint32_t bytes);

/* Is this answer one that operators should hear of? STAT_FAIL, and locks that could not be looked
 * at: no resources, a handle or a range that means nothing. DENIED and BLOCKED are answers. */
bool meter_is_error(const struct response *response);

/* For printing: the name of a procedure, NULL where there is a gap; and its row. */
const char *meter_name(const struct meter *meter, uint32_t program, uint32_t proc);
const struct meter_row *meter_at(const struct meter *meter, uint32_t program, uint32_t proc);

#endif
