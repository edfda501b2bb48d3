/*
 * oracle.c -- the promises, kept per key and per name; see oracle.h.
 */
#include "oracle.h"

#include "locker.h"
#include "machine.h"
#include "still.h"
#include "stranger.h"
#include "told.h"

#include "peer/peer_nsm.h"
#include "rpc/drc.h"

#include <stdlib.h>

static bool counts(const struct effect *effect)
{
    return !effect->call->is_refused;
}

static bool is_possible(const struct key *key, bool is_present)
{
    if (key->base.is_present == is_present || (!is_present && key->may_be_evicted))
        return true;
    for (uint32_t i = 0; i < key->later_count; i++)
        if (counts(&key->later[i]) && key->later[i].is_present == is_present)
            return true;
    return false;
}

/* Apart from this call, its key is absent for certain. */
static bool is_absent_without(const struct call *call)
{
    const struct key *key = call->key;
    if (key->base.is_present)
        return false;
    for (uint32_t i = 0; i < key->later_count; i++)
        if (key->later[i].call != call && key->later[i].is_present && counts(&key->later[i]))
            return false;
    return true;
}

static bool is_certain(const struct key *key, bool is_present)
{
    return !is_possible(key, !is_present);
}

uint32_t oracle_possible_count(const struct world *world)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++)
            count += is_possible(&world->owners[i].keys[k], true);
    return count;
}

static bool same_name(const struct world *world, uint32_t a, uint32_t b)
{
    return bytes_equal_fold(bytes_of_text(world->names[a].text),
                            bytes_of_text(world->names[b].text));
}

/* Somebody is certain to watch this name, or may. */
static bool is_watched(const struct world *world, uint32_t name,
                       bool (*test)(const struct key *, bool))
{
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        const struct owner *owner = &world->owners[i];
        for (uint32_t k = 0; k < owner->key_count; k++)
            if (same_name(world, owner->keys[k].name, name) && test(&owner->keys[k], true))
                return true;
    }
    return false;
}

static bool is_named_after(const struct world *world, uint32_t name, const struct host *host)
{
    struct address address;
    return address_parse(bytes_of_text(world->names[name].text), &address) &&
           address_equal(&address, &host->address);
}

static void may_be_unwatched(struct world *world, uint32_t name)
{
    if (is_watched(world, name, is_certain))
        return;
    for (uint32_t i = 0; i < world->plan.names; i++) {
        if (!same_name(world, i, name))
            continue;
        world->names[i].breaks++;
        world->names[i].notice = NULL;
    }
}

void oracle_add_later(struct key *key, struct call *call, bool is_present)
{
    if (key->later_count == key->later_max) {
        key->later_max = key->later_max ? 2 * key->later_max : 8;
        key->later = realloc(key->later, key->later_max * sizeof *key->later);
        if (key->later == NULL)
            abort();
    }
    key->later[key->later_count++] = (struct effect){call, is_present};
}

void oracle_sent(struct world *world, struct call *call)
{
    struct owner *owner = call->owner;
    if (call->procedure == PEER_NSM_MON && call->key != NULL)
        oracle_add_later(call->key, call, true);
    if (call->procedure == PEER_NSM_UNMON) {
        oracle_add_later(call->key, call, false);
        may_be_unwatched(world, call->key->name);
    }
    if (call->procedure == PEER_NSM_UNMON_ALL) {
        for (uint32_t i = 0; i < owner->key_count; i++)
            oracle_add_later(&owner->keys[i], call, false);
        for (uint32_t i = 0; i < owner->key_count; i++)
            may_be_unwatched(world, owner->keys[i].name);
    }
}

/* The table may have no slot left. */
static bool may_be_full(const struct world *world)
{
    return oracle_possible_count(world) + stranger_keys(world) > world->machine.clients_max;
}

/* A full table takes one more in the place of one that was given up. */
static void may_evict(struct world *world, const struct key *fresh)
{
    if (!may_be_full(world))
        return;
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++) {
            struct key *key = &world->owners[i].keys[k];
            if (key == fresh || !told_may_be_given_up(world, key))
                continue;
            key->may_be_evicted = true;
            may_be_unwatched(world, key->name);
        }
}

bool oracle_is_cached(const struct world *world, const struct call *call)
{
    if (call->procedure == PEER_NSM_NULL || call->procedure == PEER_NSM_STAT ||
        call->taken_run != world->machine.run || world->plan.small_cache)
        return false;
    if (stranger_taken(world) - call->taken_strangers > STRANGER_CACHED_MAX)
        return false; /* theirs have taken its place */
    if (call->ended_run != world->machine.run)
        return true; /* in progress */
    return call->taken_forgets == call->owner->host->forgets &&
           world->now_ns < call->ended_ns + DRC_LIFE_NS;
}

static bool is_crash_order(const struct call *call)
{
    return call->procedure == PEER_NSM_SIMU_CRASH && call->owner->is_privileged &&
           address_is_loopback(&call->owner->host->address);
}

void oracle_executed(struct world *world, struct call *call, uint16_t port)
{
    struct owner *owner = call->owner;
    if (call->number > owner->taken_number)
        owner->taken_number = call->number;
    call->executions++;
    call->taken_run = world->machine.run;
    call->taken_port = port;
    call->taken_order = ++world->ledger.executions;
    call->taken_strangers = stranger_taken(world);
    call->copies_taken = 0;
    if (call->procedure == PEER_NSM_NOTIFY)
        owner->host->forgets++; /* it may have announced a reboot */
    call->ended_run = 0;
    call->has_reply = false;
    call->is_refused = false;
    call->state_floor = world->ledger.state_floor;
    call->state_before = world->ledger.state_max;
    if (is_crash_order(call)) {
        machine_begin_anew(world);
        for (uint32_t i = 0; i < world_host_count(world); i++)
            world->hosts[i].forgets++;
        locker_forgotten(world);
    }
    call->taken_forgets = owner->host->forgets;
    if (call->key != NULL)
        call->key->news_ns = still_lived_ns(world);
    if (call->procedure == PEER_NSM_MON && call->key != NULL) {
        call->was_absent = call->executions == 1 && is_absent_without(call);
        call->was_full = world->machine.store_is_full;
        call->may_be_refused =
            world->plan.few_bytes || world->machine.store_is_full || may_be_full(world);
        may_evict(world, call->key);
    }
    if (call->procedure == PEER_NSM_NOTIFY && !call->must_fail)
        for (uint32_t i = 0; i < world->plan.names; i++)
            if (same_name(world, i, call->name))
                world->names[i].news_ns = still_lived_ns(world);
    if (call->procedure == PEER_NSM_NOTIFY && !call->must_fail) {
        call->breaks = world->names[call->name].breaks;
        /* Of others the resolver says it, in whichever order. */
        call->may_speak = !world->plan.few_bytes && is_watched(world, call->name, is_certain) &&
                          is_named_after(world, call->name, owner->host);
    }
}

static void check_state(struct world *world, struct call *call, uint32_t state)
{
    const struct machine *machine = &world->machine;
    struct ledger *ledger = &world->ledger;
    const char *what = world_procedure_text(call->procedure);
    if (state % 2 == 0)
        world_fail(world, "O3", "the answer to %s carries the even state %u", what, state);
    if (state <= call->state_floor)
        world_fail(world, "O3",
                   "the answer to %s carries state %u, but %u was answered before the last restart "
                   "or simulated crash",
                   what, state, call->state_floor);
    if (state > machine->boot_state + 2 * machine->bumps)
        world_fail(world, "O7", "state %u: this run began with %u and %u simulated crashes", state,
                   machine->boot_state, machine->bumps);
    if (state > ledger->state_max)
        ledger->state_max = state;
}

static void settle(struct key *key, struct call *call, bool is_present)
{
    if (key->base.call != NULL && key->base.call->number > call->number)
        return;
    key->base = (struct effect){call, is_present};
    key->may_be_evicted = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < key->later_count; i++)
        if (key->later[i].call->number > call->number)
            key->later[kept++] = key->later[i];
    key->later_count = kept;
}

static void mon_answered(struct world *world, struct call *call, bool refused)
{
    if (call->must_fail) {
        if (!refused)
            world_fail(world, "O5", "MON was accepted although its name or program is not allowed");
        return;
    }
    const char *name = world->names[call->key->name].text;
    if (refused) {
        if (is_certain(call->key, true))
            world_fail(world, "O5", "an update of %.40s was refused", name);
        if (!call->may_be_refused)
            world_fail(world, "O5", "MON of %.40s was refused without a reason", name);
        call->is_refused = call->executions == 1;
        return;
    }
    settle(call->key, call, true);
    if (call->was_absent && call->was_full)
        world_fail(world, "O5", "MON of %.40s was accepted although the store is full", name);
}

static void notify_answered(struct world *world, struct call *call)
{
    struct name *name = &world->names[call->name];
    if (!call->may_speak || call->breaks != name->breaks)
        return;
    for (uint32_t i = 0; i < world->plan.names; i++) {
        if (!same_name(world, i, call->name))
            continue;
        struct name *same = &world->names[i];
        if (same->notice != NULL && same->notice_order > call->taken_order)
            continue;
        same->notice = call;
        same->notice_order = call->taken_order;
    }
}

static void check_repeat(struct world *world, const struct call *call, struct bytes reply)
{
    if (reply.len != call->reply_len || memcmp(reply.at, call->reply, reply.len) != 0)
        world_fail(world, "O7", "a repeat of %s of owner %u got another answer than the first",
                   world_procedure_text(call->procedure), call->owner->index);
}

static void read_reply(struct world *world, struct call *call, const struct packet_reply *reply,
                       bool *ret_refused)
{
    uint32_t res = 0, state = 0;
    bool good = false, has_state = false;
    if (call->procedure == PEER_NSM_STAT || call->procedure == PEER_NSM_MON) {
        good = peer_nsm_get_stat_res(reply, &res, &state);
        has_state = true;
    } else if (call->procedure == PEER_NSM_UNMON || call->procedure == PEER_NSM_UNMON_ALL) {
        good = peer_nsm_get_stat(reply, &state);
        has_state = true;
    } else {
        good = peer_nsm_is_void(reply);
    }
    if (!good)
        world_fail(world, "O6", "the answer to %s has the wrong shape",
                   world_procedure_text(call->procedure));
    if (has_state)
        check_state(world, call, state);
    *ret_refused = res == PEER_NSM_STAT_FAIL;
}

/* SM_NOTIFY of a name that the resolver knows nothing of: it is to be said again. */
static bool is_unknown(const struct world *world, const struct call *call,
                       const struct packet_reply *reply)
{
    struct address address;
    const struct name *name = &world->names[call->name];
    return call->procedure == PEER_NSM_NOTIFY && !call->must_fail && name->at_hosts == 0 &&
           !address_parse(bytes_of_text(name->text), &address) && reply->accepted &&
           reply->status == PACKET_SYSTEM_ERR;
}

void oracle_answered(struct world *world, struct call *call, struct bytes bytes)
{
    if (call->has_reply && oracle_is_cached(world, call)) {
        check_repeat(world, call, bytes);
        return;
    }
    struct packet_reply reply;
    bool refused = false;
    if (!packet_get_reply(bytes.at, bytes.len, &reply) || bytes.len > REPLY_KEPT_MAX)
        world_fail(world, "O6", "an answer is no RPC reply");
    if (is_unknown(world, call, &reply)) {
        /* It is not kept for repeats: the next copy is executed, unless one was and waits. */
        if (call->copies_taken > 0) {
            call->copies_taken--;
            call->ended_run = 0;
        } else {
            call->taken_run = 0;
        }
        return;
    }
    read_reply(world, call, &reply, &refused);
    call->has_reply = true;
    call->reply_len = bytes.len;
    memcpy(call->reply, bytes.at, bytes.len);

    struct owner *owner = call->owner;
    if (call->procedure == PEER_NSM_MON)
        mon_answered(world, call, refused);
    else if (call->procedure == PEER_NSM_UNMON)
        settle(call->key, call, false);
    else if (call->procedure == PEER_NSM_UNMON_ALL)
        for (uint32_t i = 0; i < owner->key_count; i++)
            settle(&owner->keys[i], call, false);
    else if (call->procedure == PEER_NSM_NOTIFY && !call->must_fail)
        notify_answered(world, call);
    else if (call->procedure == PEER_NSM_STAT && refused != call->must_fail)
        world_fail(world, "O5", "SM_STAT answered %u", refused);
    if (is_crash_order(call) && world->ledger.state_floor < call->state_before)
        world->ledger.state_floor = call->state_before;
}
