/*
 * meter.c -- see meter.h.
 */
#include "rpc/meter.h"

#include "base/check.h"

#include <stdlib.h>

struct meter *meter_new(const struct program *const *programs, uint32_t program_count)
{
    struct meter *meter = calloc(1, sizeof *meter);
    uint32_t count = program_count * METER_PROCEDURES_MAX;
    if (meter == NULL)
        return NULL;
    *meter = (struct meter){.programs = programs,
                            .program_count = program_count,
                            .rows = calloc(count > 0 ? count : 1, sizeof *meter->rows)};
    if (meter->rows == NULL) {
        free(meter);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        histogram_init(&meter->rows[i].durations, &histogram_durations);
    for (uint32_t i = 0; i < program_count; i++)
        for (uint32_t j = 0; j < programs[i]->version_count; j++)
            CHECK(programs[i]->versions[j].procedure_count <= METER_PROCEDURES_MAX);
    return meter;
}

void meter_free(struct meter *meter)
{
    if (meter == NULL)
        return;
    free(meter->rows);
    free(meter);
}

void meter_count(struct meter *meter, uint32_t row, bool is_error, uint64_t duration_ns)
{
    if (row == METER_NONE)
        return;
    struct meter_row *at = &meter->rows[row];
    at->succeeded += !is_error;
    at->failed += is_error;
    histogram_add(&at->durations, duration_ns);
}

void meter_count_bytes(struct meter *meter, uint32_t row, uint32_t bytes)
{
    if (row != METER_NONE)
        meter->rows[row].bytes += bytes;
}

bool meter_is_error(const struct response *response)
{
    return response->refused || response->status == LOCK_NO_RESOURCES ||
           response->status == LOCK_STALE_HANDLE || response->status == LOCK_TOO_BIG ||
           response->status == LOCK_READ_ONLY;
}

const char *meter_name(const struct meter *meter, uint32_t program, uint32_t proc)
{
    const struct program *at = meter->programs[program];
    for (uint32_t i = 0; i < at->version_count; i++)
        if (proc < at->versions[i].procedure_count && at->versions[i].procedures[proc].name != NULL)
            return at->versions[i].procedures[proc].name;
    return NULL;
}

const struct meter_row *meter_at(const struct meter *meter, uint32_t program, uint32_t proc)
{
    CHECK(program < meter->program_count && proc < METER_PROCEDURES_MAX);
    return &meter->rows[meter_row(program, proc)];
}
