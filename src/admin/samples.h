/*
 * samples.h -- GET /api/v1/samples: what was going on in the last hour, for charts.
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

/* Begins to take them; `admin` is borrowed. NULL: no memory. */
struct samples *samples_new(uv_loop_t *loop, const struct admin *admin);
/* The memory goes when the loop has closed the timer. NULL is legal. */
void samples_free(struct samples *samples);
/* Takes one, as the timer does. While the store is being loaded there is nothing to take. */
void samples_take(struct samples *samples);

/* The route. */
void samples_answer(struct exchange *exchange);

#endif
