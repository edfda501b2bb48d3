/*
 * ghost.c -- the kernel and the last words of a replaced server; see ghost.h.
 */
#include "ghost.h"

#include "base/hash.h"
#include "line.h"
#include "machine.h"
#include "mail.h"
#include "net.h"

#define KEPT_NS (10 * SECOND) /* CLOCK_KEPT_MS of wire/clock.h: TCP_USER_TIMEOUT */

bool ghost_may_send(const struct world *world)
{
    return !world->plan.is_shared || world->now_ns < world->machine.send_until_ns;
}

bool ghost_is(const struct world *world, uint32_t run)
{
    const struct machine *machine = &world->machine;
    return machine->ghost.client != NULL && machine->ghost.run == run;
}

bool ghost_delivers(const struct world *world, uint32_t run, uint64_t sent_ns)
{
    return !ghost_is(world, run) || world->now_ns <= sent_ns + KEPT_NS;
}

/* The process has ended: what its kernel has not delivered is gone (SO_LINGER 0). */
static void end(struct world *world)
{
    struct ghost *ghost = &world->machine.ghost;
    uint32_t run = ghost->run;
    if (ghost->client == NULL)
        return;
    ghost_done(world);
    net_break_connections(world, run);
    mail_break_all(world, run);
    line_cut_all(world, run);
}

void ghost_done(struct world *world)
{
    struct ghost *ghost = &world->machine.ghost;
    rpc_client_free(ghost->client);
    rpc_server_free(ghost->server);
    core_free(ghost->core);
    *ghost = (struct ghost){0};
}

bool ghost_leave(struct world *world)
{
    struct machine *machine = &world->machine;
    end(world); /* one of before, which has slept through two of them */
    bool is_still = hash_mix(world->options.seed, machine->run) % 2 == 0 || machine->leaves_ghost;
    if (!world->plan.is_shared || !is_still)
        return false;
    machine->ghost = (struct ghost){.core = machine->core,
                                    .server = machine->server,
                                    .client = machine->client,
                                    .run = machine->run,
                                    .was_inside = machine->is_inside || machine->still.step != 0,
                                    .send_until_ns = machine->send_until_ns};
    machine->core = NULL;
    machine->server = NULL;
    machine->client = NULL;
    return true;
}

void ghost_meet(struct world *world)
{
    uint64_t chance = hash_mix(world->options.seed + 1, world->machine.run);
    uint64_t after_ns = chance % 3 == 0 ? chance % (2 * SECOND) : chance % (15 * SECOND);
    if (world->machine.ghost.client != NULL)
        queue_add(&world->queue, world->now_ns + after_ns, QUEUE_THAW, NULL,
                  world->machine.ghost.run);
}

void ghost_thaw(struct world *world, uint64_t run)
{
    struct ghost *ghost = &world->machine.ghost;
    struct rpc_reply reply;
    if (!ghost_is(world, (uint32_t)run))
        return;
    bool is_late = world->now_ns >= ghost->send_until_ns;
    world_trace(world, "THAW: the server of run %llu goes on%s", (unsigned long long)run,
                is_late ? "" : ", and may still send");
    ghost->is_speaking = true;
    rpc_client_tick(ghost->client, world->now_ns);
    line_turn_ghost(world, is_late);
    while (rpc_server_next(ghost->server, world->now_ns, &reply))
        if (!is_late)
            machine_release(world, &reply);
    end(world);
}
