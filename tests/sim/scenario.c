/*
 * scenario.c -- named stories; see scenario.h.
 *
 * A story runs in a world without faults in which owners do only what they are told. Four owners
 * speak UDP: 0 on a privileged port of the loopback address, 1, 2 and 3 at other hosts. Each has
 * two keys, and is registered with the portmapper of its host. The oracle watches as always.
 */
#include "scenario.h"

#include "audit.h"
#include "base/check.h"
#include "callee.h"
#include "machine.h"
#include "net.h"
#include "oracle.h"
#include "peer/peer_nsm.h"
#include "rpc/drc.h"
#include "told.h"
#include "watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT SCENARIO_EXPECT

/* The owner sends; nothing happens yet. */
static struct call *ask(struct world *world, uint32_t owner, uint32_t procedure, uint32_t key)
{
    struct owner *who = &world->owners[owner];
    bool has_key = procedure == PEER_NSM_MON || procedure == PEER_NSM_UNMON;
    struct call *call = watcher_call(world, who, procedure, has_key ? &who->keys[key] : NULL);
    watcher_send(world, who);
    return call;
}

static void wait_ms(struct world *world, uint64_t ms)
{
    world_run_until(world, world->now_ns + ms * MILLISECOND);
}

/* The owner asks and is answered. */
static struct call *ask_and_wait(struct world *world, uint32_t owner, uint32_t procedure,
                                 uint32_t key)
{
    struct call *call = ask(world, owner, procedure, key);
    wait_ms(world, 1000);
    EXPECT(call->is_answered);
    return call;
}

static uint32_t state_of(const struct call *call)
{
    return load_be32(call->reply + call->reply_len - 4);
}

static uint32_t registrants_on_disk(const struct world *world)
{
    return disk_count(&world->disk, RECORD_REGISTRANT);
}

/* Kill and restart; the batch in flight lands or not. */
static void restart(struct world *world, bool lands, bool power)
{
    if (world->disk.is_busy && lands)
        EXPECT(disk_apply(&world->disk) == NULL);
    else
        disk_drop(&world->disk);
    machine_crash(world, "killed by the story", power);
    wait_ms(world, 200000);
    EXPECT(world->machine.is_up);
}

SCENARIO(crash_before_answer, "the server dies between SM_MON and its answer, both ways", 0)
{
    for (int lands = 0; lands < 2; lands++) {
        world->machine.holds_commits = true;
        struct call *call = ask(world, 1, PEER_NSM_MON, 0);
        wait_ms(world, 100);
        EXPECT(call->executions == 1 && !call->has_reply);
        world->machine.holds_commits = false;
        world->owners[1].timer++; /* it does not repeat the call by itself */
        restart(world, lands == 1, false);
        EXPECT(!call->is_answered);
        EXPECT(registrants_on_disk(world) == (lands == 1 ? 1 : 0));
        watcher_send(world, &world->owners[1]);
        wait_ms(world, 1000);
        EXPECT(call->is_answered);
        EXPECT(registrants_on_disk(world) == 1);
        (void)ask_and_wait(world, 1, PEER_NSM_UNMON, 0);
        EXPECT(registrants_on_disk(world) == 0);
    }
}

SCENARIO(simu_crash_twice, "SM_SIMU_CRASH raises the state, repeats and strangers do not", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    uint32_t first = state_of(ask_and_wait(world, 0, PEER_NSM_STAT, 0));
    (void)ask_and_wait(world, 0, PEER_NSM_SIMU_CRASH, 0);
    uint32_t second = state_of(ask_and_wait(world, 2, PEER_NSM_STAT, 0));
    EXPECT(second == first + 2);
    struct call *order = ask_and_wait(world, 0, PEER_NSM_SIMU_CRASH, 0);
    net_arrive_late(world, order);                        /* a repeat is not a third crash */
    (void)ask_and_wait(world, 1, PEER_NSM_SIMU_CRASH, 0); /* nor one from another host */
    uint32_t third = state_of(ask_and_wait(world, 2, PEER_NSM_STAT, 0));
    EXPECT(third == second + 2);
    restart(world, false, false);
    EXPECT(state_of(ask_and_wait(world, 2, PEER_NSM_STAT, 0)) == third + 2);
    EXPECT(registrants_on_disk(world) == 1);
}

SCENARIO(duplicate_after_reregistration, "a late copy of SM_UNMON meets a newer registration", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    struct call *removal = ask_and_wait(world, 1, PEER_NSM_UNMON, 0);
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    net_arrive_late(world, removal);
    wait_ms(world, 1000);
    EXPECT(removal->executions == 1);
    EXPECT(registrants_on_disk(world) == 1);
    wait_ms(world, DRC_LIFE_NS / MILLISECOND);
    uint32_t excluded = world->excluded;
    net_arrive_late(world, removal); /* the cache forgot it; the network must not deliver it */
    EXPECT(world->excluded == excluded + 1);
    EXPECT(registrants_on_disk(world) == 1);
}

/* What exclusion (5) of P2 excludes. Users read this in docs/recovery.md. */
SCENARIO(late_datagram, "exclusion (5) of P2: the same after a restart undoes the registration",
         WORLD_LATE)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    struct call *removal = ask_and_wait(world, 1, PEER_NSM_UNMON, 0);
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    EXPECT(registrants_on_disk(world) == 1);
    restart(world, false, false);
    world->is_unjudged = true;
    net_arrive_late(world, removal);
    wait_ms(world, 1000);
    EXPECT(registrants_on_disk(world) == 0); /* the client still believes it is registered */
}

SCENARIO(lost_server_record, "the store lost its counters: the state jumps past the clock", 0)
{
    struct call *call = ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 1);
    wait_ms(world, 1000);
    disk_corrupt(&world->disk, RECORD_SERVER, 0);
    world->ledger.incomplete = true;
    restart(world, false, false);
    EXPECT(registrants_on_disk(world) == 2);
    uint32_t state = state_of(ask_and_wait(world, 1, PEER_NSM_STAT, 0));
    EXPECT(state > state_of(call));
    EXPECT(state >= world_wall_ns(world) / SECOND - 1000);
    restart(world, false, false); /* and the store stays marked */
    EXPECT(registrants_on_disk(world) == 2);
}

/* A clock that begins in 1970 says less than anybody was told. */
SCENARIO(lost_server_record_no_clock, "and past everything that anybody was told", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    for (int i = 0; i < 40; i++)
        restart(world, false, false);
    wait_ms(world, 20000); /* it is told of the last one */
    uint32_t before = state_of(ask_and_wait(world, 1, PEER_NSM_STAT, 0));
    disk_corrupt(&world->disk, RECORD_SERVER, 0);
    world->ledger.incomplete = true;
    world->wall_skew_ns = -(int64_t)(world_wall_ns(world) - SECOND);
    restart(world, false, false);
    EXPECT(state_of(ask_and_wait(world, 1, PEER_NSM_STAT, 0)) > before);
}

/* The same, where nobody's record knows of the last starts, and everybody who asked does. */
SCENARIO(lost_server_record_unknown_starts, "and past what was said and stands in no record", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    world->owners[1].host->mood = CALLEE_SILENT;
    for (int i = 0; i < 40; i++)
        restart(world, false, false);
    uint32_t before = state_of(ask_and_wait(world, 2, PEER_NSM_STAT, 0));
    disk_corrupt(&world->disk, RECORD_SERVER, 0);
    world->ledger.incomplete = true;
    world->wall_skew_ns = -(int64_t)(world_wall_ns(world) - SECOND);
    restart(world, false, false);
    EXPECT(state_of(ask_and_wait(world, 2, PEER_NSM_STAT, 0)) > before);
}

SCENARIO(corrupt_registrant, "a record that cannot be read is dropped, and that is told (D16)", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 0);
    disk_corrupt(&world->disk, RECORD_REGISTRANT, 0);
    world->ledger.incomplete = true;
    world->is_unjudged = true; /* one registration is lost, and the server says so (D16) */
    restart(world, false, false);
    EXPECT(registrants_on_disk(world) == 1);
    struct core_status status;
    core_status(world->machine.core, &status);
    EXPECT(status.registrants == 1 && status.incomplete);
}

SCENARIO(power_loss, "--sync process: power loss may undo a removal, not a registration", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 1, PEER_NSM_UNMON, 0);
    EXPECT(registrants_on_disk(world) == 0);
    restart(world, false, true);
    EXPECT(world->ledger.incomplete);
    EXPECT(registrants_on_disk(world) == 1); /* a removal may be undone, a registration never */
    (void)ask_and_wait(world, 1, PEER_NSM_UNMON, 0);
}

SCENARIO(stalled_store, "SM_NULL is answered at once while all that observes state waits", 0)
{
    world->machine.holds_commits = true;
    struct call *mon = ask(world, 1, PEER_NSM_MON, 0);
    wait_ms(world, 100);
    struct call *stat = ask(world, 2, PEER_NSM_STAT, 0);
    wait_ms(world, 100);
    struct call *null = ask_and_wait(world, 3, PEER_NSM_NULL, 0);
    EXPECT(null->is_answered); /* the server lives */
    EXPECT(!mon->is_answered && !stat->is_answered);
    wait_ms(world, 60000);
    EXPECT(!mon->has_reply && !stat->has_reply);
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    wait_ms(world, 3000);
    EXPECT(mon->is_answered && stat->is_answered);
    EXPECT(mon->executions == 1);
}

/* A client that reboots counts its calls from 1 again: the old answers must not be given to them,
 * also those that were still waiting for the disk when the reboot was announced. */
SCENARIO(reboot_reuses_xids, "a rebooted client numbers its calls anew", 0)
{
    struct owner *owner = &world->owners[1];
    owner->keys[1].name = owner->host->index; /* it watches its own address, so it may speak */
    owner->xid_count = 100;
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 1);
    owner->xid_count = 0;
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    world->machine.holds_commits = true;
    (void)ask(world, 1, PEER_NSM_UNMON, 0);
    wait_ms(world, 10);
    watcher_reboot(world, owner->host);
    struct call *notify = owner->call;
    wait_ms(world, 10);
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    wait_ms(world, 1000);
    EXPECT(notify->is_answered && owner->xid_count == 0);
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 1, PEER_NSM_UNMON, 0);
    EXPECT(registrants_on_disk(world) == 1);
}

/* One host asks more than its share of the duplicate cache; another's entry must survive. */
SCENARIO(cache_quota, "one busy host does not flush the others from the duplicate cache", 0)
{
    struct call *call = ask_and_wait(world, 2, PEER_NSM_MON, 0);
    for (uint32_t i = 0; i < DRC_PER_ADDRESS + 50; i++) {
        (void)ask(world, 1, PEER_NSM_UNMON, 0);
        wait_ms(world, 50);
        EXPECT(world->owners[1].call == NULL);
    }
    net_arrive_late(world, call);
    EXPECT(call->executions == 1);
}

/* ---- calls back ---- */

/* The server dies and is back, ready, and has called for this long. */
static void restart_for_ms(struct world *world, uint64_t ms)
{
    machine_crash(world, "killed by the story", false);
    while (!world->machine.is_up || !world->machine.is_ready)
        wait_ms(world, 1);
    wait_ms(world, ms);
}

/* The last thing that the owner of this key was told. */
static bool was_told(const struct world *world, uint32_t owner, uint32_t key, bool is_restart,
                     uint32_t state)
{
    const struct key *of = &world->owners[owner].keys[key];
    return of->told_count > 0 && of->told[of->told_count - 1].is_restart == is_restart &&
           of->told[of->told_count - 1].state == state;
}

static bool knows_restart(const struct world *world, uint32_t owner)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    return was_told(world, owner, 0, true, status.state);
}

static struct notify_counters notified(const struct world *world)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    return status.notify;
}

static void set_mood(struct world *world, uint32_t owner, enum callee_mood mood)
{
    world->owners[owner].host->mood = mood;
}

SCENARIO(told_of_restart, "every registrant hears of a restart, however it can be reached", 0)
{
    world->owners[2].host->kind = CALLEE_UDP;
    world->owners[3].host->kind = CALLEE_HINT;
    world->owners[0].host->kind = CALLEE_BARE;
    for (uint32_t i = 0; i < 4; i++)
        (void)ask_and_wait(world, i, PEER_NSM_MON, 0);
    restart_for_ms(world, 4900);
    for (uint32_t i = 0; i < 4; i++)
        EXPECT(knows_restart(world, i));
    EXPECT(told_all_ended(world));
    EXPECT(notified(world).succeeded == 4 && notified(world).started == 4);
    (void)ask_and_wait(world, 0, PEER_NSM_SIMU_CRASH, 0);
    wait_ms(world, 4000);
    for (uint32_t i = 0; i < 4; i++)
        EXPECT(knows_restart(world, i));
    EXPECT(told_all_ended(world));
}

/* One that comes up 3 s after our start is reached by the first attempt, one that comes up after a
 * minute by the ladder. */
SCENARIO(up_later, "the first attempt reaches who is up after 3 s, the ladder who is up later", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 0);
    world->plan.window_ns = 10 * SECOND;
    set_mood(world, 1, CALLEE_SILENT);
    set_mood(world, 2, CALLEE_NOT_YET);
    restart_for_ms(world, 3200);
    EXPECT(!knows_restart(world, 1) && !knows_restart(world, 2));
    set_mood(world, 1, CALLEE_WELL);
    wait_ms(world, 1790);
    EXPECT(knows_restart(world, 1));
    EXPECT(notified(world).succeeded == 1);
    wait_ms(world, 55000);
    EXPECT(!knows_restart(world, 2));
    set_mood(world, 2, CALLEE_WELL);
    wait_ms(world, 70000);
    EXPECT(knows_restart(world, 2));
    EXPECT(notified(world).retries_succeeded == 1);
    EXPECT(told_all_ended(world));
}

SCENARIO(second_crash, "crashes in the middle of notification lose no mark", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 0);
    set_mood(world, 2, CALLEE_SILENT);
    restart_for_ms(world, 1000);
    EXPECT(knows_restart(world, 1) && !knows_restart(world, 2));
    for (int round = 0; round < 3; round++)
        restart_for_ms(world, 20);
    set_mood(world, 2, CALLEE_WELL);
    restart_for_ms(world, 3000);
    EXPECT(knows_restart(world, 1) && knows_restart(world, 2));
    EXPECT(told_all_ended(world));
}

SCENARIO(given_up, "after --give-up nobody is called until it calls, or the next start", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    world->plan.window_ns = 5 * SECOND;
    world->plan.give_up_ns = 20 * SECOND;
    world->plan.grace_ns = 0;
    set_mood(world, 1, CALLEE_REFUSING);
    restart_for_ms(world, 40000);
    EXPECT(notified(world).given_up == 1);
    set_mood(world, 1, CALLEE_WELL);
    wait_ms(world, 1000000);
    EXPECT(!knows_restart(world, 1) && !told_all_ended(world));
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0); /* it is heard of again */
    EXPECT(knows_restart(world, 1) && told_all_ended(world));
    set_mood(world, 1, CALLEE_REFUSING);
    restart_for_ms(world, 40000);
    EXPECT(notified(world).given_up == 1);
    set_mood(world, 1, CALLEE_WELL);
    restart_for_ms(world, 1000); /* the next start begins anew */
    EXPECT(knows_restart(world, 1) && told_all_ended(world));
}

/* R-SEC-12: a full table takes a new one for one that was given up, and for no other: who is only
 * idle is owed a notification at any time (P3). */
SCENARIO(given_up_makes_room, "R-SEC-12: a full table takes one for one that was given up", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 0);
    world->plan.window_ns = 5 * SECOND;
    world->plan.give_up_ns = 20 * SECOND;
    world->plan.grace_ns = 0;
    world->machine.clients_max = 2;
    set_mood(world, 1, CALLEE_REFUSING);
    restart_for_ms(world, 40000);
    EXPECT(notified(world).given_up == 1 && knows_restart(world, 2));
    EXPECT(!ask_and_wait(world, 3, PEER_NSM_MON, 0)->is_refused);
    EXPECT(world->owners[1].keys[0].record_id == 0 && world->owners[2].keys[0].record_id != 0);
    EXPECT(world->owners[3].keys[0].record_id != 0);
    EXPECT(ask_and_wait(world, 1, PEER_NSM_MON, 0)->is_refused);
    EXPECT(world->owners[2].keys[0].record_id != 0 && world->owners[3].keys[0].record_id != 0);
}

/* The same where the limit is below what is stored: the table does not grow (D2). */
SCENARIO(given_up_above_the_limit, "R-SEC-12: and in a table that is larger than its limit", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 0);
    world->plan.window_ns = 5 * SECOND;
    world->plan.give_up_ns = 20 * SECOND;
    world->plan.grace_ns = 0;
    world->machine.clients_max = 1;
    set_mood(world, 1, CALLEE_REFUSING);
    restart_for_ms(world, 40000);
    EXPECT(notified(world).given_up == 1 && knows_restart(world, 2));
    EXPECT(!ask_and_wait(world, 3, PEER_NSM_MON, 0)->is_refused);
    EXPECT(disk_count(&world->disk, RECORD_REGISTRANT) == 2);
    EXPECT(world->owners[1].keys[0].record_id == 0);
    EXPECT(ask_and_wait(world, 1, PEER_NSM_MON, 0)->is_refused);
    EXPECT(disk_count(&world->disk, RECORD_REGISTRANT) == 2);
}

/* Owner 1 watches the address of owner 0, which says that it rebooted. */
SCENARIO(relay, "an SM_NOTIFY reaches those who watch the name, once", 0)
{
    world->owners[1].keys[1].name = 0;
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 1);
    (void)ask_and_wait(world, 2, PEER_NSM_MON, 0);
    struct call *notice = ask_and_wait(world, 0, PEER_NSM_NOTIFY, 0);
    EXPECT(was_told(world, 1, 1, false, notice->state));
    EXPECT(world->owners[2].keys[0].told_count == 0);
    uint32_t told = world->owners[1].keys[1].told_count;
    (void)ask_and_wait(world, 0, PEER_NSM_NOTIFY, 0); /* the same again */
    wait_ms(world, 10000);
    EXPECT(world->owners[1].keys[1].told_count == told);
    set_mood(world, 1, CALLEE_SILENT);
    world->owners[0].host->nsm_state += 2;
    notice = ask_and_wait(world, 0, PEER_NSM_NOTIFY, 0);
    restart_for_ms(world, 1000); /* what is owed survives */
    set_mood(world, 1, CALLEE_WELL);
    wait_ms(world, 10000);
    EXPECT(was_told(world, 1, 1, false, notice->state));
    EXPECT(told_all_ended(world));
}

/* A8: who watches a name may not speak for it; who has it may, as the resolver says. */
SCENARIO(name_of_a_host, "A8: only the host of a name speaks for it", 0)
{
    struct name *name = &world->names[0]; /* what NOTIFY is about here */
    (void)snprintf(name->text, sizeof name->text, "host.example");
    name->at_hosts = 1U << 3;
    for (uint32_t i = 1; i < 3; i++) {
        world->owners[i].keys[1].name = 0;
        (void)ask_and_wait(world, i, PEER_NSM_MON, 1);
    }
    (void)ask_and_wait(world, 2, PEER_NSM_NOTIFY, 0); /* of the host that it watches */
    wait_ms(world, 5000);
    EXPECT(world->owners[1].keys[1].told_count == 0 && world->owners[2].keys[1].told_count == 0);
    EXPECT(disk_count(&world->disk, RECORD_NOTICE) == 0);
    struct call *notice = ask_and_wait(world, 3, PEER_NSM_NOTIFY, 0);
    wait_ms(world, 5000);
    EXPECT(was_told(world, 1, 1, false, notice->state) &&
           was_told(world, 2, 1, false, notice->state));
    EXPECT(told_all_ended(world));
}

/* Executed, but the answer was lost: it is told again, because nobody can know. */
SCENARIO(answer_lost, "told, but the answer never came: told again", 0)
{
    (void)ask_and_wait(world, 1, PEER_NSM_MON, 0);
    set_mood(world, 1, CALLEE_VANISHING);
    restart_for_ms(world, 30000);
    EXPECT(knows_restart(world, 1) && !told_all_ended(world));
    uint32_t told = world->owners[1].keys[0].told_count;
    set_mood(world, 1, CALLEE_TWICE);
    wait_ms(world, 10000);
    EXPECT(world->owners[1].keys[0].told_count == told + 1);
    EXPECT(told_all_ended(world));
}

/* ---- the list ---- */

enum { SCENARIOS_MAX = 256 };

static struct scenario all[SCENARIOS_MAX];
static uint32_t all_count;

const struct scenario *scenario_at(uint32_t index)
{
    return index < all_count ? &all[index] : NULL;
}

void scenario_add(const char *name, const char *about, uint32_t allows,
                  void (*run)(const struct scenario *scenario, bool verbose),
                  void (*play)(struct world *world))
{
    CHECK(all_count < SCENARIOS_MAX && strlen(name) < sizeof all[0].name);
    struct scenario *scenario = &all[all_count++];
    *scenario = (struct scenario){.about = about, .allows = allows, .run = run, .play = play};
    for (uint32_t i = 0; name[i] != '\0'; i++)
        scenario->name[i] = name[i] == '_' ? '-' : name[i];
}

void scenario_run(const struct scenario *scenario, bool verbose)
{
    struct world *world = world_new(
        &(struct world_options){.seed = 1, .verbose = verbose, .allows = scenario->allows});
    world->scenario = scenario->name;
    world->is_manual = world->is_calm = true;
    world->plan = (struct plan){.hosts = 4,
                                .owners = 4,
                                .allows = scenario->allows,
                                .names = 16,
                                .clients_max = 100,
                                .outbox_max = 64,
                                .cache_max = 4096,
                                .batch_puts_max = 64,
                                .locks_max = 100,
                                .locks_per_client_max = 100,
                                .waiters_max = 100,
                                .bytes_max = 1024 * 1024,
                                .calls_max = 64,
                                .lines_max = 64,
                                .window_ns = 90 * SECOND,
                                .give_up_ns = 900 * SECOND,
                                .grace_ns = 400 * SECOND,
                                .sync_process = strcmp(scenario->name, "power-loss") == 0,
                                .commit_max_ns = 5 * MILLISECOND};
    world->disk.is_lazy = world->plan.sync_process;
    watcher_init(world);
    callee_init(world);
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        struct owner *owner = &world->owners[i];
        owner->is_tcp = false;
        owner->is_privileged = i == 0;
        owner->port = (uint16_t)(i == 0 ? 700 : 5000 + i);
        owner->hint_port = 12049;
        (void)snprintf(owner->my_name, sizeof owner->my_name, "lockd");
        owner->host->kind = CALLEE_BOTH;
        owner->host->versions = 1U << 2 | 1U << 3 | 1U << 4;
        owner->host->portmapper_tcp_only = false;
        owner->key_count = 2;
        for (uint32_t k = 0; k < 2; k++)
            owner->keys[k] = (struct key){
                .owner = owner, .name = 13 + k, .my_prog = 100021, .my_vers = 4, .my_proc = 16};
    }
    machine_boot(world);
    wait_ms(world, 1000);
    scenario->play(world);
    audit_disk(world);
    world_free(world);
}
