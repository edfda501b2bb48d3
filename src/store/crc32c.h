/*
 * crc32c.h -- the checksum of stored records: CRC-32C (Castagnoli), as in iSCSI and ext4.
 *
 * It finds every damage of up to 32 bits in a row and every single or double bit flip in a record,
 * which a sum does not. It does not protect against deliberate forgery.
 */
#ifndef STORE_CRC32C_H
#define STORE_CRC32C_H

#include "base/bytes.h"

/* Continues from `crc`, which is 0 at the start: pieces give the same result as the whole. */
uint32_t crc32c(uint32_t crc, struct bytes data);
/* The same on a processor that has no instruction for it. */
uint32_t crc32c_by_tables(uint32_t crc, struct bytes data);

#endif
