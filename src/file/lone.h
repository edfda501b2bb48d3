/*
 * lone.h -- a call that is alone, executed by the server's thread itself.
 *
 * The way over the pool costs two wake-ups, which is most of what a short call takes. A call that
 * is the only one in flight has nobody whom a thread of the pool would help. On a file system in
 * memory it waits for no disk, so that nothing that comes meanwhile, a lock for instance, waits
 * for one; and what is done here is short whatever the file system holds.
 */
#ifndef FILE_LONE_H
#define FILE_LONE_H

#include "file/call.h"

/* True: it was executed, and has a result. False: nothing has changed, and the pool must do it, in
 * this lane. */
bool lone_execute(struct call *call, struct lane *lane, call_execute_fn execute);
/* Then: is it finished, or does it wait for a sync? */
enum job_verdict lone_finish(struct call *call);

#endif
