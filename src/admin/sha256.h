/*
 * sha256.h -- SHA-256 of bytes in memory (FIPS 180-4).
 *
 * A browser runs the web page's own script and no other because the page's headers carry the hash
 * of that script. It is computed when holdfast is built (embed.c), never while it runs.
 */
#ifndef ADMIN_SHA256_H
#define ADMIN_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32

void sha256(const void *data, size_t len, uint8_t ret[static SHA256_LEN]);

#endif
