/*
 * replies.h -- what one connection has to write: small replies, collected in a buffer, and large
 * ones of jobs (proto/job.h), which are written from where they lie and then released.
 *
 *   collecting --replies_take--> being written --replies_written--> (gone)
 *
 * While one lot is being written the next one collects. Replies may leave in any order; a lot is
 * the small ones first.
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
    struct list large, large_writing; /* of struct large_reply */
    uint32_t large_len;               /* bytes of both */
    bool is_writing;
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
/* Bytes of large replies. */
uint32_t replies_large_len(const struct replies *replies);

/* The next lot, now being written: its buffers and their number. Not while another one is. */
uint32_t replies_take(struct replies *replies, uv_buf_t ret[static 1 + REPLIES_LARGE_PER_WRITE]);
/* It was. `keep_buffer`: more small replies are expected soon. */
void replies_written(struct replies *replies, bool keep_buffer);

#endif
