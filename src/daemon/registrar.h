/*
 * registrar.h -- how clients find us: --rpcbind.
 *
 *   auto       the system's rpcbind if it answers; else a portmapper of our own on port 111; else
 *              we say so and wait: calls are answered, but grace, notification and readiness begin
 *              when an rpcbind has appeared and knows us
 *   system     the system's rpcbind, or exit 69
 *   embedded   our own, or exit 69
 *   off        nobody: clients are told the port
 *
 * Another server's registration of a program that we serve is exit 71: clients would find that
 * server, not us. --force replaces it. A registration is verified every 30 s and whenever rpcbind
 * closes the connection, and restored if it is gone; one that another server has replaced is
 * reported and left alone.
 *
 * With --role monitor our entry is never removed, at a stop neither: the kernel takes a status
 * monitor that is registered and does not answer for a failure, and refuses locks; one that is not
 * registered it waits for, a minute long, and then grants locks that nobody watches. So the entry
 * is verified every second (stopping rpc.statd removes it, whosever it is), port 111 is never
 * served by us, and what else is registered tells when this machine's NFS server is up.
 */
#ifndef DAEMON_REGISTRAR_H
#define DAEMON_REGISTRAR_H

#include "base/text.h"
#include "core/core.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "proto/program.h"
#include "wire/clock.h"
#include "wire/listen.h"

#include <uv.h>

#define REGISTRAR_EXIT_UNAVAILABLE 69
#define REGISTRAR_EXIT_FOREIGN     71

struct registrar;

/* All borrowed. */
struct registrar_parts {
    uv_loop_t *loop;
    struct clock *clock;
    struct log *log;
    const struct config *config; /* --rpcbind, --force, --listen */
    void *context;
    /*
     * After registrar_start, once: clients can find us, or know the port (exit code 0); or the
     * server must end with this code, and the log says why. With `auto` it is called when an
     * rpcbind is there, however late.
     */
    void (*on_registered)(void *context, int exit_code);
};

/* NULL: no memory. */
struct registrar *registrar_new(const struct registrar_parts *parts);

/* Every version of a program, reached through these sockets; before registrar_prepare. */
void registrar_add(struct registrar *registrar, const struct program *program,
                   const struct listen_set *sockets);

/*
 * Before privileges are dropped and before the store is touched: chooses between rpcbind and our
 * own port 111 and looks for foreign registrations, at most for a few seconds. 0 or an exit code;
 * the log says why.
 */
__attribute__((warn_unused_result)) int registrar_prepare(struct registrar *registrar);

/*
 * Call when the server listens: registers, or serves port 111. Refused calls are reported to the
 * core. on_registered may be called before this returns. 0 or an exit code.
 */
__attribute__((warn_unused_result)) int registrar_start(struct registrar *registrar,
                                                        struct core *core);

/* The end of a turn: answers of our own portmapper leave. */
void registrar_turn(struct registrar *registrar);

/* For /readyz: false with the reason in words when clients cannot find us. */
bool registrar_is_ready(const struct registrar *registrar, struct text *ret_reason);

/* Monitor: this machine's NFS server and lock manager are registered; the latter is. */
bool registrar_is_served(const struct registrar *registrar);
bool registrar_has_lock_manager(const struct registrar *registrar);
/* Monitor: somebody waits for that: looked at often. */
void registrar_watch(struct registrar *registrar, bool is_watched);

/* SIGTERM: removes what is still ours. registrar_is_stopped reports when that is done. */
void registrar_stop(struct registrar *registrar);
bool registrar_is_stopped(const struct registrar *registrar);

/* Closes everything. Free the memory when the loop has closed the handles; NULL is legal in both.
 */
void registrar_close(struct registrar *registrar);
void registrar_free(struct registrar *registrar);

#endif
