/*
 * replies.c -- see replies.h.
 *
 * Always true:
 *  (1) A job is on `large` or `large_writing` from replies_add_job until it is released, once.
 *  (2) out_writing and large_writing are empty while nothing is being written.
 */
#include "wire/replies.h"

#include "base/check.h"
#include "base/minmax.h"
#include "codec/record_mark.h"

#include <stdlib.h>

struct large_reply {
    struct list link;
    struct job *job;
    uint8_t *at; /* with its record mark */
    uint32_t len, written;
    uint32_t before_pipe; /* of `len` */
    uint32_t whole_len;   /* with what is in the pipe */
};

void replies_init(struct replies *replies, struct rpc_server *server)
{
    *replies = (struct replies){.server = server};
    list_init(&replies->large);
    list_init(&replies->large_writing);
}

/* It is on no list any more. */
static void release(struct replies *replies, struct large_reply *reply)
{
    replies->large_len -= reply->whole_len;
    rpc_server_release_job(replies->server, reply->job);
    free(reply);
}

static void release_all(struct replies *replies, struct list *list)
{
    for (struct list *at = list->next, *next; at != list; at = next) {
        next = at->next;
        release(replies, LIST_ELEMENT(at, struct large_reply, link));
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
    bool is_small = finished->len <= REPLIES_SMALL_MAX && finished->job->pipe.len == 0;
    uint8_t *at = is_small ? replies_reserve(replies, finished->len) : NULL;
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
    uint32_t record_len = finished->len + finished->job->pipe.len;
    *reply = (struct large_reply){.job = finished->job,
                                  .at = finished->message - RECORD_MARK_LEN,
                                  .len = finished->len + RECORD_MARK_LEN,
                                  .before_pipe = finished->before_pipe + RECORD_MARK_LEN,
                                  .whole_len = record_len + RECORD_MARK_LEN};
    store_be32(reply->at, RECORD_MARK_LAST | record_len);
    list_init(&reply->link);
    list_append(&replies->large, &reply->link);
    replies->large_len += reply->whole_len;
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

bool replies_take(struct replies *replies)
{
    CHECK(!replies->is_writing);
    replies->unwritten_len = replies->out_len;
    if (replies->out_len > 0) {
        replies->out_writing = replies->out;
        replies->out_writing_len = replies->out_len;
        replies->out_writing_size = replies->out_size;
        replies->out_written = 0;
        replies->out = NULL;
        replies->out_len = 0;
    }
    for (uint32_t i = 0; i < REPLIES_LARGE_PER_WRITE && !list_is_empty(&replies->large); i++) {
        struct large_reply *reply = LIST_ELEMENT(replies->large.next, struct large_reply, link);
        list_remove(&reply->link);
        list_append(&replies->large_writing, &reply->link);
        replies->unwritten_len += reply->whole_len;
    }
    return replies->is_writing = replies->unwritten_len > 0;
}

static void add_bytes(struct replies_part *part, uint8_t *at, uint32_t len)
{
    if (len == 0)
        return;
    part->bufs[part->count++] = uv_buf_init((char *)at, len);
    part->len += len;
}

/* Where what is next in memory ends: at the pipe, as long as that has something. */
static uint32_t memory_end(const struct large_reply *reply)
{
    return reply->job->pipe.len > 0 ? reply->before_pipe : reply->len;
}

bool replies_get_part(const struct replies *replies, struct replies_part *ret)
{
    const struct list *head = &replies->large_writing;
    ret->count = 0;
    ret->len = 0;
    ret->pipe = NULL;
    ret->is_last = true;
    if (replies->out_writing != NULL)
        add_bytes(ret, replies->out_writing + replies->out_written,
                  replies->out_writing_len - replies->out_written);
    for (const struct list *at = head->next; at != head && ret->pipe == NULL; at = at->next) {
        const struct large_reply *reply = LIST_ELEMENT(at, struct large_reply, link);
        add_bytes(ret, reply->at + reply->written, memory_end(reply) - reply->written);
        if (reply->job->pipe.len > 0) {
            ret->pipe = &reply->job->pipe;
            ret->is_last = at->next == head && reply->before_pipe == reply->len;
        }
    }
    return ret->count > 0 || ret->pipe != NULL;
}

/* As much of it as there is, of so many bytes; returns how many those are. */
static size_t advance_in(struct large_reply *reply, size_t len)
{
    struct job_pipe *pipe = &reply->job->pipe;
    size_t rest = len;
    if (pipe->len > 0) {
        uint32_t head = (uint32_t)min_u64(rest, reply->before_pipe - reply->written);
        reply->written += head;
        rest -= head;
        uint32_t piped = (uint32_t)min_u64(rest, pipe->len);
        pipe->len -= piped;
        rest -= piped;
    }
    if (pipe->len == 0) {
        uint32_t tail = (uint32_t)min_u64(rest, reply->len - reply->written);
        reply->written += tail;
        rest -= tail;
    }
    return len - rest;
}

void replies_advance(struct replies *replies, size_t len)
{
    CHECK(len <= replies->unwritten_len);
    replies->unwritten_len -= len;
    if (replies->out_writing != NULL) {
        uint32_t small = (uint32_t)min_u64(len, replies->out_writing_len - replies->out_written);
        replies->out_written += small;
        len -= small;
    }
    for (struct list *at = replies->large_writing.next, *next; len > 0; at = next) {
        struct large_reply *reply = LIST_ELEMENT(at, struct large_reply, link);
        next = at->next;
        len -= advance_in(reply, len);
        if (reply->written == reply->len && reply->job->pipe.len == 0) {
            list_remove(&reply->link);
            release(replies, reply);
        }
    }
}

uint64_t replies_unwritten_len(const struct replies *replies)
{
    return replies->unwritten_len;
}

void replies_written(struct replies *replies, bool keep_buffer)
{
    CHECK(replies->is_writing);
    replies->is_writing = false;
    replies->unwritten_len = 0;
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
