/*
 * nlm.h -- the Network Lock Manager, program 100021 versions 1, 3 and 4.
 */
#ifndef PROTO_NLM_H
#define PROTO_NLM_H

#include "proto/program.h"

extern const struct program nlm_program;

#endif
