/*
 * groups.h -- the groups of a caller by this machine's own books: `--groups server`.
 *
 * AUTH_SYS carries 16 groups at most. Here they are looked up by uid instead, in a thread of its
 * own, because the directory service may take its time; what it says is kept for a while.
 */
#ifndef FILE_GROUPS_H
#define FILE_GROUPS_H

#include "base/list.h"
#include "file/identity.h"

struct groups;

/* What waits for a look-up is handed to `ready`, on that thread. */
struct groups *groups_new(void (*ready)(void *context, struct list *work), void *context);
/* Everything that waits is handed over first. */
void groups_free(struct groups *groups);

bool groups_are_known(struct groups *groups, uint32_t uid);
/* The groups of the identity's uid become its groups, if they are known. */
bool groups_get(struct groups *groups, const struct export_rights *rights, struct identity *ret);
/* They are known when the work comes to `ready`, unless others were asked for at the same time. */
void groups_ask(struct groups *groups, uint32_t uid, struct list *work);

#endif
