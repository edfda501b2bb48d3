/*
 * files_stage.h -- a server that exports directories of this test, and clients of it.
 *
 * Everything happens in a network namespace of its own, so the port is always the same: a client
 * finds the server there again after a kill, as a hard mount does. It needs root, which `--export`
 * needs as well; without, the test is skipped.
 */
#ifndef INTEGRATION_FILES_STAGE_H
#define INTEGRATION_FILES_STAGE_H

#include "harness.h"
#include "peer/peer_mount.h"

enum { FILES_STAGE_PORT = 2049, FILES_STAGE_EXPORTS_MAX = 6 };

struct files_stage {
    struct harness_server server;
    char lines[FILES_STAGE_EXPORTS_MAX][512];
    uint32_t export_count, option_count;
    uint32_t starts;
};

void files_stage_init(struct files_stage *stage, const char *name);
/* One more option of the server. */
void files_stage_option(struct files_stage *stage, const char *option, const char *value);
/* The server shows its metrics; before its start. */
void files_stage_metrics(struct files_stage *stage);
/* One of them, without labels; the check fails when there is none. */
uint64_t files_stage_metric(const char *name);
/* A new directory, exported with these clients and options: "*(rw)". Its path. */
const char *files_stage_export(struct files_stage *stage, const char *name, const char *clients);
bool files_stage_start(struct files_stage *stage);
/* kill -9, and a new start. */
bool files_stage_crash(struct files_stage *stage);
/* Kills the server and removes everything; the exit status. */
int files_stage_finish(struct files_stage *stage);

/* A client at 127.0.0.1 that repeats what is not answered. Ends the test when memory is short. */
void files_stage_link(struct peer_link *link, uint32_t uid, uint32_t gid);
/* The same at another loopback address. */
void files_stage_link_from(struct peer_link *link, const char *address);
/* The handle of a directory; the check fails when it is refused. */
struct peer_nfs_fh files_stage_mount(struct peer_link *link, const char *path);

/*
 * One call. The result stays until the third call after it; what points into the answer until the
 * next one of that link. JUKEBOX is tried again, as clients do.
 */
#define FILES_ASK(link, procedure, ...)                                                            \
    files_stage_ask(link, procedure, &(struct peer_nfs_args){__VA_ARGS__})
const struct peer_nfs_res *files_stage_ask(struct peer_link *link, uint32_t procedure,
                                           const struct peer_nfs_args *args);
/* What is expected of one call, and why. */
#define FILES_EXPECT(wanted, why, link, procedure, ...)                                            \
    files_stage_expect(wanted, why, procedure, FILES_ASK(link, procedure, __VA_ARGS__))
const struct peer_nfs_res *files_stage_expect(uint32_t wanted, const char *why, uint32_t procedure,
                                              const struct peer_nfs_res *res);

/* Short words for what tests say most. */
struct peer_nfs_fh files_stage_lookup(struct peer_link *link, struct peer_nfs_fh directory,
                                      const char *name);
struct peer_nfs_fh files_stage_create(struct peer_link *link, struct peer_nfs_fh directory,
                                      const char *name, uint32_t mode);
/* Bytes of a file in the exported directory, written by this process. */
void files_stage_put_local(const char *directory, const char *name, const char *text,
                           uint32_t mode);

/* How many descriptors of the server are ends of pipes. */
uint32_t files_stage_pipe_ends(const struct files_stage *stage);
/* Runs a program of the system, silently; its exit status, or -1. */
int files_stage_run(const char *const *words);

#endif
