/*
 * bulk.h -- registers or removes a range of clients, as fast as the server answers.
 *
 * Client number i calls from one of 200 source addresses (127.2.0.1 and on) over TCP, with up to 16
 * calls in flight per connection; the same number always means the same key (D1).
 */
#ifndef INTEGRATION_BULK_H
#define INTEGRATION_BULK_H

#include "harness.h"

enum bulk_kind { BULK_MON, BULK_UNMON };

struct bulk {
    enum bulk_kind kind;
    uint32_t first, count;
    uint32_t name_len; /* both names are padded to this length; 0: as short as they come */
    uint8_t priv;      /* fills the 16 bytes */
    bool stop_at_refusal;
};

struct bulk_result {
    uint32_t accepted, refused; /* refused: STAT_FAIL; removals are always accepted */
    uint32_t wrong;             /* answers of another shape, or with another state */
    uint64_t elapsed_ns;
};

/* False: connections failed, or not all calls were answered within 60 s. */
bool bulk_run(const struct harness_server *server, const struct bulk *bulk,
              struct bulk_result *ret);

double bulk_rate(const struct bulk_result *result);

#endif
