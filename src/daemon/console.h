/*
 * console.h -- what the HTTP endpoints need from the daemon: facts to show, and commands carried
 * out.
 *
 * Every command is logged with who gave it, its subject and its result.
 */
#ifndef DAEMON_CONSOLE_H
#define DAEMON_CONSOLE_H

#include "admin/admin.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/opening.h"

struct console {
    struct admin admin;    /* for http_new; `core` is set when there is one */
    struct driver *driver; /* NULL: we do not serve yet */
    const struct registrar *registrar;
    struct opening *opening; /* NULL: the store is not being opened */
    const struct config *config;
    struct log *log;
    struct clock *clock;
    uint64_t start_ns;
    char store[1024]; /* its URL, without a password */
};

/* Everything is borrowed; driver, registrar, opening and admin.core are set later. */
void console_init(struct console *console, const struct config *config, struct log *log,
                  struct clock *clock);

#endif
