/*
 * resolving.c -- see resolving.h.
 *
 * A result may come while the core's open batch is full: it then waits in its slot.
 */
#include "daemon/resolving.h"

#include "base/check.h"
#include "daemon/resolver.h"

#include <stdlib.h>

/* A look-up of the core. */
struct place {
    uint64_t id;
    bool is_used, is_answered;
    uint32_t address_count;
    struct address addresses[RESOLVER_ADDRESSES_MAX];
};

struct resolving {
    struct core *core;
    struct rpc_server *server;
    struct resolver *resolver;
    struct place places[RESOLVING_MAX];
};

static void on_answer(void *context, uint64_t index, const struct resolver_answer *answer)
{
    struct resolving *resolving = context;
    struct place *place = &resolving->places[index];
    CHECK(place->is_used && !place->is_answered);
    place->is_answered = true;
    place->address_count = answer->address_count;
    if (answer->address_count > 0)
        memcpy(place->addresses, answer->addresses,
               answer->address_count * sizeof place->addresses[0]);
}

struct resolving *resolving_new(uv_loop_t *loop, struct core *core, struct rpc_server *server)
{
    struct resolving *resolving = calloc(1, sizeof *resolving);
    if (resolving == NULL)
        return NULL;
    resolving->core = core;
    resolving->server = server;
    resolving->resolver = resolver_new(loop, RESOLVING_MAX, resolving, on_answer);
    if (resolving->resolver == NULL) {
        free(resolving);
        return NULL;
    }
    return resolving;
}

void resolving_free(struct resolving *resolving)
{
    if (resolving == NULL)
        return;
    resolver_free(resolving->resolver);
    free(resolving);
}

static void tell(struct resolving *resolving, struct place *place, uint64_t now_ns,
                 uint64_t wall_ns)
{
    struct core_input input = {.kind = CORE_RESOLVED,
                               .now_ns = now_ns,
                               .wall_ns = wall_ns,
                               .lookup = place->id,
                               .addresses = place->addresses,
                               .address_count = place->address_count};
    rpc_server_step(resolving->server, &input, NULL);
    place->is_used = false;
}

void resolving_turn(struct resolving *resolving, uint64_t now_ns, uint64_t wall_ns)
{
    struct core_lookup lookup;
    for (uint32_t i = 0; i < RESOLVING_MAX; i++) {
        struct place *place = &resolving->places[i];
        if (place->is_used && place->is_answered && !core_is_full(resolving->core))
            tell(resolving, place, now_ns, wall_ns);
        if (place->is_used || !core_next_lookup(resolving->core, now_ns, &lookup))
            continue;
        *place = (struct place){.id = lookup.id, .is_used = true};
        place->is_answered = !resolver_ask_host(resolving->resolver, i, lookup.name);
    }
}

uint64_t resolving_deadline_ns(const struct resolving *resolving)
{
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < RESOLVING_MAX; i++) {
        const struct place *place = &resolving->places[i];
        if (place->is_used && place->is_answered && !core_is_full(resolving->core))
            return 0;
        if (!place->is_used)
            next_ns = core_lookup_deadline_ns(resolving->core);
    }
    return next_ns;
}

bool resolving_close(struct resolving *resolving)
{
    return resolving == NULL || resolver_close(resolving->resolver);
}
