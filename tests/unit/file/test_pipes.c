/*
 * test_pipes.c -- pipes: as many as there may be, each empty, none in two hands.
 */
#include "file/pipes.h"

#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MOST = 3 };

static struct pipes *pipes;

TEST_FIXTURE(start)
{
    pipes = pipes_new(MOST);
    assert_non_null(pipes);
}

TEST_FIXTURE(stop)
{
    pipes_free(pipes);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(test_pipes__there_are_no_more_than_that)
{
    struct pipe *taken[MOST];
    for (int i = 0; i < MOST; i++) {
        taken[i] = pipes_take(pipes);
        assert_non_null(taken[i]);
    }
    assert_null(pipes_take(pipes));
    for (int i = 0; i < MOST; i++)
        pipes_give_back(pipes, taken[i], i == 0); /* closed or kept: there is room again */
    for (int i = 0; i < MOST; i++) {
        taken[i] = pipes_take(pipes);
        assert_non_null(taken[i]);
    }
    assert_null(pipes_take(pipes));
    for (int i = 0; i < MOST; i++)
        pipes_give_back(pipes, taken[i], true);
}

TEST(test_pipes__one_has_room_for_the_longest_read)
{
    struct pipe *pipe = pipes_take(pipes);
    assert_non_null(pipe);
    assert_true(fcntl(pipe->read_fd, F_GETPIPE_SZ) >= PIPES_LEN);
    assert_true(fcntl(pipe->read_fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(pipe->write_fd, F_GETFD) & FD_CLOEXEC);
    pipes_give_back(pipes, pipe, true);
}

TEST(test_pipes__an_empty_one_is_used_again)
{
    struct pipe *pipe = pipes_take(pipes);
    assert_non_null(pipe);
    int fd = pipe->read_fd;
    pipes_give_back(pipes, pipe, true);
    assert_ptr_equal(pipes_take(pipes), pipe);
    assert_int_equal(pipe->read_fd, fd);
    pipes_give_back(pipes, pipe, true);
}

TEST(test_pipes__what_is_left_in_one_is_never_read)
{
    char byte = 's';
    struct pipe *pipe = pipes_take(pipes);
    assert_non_null(pipe);
    int read_fd = pipe->read_fd, write_fd = pipe->write_fd;
    assert_int_equal(write(write_fd, &byte, 1), 1);
    pipes_give_back(pipes, pipe, false);
    assert_false(is_open(read_fd) || is_open(write_fd));
    pipe = pipes_take(pipes);
    assert_non_null(pipe);
    assert_int_equal(read(pipe->read_fd, &byte, 1), -1);
    assert_int_equal(errno, EAGAIN); /* and nobody waits */
    pipes_give_back(pipes, pipe, true);
}

TEST(test_pipes__none_may_be_allowed)
{
    struct pipes *none = pipes_new(0);
    assert_non_null(none);
    assert_null(pipes_take(none));
    pipes_free(none);
}

TEST_MAIN(start, stop, NULL, NULL)
