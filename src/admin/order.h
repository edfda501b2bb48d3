/*
 * order.h -- the routes that change something; over the control socket only.
 */
#ifndef ADMIN_ORDER_H
#define ADMIN_ORDER_H

#include "admin/exchange.h"

void order_end_grace(struct exchange *exchange);
void order_restart_notice(struct exchange *exchange);
void order_release(struct exchange *exchange);
void order_notify(struct exchange *exchange);
void order_move(struct exchange *exchange);

#endif
