/*
 * options.h -- GET /api/v1/config: every option, its value, and its origin.
 */
#ifndef ADMIN_OPTIONS_H
#define ADMIN_OPTIONS_H

#include "admin/exchange.h"

void options_answer(struct exchange *exchange);

#endif
