/*
 * exports.h -- GET /api/v1/exports: what is exported to whom, and how much it is used; and what of
 * it the status names.
 */
#ifndef ADMIN_EXPORTS_H
#define ADMIN_EXPORTS_H

#include "admin/exchange.h"

void exports_answer(struct exchange *exchange);

/* The member "files" of the status: null without --export. */
void exports_add_status(struct writer *out, const struct admin *admin,
                        const struct admin_files *files);

#endif
