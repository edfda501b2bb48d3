/*
 * postgres_group.h -- where a group lives in a database: a schema of its own.
 *
 * Group "web" is schema "holdfast_web", and every table, function and number of its server is in
 * there. The session's search_path names that schema alone, whatever the role or the database say,
 * so an unqualified name means the group's own table or none. Without a group the tables are where
 * the role's search_path puts them, which must not be the schema of a group: its lock is another.
 *
 * The key of a group's advisory lock is the number that PostgreSQL gave its schema. No two schemas
 * of a database have the same, so no two groups share a key.
 */
#ifndef STORE_POSTGRES_GROUP_H
#define STORE_POSTGRES_GROUP_H

#include "store/postgres_session.h"

/* From here on the session is of this group, also when it connects again; NULL: of none. The caller
 * has checked the name. */
void postgres_group_choose(struct postgres_session *session, const char *group);
/* Tells PostgreSQL, on a session that was connected before that. */
enum postgres_outcome postgres_group_enter(struct postgres_session *session, uint64_t deadline_ns);

/* Of a session without a group: whether its search_path leads to the schema of one. The session's
 * error names it then. */
enum postgres_outcome postgres_group_find_stray(struct postgres_session *session,
                                                uint64_t deadline_ns, bool *ret);
/* What to do about it. */
#define POSTGRES_GROUP_STRAY "without --group it would use the tables of a group"
#define POSTGRES_GROUP_STRAY_ADVICE                                                                \
    "use --group with that group's name, or set another search_path for the role (ALTER ROLE ... " \
    "SET search_path = ...); nothing was changed"

/* Makes the schema of the session's group, unless it is there. */
enum postgres_outcome postgres_group_make(struct postgres_session *session, uint64_t deadline_ns);

/*
 * Every group of the database, by name, and first what is there without a group. *ret_stop is what
 * the visitor returned: non-zero ends it.
 */
enum postgres_outcome postgres_group_list(struct postgres_session *session, uint64_t deadline_ns,
                                          store_group_fn visit, void *context, int *ret_stop);

#endif
