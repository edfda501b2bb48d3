/*
 * nlm_vectors.h -- the vectors of program 100021: nlm_<procedure>.txt, for the versions that each
 * names (nlm_body.h).
 */
#ifndef VECTORS_NLM_VECTORS_H
#define VECTORS_NLM_VECTORS_H

#include "vector.h"

bool nlm_vectors_owns(const char *file);
/* On false it has printed why. */
bool nlm_vectors_check(const char *file, const struct vector *vector);
/* True when every procedure of every version had vectors of its arguments and of its result. */
bool nlm_vectors_are_complete(void);

#endif
