/*
 * nlm_ours.h -- src/codec as seen by the vectors of NLM: bytes to bodies and bodies to bytes.
 */
#ifndef VECTORS_NLM_OURS_H
#define VECTORS_NLM_OURS_H

#include "codec/xdr.h"
#include "nlm_body.h"

/* Any shape but shareres. False: refused. The holder of a testres is left out: nothing of ours
 * reads it. */
bool nlm_ours_get(uint32_t version, enum nlm_shape shape, struct bytes data, struct nlm_body *ret);

/* True for the shapes that we write: results, and the testargs of GRANTED. */
bool nlm_ours_writes(enum nlm_shape shape);
void nlm_ours_put(uint32_t version, enum nlm_shape shape, struct xdr_out *out,
                  const struct nlm_body *body);

#endif
