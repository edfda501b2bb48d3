/*
 * replies.h -- what one connection has to write: small replies, collected in a buffer, and large
 * ones of jobs (proto/job.h), which are written from where they lie and then released.
 *
 *   collecting --replies_take--> being written --replies_written--> (gone)
 *
 * While one lot is being written the next one collects. Replies may leave in any order; a lot is
 * the small ones first. It is written part by part: bytes in memory, and behind them those of a
 * pipe.
 */
#ifndef WIRE_REPLIES_H
#define WIRE_REPLIES_H

#include "base/list.h"
#include "rpc/server.h"

#include <uv.h>

enum {
    REPLIES_OUT_MIN = 4 * 1024,   /* small replies collected for one write: at first, */
    REPLIES_OUT_MAX = 32 * 1024,  /* and at most */
    REPLIES_SMALL_MAX = 8 * 1024, /* a job's reply that is copied rather than kept */
    REPLIES_LARGE_PER_WRITE = 15,
};

/* Only replies.c touches the fields. */
struct replies {
    struct rpc_server *server; /* whose jobs they are */
    uint8_t *out, *out_writing;
    uint32_t out_len, out_size, out_writing_len, out_writing_size;
    uint32_t out_written;             /* of out_writing_len */
    struct list large, large_writing; /* of struct large_reply */
    uint32_t large_len;               /* bytes of both */
    uint64_t unwritten_len;           /* of the lot */
    bool is_writing;
};

/* What is to be written next of a lot. */
struct replies_part {
    uv_buf_t bufs[1 + REPLIES_LARGE_PER_WRITE];
    uint32_t count;              /* of these; may be 0 if there is a pipe */
    size_t len;                  /* their bytes */
    const struct job_pipe *pipe; /* what follows them; NULL: nothing does */
    bool is_last;                /* nothing of this lot comes behind the pipe */
};

void replies_init(struct replies *replies, struct rpc_server *server);
/* Releases the jobs. */
void replies_done(struct replies *replies);

/* Room for one small reply behind its record mark, or NULL: what is collected must leave first, or
 * there is no memory. */
uint8_t *replies_reserve(struct replies *replies, uint32_t len);
/* What was written there is a reply of so many bytes. */
void replies_commit(struct replies *replies, uint32_t len);

/* The reply of a job, which is released at once or when it was written. False: no memory; the job
 * is released. */
bool replies_add_job(struct replies *replies, const struct rpc_finished *finished);

bool replies_is_empty(const struct replies *replies);
/* Bytes of large replies, those in pipes among them. */
uint32_t replies_large_len(const struct replies *replies);

/* The next lot is now being written. Not while another one is. False: there is none. */
bool replies_take(struct replies *replies);
/* Its next part. False: all of it was written. */
bool replies_get_part(const struct replies *replies, struct replies_part *ret);
/* So many bytes of it were written, in their order, in memory or in pipes; what is whole is
 * released. */
void replies_advance(struct replies *replies, size_t len);
/* Bytes that are left of it. */
uint64_t replies_unwritten_len(const struct replies *replies);
/* It is over. `keep_buffer`: more small replies are expected soon. */
void replies_written(struct replies *replies, bool keep_buffer);

#endif
