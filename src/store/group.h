/*
 * group.h -- the names of groups: servers that share one store, and nothing in it.
 *
 * A group has records, a state number, an epoch and an active server of its own (decision 080). Its
 * name becomes part of identifiers, of the log and of metrics, so the rule is strict: no two good
 * names differ only in case, and none needs escaping anywhere.
 */
#ifndef STORE_GROUP_H
#define STORE_GROUP_H

#include <stdbool.h>

#define STORE_GROUP_NAME_MAX 32 /* bytes of a name */
#define STORE_GROUPS_MAX     16 /* that one standby may wait for */
#define STORE_GROUP_RULE     "1 to 32 of a-z, 0-9, - and _, the first a letter"

bool store_group_is_name(const char *name);

#endif
