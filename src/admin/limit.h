/*
 * limit.h -- every limit of the server beside what is used of it: those of the core, then those of
 * the daemon.
 */
#ifndef ADMIN_LIMIT_H
#define ADMIN_LIMIT_H

#include "admin/admin.h"
#include "admin/writer.h"

/* By index; false: there are no more. */
bool limit_get(const struct admin *admin, uint32_t index, struct admin_limit *ret);

/* The list "limits" of the status. */
void limit_add_status(struct writer *out, const struct admin *admin);

#endif
