/*
 * copy.c -- see copy.h.
 *
 * The store thread fills a block of its own and appends it to the queue when it is full, or at the
 * end of a step; so the mutex is taken once for many records, and never over a call of the store.
 *
 * Always true:
 *  (1) Bytes enter the queue in order, and only until `is_over`.
 *  (2) The queue and the block being filled hold at most QUEUE_MAX bytes and a block.
 *  (3) The line of the end is the last one, and only of a copy that has every record.
 */
#include "store/copy.h"

#include "base/check.h"
#include "base/units.h"
#include "store/lines.h"
#include "store/snapshot.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    BLOCK_LEN = 64 * 1024,
    QUEUE_LOW = 512 * 1024,       /* below it, steps are made, */
    QUEUE_HIGH = 1024 * 1024,     /* up to this */
    QUEUE_MAX = 64 * 1024 * 1024, /* batches may lengthen it so far */
    RECORDS_PER_LOOK = 16,        /* at the clock */
};
#define STEP_NS (40 * UINT64_C(1000)) /* what a commit may have to wait for */

struct block {
    struct block *next;
    uint32_t len, taken;
    char bytes[BLOCK_LEN];
};

struct copy {
    /* The store thread's own. */
    struct snapshot *snapshot; /* NULL: not begun yet, or over */
    struct block *filling;     /* NULL: none */
    struct digest digest;
    const char *broken; /* why it cannot go on; NULL: it can */
    struct store_failure failure;

    pthread_mutex_t mutex; /* guards what follows */
    struct block *first, *last;
    uint64_t queued_len; /* bytes in them that were not taken */
    uint64_t count;      /* records */
    int holders;
    bool is_cancelled; /* nobody wants it any more */
    bool is_over;      /* the worker has no more to say */
    bool is_whole;
    char why[COPY_WHY_MAX]; /* not, if it is over */
    bool is_awaited;        /* found nothing to take */
};

static void lock(struct copy *copy)
{
    CHECK(pthread_mutex_lock(&copy->mutex) == 0);
}

static void unlock(struct copy *copy)
{
    CHECK(pthread_mutex_unlock(&copy->mutex) == 0);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

struct copy *copy_new(void)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    CHECK(pthread_mutex_init(&copy->mutex, NULL) == 0);
    copy->holders = 1;
    return copy;
}

static void free_copy(struct copy *copy)
{
    while (copy->first != NULL) {
        struct block *block = copy->first;
        copy->first = block->next;
        free(block);
    }
    snapshot_free(copy->snapshot);
    free(copy->filling);
    CHECK(pthread_mutex_destroy(&copy->mutex) == 0);
    free(copy);
}

/* Entered with the mutex held. */
static void let_go(struct copy *copy)
{
    bool is_last = --copy->holders == 0;
    unlock(copy);
    if (is_last)
        free_copy(copy);
}

/* ---- the store thread: lines ---- */

static void append(struct copy *copy)
{
    struct block *block = copy->filling;
    if (block == NULL || block->len == 0)
        return;
    copy->filling = NULL;
    lock(copy);
    if (copy->first == NULL)
        copy->first = block;
    else
        copy->last->next = block;
    copy->last = block;
    copy->queued_len += block->len;
    copy->count = copy->digest.count;
    bool is_full = copy->queued_len > QUEUE_MAX;
    unlock(copy);
    if (is_full)
        copy->broken = "too many records changed before the reader had read them; try again with "
                       "a faster reader, for instance into a file on this machine";
}

/* Room for one more line; NULL: no memory. */
static char *reserve_line(struct copy *copy)
{
    if (copy->filling != NULL && BLOCK_LEN - copy->filling->len < LINES_MAX)
        append(copy);
    if (copy->filling == NULL) {
        copy->filling = malloc(sizeof *copy->filling);
        if (copy->filling == NULL) {
            copy->broken = "out of memory";
            return NULL;
        }
        copy->filling->next = NULL;
        copy->filling->len = copy->filling->taken = 0;
    }
    return copy->filling->bytes + copy->filling->len;
}

enum { BROKEN = 1 }; /* no more records: `broken` says why */

static int put_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct copy *copy = context;
    char *line = reserve_line(copy);
    if (line == NULL)
        return BROKEN;
    copy->filling->len += lines_put_record(line, kind, slot, value);
    digest_add(&copy->digest, kind, slot, value);
    if (value.len > RECORD_VALUE_MAX) /* of no version; the core would have removed it */
        copy->broken = "a record is damaged; restart the server, which reports and removes it";
    return copy->broken == NULL ? 0 : BROKEN;
}

static bool put_end(struct copy *copy)
{
    char *line = reserve_line(copy);
    if (line != NULL)
        copy->filling->len += lines_put_end(line, &copy->digest);
    return line != NULL;
}

static void put_error(struct copy *copy, const char *why)
{
    char *line = reserve_line(copy);
    if (line != NULL)
        copy->filling->len += lines_put_error(line, why);
}

/* ---- the store thread: steps ---- */

void copy_hold(struct copy *copy)
{
    lock(copy);
    copy->holders++;
    unlock(copy);
}

static void finish(struct copy *copy, const char *why)
{
    snapshot_free(copy->snapshot);
    copy->snapshot = NULL;
    bool is_whole = why == NULL && put_end(copy);
    if (why != NULL)
        put_error(copy, why);
    append(copy);
    lock(copy);
    copy->is_over = true;
    copy->is_whole = is_whole;
    (void)snprintf(copy->why, sizeof copy->why, "%s", why != NULL ? why : "out of memory");
    unlock(copy);
}

/* Is there room for more, and somebody who wants it? */
static bool may_go_on(struct copy *copy, bool *ret_cancelled)
{
    lock(copy);
    *ret_cancelled = copy->is_cancelled;
    bool has_room = copy->queued_len < QUEUE_HIGH;
    unlock(copy);
    return has_room && !*ret_cancelled;
}

bool copy_step(struct copy *copy, struct store *store)
{
    uint64_t end_ns = clock_ns() + STEP_NS;
    bool is_cancelled = false;
    if (copy->snapshot == NULL && (copy->snapshot = snapshot_new(store, &copy->failure)) == NULL)
        copy->broken = copy->failure.text;
    while (copy->broken == NULL && !snapshot_is_over(copy->snapshot) &&
           may_go_on(copy, &is_cancelled)) {
        if (snapshot_read(copy->snapshot, store, RECORDS_PER_LOOK, put_record, copy,
                          &copy->failure) < 0)
            copy->broken = copy->failure.text;
        if (clock_ns() >= end_ns)
            break;
    }
    if (is_cancelled || copy->broken != NULL || snapshot_is_over(copy->snapshot)) {
        finish(copy, is_cancelled ? "cancelled" : copy->broken);
        return true;
    }
    append(copy);
    return false;
}

void copy_keep(struct copy *copy, struct store *store, const struct store_batch *batch)
{
    if (copy->snapshot == NULL || copy->broken != NULL)
        return;
    if (snapshot_keep(copy->snapshot, store, batch, put_record, copy, &copy->failure) < 0)
        copy->broken = copy->failure.text;
}

/* With the mutex held. */
static bool take_news(struct copy *copy)
{
    bool has_news = copy->is_awaited && (copy->first != NULL || copy->is_over);
    if (has_news)
        copy->is_awaited = false;
    return has_news;
}

bool copy_has_news(struct copy *copy)
{
    lock(copy);
    bool has_news = take_news(copy);
    unlock(copy);
    return has_news;
}

bool copy_leave(struct copy *copy, const char *why)
{
    lock(copy);
    bool is_over = copy->is_over;
    unlock(copy);
    if (!is_over)
        finish(copy, why);
    lock(copy);
    bool has_news = take_news(copy);
    let_go(copy);
    return has_news;
}

/* ---- the server thread ---- */

ssize_t copy_take(struct copy *copy, char *buffer, size_t max)
{
    size_t len = 0;
    lock(copy);
    while (len < max && copy->first != NULL) {
        struct block *block = copy->first;
        size_t left = block->len - block->taken;
        size_t count = left < max - len ? left : max - len;
        memcpy(buffer + len, block->bytes + block->taken, count);
        block->taken += (uint32_t)count;
        len += count;
        if (count < left)
            break;
        copy->first = block->next;
        if (copy->first == NULL)
            copy->last = NULL;
        free(block);
    }
    copy->queued_len -= len;
    copy->is_awaited = len == 0 && !copy->is_over;
    ssize_t result = len > 0          ? (ssize_t)len
                     : !copy->is_over ? 0
                     : copy->is_whole ? COPY_WHOLE
                                      : COPY_CUT;
    unlock(copy);
    return result;
}

bool copy_is_wanting(struct copy *copy)
{
    lock(copy);
    bool is_wanting = !copy->is_over && (copy->is_cancelled || copy->queued_len < QUEUE_LOW);
    unlock(copy);
    return is_wanting;
}

void copy_get_why(struct copy *copy, char ret[static COPY_WHY_MAX])
{
    lock(copy);
    memcpy(ret, copy->why, COPY_WHY_MAX);
    unlock(copy);
}

uint64_t copy_count(struct copy *copy)
{
    lock(copy);
    uint64_t count = copy->count;
    unlock(copy);
    return count;
}

bool copy_cancel(struct copy *copy)
{
    lock(copy);
    copy->is_cancelled = true;
    bool is_at_work = !copy->is_over && copy->holders > 1;
    let_go(copy);
    return is_at_work;
}
