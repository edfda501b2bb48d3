/*
 * pipes.h -- pipes that pages go through from files into sockets (decision 046), and from sockets
 * into files (decision 047): limited, and used again.
 *
 * A pipe is made when a READ or a WRITE first needs one more, and kept. It has room for as many
 * whole pages as the longest of these has. Where the limit is reached, or the kernel grants nobody
 * such a pipe (pipe-user-pages-soft, pipe-max-size, RLIMIT_NOFILE), there is none, and the data
 * goes through memory.
 *
 * Any thread may use this.
 */
#ifndef FILE_PIPES_H
#define FILE_PIPES_H

#include "base/list.h"
#include "proto/job.h"

#include <stdint.h>

enum { PIPES_LEN = 1024 * 1024 }; /* of each: the longest READ or WRITE */

struct pipes;

struct pipe {
    struct list link; /* pipes.c's */
    int read_fd, write_fd;
    struct job_inlet inlet; /* the same ends, and what lies between them of a WRITE */
};

/* At most so many, in use and kept; two descriptors each. NULL: no memory. */
struct pipes *pipes_new(uint32_t max);
/* All are given back. NULL is legal. */
void pipes_free(struct pipes *pipes);
/* An empty one; NULL: there is none to be had. */
struct pipe *pipes_take(struct pipes *pipes);
/* One that is not empty is closed: nobody may read what is left in it. */
void pipes_give_back(struct pipes *pipes, struct pipe *pipe, bool is_empty);

#endif
