/*
 * digest.h -- one number for all records of a store, in whatever order they come.
 *
 * Two stores with the same digest hold the same records in the same slots. It finds accidents, not
 * forgeries: its key is no secret.
 *
 * Of the server record it only says that there is one. A copy writes its own, with its own numbers
 * of batches and starts and in the newest format; the record's checksum guards the rest of it. All
 * other records count as the bytes that they are, so neither a newer command nor a raise of
 * RECORD_FORMAT changes the digest of what was exported before.
 */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include "store/record.h"

struct digest {
    uint64_t count, sum;
};

void digest_add(struct digest *digest, enum record_kind kind, uint32_t slot, struct bytes value);

#endif
