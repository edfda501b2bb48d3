/*
 * still.c -- a server that does not run, and what waits for it meanwhile; see still.h.
 */
#include "still.h"

#include "era.h"
#include "line.h"
#include "machine.h"
#include "mail.h"

#include <stdlib.h>

#define LOOP_NS     (250 * MILLISECOND) /* the loop of the daemon looks at the clock that often */
#define LISTENS_NS  (30 * SECOND)
#define FORGIVEN_NS SECOND /* shorter standstills count (decision 022) */

static uint64_t below(struct world *world, uint64_t limit)
{
    return prng_below(&world->still_prng, limit);
}

static bool chance(struct world *world, uint32_t percent)
{
    return prng_chance(&world->still_prng, percent);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- time ---- */

bool still_is(const struct world *world)
{
    return world->machine.still.until_ns != 0;
}

uint64_t still_lived_ns(const struct world *world)
{
    const struct still *still = &world->machine.still;
    return (still_is(world) ? still->since_ns : world->now_ns) - still->left_out_ns;
}

static uint64_t listens_ns(const struct world *world)
{
    return min_u64(LISTENS_NS, world->plan.grace_ns / 2);
}

uint64_t still_due_ns(const struct world *world)
{
    const struct still *still = &world->machine.still;
    uint64_t now_ns = still_lived_ns(world), listens = listens_ns(world);
    if (!still->is_reading)
        return now_ns;
    return max_u64(still->heard_ns, now_ns > listens ? now_ns - listens : 0);
}

uint64_t still_listens_ns(const struct world *world)
{
    const struct still *still = &world->machine.still;
    return still->is_reading || world->now_ns <= still->full_ns ? listens_ns(world) : 0;
}

/* ---- it stands ---- */

/* From less than what a loop forgives to longer than most graces. */
static uint64_t choose_ns(struct world *world)
{
    if (chance(world, 45))
        return 300 * MILLISECOND + below(world, SECOND);
    return 300 * MILLISECOND + below(world, (chance(world, 70) ? 8 : 60) * SECOND);
}

void still_init(struct world *world)
{
    if (world->plan.still_mean_ns > 0)
        queue_add(&world->queue, below(world, 2 * world->plan.still_mean_ns), QUEUE_STAND, NULL, 0);
}

void still_begin(struct world *world, uint64_t for_ns, uint32_t step)
{
    struct machine *machine = &world->machine;
    struct still *still = &machine->still;
    uint64_t looked_ns = world->now_ns;
    if (step != 0) {
        still->turn_ns = machine_now_ns(world); /* of the whole turn */
    } else {
        if (!world->is_manual)
            looked_ns -= min_u64(looked_ns, below(world, LOOP_NS));
        looked_ns = max_u64(looked_ns, machine->pace.clock_ns);
        (void)pace_now_ns(&machine->pace, looked_ns);
    }
    still->since_ns = world->now_ns;
    still->awake_ns = looked_ns + LOOP_NS;
    still->until_ns = world->now_ns + for_ns;
    still->step = step;
    still->room = world->is_manual ? UINT32_MAX : 1 + (uint32_t)below(world, 24);
    world_trace(world, "STILL: the server does not run for %llu ms%s",
                (unsigned long long)(for_ns / MILLISECOND), step != 0 ? ", inside a turn" : "");
    queue_add(&world->queue, still->until_ns, QUEUE_WAKE, NULL, ++still->ticket);
}

static bool may_begin(const struct world *world)
{
    return world->machine.is_up && !still_is(world) && !world->is_calm && !world->is_manual &&
           world->plan.still_mean_ns > 0 && !world->machine.still.is_resuming;
}

void still_stand(struct world *world, uint64_t ticket)
{
    if (ticket == 0 && !world->is_calm)
        queue_add(&world->queue, world->now_ns + 1 + below(world, 2 * world->plan.still_mean_ns),
                  QUEUE_STAND, NULL, 0);
    if (may_begin(world))
        still_begin(world, choose_ns(world), 0);
}

bool still_here(struct world *world, uint32_t step)
{
    if (!may_begin(world) || below(world, 10000) >= world->plan.still_step_permyriad)
        return false;
    still_begin(world, choose_ns(world), step);
    return true;
}

void still_grace(struct world *world)
{
    uint64_t grace_ns = world->plan.grace_ns;
    if (!may_begin(world) || !chance(world, 40))
        return;
    uint64_t after_ns = below(world, grace_ns);
    if (chance(world, 60))
        after_ns = grace_ns - min_u64(grace_ns, below(world, SECOND));
    queue_add(&world->queue, world->now_ns + after_ns, QUEUE_STAND, NULL, 1);
}

/* ---- what waits ---- */

static bool is_datagram(const struct queue_event *event)
{
    const struct letter *letter = event->subject;
    const struct parcel *parcel = event->subject;
    if (event->name == QUEUE_NOTICE)
        return true;
    if (event->name == QUEUE_MAIL)
        return mail_is_datagram(event->subject);
    if (event->name == QUEUE_PARCEL)
        return parcel->connection == NULL;
    return event->name == QUEUE_LETTER && letter->line == NULL;
}

static bool is_for_server(const struct queue_event *event)
{
    const struct parcel *parcel = event->subject;
    switch (event->name) {
    case QUEUE_PARCEL:
        return parcel->to_server;
    case QUEUE_MAIL:
        return mail_is_to_server(event->subject);
    case QUEUE_LETTER:
        return line_is_to_server(event->subject);
    case QUEUE_NOTICE:
    case QUEUE_COMMIT:
    case QUEUE_READY:
    case QUEUE_TICK:
    case QUEUE_SESSION:
    case QUEUE_STRANGER:
    case QUEUE_ORDER:
    case QUEUE_RESOLVED:
        return true;
    case QUEUE_OWNER:
    case QUEUE_CRASH:
    case QUEUE_BOOT:
    case QUEUE_VANDAL:
    case QUEUE_REBOOT:
    case QUEUE_CALM:
    case QUEUE_MOOD:
    case QUEUE_MARKS:
    case QUEUE_PROCESS:
    case QUEUE_STATD:
    case QUEUE_THAW:
    case QUEUE_STAND:
    case QUEUE_WAKE:
    case QUEUE_PROGRAM:
    case QUEUE_VANISH:
        return false;
    }
    return false;
}

static void free_subject(const struct queue_event *event)
{
    if (event->name == QUEUE_MAIL || event->name == QUEUE_PARCEL || event->name == QUEUE_LETTER)
        free(event->subject);
}

static void keep(struct still *still, const struct queue_event *event)
{
    if (still->count == still->max) {
        still->max = still->max ? 2 * still->max : 32;
        still->held = realloc(still->held, still->max * sizeof *still->held);
        if (still->held == NULL)
            abort();
    }
    still->held[still->count++] = *event;
}

bool still_holds(struct world *world, const struct queue_event *event)
{
    struct still *still = &world->machine.still;
    if (!still_is(world) || !is_for_server(event))
        return false;
    if (is_datagram(event) && still->room == 0) {
        world_trace(world, "a datagram finds no room in the socket");
        free_subject(event);
        return true;
    }
    still->room -= is_datagram(event);
    keep(still, event);
    return true;
}

/* ---- it goes on ---- */

static bool is_timer(const struct queue_event *event)
{
    return event->name == QUEUE_TICK || event->name == QUEUE_READY;
}

/* Timers before sockets, and both before anything is given up that may be waiting there. */
static void catch_up(struct world *world)
{
    struct machine *machine = &world->machine;
    struct still *still = &machine->still;
    struct queue_event *held = still->held;
    uint32_t count = still->count;
    still->held = NULL;
    still->count = still->max = 0;
    still->is_reading = true;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const struct queue_event *event = &held[i % count];
        if (is_timer(event) != (i < count))
            continue;
        if (still_is(world)) {
            keep(still, event);
            continue;
        }
        if (machine->is_up)
            core_listen_first(machine->core);
        world_handle(world, event);
    }
    still->is_reading = false;
    free(held);
}

/* The rest of the turn happens at the time at which it began. */
static void finish_turn(struct world *world)
{
    struct still *still = &world->machine.still;
    uint32_t step = still->step;
    still->step = 0;
    if (step == 0)
        return;
    still->is_resuming = true;
    machine_turn_from(world, step);
    still->is_resuming = false;
    still->turn_ns = 0;
}

void still_wake_now(struct world *world)
{
    struct machine *machine = &world->machine;
    struct still *still = &machine->still;
    if (!still_is(world))
        return;
    world_trace(world, "it goes on, after %llu ms",
                (unsigned long long)((world->now_ns - still->since_ns) / MILLISECOND));
    finish_turn(world);
    if (!still_is(world))
        return; /* it died */
    still->heard_ns = still_lived_ns(world);
    if (world->now_ns > still->awake_ns && world->now_ns - still->awake_ns > FORGIVEN_NS)
        still->left_out_ns += world->now_ns - still->awake_ns;
    pace_sleep(&machine->pace, still->awake_ns);
    (void)pace_now_ns(&machine->pace, world->now_ns);
    pace_sleep(&machine->pace, UINT64_MAX);
    still->until_ns = 0;
    catch_up(world);
}

void still_wake(struct world *world, uint64_t ticket)
{
    if (ticket == world->machine.still.ticket)
        still_wake_now(world);
}

void still_end(struct world *world)
{
    struct still *still = &world->machine.still;
    struct queue_event *held = still->held;
    uint32_t count = still->count;
    still->held = NULL;
    still->count = still->max = still->step = 0;
    still->until_ns = still->turn_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        world_handle(world, &held[i]);
    free(held);
}

void still_done(struct world *world)
{
    struct still *still = &world->machine.still;
    for (uint32_t i = 0; i < still->count; i++)
        free_subject(&still->held[i]);
    free(still->held);
}
