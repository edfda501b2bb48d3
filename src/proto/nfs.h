/*
 * nfs.h -- NFS version 3 (program 100003) as data for rpc/server.c.
 */
#ifndef PROTO_NFS_H
#define PROTO_NFS_H

#include "proto/program.h"

extern const struct program nfs_program;

#endif
