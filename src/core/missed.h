/*
 * missed.h -- how many clients have something to reclaim and were not reached: operators should
 * look after these, and a status must not search all clients for them.
 *
 * The mark that a client was not reached, and each count of what it has to reclaim, change only
 * here.
 */
#ifndef CORE_MISSED_H
#define CORE_MISSED_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct core;

/* One of the counts of what it has to reclaim, in its `recovery`, goes up or down. */
void missed_more(struct core *core, struct client *client, uint32_t *count);
void missed_less(struct core *core, struct client *client, uint32_t *count);
/* RECORD_CLIENT_CRASHED is set or not. */
void missed_mark(struct core *core, struct client *client, bool is_crashed);

void missed_check(const struct core *core);

#endif
