/*
 * mount.h -- MOUNT version 3 (program 100005) as data for rpc/server.c.
 */
#ifndef PROTO_MOUNT_H
#define PROTO_MOUNT_H

#include "proto/program.h"

extern const struct program mount_program;

#endif
