/*
 * lock_asker.h -- one NLM call at a time about a file of an export, each over a connection or a
 * socket of its own.
 */
#ifndef INTEGRATION_LOCK_ASKER_H
#define INTEGRATION_LOCK_ASKER_H

#include "files_stage.h"
#include "peer/peer_nlm.h"

/* Who asks, and how. */
struct asker {
    const char *address;
    struct peer_link_identity who;
    bool is_udp;
};

enum { LOCK_ASKER_NO_ANSWER = 99 };

/* An exclusive lock of the first ten bytes, of process 7 of web1. */
struct peer_nlm_args lock_asker_about(const struct peer_nfs_fh *fh);
/* The status; LOCK_ASKER_NO_ANSWER: none came. */
uint32_t lock_asker_ask(const struct harness_server *server, const struct asker *asker,
                        uint32_t procedure, struct peer_nlm_args args);
/* The same, and what is expected. */
void lock_asker_expect(const struct harness_server *server, uint32_t wanted, const char *why,
                       const struct asker *asker, uint32_t procedure, struct peer_nlm_args args);

#endif
