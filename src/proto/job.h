/*
 * job.h -- a call that another thread executes: how the RPC server hands it over and gets it back.
 *
 * The server knows a desk, not who works behind it. A call is submitted with its arguments still in
 * XDR; the desk reads them, copies what it keeps, and either has the result at once or finishes the
 * job later on a thread of its own. Long arguments it may keep without a copy (struct job_memory).
 * Finished jobs are collected on the server's thread, which is the only one that calls a desk.
 *
 *            submit                       next
 *   (none) ---------> JOB_LATER: in flight -----> finished ---+
 *      |                                                       | release
 *      +-----------> JOB_DONE: finished at once --------------+--------> (none)
 *
 * Always true:
 *  (1) Every job that was submitted with JOB_LATER comes out of next exactly once.
 *  (2) A finished job and its bytes stay as they are until it is released.
 *  (3) The bytes of a job's pipe come out of it once, and are the submitter's to take.
 *  (4) Memory that is lent with a call has one owner at any time: the submitter, or, from submit on
 *      if that took it, the desk. The same holds of an inlet.
 *  (5) The memory that is lent with an inlet has room for all of the arguments: what is in the
 *      inlet can be read into its place at any time.
 */
#ifndef PROTO_JOB_H
#define PROTO_JOB_H

#include "codec/rpc_msg.h"
#include "core/message.h"

/* Writable bytes in front of a finished job's body: for a record mark and the reply header. */
#define JOB_HEADROOM 64

enum job_verdict {
    JOB_DONE,    /* *ret is finished: send it, then release it */
    JOB_LATER,   /* *ret is in flight; next returns it when it is finished */
    JOB_GARBAGE, /* the arguments do not decode: GARBAGE_ARGS. There is no job */
};

/*
 * A pipe of the desk's that the end of long arguments lies in: pages of a socket, which go on from
 * there into a file (decision 047). It is opened while the call still arrives, and lent with its
 * memory.
 */
struct job_inlet {
    int read_fd, write_fd; /* neither waits */
    uint32_t len;          /* bytes in it; who moves some says so here */
};

/*
 * What long arguments lie in: one piece from malloc. A desk that keeps it puts another piece of at
 * least that length here, or nothing, while submit runs; what it has kept it reuses or frees as its
 * own. Pieces are exchanged and not given back, so neither side needs to outlive the other.
 */
struct job_memory {
    uint8_t *at; /* NULL: nothing */
    uint32_t len;
    struct job_inlet *inlet; /* which the last bytes of the arguments lie in instead; NULL: all are
                                here. A desk that keeps the memory keeps it, and leaves NULL */
};

struct job_request {
    uint32_t program, procedure;
    uint32_t xid; /* a repeat has the same one */
    const struct peer *from;
    const struct rpc_credential *credential;
    struct bytes args;       /* dies when submit returns, unless the desk took what it lies in. What
                                lies in an inlet is counted, but not there */
    struct job_memory *lent; /* that; NULL: what is kept must be copied */
    uint64_t token;          /* the submitter's own; comes back in the job */
};

/*
 * Part of a result that lies in a pipe instead of memory: pages of a file, which go on from there
 * into a socket without being copied (decision 046). The submitter subtracts from `len` what it
 * takes out, and may release the job before it is 0.
 */
struct job_pipe {
    int fd;
    uint32_t at;  /* they belong behind so many bytes of the body, */
    uint32_t len; /* and so many are left; 0: there is no pipe */
};

struct job {
    uint64_t token;
    uint8_t *body; /* the result behind the reply header; JOB_HEADROOM bytes in front of it are the
                      submitter's to write */
    uint32_t body_len; /* in memory */
    struct job_pipe pipe;
    uint32_t status;   /* what the result says first: nfsstat3 or mountstat3; 0: OK */
    uint32_t data_len; /* file bytes that were read or written */
};

struct job_desk {
    enum job_verdict (*submit)(void *context, const struct job_request *request, struct job **ret);
    /* A finished job, oldest first; NULL: none now. */
    struct job *(*next)(void *context);
    void (*release)(void *context, struct job *job);
    /* Bytes of memory that more calls may take. NULL: there is no limit. */
    uint64_t (*room)(void *context);
    /* An empty inlet; NULL: there is none to be had. NULL: the desk has none at all. */
    struct job_inlet *(*open_inlet)(void *context);
    /* One that submit did not take. */
    void (*close_inlet)(void *context, struct job_inlet *inlet);
    void *context;
};

#endif
