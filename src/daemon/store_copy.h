/*
 * store_copy.h -- the copy of its store that a running server makes for an operator.
 *
 * The hooks behind GET /api/v1/store. One at a time: the next one is refused with a sentence. The
 * log has who asked, and how it ended.
 */
#ifndef DAEMON_STORE_COPY_H
#define DAEMON_STORE_COPY_H

#include "admin/admin.h"

#include <sys/types.h>

/* As admin.copy_begin, copy_read and copy_end; `context` is the admin_hooks. */
void store_copy_begin(void *context, const struct admin_caller *who, struct admin_copy *ret);
ssize_t store_copy_read(void *copy, char *buffer, size_t max);
void store_copy_end(void *copy, bool is_too_slow);

#endif
