/*
 * digest.c -- see digest.h.
 *
 * The sum of a hash of every record, its kind and its slot: an addition does not mind the order.
 */
#include "store/digest.h"

#include "base/hash.h"

void digest_add(struct digest *digest, enum record_kind kind, uint32_t slot, struct bytes value)
{
    if (kind == RECORD_SERVER) /* a copy has its own, in the format of the day: see digest.h */
        value.len = 0;
    digest->count++;
    digest->sum += hash_bytes((uint64_t)kind << 32 | slot, value);
}
