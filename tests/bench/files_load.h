/*
 * files_load.h -- one measurement of a file server: load of files.c, and the server's CPU time.
 */
#ifndef BENCH_FILES_LOAD_H
#define BENCH_FILES_LOAD_H

#include "bench/peers.h"

enum { FILES_LOAD_PORT = 13050 }; /* of holdfastd, NFS and MOUNT */

/* A server, and where its tree is. */
struct files_load_target {
    const struct process *process;
    uint16_t nfs_port, mount_port;
    const char *directory; /* as the server exports it */
    const char *handles;   /* file below work */
};

struct files_load {
    const char *kind; /* of files.c */
    uint32_t connections, in_flight, size, milliseconds;
};

/* holdfastd with this directory exported with these options ("rw,async"), and --local-locks if it
 * is not NULL. */
bool files_load_start_server(struct peers_server *server, const char *directory,
                             const char *options, const char *local_locks);
/* Makes the tree, with files of that size. */
bool files_load_prepare(const struct files_load_target *target, uint32_t connections,
                        uint32_t in_flight, uint32_t size);
/* False: answers were wrong or missing. */
bool files_load_measure(const struct files_load_target *target, const struct files_load *load,
                        struct report_sample *ret);
/* The two halves of it, for what happens meanwhile. */
bool files_load_begin(const struct files_load_target *target, const struct files_load *load,
                      struct process *ret);
bool files_load_end(struct process *process, struct report_sample *ret, uint64_t *ret_answered);

/* So many empty files, f0 and so on, and their handles in this file below work: what is locked must
 * be there, because a server that serves files as well looks. */
bool files_load_make_lockable(const struct files_load_target *target, uint32_t count,
                              const char *handles);

/* Runs tree.c to its end; its last line into `ret`. `words` has NULL at the end. */
bool files_load_run_tree(const char *const words[], char *ret, size_t size);

#endif
