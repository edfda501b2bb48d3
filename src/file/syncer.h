/*
 * syncer.h -- group commit of files and directories: one sync for all calls that wait for it.
 *
 * A call that changed something waits here until that is on disk. While a file or directory is
 * being synced, more calls gather for it, and share the next sync.
 */
#ifndef FILE_SYNCER_H
#define FILE_SYNCER_H

#include "file/call.h"

struct syncer;

struct syncer *syncer_new(uint32_t threads, struct file_service *service);
/* Nobody waits any more. */
void syncer_free(struct syncer *syncer);

/* The call's syncs; call_finish follows, on a thread of the syncer, when all are done. */
void syncer_add(struct syncer *syncer, struct call *call);

#endif
