/*
 * caller.h -- calls the file service as a client does, without a network: arguments in XDR over
 * its desk, results as the service encoded them.
 */
#ifndef UNIT_FILE_CALLER_H
#define UNIT_FILE_CALLER_H

#include "codec/mount_xdr.h"
#include "codec/nfs_args.h"
#include "codec/nfs_results.h"
#include "file/file.h"
#include "file/system.h"
#include "proto/job.h"

struct caller {
    char directory[64]; /* what is exported; its own temporary directory */
    struct file_service *service;
    struct nfs_fh root;
    struct file_options options;
    struct rpc_credential credential;
    struct peer peer;
    uint32_t xid;             /* of all calls, until it is changed */
    char store[64];           /* the directory of its intents; "": it has none */
    struct nfs_result result; /* of the last call */
    uint8_t *payload;         /* the same; owned */
    uint32_t payload_len;
};

/* A new directory, mode 0777, exported with these options ("rw,sync") to everybody. Skips the test
 * that runs when the process may not serve files. */
void caller_start(struct caller *caller, const char *export_options);
/* From now on it keeps intents: a new ring, and a restart. */
void caller_keep_intents(struct caller *caller, const char *export_options);
/* The same directory, with the same key and the next epoch. */
void caller_restart(struct caller *caller, const char *export_options);
/* The directory and everything in it goes. */
void caller_stop(struct caller *caller);
void caller_be(struct caller *caller, uint32_t uid, uint32_t gid);

/* Executes it; the status. The result stays until the next call. */
enum nfs_stat caller_call(struct caller *caller, enum nfs_procedure procedure,
                          const struct nfs_args *args);
/* Hands it over; NULL: it is under way. */
struct job *caller_submit(struct caller *caller, enum nfs_procedure procedure,
                          const struct nfs_args *args);
/* The same with arguments in this memory, which the service may keep (proto/job.h). */
struct job *caller_submit_lent(struct caller *caller, enum nfs_procedure procedure,
                               const struct nfs_args *args, struct job_memory *lent);
/* The next that is finished; waits. */
struct job *caller_wait(struct caller *caller);
/* Reads the result of a job, and releases it. */
enum nfs_stat caller_take(struct caller *caller, enum nfs_procedure procedure, struct job *job);

enum mount_stat caller_mount(struct caller *caller, const char *path, struct nfs_fh *ret);

/* Other exports: one line. False: refused, and nothing changed; the sentence is in `why`. */
bool caller_reload(struct caller *caller, const char *line, struct text *why);

/* Often used. */
struct bytes caller_bytes(const struct nfs_fh *fh);
enum nfs_stat caller_lookup(struct caller *caller, const struct nfs_fh *directory, const char *name,
                            struct nfs_fh *ret);
enum nfs_stat caller_create(struct caller *caller, const struct nfs_fh *directory, const char *name,
                            uint32_t mode, struct nfs_fh *ret);
enum nfs_stat caller_mkdir(struct caller *caller, const struct nfs_fh *directory, const char *name,
                           uint32_t mode, struct nfs_fh *ret);
enum nfs_stat caller_write(struct caller *caller, const struct nfs_fh *file, uint64_t offset,
                           const char *data, enum nfs_stable stable);
enum nfs_stat caller_read(struct caller *caller, const struct nfs_fh *file, uint64_t offset,
                          uint32_t count);
enum nfs_stat caller_getattr(struct caller *caller, const struct nfs_fh *file);
/* A path below the exported directory; good until the next one. */
const char *caller_path(const struct caller *caller, const char *name);

#endif
