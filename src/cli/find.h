/*
 * find.h -- lists of the server read page by page, and clients found by what people call them.
 */
#ifndef CLI_FIND_H
#define CLI_FIND_H

#include "cli/server.h"

enum { FIND_ID_MAX = 32 };

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

/*
 * A client by id (c17), address or name. EXIT_OK with its row in *ret, to be freed; EXIT_NO: there
 * is none; EXIT_USAGE: there are several, and all were printed.
 */
int find_client(struct server *server, const char *word, json_t **ret);

/* "c17" or "17". */
bool find_is_id(const char *text);

/* Prints the rows of a list as JSON: {"name": [...]}. An exit code. */
int find_print_json(struct server *server, const char *path, const char *name);

#endif
