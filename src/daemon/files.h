/*
 * files.h -- the file service in the daemon: what --export needs, its start, and other exports.
 */
#ifndef DAEMON_FILES_H
#define DAEMON_FILES_H

#include "daemon/config.h"
#include "daemon/log.h"
#include "file/file.h"
#include "rpc/server.h"
#include "wire/clock.h"

#include <uv.h>

enum {
    FILES_OPEN_MAX = 4096,
    FILES_CALLS_MAX = 8192,
    FILES_MIRRORED_MAX = 65536,
    /* A user's pipes may have 16,384 pages in all (pipe-user-pages-soft) before those of programs
     * without privileges are cut: these are three quarters of that. */
    FILES_PIPES_MAX = 48,
};

struct files;

/* Borrowed, but for what is read at once. */
struct files_parts {
    uv_loop_t *loop;
    struct log *log;
    struct clock *clock;
    const struct config *config;
    struct rpc_server *server;
    uint64_t epoch; /* of this start */
    struct core *core;
    uint32_t open_max;              /* files that are kept open, */
    uint32_t mirrored_max;          /* and those with locks, beside them; */
    uint32_t pipes_max;             /* and pipes */
    void (*on_news)(void *context); /* names of files that were asked for may be known */
    void *context;
};

/* Are files served at all? */
bool files_is_wanted(const struct config *config);

/* What must be so for that, and is not, in a sentence with the next step. False: it is not. */
bool files_is_possible(const struct config *config, struct text *ret_why);

/* Opens the exports and starts the threads; the server's desk from here on. NULL with a sentence in
 * *ret_why. */
struct files *files_new(const struct files_parts *parts, struct text *ret_why);
struct file_service *files_service(struct files *files);

/* A reload (reload.h): the exports of these options, opened on any thread; NULL with a sentence in
 * *ret_why. Then they are served instead of those before, from the loop. */
struct export_table *files_prepare(const struct files *files, const struct config *config,
                                   struct text *ret_why);
void files_take(struct files *files, struct export_table *exports);

/* What a file is called; PATH_LATER: on_news follows. */
enum path_state files_get_path(struct files *files, struct bytes fh, struct bytes *ret);

/* Before the loop ends; then files_free, when it has closed the handles. NULL is legal. */
void files_close(struct files *files);
void files_free(struct files *files);

#endif
