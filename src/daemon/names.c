/*
 * names.c -- see names.h.
 *
 * An answer of the resolver that comes too late for readiness is learned all the same: clients that
 * are tried again hear it.
 *
 * "localhost" is what every host calls itself. Where the host's own name is that, it is not said to
 * others: a client may watch itself under it.
 */
#include "daemon/names.h"

#include "base/check.h"
#include "daemon/resolver.h"

#include <stdlib.h>
#include <unistd.h>

enum { HOST_NAME_MAX_LEN = 255, THIS_HOST = CORE_LOCALS_MAX };

_Static_assert(CONFIG_NAME_MAX + 2 <= CORE_NAMES_MAX, "every --name, the hostname, the short one");

struct names {
    uv_loop_t *loop;
    char host_name[HOST_NAME_MAX_LEN + 1];
    struct bytes first;
    struct bytes list[CORE_NAMES_MAX];
    uint32_t count;

    /* While the resolver is asked. */
    struct core *core;
    void *context;
    names_done_fn on_done; /* NULL: called, or nobody waits */
    uv_timer_t patience;
    bool has_timer;
    struct resolver *resolver;
    uint32_t local_count;
    struct address locals[CORE_LOCALS_MAX]; /* a question's id is the place of its address */
};

static void on_answer(void *context, uint64_t id, const struct resolver_answer *answer);

/* ---- what is known at once ---- */

static bool is_loopback_name(struct bytes name)
{
    struct bytes local = bytes_of_text("localhost");
    return name.len >= local.len && bytes_equal_fold((struct bytes){name.at, local.len}, local) &&
           (name.len == local.len || name.at[local.len] == '.');
}

static void add(struct names *names, struct bytes name)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (bytes_equal(names->list[i], name))
            return;
    CHECK(names->count < CORE_NAMES_MAX);
    names->list[names->count++] = name;
}

void names_change(struct names *names, const struct config *config)
{
    names->count = 0;
    for (uint32_t i = 0; i < config->names.count; i++)
        add(names, bytes_of_text(config->names.at[i]));
    struct bytes host = bytes_of_text(names->host_name);
    if (host.len > 0 && host.at[0] != '.' && !is_loopback_name(host)) {
        add(names, host);
        add(names, (struct bytes){host.at, (uint32_t)strcspn(names->host_name, ".")});
    }
    names->first = names->count > 0 ? names->list[0] : bytes_of_text("localhost");
}

struct names *names_new(uv_loop_t *loop, const struct config *config)
{
    struct names *names = calloc(1, sizeof *names);
    if (names == NULL)
        return NULL;
    names->loop = loop;
    names->resolver = resolver_new(loop, CORE_LOCALS_MAX + 1, names, on_answer);
    if (names->resolver == NULL) {
        free(names);
        return NULL;
    }
    if (gethostname(names->host_name, HOST_NAME_MAX_LEN) != 0)
        names->host_name[0] = '\0';
    names_change(names, config);
    return names;
}

void names_free(struct names *names)
{
    if (names == NULL)
        return;
    resolver_free(names->resolver);
    free(names);
}

struct bytes names_first(const struct names *names)
{
    return names->first;
}

uint32_t names_list(const struct names *names, const struct bytes **ret)
{
    *ret = names->list;
    return names->count;
}

/* ---- what the resolver knows ---- */

static void stop_waiting(struct names *names)
{
    names_done_fn on_done = names->on_done;
    names->on_done = NULL;
    if (names->has_timer && !uv_is_closing((uv_handle_t *)&names->patience))
        uv_close((uv_handle_t *)&names->patience, NULL);
    if (on_done != NULL)
        on_done(names->context);
}

static void on_patience_over(uv_timer_t *timer)
{
    stop_waiting(timer->data);
}

/* The core is told only while the server runs: names_close takes it away. */
static void learn(struct names *names, const struct address *local, const char *name)
{
    if (names->core != NULL && name != NULL)
        core_learn_name(names->core, local, bytes_of_text(name));
}

static void on_answer(void *context, uint64_t id, const struct resolver_answer *answer)
{
    struct names *names = context;
    if (id != THIS_HOST)
        learn(names, &names->locals[id], answer->name);
    else if (answer->name != NULL && !is_loopback_name(bytes_of_text(answer->name)))
        learn(names, NULL, answer->name);
    if (resolver_open_count(names->resolver) == 0)
        stop_waiting(names);
}

static void ask_host(struct names *names)
{
    if (names->host_name[0] == '\0' || strchr(names->host_name, '.') != NULL)
        return; /* there is none, or it is the full name already */
    (void)resolver_ask_host(names->resolver, THIS_HOST,
                            bytes_of_text(names->host_name)); /* or not */
}

void names_ask(struct names *names, struct core *core, void *context, names_done_fn on_done)
{
    names->core = core;
    names->context = context;
    names->on_done = on_done;
    names->local_count = core_list_locals(core, names->locals, CORE_LOCALS_MAX);
    if (names->local_count > 0) /* somebody is to be told */
        ask_host(names);
    for (uint32_t i = 0; i < names->local_count; i++)
        (void)resolver_ask_address(names->resolver, i, &names->locals[i]); /* or not */
    if (resolver_open_count(names->resolver) == 0) {
        stop_waiting(names);
        return;
    }
    CHECK(uv_timer_init(names->loop, &names->patience) == 0);
    names->has_timer = true;
    names->patience.data = names;
    CHECK(uv_timer_start(&names->patience, on_patience_over, NAMES_PATIENCE_MS, 0) == 0);
}

bool names_close(struct names *names)
{
    if (names == NULL)
        return true;
    names->core = NULL;
    names->on_done = NULL;
    stop_waiting(names);
    return resolver_close(names->resolver);
}
