/*
 * reload.h -- POST /api/v1/reload: the options are read again, and the response says what changed.
 *
 *   200 {"result": "done", "changed": [{"option", "from", "to"}...], "needs_restart": [...]}
 *   409 a wrong file or line, a directory that cannot be exported: nothing has changed
 */
#ifndef ADMIN_RELOAD_H
#define ADMIN_RELOAD_H

#include "admin/exchange.h"

void reload_answer(struct exchange *exchange);

#endif
