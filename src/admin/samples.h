/*
 * samples.h -- GET /api/v1/samples: what was going on in the last hour, for charts; and in the last
 * seconds, for the status.
 *
 * A sample is taken every SAMPLES_SECONDS by the server's clock, whether anybody looks or not, and
 * the newest SAMPLES_MAX are kept: memory is fixed. A sample has the counts of its own time, not
 * totals, and how long that time was.
 */
#ifndef ADMIN_SAMPLES_H
#define ADMIN_SAMPLES_H

#include "admin/exchange.h"

#include <uv.h>

enum { SAMPLES_SECONDS = 10, SAMPLES_MAX = 360 };

struct samples;

/* What was done in the last seconds: SAMPLES_SECONDS, or as many as there were. */
struct samples_recent {
    uint64_t window_ns; /* 0: nothing is measured, or not yet */
    uint64_t requests, commits, commit_ns;
};

/* Begins to take them; `admin` is borrowed. NULL: no memory. */
struct samples *samples_new(uv_loop_t *loop, const struct admin *admin);
/* The memory goes when the loop has closed the timer. NULL is legal. */
void samples_free(struct samples *samples);
/* A second is over, as the timer says. While the store is being loaded there is nothing to take. */
void samples_tick(struct samples *samples);
/* Without samples nothing is measured. */
void samples_recent(const struct samples *samples, const struct admin_facts *facts,
                    struct samples_recent *ret);

/* The route. */
void samples_answer(struct exchange *exchange);

#endif
