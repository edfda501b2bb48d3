/*
 * ganesha.h -- nfs-ganesha as another lock manager: NFSv3 with NLM over a directory of empty files;
 * or as another file server, without locks.
 *
 * It needs rpcbind and an rpc.statd, which are started with it. What it writes outside of the work
 * directory is in /run and /var/lib/nfs, which tests/bench/run has replaced by empty ones.
 */
#ifndef BENCH_GANESHA_H
#define BENCH_GANESHA_H

#include "bench/peers.h"

enum { GANESHA_NFS_PORT = 13049, GANESHA_MOUNT_PORT = 13005 };

struct ganesha {
    struct peers_server server, statd;
    const char *handles; /* file below work with the handles of the files */
};

/* Serves `files` files. False: peers_why() says why not. */
bool ganesha_start(struct ganesha *ganesha, uint32_t files);
/* Serves the files of this directory over NFSv3, and nothing else. */
bool ganesha_start_files(struct ganesha *ganesha, const char *directory);
/* Without mercy: it may wait for its statd for ever. */
void ganesha_stop(struct ganesha *ganesha);

#endif
