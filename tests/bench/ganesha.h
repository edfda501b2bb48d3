/*
 * ganesha.h -- nfs-ganesha as another lock manager: NFSv3 with NLM over a directory of empty files.
 *
 * It needs rpcbind and an rpc.statd, which are started with it. What it writes outside of the work
 * directory is in /run and /var/lib/nfs, which tests/bench/run has replaced by empty ones.
 */
#ifndef BENCH_GANESHA_H
#define BENCH_GANESHA_H

#include "bench/peers.h"

struct ganesha {
    struct peers_server server, statd;
    const char *handles; /* file below work with the handles of the files */
};

/* Serves `files` files. False: peers_why() says why not. */
bool ganesha_start(struct ganesha *ganesha, uint32_t files);
/* Without mercy: it may wait for its statd for ever. */
void ganesha_stop(struct ganesha *ganesha);

#endif
