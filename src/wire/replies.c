/*
 * replies.c -- see replies.h.
 *
 * Always true:
 *  (1) A job is on `large` or `large_writing` from replies_add_job until it is released, once.
 *  (2) out_writing and large_writing are empty while nothing is being written.
 */
#include "wire/replies.h"

#include "base/check.h"
#include "codec/record_mark.h"

#include <stdlib.h>

struct large_reply {
    struct list link;
    struct job *job;
    uint8_t *at; /* with its record mark */
    uint32_t len;
};

void replies_init(struct replies *replies, struct rpc_server *server)
{
    *replies = (struct replies){.server = server};
    list_init(&replies->large);
    list_init(&replies->large_writing);
}

static void release_all(struct replies *replies, struct list *list)
{
    for (struct list *at = list->next, *next; at != list; at = next) {
        struct large_reply *reply = LIST_ELEMENT(at, struct large_reply, link);
        next = at->next;
        replies->large_len -= reply->len;
        rpc_server_release_job(replies->server, reply->job);
        free(reply);
    }
    list_init(list);
}

void replies_done(struct replies *replies)
{
    release_all(replies, &replies->large);
    release_all(replies, &replies->large_writing);
    free(replies->out);
    free(replies->out_writing);
    replies->out = replies->out_writing = NULL;
}

/* The buffer has this size at least, or is as large as it may be. False: no memory. Most
 * connections get one reply at a time, and thousands of them may get theirs in one turn. */
static bool grow(struct replies *replies, uint32_t size)
{
    uint32_t wanted = replies->out == NULL ? REPLIES_OUT_MIN : replies->out_size;
    while (wanted < size && wanted < REPLIES_OUT_MAX)
        wanted *= 2;
    if (replies->out == NULL)
        replies->out_len = 0;
    else if (wanted == replies->out_size)
        return true;
    uint8_t *out = realloc(replies->out, wanted);
    if (out == NULL)
        return false;
    replies->out = out;
    replies->out_size = wanted;
    return true;
}

uint8_t *replies_reserve(struct replies *replies, uint32_t len)
{
    uint32_t used = replies->out == NULL ? 0 : replies->out_len;
    if (!grow(replies, used + RECORD_MARK_LEN + len) ||
        replies->out_len + RECORD_MARK_LEN + len > REPLIES_OUT_MAX)
        return NULL;
    return replies->out + replies->out_len + RECORD_MARK_LEN;
}

void replies_commit(struct replies *replies, uint32_t len)
{
    store_be32(replies->out + replies->out_len, RECORD_MARK_LAST | len);
    replies->out_len += RECORD_MARK_LEN + len;
}

/* A small one is copied, if there is room. */
static bool copy(struct replies *replies, const struct rpc_finished *finished)
{
    uint8_t *at =
        finished->len <= REPLIES_SMALL_MAX ? replies_reserve(replies, finished->len) : NULL;
    if (at == NULL)
        return false;
    memcpy(at, finished->message, finished->len);
    replies_commit(replies, finished->len);
    rpc_server_release_job(replies->server, finished->job);
    return true;
}

bool replies_add_job(struct replies *replies, const struct rpc_finished *finished)
{
    if (copy(replies, finished))
        return true;
    struct large_reply *reply = calloc(1, sizeof *reply);
    if (reply == NULL) {
        rpc_server_release_job(replies->server, finished->job);
        return false;
    }
    *reply = (struct large_reply){.job = finished->job,
                                  .at = finished->message - RECORD_MARK_LEN,
                                  .len = finished->len + RECORD_MARK_LEN};
    store_be32(reply->at, RECORD_MARK_LAST | finished->len);
    list_init(&reply->link);
    list_append(&replies->large, &reply->link);
    replies->large_len += reply->len;
    return true;
}

bool replies_is_empty(const struct replies *replies)
{
    return replies->out_len == 0 && list_is_empty(&replies->large) && !replies->is_writing;
}

uint32_t replies_large_len(const struct replies *replies)
{
    return replies->large_len;
}

uint32_t replies_take(struct replies *replies, uv_buf_t ret[static 1 + REPLIES_LARGE_PER_WRITE])
{
    uint32_t count = 0;
    CHECK(!replies->is_writing);
    if (replies->out_len > 0) {
        replies->out_writing = replies->out;
        replies->out_writing_len = replies->out_len;
        replies->out_writing_size = replies->out_size;
        replies->out = NULL;
        replies->out_len = 0;
        ret[count++] = uv_buf_init((char *)replies->out_writing, replies->out_writing_len);
    }
    while (count < 1 + REPLIES_LARGE_PER_WRITE && !list_is_empty(&replies->large)) {
        struct large_reply *reply = LIST_ELEMENT(replies->large.next, struct large_reply, link);
        list_remove(&reply->link);
        list_append(&replies->large_writing, &reply->link);
        ret[count++] = uv_buf_init((char *)reply->at, reply->len);
    }
    replies->is_writing = count > 0;
    return count;
}

void replies_written(struct replies *replies, bool keep_buffer)
{
    CHECK(replies->is_writing);
    replies->is_writing = false;
    release_all(replies, &replies->large_writing);
    if (keep_buffer && replies->out == NULL) {
        replies->out = replies->out_writing;
        replies->out_size = replies->out_writing_size;
        replies->out_len = 0;
    } else {
        free(replies->out_writing);
    }
    replies->out_writing = NULL;
}
