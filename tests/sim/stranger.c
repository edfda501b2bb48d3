/*
 * stranger.c -- who the strangers are, when they send, and how they are called; see stranger.h.
 *
 * Their choices come from a generator of their own. Strict worlds, in which everybody is told in
 * time, stay strict: the tables have room for the shares of all strangers, and what they may not
 * take is what is tested.
 */
#include "stranger.h"

#include "core/turn.h"
#include "era.h"
#include "machine.h"
#include "net.h"
#include "still.h"

#include <stdlib.h>

#define CALL_MAX_NS (3 * SECOND)

static const char *const addresses[STRANGER_MAX] = {"203.0.113.6", "2001:db8:666::6",
                                                    "203.0.113.7"};

static uint64_t any(struct strangers *all, uint64_t below)
{
    return prng_below(&all->prng, below);
}

/* ---- who ---- */

static void init_host(struct strangers *all, uint32_t who)
{
    struct host *host = &all->hosts[who];
    *host = (struct host){.index = HOST_ALL_MAX + who,
                          .kind = CALLEE_BOTH,
                          .versions = 1U << 2 | 1U << 3 | 1U << 4,
                          .port_base = (uint16_t)(600 + 8 * who)};
    if (!address_parse(bytes_of_text(addresses[who]), &host->address))
        abort();
    const char *local = host->address.family == 4 ? "192.0.2.1" : "2001:db8::2:1";
    if (!address_parse(bytes_of_text(local), &host->local))
        abort();
    all->is_silent[who] = prng_chance(&all->prng, 50);
    host->mood = all->is_silent[who] ? CALLEE_SILENT : CALLEE_WELL;
}

/* Nobody meets a limit in a world that has none: the shares of the strangers leave enough. */
static void make_room(struct world *world)
{
    struct plan *plan = &world->plan;
    if (!plan->few_calls) /* as many as may be under way to them, and not many more */
        plan->calls_max = TURN_CALLS_MAX * world->strangers->count + 36;
    if (world->lockers == NULL || world->lockers->plan.is_limited)
        return;
    plan->lines_max = plan->calls_max;
    plan->locks_max = plan->locks_per_client_max = plan->waiters_max = 1000;
    plan->clients_max = 200;
    plan->per_address_percent = STRANGER_PERCENT;
}

void stranger_add(struct world *world, uint32_t count, struct prng prng)
{
    struct strangers *all = world->strangers = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    all->prng = prng;
    all->count = count;
    for (uint32_t i = 0; i < all->count; i++)
        init_host(all, i);
}

void stranger_init(struct world *world)
{
    struct prng prng = {world->options.seed * UINT64_C(0xd1342543de82ef95) + 11};
    if (!prng_chance(&prng, 40))
        return;
    uint32_t count = 1 + (uint32_t)prng_below(&prng, STRANGER_MAX);
    stranger_add(world, count, prng);
    struct strangers *all = world->strangers;
    all->intrudes = world->lockers != NULL && prng_chance(&all->prng, 50);
    all->poses = prng_chance(&all->prng, 50);
    make_room(world);
    queue_add(&world->queue, any(all, 5 * SECOND), QUEUE_STRANGER, NULL, 0);
}

void stranger_done(struct world *world)
{
    free(world->strangers);
}

struct host *stranger_host(struct world *world, const struct address *address)
{
    struct strangers *all = world->strangers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        if (address_equal(&all->hosts[i].address, address))
            return &all->hosts[i];
    return NULL;
}

bool stranger_is_at(const struct world *world, const struct address *address)
{
    const struct strangers *all = world->strangers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        if (address_equal(&all->hosts[i].address, address))
            return true;
    return false;
}

/* ---- when ---- */

static void begin_row(struct world *world)
{
    struct strangers *all = world->strangers;
    uint64_t dice = any(all, 100);
    all->theme = (enum stranger_theme)any(all, STRANGER_THEME_END);
    if (world->lockers != NULL && prng_chance(&all->prng, 15))
        all->theme = STRANGER_OFFERS;
    all->said = 0;
    all->row++;
    all->length = (uint32_t)(dice < 45   ? 1 + any(all, 3)
                             : dice < 88 ? 4 + any(all, 30)
                                         : 34 + any(all, 467));
    all->every_ns = 1 + any(all, dice < 50 ? 100 * MILLISECOND : 2 * MILLISECOND);
    if (all->theme == STRANGER_OFFERS) {
        all->length = 60 + (uint32_t)any(all, 140);
        all->every_ns = 1 + any(all, 2 * MILLISECOND);
    }
    all->who = (uint32_t)any(all, all->count);
    all->is_tcp = prng_chance(&all->prng, 50);
    all->route = NET_STRANGER_ROUTE + any(all, 1000);
    all->port =
        (uint16_t)(prng_chance(&all->prng, 50) ? 600 + any(all, 200) : 2000 + any(all, 9000));
    all->xid = (uint32_t)prng_next(&all->prng);
    all->version = prng_chance(&all->prng, 60) ? 4 : prng_chance(&all->prng, 60) ? 3 : 1;
    static const enum callee_mood moods[] = {CALLEE_WELL,    CALLEE_SLOW,      CALLEE_REFUSING,
                                             CALLEE_FAILING, CALLEE_VANISHING, CALLEE_TWICE,
                                             CALLEE_DEAF,    CALLEE_SILENT};
    if (!all->is_silent[all->who])
        all->hosts[all->who].mood = moods[any(all, sizeof moods / sizeof moods[0])];
    world_trace(world, "stranger %u begins a row of %u, theme %d", all->who, all->length,
                (int)all->theme);
}

/* Frees what the client in the next slots of the disk has, if it is one of theirs. True: that was
 * the last. */
static bool let_go_of_one(struct world *world)
{
    struct strangers *all = world->strangers;
    uint32_t clients = disk_slots_used(&world->disk, RECORD_CLIENT);
    uint32_t registrants = disk_slots_used(&world->disk, RECORD_REGISTRANT);
    for (; all->farewell_slot < clients + registrants; all->farewell_slot++) {
        uint32_t slot = all->farewell_slot;
        bool is_client = slot < clients, is_taken = true;
        slot -= is_client ? 0 : clients;
        struct bytes value =
            disk_at(&world->disk, is_client ? RECORD_CLIENT : RECORD_REGISTRANT, slot);
        struct record_client client = {0};
        struct record_registrant registrant = {0};
        if (value.len == 0 ||
            (is_client ? record_get_client(value, slot, &client)
                       : record_get_registrant(value, slot, &registrant)) != RECORD_GOOD)
            continue;
        const struct host *host =
            stranger_host(world, is_client ? &client.address : &registrant.address);
        if (host == NULL)
            continue;
        is_taken = is_client
                       ? stranger_frees(world, host->index - HOST_ALL_MAX, client.caller_name)
                       : stranger_unmonitors(world, host->index - HOST_ALL_MAX, registrant.my_name);
        all->farewell_slot += is_taken;
        return false;
    }
    all->farewell_slot = 0;
    return true;
}

static void say_farewell(struct world *world)
{
    struct strangers *all = world->strangers;
    uint64_t delay_ns = 2 * MILLISECOND;
    if (!world->machine.is_up) {
        delay_ns = SECOND;
    } else if (let_go_of_one(world)) {
        delay_ns = all->pause_ns;
        all->pause_ns = all->pause_ns < 100 * SECOND ? 2 * all->pause_ns : 100 * SECOND;
    }
    queue_add(&world->queue, world->now_ns + delay_ns, QUEUE_STRANGER, NULL, 0);
}

void stranger_act(struct world *world)
{
    struct strangers *all = world->strangers;
    if (world->is_calm) {
        if (world->now_ns < world->plan.chaos_ns + 800 * SECOND)
            say_farewell(world);
        return;
    }
    uint64_t delay_ns = all->every_ns;
    if (all->said == all->length)
        begin_row(world);
    if (!world->machine.is_up || era_is_pressing(world))
        delay_ns = SECOND;
    else if (stranger_say(world))
        all->said++;
    else
        delay_ns += 5 * MILLISECOND; /* the server is too busy */
    if (all->said == all->length)
        delay_ns += any(all, 5 * SECOND);
    queue_add(&world->queue, world->now_ns + 1 + delay_ns, QUEUE_STRANGER, NULL, 0);
}

void stranger_be_calm(struct world *world)
{
    struct strangers *all = world->strangers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        all->hosts[i].mood = CALLEE_WELL;
    if (all != NULL)
        all->pause_ns = SECOND;
}

/* ---- called ---- */

bool stranger_execute(struct world *world, struct bytes message, struct packet *reply)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct strangers *all = world->strangers;
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call;
    packet_clear(reply);
    if (!packet_get_call(&reader, &call))
        world_fail(world, "P5", "what a stranger is sent is no call");
    packet_put_accepted(reply, call.xid, PACKET_SUCCESS);
    bool is_granted = call.prog == PEER_NLM_PROGRAM &&
                      (call.proc == PEER_NLM_GRANTED || call.proc == PEER_NLM_GRANTED_MSG);
    if (is_granted && !peer_nlm_get_args(&reader, call.vers, call.proc, &args))
        world_fail(world, "L8", "a callback to a stranger cannot be read");
    if (is_granted && args.cookie.len == 8)
        all->cookie = (uint64_t)load_be32(args.cookie.at) << 32 | load_be32(args.cookie.at + 4);
    if (is_granted && call.proc == PEER_NLM_GRANTED) {
        memset(&res, 0, sizeof res);
        res.cookie = args.cookie;
        res.status = world->is_calm ? PEER_NLM_IS_DENIED : (uint32_t)any(all, 6);
        peer_nlm_put_res(reply, call.vers, PEER_NLM_GRANTED, &res);
    } else if (call.prog == 100024 && call.proc == 1) { /* SM_STAT: any number */
        packet_put_u32(reply, 0);
        packet_put_u32(reply, 101 + 2 * (uint32_t)any(all, 3000));
    }
    return world->is_calm || prng_chance(&all->prng, 80);
}

/* ---- what others may feel of them ---- */

bool stranger_is_in_the_way(const struct world *world, const struct extent *extent)
{
    if (world->strangers == NULL)
        return false;
    const struct cells *asked = &world->strangers->asked[extent->file];
    return ((extent->exclusive ? asked->any : asked->exclusive) &
            locker_cells(extent->offset, extent->len)) != 0;
}

bool stranger_may_share(const struct world *world, uint32_t file)
{
    return world->strangers != NULL && world->strangers->has_shared[file];
}

bool stranger_is_owner(const struct peer_nlm_bytes *oh)
{
    return oh->len >= 8 && memcmp(oh->at, "stranger", 8) == 0;
}

static bool is_locker(const struct world *world, struct bytes name)
{
    const struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        if (bytes_equal_fold(bytes_of_text(all->at[i].name), name))
            return true;
    return false;
}

bool stranger_may_watch(const struct world *world, struct bytes mon_name)
{
    bool is_own = mon_name.len >= 9 && memcmp(mon_name.at, "stranger-", 9) == 0;
    return world->strangers != NULL && (is_own || is_locker(world, mon_name));
}

bool stranger_is_spoken_for(const struct world *world, const struct record_notice *notice)
{
    return !world->strangers->poses && is_locker(world, notice->mon_name) &&
           stranger_is_at(world, &notice->address);
}

uint32_t stranger_keys(const struct world *world)
{
    return world->strangers != NULL ? world->strangers->keys : 0;
}

uint64_t stranger_taken(const struct world *world)
{
    return world->strangers != NULL ? world->strangers->taken : 0;
}

/* ---- P7 ---- */

/* An offer of this run, for what it waits for; what a run before has left is reclaimed, not called
 * for. */
static bool is_offered(const struct world *world, struct process *process)
{
    const struct extent *wish = &process->wish;
    uint16_t cells = locker_cells(wish->offset, wish->len);
    if (!process->has_offer)
        process->clear_run = world->machine.run;
    if ((cells & ~process->held[wish->file].exclusive) == 0)
        return false; /* it took that, which was not heard, and asks again */
    return process->has_offer && process->clear_run == world->machine.run && process->is_waiting &&
           !process->is_cancelling;
}

static void check_process(struct world *world, struct process *process)
{
    if (!is_offered(world, process)) {
        process->offered_ns = 0;
        return;
    }
    if (process->offered_ns == 0) {
        process->offered_ns = world->now_ns;
        process->offered_lived_ns = still_lived_ns(world);
    }
    uint64_t since_ns = process->offered_ns;
    if (process->locker->host->tried_ns >= since_ns || !world->machine.is_ready)
        return;
    if (still_lived_ns(world) >
        process->offered_lived_ns + CALL_MAX_NS + 8 * world->plan.commit_max_ns)
        world_fail(world, "P7", "%s/%u was offered a lock %llu ms ago, and is not called",
                   process->locker->label, process->svid,
                   (unsigned long long)((world->now_ns - since_ns) / MILLISECOND));
}

void stranger_check_calls(struct world *world)
{
    struct lockers *all = world->lockers;
    const struct plan *plan = &world->plan;
    if (all == NULL || !world->machine.is_up || world->is_unjudged || plan->few_calls ||
        plan->lines_max < (world->strangers != NULL ? plan->calls_max : 64) || plan->stall > 0)
        return;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            check_process(world, &all->at[i].processes[p]);
}
