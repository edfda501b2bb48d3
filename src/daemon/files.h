/*
 * files.h -- the file service in the daemon: what --export needs, its start, and a reload.
 */
#ifndef DAEMON_FILES_H
#define DAEMON_FILES_H

#include "daemon/config.h"
#include "daemon/log.h"
#include "file/file.h"
#include "rpc/server.h"
#include "wire/clock.h"

#include <stdatomic.h>
#include <uv.h>

enum { FILES_OPEN_MAX = 4096, FILES_CALLS_MAX = 8192 };

struct files;

/* Borrowed, but for what is read at once. */
struct files_parts {
    uv_loop_t *loop;
    struct log *log;
    struct clock *clock;
    struct config *config; /* a reload changes its exports */
    struct rpc_server *server;
    uint64_t epoch; /* of this start */
    int argc;       /* the command line, for a reload */
    char *const *argv;
};

/* Are files served at all? */
bool files_is_wanted(const struct config *config);

/* What must be so for that, and is not, in a sentence with the next step. False: it is not. */
bool files_is_possible(const struct config *config, struct text *ret_why);

/* Opens the exports and starts the threads; the server's desk from here on. NULL with a sentence in
 * *ret_why. */
struct files *files_new(const struct files_parts *parts, struct text *ret_why);
struct file_service *files_service(struct files *files);

/* SIGHUP and `holdfast reload`: reads the options anew and takes the exports from them. False:
 * nothing changed, and *ret_why says why. Both are logged. */
bool files_reload(struct files *files, struct text *ret_why);

/* Before the loop ends; then files_free, when it has closed the handles. NULL is legal. */
void files_close(struct files *files);
void files_free(struct files *files);

#endif
