/*
 * names.h -- what clients may call this server (R-NOTIFY-2): what the options and the host say, and
 * what the resolver knows.
 *
 *   --name, hostname, short name    known at once: they go into the limits of the core
 *   full name of this host           asked off the loop, and only when somebody is to be told
 *   names of our addresses           of a restart; told to the core when they come
 *
 * No start waits longer than NAMES_PATIENCE_MS for a resolver, and none waits without a reason.
 */
#ifndef DAEMON_NAMES_H
#define DAEMON_NAMES_H

#include "core/core.h"
#include "daemon/config.h"

#include <uv.h>

#define NAMES_PATIENCE_MS 2000

struct names;

/* NULL: no memory. */
struct names *names_new(uv_loop_t *loop, const struct config *config);
void names_free(struct names *names);

/* What registrants are told our name is (D3): the first --name, or what this host calls itself. */
struct bytes names_first(const struct names *names);
/* Those that are known at once; the array lives as long as `names`. */
uint32_t names_list(const struct names *names, const struct bytes **ret);

/* Other options: the list is another one from now on. */
void names_change(struct names *names, const struct config *config);

/* Asks the resolver what this core needs; when all of it came, or the time is over, on_done is
 * called, once, also from inside. */
typedef void (*names_done_fn)(void *context);
void names_ask(struct names *names, struct core *core, void *context, names_done_fn on_done);

/*
 * Nothing more is asked, and on_done is not called. False: the resolver is at work and cannot be
 * interrupted; the process must then end without waiting for it. True: names_free may follow when
 * the loop has closed all handles.
 */
__attribute__((warn_unused_result)) bool names_close(struct names *names);

#endif
