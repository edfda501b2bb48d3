/*
 * find.h -- lists of the server read page by page, and clients found by what people call them.
 */
#ifndef CLI_FIND_H
#define CLI_FIND_H

#include "cli/server.h"

enum { FIND_ID_MAX = 32, FIND_PATH_MAX = 7168 }; /* two of the longest names, escaped */

/* False: enough. */
typedef bool (*find_row_fn)(void *context, const json_t *row);
/* After every page; may be NULL. */
typedef void (*find_page_fn)(void *context);

/*
 * Every row of a list. `path` may have parameters, `name` is the list's in the answer. An exit
 * code; what went wrong was printed.
 */
int find_rows(struct server *server, const char *path, const char *name, find_row_fn visit,
              find_page_fn page, void *context);

/* Adds "?key=value", or "&key=value", to a path; what a URL cannot hold is escaped. False: too
 * long for `size`. A value of NULL adds nothing. */
bool find_add_parameter(char *path, size_t size, const char *key, const char *value);

/*
 * A client by id (c17), address or name. EXIT_OK with its row in *ret, to be freed; EXIT_NO: there
 * is none; EXIT_USAGE: there are several, and all were printed. A machine may be called c17, too:
 * then that word is ambiguous, and "id:c17" or "name:c17" is not.
 */
int find_client(struct server *server, const char *word, json_t **ret);
/* The same where only one that locks can be meant: it wins over those of SM_MON. */
int find_locker(struct server *server, const char *word, json_t **ret);

/*
 * Prints the rows of a list that `is_wanted` as JSON: {"name": [...]}; NULL: all of them. An exit
 * code; a list that could not be read to its end has none, so that nobody takes it for whole.
 */
int find_print_json(struct server *server, const char *path, const char *name,
                    find_row_fn is_wanted, void *context);

#endif
