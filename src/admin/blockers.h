/*
 * blockers.h -- who blocks most: clients by how many requests wait for what they hold.
 */
#ifndef ADMIN_BLOCKERS_H
#define ADMIN_BLOCKERS_H

#include "admin/admin.h"
#include "admin/writer.h"

/* The list "blockers" of the status, worst first, and "blockers_more". */
void blockers_add_status(struct writer *out, const struct admin *admin,
                         const struct core_status *status, const struct admin_facts *facts);

#endif
