/*
 * list.h -- the routes that list what the core knows (clients, locks, waiters, notifications, sets
 * of files) and the words for states.
 */
#ifndef ADMIN_LIST_H
#define ADMIN_LIST_H

#include "admin/exchange.h"
#include "core/view.h"

void list_clients(struct exchange *exchange);
void list_client(struct exchange *exchange);
void list_locks(struct exchange *exchange);
void list_waiters(struct exchange *exchange);
void list_notifications(struct exchange *exchange);
void list_shares(struct exchange *exchange);

/* One word: "none", "told", "waiting", "calling", "given_up". */
const char *list_word_of_news(enum view_news news);
/* One word: "freeing", "given_up", "crashed", "recovering", "active"; the first that applies. Of a
 * tracked client: "connected", "disconnected", "expired". */
const char *list_word_of_client(const struct view_client *view);

/* The client of {id}; false: already responded. */
bool list_read_id(struct exchange *exchange, struct bytes text, uint64_t *ret);

#endif
