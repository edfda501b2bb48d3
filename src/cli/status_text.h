/*
 * status_text.h -- the server's status in words, for people.
 *
 * What needs attention comes first, then who waits for whom; what always looks the same comes last.
 */
#ifndef CLI_STATUS_TEXT_H
#define CLI_STATUS_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What is shown; name_max 0: names in full. */
struct status_shape {
    bool is_watched; /* with a clock, and bars */
    bool is_brief;   /* without what stays the same for long */
    size_t name_max, blocker_max, waiting_max, silent_max, conflict_max;
};

void status_text_print(FILE *out, const json_t *status, const struct status_shape *shape);

/* "14:03:22", now, where this command runs. */
void status_text_clock(FILE *out);

#endif
