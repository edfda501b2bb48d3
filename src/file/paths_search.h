/*
 * paths_search.h -- names that the kernel does not know, after a reboot for example: the export is
 * searched for them, for people who look.
 *
 * A handle says which file it is and not where. Once the name was found, the kernel knows it, too;
 * what it forgets again is kept here, and believed while it leads to the same file.
 */
#ifndef FILE_PATHS_SEARCH_H
#define FILE_PATHS_SEARCH_H

#include "file/export_table.h"
#include "file/handle.h"

struct paths_search;

/* A thread of its own. NULL: no memory or no thread. */
struct paths_search *paths_search_new(void);
void paths_search_free(struct paths_search *search);

/* Wants the name of a file, with its inode's number; nothing happens when too many are wanted. */
void paths_search_add(struct paths_search *search, struct export_table *exports, uint32_t export_id,
                      const struct handle_object *object, ino_t inode);
/* What was found, if that is still its name: the caller's to free. NULL: nothing. Looks at the file
 * system. */
char *paths_search_get(struct paths_search *search, const struct export *export,
                       const struct handle_object *object);

#endif
