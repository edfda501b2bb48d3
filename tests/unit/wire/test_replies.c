/*
 * test_replies.c -- what one connection writes: small replies in one buffer, large ones from where
 * they lie, each behind its record mark, once; and every job released, whatever becomes of it.
 *
 * rpc_server_release_job is this file's: it counts.
 */
#include "wire/replies.h"

#include "codec/record_mark.h"
#include "proto/job.h"
#include "unit/test.h"

enum { JOBS_MAX = 40, LARGE = 64 * 1024 };

static struct replies replies;
static struct job jobs[JOBS_MAX];
static uint8_t *bodies[JOBS_MAX];
static uint32_t released[JOBS_MAX], job_count;
static struct replies_part part;
static const uv_buf_t *const buffers = part.bufs;

void rpc_server_release_job(struct rpc_server *server, struct job *job)
{
    (void)server;
    released[job - jobs]++;
}

/* The next lot: how many buffers its first part has. */
static uint32_t take(void)
{
    return replies_take(&replies) && replies_get_part(&replies, &part) ? part.count : 0;
}

/* A job with a reply of so many bytes, all of them its number. */
static struct rpc_finished job_of(uint32_t len)
{
    uint32_t number = job_count++;
    bodies[number] = malloc(JOB_HEADROOM + len);
    memset(bodies[number], 0xee, JOB_HEADROOM);
    memset(bodies[number] + JOB_HEADROOM, (int)number, len);
    jobs[number] = (struct job){0};
    return (struct rpc_finished){
        .message = bodies[number] + JOB_HEADROOM, .len = len, .job = &jobs[number]};
}

static uint32_t released_count(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job_count; i++) {
        assert_true(released[i] <= 1);
        count += released[i];
    }
    return count;
}

/* A buffer is one record with these bytes. */
static void assert_record(const uv_buf_t *buffer, uint32_t len, uint8_t byte)
{
    const uint8_t *at = (const uint8_t *)buffer->base;
    assert_int_equal(buffer->len, RECORD_MARK_LEN + len);
    assert_int_equal(load_be32(at), RECORD_MARK_LAST | len);
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal(at[RECORD_MARK_LEN + i], byte);
}

TEST_FIXTURE(start)
{
    memset(released, 0, sizeof released);
    job_count = 0;
    replies_init(&replies, NULL);
}

TEST_FIXTURE(stop)
{
    replies_done(&replies);
    assert_int_equal(released_count(), job_count);
    for (uint32_t i = 0; i < job_count; i++)
        free(bodies[i]);
}

TEST(test_replies__nothing_is_nothing)
{
    assert_true(replies_is_empty(&replies));
    assert_int_equal(take(), 0);
}

TEST(test_replies__small_ones_share_a_buffer)
{
    struct rpc_finished first = job_of(100), second = job_of(REPLIES_SMALL_MAX);
    assert_true(replies_add_job(&replies, &first));
    assert_true(replies_add_job(&replies, &second));
    assert_int_equal(released_count(), 2); /* they were copied */
    assert_int_equal(replies_large_len(&replies), 0);
    uint8_t *at = replies_reserve(&replies, 3);
    memset(at, 9, 3);
    replies_commit(&replies, 3);
    assert_int_equal(take(), 1);
    uv_buf_t one = uv_buf_init(buffers[0].base, RECORD_MARK_LEN + 100);
    assert_record(&one, 100, 0);
    one = uv_buf_init(one.base + one.len, RECORD_MARK_LEN + REPLIES_SMALL_MAX);
    assert_record(&one, REPLIES_SMALL_MAX, 1);
    one = uv_buf_init(one.base + one.len, RECORD_MARK_LEN + 3);
    assert_record(&one, 3, 9);
    assert_int_equal(buffers[0].len, 3 * RECORD_MARK_LEN + 100 + REPLIES_SMALL_MAX + 3);
    replies_written(&replies, true);
    assert_true(replies_is_empty(&replies));
}

TEST(test_replies__a_large_one_is_written_from_where_it_lies)
{
    struct rpc_finished large = job_of(LARGE);
    assert_true(replies_add_job(&replies, &large));
    assert_int_equal(replies_large_len(&replies), LARGE + RECORD_MARK_LEN);
    assert_int_equal(released_count(), 0);
    assert_int_equal(take(), 1);
    assert_ptr_equal(buffers[0].base, bodies[0] + JOB_HEADROOM - RECORD_MARK_LEN);
    assert_record(&buffers[0], LARGE, 0);
    assert_int_equal(bodies[0][JOB_HEADROOM - RECORD_MARK_LEN - 1], 0xee); /* the mark alone */
    assert_int_equal(released_count(), 0); /* the kernel still reads it */
    assert_false(replies_is_empty(&replies));
    replies_written(&replies, false);
    assert_int_equal(released_count(), 1);
    assert_int_equal(replies_large_len(&replies), 0);
    assert_true(replies_is_empty(&replies));
}

TEST(test_replies__the_first_byte_more_than_small_is_large)
{
    struct rpc_finished large = job_of(REPLIES_SMALL_MAX + 1);
    assert_true(replies_add_job(&replies, &large));
    assert_int_equal(replies_large_len(&replies), REPLIES_SMALL_MAX + 1 + RECORD_MARK_LEN);
}

TEST(test_replies__a_full_buffer_makes_small_ones_wait_their_turn_as_large)
{
    uint32_t copied = 0;
    while (replies_large_len(&replies) == 0) {
        struct rpc_finished small = job_of(REPLIES_SMALL_MAX);
        assert_true(replies_add_job(&replies, &small));
        copied++;
    }
    assert_int_equal(copied - 1, REPLIES_OUT_MAX / (REPLIES_SMALL_MAX + RECORD_MARK_LEN));
    assert_null(replies_reserve(&replies, REPLIES_SMALL_MAX)); /* what is collected leaves first */
    assert_int_equal(take(), 2);
    assert_record(&buffers[1], REPLIES_SMALL_MAX, (uint8_t)(copied - 1));
    replies_written(&replies, true);
}

TEST(test_replies__more_than_one_write_takes_leave_in_order)
{
    for (uint32_t i = 0; i < REPLIES_LARGE_PER_WRITE + 3; i++) {
        struct rpc_finished large = job_of(LARGE);
        assert_true(replies_add_job(&replies, &large));
    }
    uint32_t first = take();
    assert_int_equal(first, REPLIES_LARGE_PER_WRITE); /* there is no small one */
    for (uint32_t i = 0; i < first; i++)
        assert_record(&buffers[i], LARGE, (uint8_t)i);
    struct rpc_finished late = job_of(LARGE); /* while they are being written */
    assert_true(replies_add_job(&replies, &late));
    replies_written(&replies, true);
    assert_int_equal(released_count(), first);
    assert_int_equal(take(), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_record(&buffers[i], LARGE, (uint8_t)(first + i));
    replies_written(&replies, true);
    assert_int_equal(released_count(), job_count);
}

TEST(test_replies__small_ones_collect_while_others_are_written)
{
    struct rpc_finished first = job_of(10), second = job_of(20);
    assert_true(replies_add_job(&replies, &first));
    assert_int_equal(take(), 1);
    assert_true(replies_add_job(&replies, &second));
    assert_record(&buffers[0], 10, 0); /* not touched */
    replies_written(&replies, true);
    assert_int_equal(take(), 1);
    assert_record(&buffers[0], 20, 1);
    replies_written(&replies, false);
}

/* stop() sees that all are released. */
TEST(test_replies__a_connection_that_ends_releases_what_it_had)
{
    for (int i = 0; i < 5; i++) {
        struct rpc_finished large = job_of(LARGE);
        assert_true(replies_add_job(&replies, &large));
    }
    (void)take();
    struct rpc_finished late = job_of(LARGE);
    assert_true(replies_add_job(&replies, &late));
}

/* ---- pipes ---- */

/* The same with so many bytes more in a pipe, behind the first of them. */
static struct rpc_finished piped_job_of(uint32_t head, uint32_t piped, uint32_t tail)
{
    struct rpc_finished finished = job_of(head + tail);
    finished.before_pipe = head;
    finished.job->pipe = (struct job_pipe){.fd = -1, .at = head, .len = piped};
    return finished;
}

TEST(test_replies__a_pipe_stands_between_head_and_tail)
{
    struct rpc_finished one = piped_job_of(100, LARGE, 3);
    assert_true(replies_add_job(&replies, &one)); /* small in memory, and still not copied */
    assert_int_equal(released_count(), 0);
    assert_int_equal(replies_large_len(&replies), RECORD_MARK_LEN + 103 + LARGE);
    assert_int_equal(take(), 1);
    assert_int_equal(buffers[0].len, RECORD_MARK_LEN + 100);
    assert_int_equal(load_be32((const uint8_t *)buffers[0].base), RECORD_MARK_LAST | (103 + LARGE));
    assert_ptr_equal(part.pipe, &jobs[0].pipe);
    assert_false(part.is_last);
    replies_advance(&replies, RECORD_MARK_LEN + 99);
    assert_true(replies_get_part(&replies, &part));
    assert_int_equal(part.len, 1);
    replies_advance(&replies, 1 + 1000); /* over the border */
    assert_int_equal(jobs[0].pipe.len, LARGE - 1000);
    assert_true(replies_get_part(&replies, &part));
    assert_int_equal(part.count, 0);
    assert_ptr_equal(part.pipe, &jobs[0].pipe);
    assert_int_equal(replies_unwritten_len(&replies), LARGE - 1000 + 3);
    replies_advance(&replies, LARGE - 1000);
    assert_true(replies_get_part(&replies, &part));
    assert_null(part.pipe);
    assert_int_equal(part.len, 3);
    assert_ptr_equal(part.bufs[0].base, one.message + 100);
    assert_int_equal(released_count(), 0);
    replies_advance(&replies, 3);
    assert_int_equal(released_count(), 1); /* and others may have its pipe */
    assert_false(replies_get_part(&replies, &part));
    assert_int_equal(replies_large_len(&replies), 0);
    replies_written(&replies, false);
}

TEST(test_replies__nothing_overtakes_a_pipe)
{
    struct rpc_finished small = job_of(10), first = piped_job_of(20, LARGE, 0),
                        second = piped_job_of(30, LARGE, 1), third = job_of(LARGE);
    assert_true(replies_add_job(&replies, &small));
    assert_true(replies_add_job(&replies, &first));
    assert_true(replies_add_job(&replies, &second));
    assert_true(replies_add_job(&replies, &third));
    assert_int_equal(take(), 2);
    assert_int_equal(part.len, 2 * RECORD_MARK_LEN + 30);
    assert_ptr_equal(part.pipe, &jobs[1].pipe);
    assert_false(part.is_last);
    replies_advance(&replies, part.len + LARGE);
    assert_int_equal(released_count(), 2);
    assert_true(replies_get_part(&replies, &part));
    assert_int_equal(part.count, 1);
    assert_int_equal(part.len, RECORD_MARK_LEN + 30);
    assert_ptr_equal(part.pipe, &jobs[2].pipe);
    replies_advance(&replies, part.len + LARGE);
    assert_true(replies_get_part(&replies, &part));
    assert_int_equal(part.count, 2); /* the last byte, and the next reply */
    assert_int_equal(part.len, 1 + RECORD_MARK_LEN + LARGE);
    assert_null(part.pipe);
    replies_advance(&replies, part.len);
    assert_int_equal(released_count(), 4);
    assert_int_equal(replies_unwritten_len(&replies), 0);
    replies_written(&replies, true);
}

TEST(test_replies__behind_the_last_pipe_nothing_follows)
{
    struct rpc_finished one = piped_job_of(16, LARGE, 0);
    assert_true(replies_add_job(&replies, &one));
    assert_int_equal(take(), 1);
    assert_true(part.is_last);
}

TEST_MAIN(start, stop, NULL, NULL)
