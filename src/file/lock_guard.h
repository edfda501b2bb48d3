/*
 * lock_guard.h -- may this caller lock this file? The file service's side of proto/guard.h.
 *
 *           handle, export, its clients, files that are open: at once
 *   judge --+----------------------------------------------------------> verdict
 *           |                                                  ^
 *           +--> ASKED: a call of ours on the pool --> KNOWN --+ asked again within a second
 *
 * The answer is GUARD_LATER while the pool looks; `wake` follows, and the same question then finds
 * its verdict here. A file system that does not answer holds LOCK_GUARD_PER_EXPORT entries at
 * most, and after LOCK_GUARD_PATIENCE_S its questions are GUARD_STUCK: the locks of other exports
 * do not wait for it.
 */
#ifndef FILE_LOCK_GUARD_H
#define FILE_LOCK_GUARD_H

#include "file/call.h"
#include "proto/guard.h"

enum { LOCK_GUARD_MAX = 256, LOCK_GUARD_PER_EXPORT = 128, LOCK_GUARD_PATIENCE_S = 5 };

/* The program of its calls, which no client can name: see call.h. */
enum { LOCK_GUARD_PROGRAM = 0 };

struct lock_guard;

/* NULL: no memory. */
struct lock_guard *lock_guard_new(void);
void lock_guard_free(struct lock_guard *guard);

/* On the server's thread. */
enum guard_verdict lock_guard_judge(struct file_service *service,
                                    const struct guard_question *question);
/* On the pool: looks at the file. */
void lock_guard_execute(struct call *call);
/* On the server's thread again: keeps what was found. */
void lock_guard_finish(struct lock_guard *guard, const struct call *call);

#endif
