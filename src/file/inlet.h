/*
 * inlet.h -- WRITEs whose data lies in a pipe, straight from a socket (decision 047).
 *
 * The memory of such a call is as long as if all of it lay there; the last bytes of its arguments,
 * as many as the inlet says, are in the pipe instead. They are the end of the data. What is written
 * leaves the pipe, and nothing else does, until the rest is read into its place in memory.
 */
#ifndef FILE_INLET_H
#define FILE_INLET_H

#include "file/call.h"

/* The desk's (proto/job.h); `service` is a struct file_service. From the server's thread. */
struct job_inlet *inlet_open(void *service);
void inlet_close(void *service, struct job_inlet *inlet);

/* An inlet, or NULL for none, is the call's from now on. */
void inlet_take(struct call *call, struct job_inlet *inlet);
/* How many bytes of the arguments lie in a pipe. */
uint32_t inlet_len(const struct call *call);
/* Some of them go into a file: how many; 0: it cannot be done this way, for whatever reason. */
uint32_t inlet_write(struct call *call, int fd, uint64_t offset);
/* All of them go into memory. False: they are lost. */
__attribute__((warn_unused_result)) bool inlet_empty(struct call *call);

#endif
