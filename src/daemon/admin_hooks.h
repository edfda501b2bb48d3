/*
 * admin_hooks.h -- what the HTTP endpoints need from the daemon: facts to show, and commands
 * carried out.
 *
 * Every command is logged with who gave it, its subject and its result.
 */
#ifndef DAEMON_ADMIN_HOOKS_H
#define DAEMON_ADMIN_HOOKS_H

#include "admin/admin.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/files.h"
#include "daemon/reload.h"
#include "daemon/takeover.h"

struct admin_hooks {
    struct admin admin;    /* for http_new; `core` is set when there is one */
    struct driver *driver; /* NULL: we do not serve yet */
    const struct registrar *registrar;
    struct files *files;       /* NULL: no --export */
    struct takeover *takeover; /* NULL: the store is not being opened */
    struct reload *reload;
    const struct wire *wire; /* NULL: we do not listen yet, and so with the next */
    const struct rpc_client *client;
    struct admin_places places;
    const struct config *config;
    struct log *log;
    struct clock *clock;
    uint64_t start_ns, start_wall_ns;
    char store[1024];  /* its URL, without a password */
    char store_id[64]; /* which one that is (store_url_identify), once it is open */
};

/* Everything is borrowed; driver, registrar, takeover, reload and admin.core are set later. */
void admin_hooks_init(struct admin_hooks *hooks, const struct config *config, struct log *log,
                      struct clock *clock);

#endif
