/*
 * nlm_tirpc.h -- rpcgen and libtirpc as seen by the vectors of NLM: bytes to bodies and back.
 */
#ifndef VECTORS_NLM_TIRPC_H
#define VECTORS_NLM_TIRPC_H

#include "nlm_body.h"
#include "vector.h"

#include <stdio.h>

/* A body in a version. False: it cannot be said, or does not fit. Names end at a NUL. */
bool nlm_tirpc_put(uint32_t version, enum nlm_shape shape, const struct nlm_body *body,
                   uint8_t *ret_bytes, size_t size, size_t *ret_len);
/* All of the bytes. False: refused. */
bool nlm_tirpc_get(uint32_t version, enum nlm_shape shape, const uint8_t *bytes, size_t len,
                   struct nlm_body *ret);

/* The same for a vector, in each of its versions, which must agree: for the oracle. */
bool nlm_tirpc_encode(const char *file, const struct vector *vector, uint8_t *ret_bytes,
                      size_t size, size_t *ret_len);
bool nlm_tirpc_decode(const char *file, const struct vector *vector, size_t len, FILE *out);

#endif
