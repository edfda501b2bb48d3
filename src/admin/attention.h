/*
 * attention.h -- what an operator should look at now, in one sentence each.
 *
 * It is what `holdfast status` ends with exit code 1 for. A recovery that proceeds normally is
 * not part of it, nor is what clients settle among themselves.
 */
#ifndef ADMIN_ATTENTION_H
#define ADMIN_ATTENTION_H

#include "admin/admin.h"
#include "admin/writer.h"

/* The list "attention" of the status; empty: all is well. */
void attention_add_status(struct writer *out, const struct admin *admin,
                          const struct core_status *status, const struct admin_facts *facts);

#endif
