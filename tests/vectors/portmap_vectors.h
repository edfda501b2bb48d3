/*
 * portmap_vectors.h -- the vectors of program 100000: portmap_pmap_<procedure>.txt of version 2,
 * portmap_rpcb_<procedure>.txt of versions 3 and 4, which have the same bytes.
 */
#ifndef VECTORS_PORTMAP_VECTORS_H
#define VECTORS_PORTMAP_VECTORS_H

#include "vector.h"

bool portmap_vectors_owns(const char *file);
/* On false it has printed why. */
bool portmap_vectors_check(const char *file, const struct vector *vector);
/* True when every procedure of every version had vectors of its arguments and of its result. */
bool portmap_vectors_are_complete(void);

#endif
