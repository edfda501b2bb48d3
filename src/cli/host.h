/*
 * host.h -- hosts that a status monitor (--role monitor) watches, as a table and in words.
 */
#ifndef CLI_HOST_H
#define CLI_HOST_H

#include "cli/http_client.h"

/* EXIT_OK, and whether the server is a status monitor; else an exit code, after it was printed. */
int host_ask_role(struct http_client *http, bool *ret_is_monitor);
/* The rows of /api/v1/clients at this path as a table. An exit code. */
int host_print_table(struct http_client *http, const char *path);
/* "notice", "upcall", "notice, upcall", "-": what is left to be done, from a row or from
 * `hosts.waiting_for` of the status. */
const char *host_owed_words(const json_t *host);

#endif
