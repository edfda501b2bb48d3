/*
 * pipes.c -- see pipes.h.
 */
#include "file/pipes.h"

#include "base/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct pipes {
    pthread_mutex_t mutex; /* guards the rest; never held over a system call */
    struct list kept;      /* the warmest last */
    uint32_t count, max;   /* those in use among them */
};

struct pipes *pipes_new(uint32_t max)
{
    struct pipes *pipes = calloc(1, sizeof *pipes);
    if (pipes == NULL)
        return NULL;
    pipes->max = max;
    list_init(&pipes->kept);
    CHECK(pthread_mutex_init(&pipes->mutex, NULL) == 0);
    return pipes;
}

static void destroy(struct pipe *pipe)
{
    CHECK(close(pipe->read_fd) == 0);
    CHECK(close(pipe->write_fd) == 0);
    free(pipe);
}

static struct pipe *last_of(struct list *list)
{
    struct pipe *pipe = LIST_ELEMENT(list->prev, struct pipe, link);
    list_remove(&pipe->link);
    return pipe;
}

void pipes_free(struct pipes *pipes)
{
    if (pipes == NULL)
        return;
    for (struct list *at = pipes->kept.next, *next; at != &pipes->kept; at = next) {
        next = at->next;
        destroy(LIST_ELEMENT(at, struct pipe, link));
        pipes->count--;
    }
    CHECK(pipes->count == 0);
    CHECK(pthread_mutex_destroy(&pipes->mutex) == 0);
    free(pipes);
}

static struct pipe *make(void)
{
    int fds[2];
    struct pipe *pipe = malloc(sizeof *pipe);
    if (pipe == NULL || pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        free(pipe);
        return NULL;
    }
    *pipe = (struct pipe){
        .read_fd = fds[0], .write_fd = fds[1], .inlet = {.read_fd = fds[0], .write_fd = fds[1]}};
    list_init(&pipe->link);
    if (fcntl(pipe->write_fd, F_SETPIPE_SZ, PIPES_LEN) >= PIPES_LEN)
        return pipe;
    destroy(pipe);
    return NULL;
}

struct pipe *pipes_take(struct pipes *pipes)
{
    struct pipe *pipe = NULL;
    CHECK(pthread_mutex_lock(&pipes->mutex) == 0);
    bool is_new = list_is_empty(&pipes->kept) && pipes->count < pipes->max;
    if (is_new)
        pipes->count++;
    else if (!list_is_empty(&pipes->kept))
        pipe = last_of(&pipes->kept);
    CHECK(pthread_mutex_unlock(&pipes->mutex) == 0);
    if (!is_new)
        return pipe;
    pipe = make();
    if (pipe != NULL)
        return pipe;
    CHECK(pthread_mutex_lock(&pipes->mutex) == 0);
    pipes->count--;
    CHECK(pthread_mutex_unlock(&pipes->mutex) == 0);
    return NULL;
}

void pipes_give_back(struct pipes *pipes, struct pipe *pipe, bool is_empty)
{
    if (!is_empty)
        destroy(pipe);
    CHECK(pthread_mutex_lock(&pipes->mutex) == 0);
    if (is_empty)
        list_append(&pipes->kept, &pipe->link);
    else
        pipes->count--;
    CHECK(pthread_mutex_unlock(&pipes->mutex) == 0);
}
