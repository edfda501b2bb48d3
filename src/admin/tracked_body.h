/*
 * tracked_body.h -- what a request about a tracked client says: in its path, its parameters, and
 * its body, a JSON object.
 */
#ifndef ADMIN_TRACKED_BODY_H
#define ADMIN_TRACKED_BODY_H

#include "admin/exchange.h"

#define TRACKED_WINDOW_MAX_S 86400 /* a day, like --recovery-window */

/* What the views of a struct tracking point into. */
struct tracked_words {
    uint8_t key[RECORD_KEY_MAX], bytes[RECORD_BYTES_MAX];
    char name[TRACKING_NAME_MAX + 1];
};

/* Fills in *ret, whose kind is set, with views of the request and of *words. False: already
 * responded. */
bool tracked_body_read(struct exchange *exchange, struct tracked_words *words,
                       struct tracking *ret);
/* The protocol of the path only, or of a parameter. False: already responded. */
bool tracked_body_read_protocol(struct exchange *exchange, struct bytes word, struct bytes *ret);

#endif
