/*
 * nsm.h -- the Network Status Monitor, program 100024 version 1.
 */
#ifndef PROTO_NSM_H
#define PROTO_NSM_H

#include "proto/program.h"

extern const struct program nsm_program;

#endif
