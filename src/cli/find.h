/*
 * find.h -- reads the server's lists page by page, and finds clients by what people call them.
 */
#ifndef CLI_FIND_H
#define CLI_FIND_H

#include "cli/http_client.h"

enum { FIND_ID_MAX = 32, FIND_PATH_MAX = 7168 }; /* two of the longest names, escaped */

/* False: enough. */
typedef bool (*find_row_fn)(void *context, const json_t *row);
/* After every page; may be NULL. */
typedef void (*find_page_fn)(void *context);

/*
 * Visits every row of a list. `path` may have parameters, `name` is the key of the list in the
 * reply. Returns an exit code; errors were printed.
 */
int find_rows(struct http_client *http, const char *path, const char *name, find_row_fn visit,
              find_page_fn page, void *context);

/* Adds "?key=value", or "&key=value", to a path; escapes what a URL cannot hold. False: too long
 * for `size`. A value of NULL adds nothing. */
bool find_add_parameter(char *path, size_t size, const char *key, const char *value);

/*
 * A client by id (c17), address or name. EXIT_OK with its row in *ret, to be freed; EXIT_NO: no
 * match; EXIT_USAGE: several, all printed. A host may be named c17, too: then that word is
 * ambiguous, but "id:c17" and "name:c17" are not.
 */
int find_client(struct http_client *http, const char *word, json_t **ret);
/* The same where only a lock client makes sense: it wins over SM_MON registrations. */
int find_locker(struct http_client *http, const char *word, json_t **ret);

/*
 * A list as JSON: {"name": [...]}, row by row. One that could not be read completely is left
 * unterminated, so that nobody takes it for complete.
 */
struct find_json {
    const char *name;
    size_t row_count;
    bool has_begun, has_failed;
};
/* False: no memory, and find_json_end says so. */
bool find_json_row(struct find_json *list, const json_t *row);
/* With "total" behind the list, unless it is negative. An exit code. */
int find_json_end(struct find_json *list, long long total);

/* Prints all rows of a list. An exit code. */
int find_print_json(struct http_client *http, const char *path, const char *name);

#endif
