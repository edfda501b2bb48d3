/*
 * audit.c -- the disk against the promises: see audit.h.
 *
 * The records are read with the getters of store/record.h. Each must belong to a key that somebody
 * asked for, with a priv that is still allowed; every key whose absence is not allowed must have
 * one.
 */
#include "audit.h"

#include "era.h"
#include "oracle.h"
#include "resolver.h"
#include "stranger.h"
#include "told.h"

static bool is_allowed(const struct effect *effect, const struct call *value)
{
    if (value == NULL)
        return !effect->is_present;
    return effect->is_present && effect->call->value == value;
}

/* May this key hold the priv of this call (NULL: be absent)? */
static bool may_be(const struct key *key, const struct call *value)
{
    if (is_allowed(&key->base, value) || (value == NULL && key->may_be_evicted))
        return true;
    for (uint32_t i = 0; i < key->later_count; i++)
        if (!key->later[i].call->is_refused && is_allowed(&key->later[i], value))
            return true;
    return false;
}

static const char *name_of(const struct world *world, const struct key *key)
{
    return world->names[key->name].text;
}

static struct key *find_key(struct world *world, const struct record_registrant *record)
{
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        struct owner *owner = &world->owners[i];
        if (!address_equal(&owner->host->address, &record->address) ||
            !bytes_equal(bytes_of_text(owner->my_name), record->my_name))
            continue;
        for (uint32_t k = 0; k < owner->key_count; k++) {
            struct key *key = &owner->keys[k];
            if (key->my_prog == record->my_prog && key->my_vers == record->my_vers &&
                key->my_proc == record->my_proc &&
                bytes_equal(bytes_of_text(name_of(world, key)), record->mon_name))
                return key;
        }
    }
    return NULL;
}

/* The call whose priv a record carries; the world puts the call's number there. */
static struct call *value_of(const struct world *world, const struct record_registrant *record)
{
    uint32_t id = load_be32(record->priv);
    return id < world->call_count ? world->calls[id] : NULL;
}

static void check_fields(struct world *world, const struct record_registrant *record,
                         const struct call *value, const struct record_server *server)
{
    if (value == NULL || memcmp(record->priv + 4, "simulated pr", 12) != 0)
        world_fail(world, "O1", "a record holds a priv that was never sent");
    if (record->transport != (value->owner->is_tcp ? TRANSPORT_TCP : TRANSPORT_UDP) ||
        record->local.family != value->owner->host->address.family)
        world_fail(world, "O1", "a record forgot how its owner called");
    if (record->id == 0 || record->id >= server->next_id)
        world_fail(world, "O2", "client id %llu is not below the next id %llu",
                   (unsigned long long)record->id, (unsigned long long)server->next_id);
    if (record->server_epoch > server->epoch || record->told_state > server->state)
        world_fail(world, "O3", "a record is from a later epoch or state than the server");
}

static void visit_registrants(struct world *world, bool is_loss,
                              void (*visit)(struct world *, struct key *, struct call *))
{
    struct record_server server;
    if (!disk_server(&world->disk, &server))
        world_fail(world, "O3", "the server record cannot be read");
    uint32_t used = disk_slots_used(&world->disk, RECORD_REGISTRANT);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes bytes = disk_at(&world->disk, RECORD_REGISTRANT, slot);
        struct record_registrant record;
        if (bytes.len == 0)
            continue;
        if (record_get_registrant(bytes, slot, &record) != RECORD_GOOD)
            world_fail(world, "O1", "the record in slot %u cannot be read", slot);
        if (stranger_is_at(world, &record.address))
            continue;
        struct key *key = find_key(world, &record);
        if (key == NULL)
            world_fail(world, "O2", "a record of %.*s in slot %u that nobody asked for",
                       (int)(record.mon_name.len < 40 ? record.mon_name.len : 40),
                       (const char *)record.mon_name.at, slot);
        if (key->seen == world->ledger.audit)
            world_fail(world, "O2", "%.40s of owner %u is there twice", name_of(world, key),
                       key->owner->index);
        key->seen = world->ledger.audit;
        struct call *value = value_of(world, &record);
        check_fields(world, &record, value, &server);
        visit(world, key, value);
        told_audit(world, key, value, &record, is_loss);
    }
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++)
            if (world->owners[i].keys[k].seen != world->ledger.audit)
                told_audit_absent(world, &world->owners[i].keys[k]);
}

static void check_present(struct world *world, struct key *key, struct call *value)
{
    if (may_be(key, value))
        return;
    bool was_removed = !key->base.is_present;
    world_fail(world, was_removed ? "O2" : "O1",
               "%.40s of owner %u is on the disk with the priv of call %u, but call %u, answered "
               "later, %s it",
               name_of(world, key), key->owner->index, value->id,
               key->base.call ? key->base.call->id : 0, was_removed ? "removed" : "changed");
}

/* Only the host of a name may have said so (A8). */
static bool may_hold_notice(const struct world *world, const struct record_notice *record,
                            const struct call *call)
{
    const char *name = world->names[call->name].text;
    return bytes_equal_fold(record->mon_name, bytes_of_text(name)) &&
           record->state == call->state &&
           address_equal(&record->address, &call->owner->host->address) &&
           resolver_is_host_of(world, call->owner->host, call->name);
}

/* The notice of a name on the disk is from the answered call that was executed last, or from one
 * executed after it. */
static void check_notice(struct world *world, uint32_t slot, const struct record_notice *record)
{
    const struct call *promised = NULL, *newest = NULL;
    uint64_t promised_order = 0;
    if (stranger_may_watch(world, record->mon_name)) {
        if (stranger_is_spoken_for(world, record))
            world_fail(world, "O8", "a stranger speaks for %.*s, which is not its name (A8)",
                       (int)record->mon_name.len, (const char *)record->mon_name.at);
        return;
    }
    for (uint32_t i = 0; i < world->plan.names; i++)
        if (bytes_equal_fold(bytes_of_text(world->names[i].text), record->mon_name)) {
            promised = world->names[i].notice;
            promised_order = world->names[i].notice_order;
            world->names[i].seen = world->ledger.audit;
        }
    const struct call *call = world->notify_last;
    for (; call != NULL; call = call->notify_before)
        if (!call->must_fail && call->executions > 0 && may_hold_notice(world, record, call) &&
            (newest == NULL || call->taken_order > newest->taken_order))
            newest = call;
    if (newest == NULL)
        world_fail(world, "O8", "a notice in slot %u that nobody had the right to send", slot);
    if (promised != NULL && newest->taken_order < promised_order &&
        newest->state != promised->state)
        world_fail(world, "O8", "the notice of %.40s has state %u, but %u was answered later",
                   world->names[promised->name].text, record->state, promised->state);
}

/* What the disk says of each name. */
static void note_notices(struct world *world)
{
    uint32_t states[NAMES_MAX] = {0};
    uint32_t used = disk_slots_used(&world->disk, RECORD_NOTICE);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct record_notice record;
        struct bytes bytes = disk_at(&world->disk, RECORD_NOTICE, slot);
        if (bytes.len == 0 || record_get_notice(bytes, slot, &record) != RECORD_GOOD)
            continue;
        for (uint32_t i = 0; i < world->plan.names; i++)
            if (bytes_equal_fold(bytes_of_text(world->names[i].text), record.mon_name))
                states[i] = record.state;
    }
    for (uint32_t i = 0; i < world->plan.names; i++)
        told_audit_notice(world, &world->names[i], states[i]);
}

static void audit_notices(struct world *world)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_NOTICE);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes bytes = disk_at(&world->disk, RECORD_NOTICE, slot);
        struct record_notice record;
        if (bytes.len == 0)
            continue;
        if (record_get_notice(bytes, slot, &record) != RECORD_GOOD)
            world_fail(world, "O8", "the notice in slot %u cannot be read", slot);
        check_notice(world, slot, &record);
    }
    for (uint32_t i = 0; i < world->plan.names; i++)
        if (world->names[i].notice != NULL && world->names[i].seen != world->ledger.audit)
            world_fail(world, "O8", "the notice of %.40s, state %u, was answered and is lost",
                       world->names[i].text, world->names[i].notice->state);
    note_notices(world);
}

void audit_disk(struct world *world)
{
    if (world->disk.is_new || world->is_unjudged)
        return;
    world->ledger.audit++;
    visit_registrants(world, false, check_present);
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++) {
            struct key *key = &world->owners[i].keys[k];
            if (key->seen != world->ledger.audit && !may_be(key, NULL))
                world_fail(world, "O1", "%.40s of owner %u was registered by call %u and is lost",
                           name_of(world, key), key->owner->index, key->base.call->id);
        }
    audit_notices(world);
}

/* What was undone may be done once more: its owner may not have the answer yet. */
static void accept(struct key *key, struct effect found)
{
    struct effect undone = key->base;
    key->base = found;
    if (undone.call != NULL)
        oracle_add_later(key, undone.call, undone.is_present);
}

static void accept_present(struct world *world, struct key *key, struct call *value)
{
    (void)world;
    accept(key, (struct effect){value, true});
}

void audit_accept_loss(struct world *world)
{
    if (world->disk.is_new || world->is_unjudged)
        return;
    world->ledger.audit++;
    visit_registrants(world, true, accept_present);
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++) {
            struct key *key = &world->owners[i].keys[k];
            if (key->seen == world->ledger.audit)
                continue;
            if (!may_be(key, NULL))
                world_fail(world, "O1", "%.40s of owner %u was registered and is lost with power",
                           name_of(world, key), key->owner->index);
            accept(key, (struct effect){key->base.call, false});
        }
    for (uint32_t i = 0; i < world->plan.names; i++) {
        world->names[i].notice = NULL;
        world->names[i].breaks++;
    }
    note_notices(world);
}

void audit_boot(struct world *world, uint32_t stored_state)
{
    struct machine *machine = &world->machine;
    struct ledger *ledger = &world->ledger;
    struct core_status status;
    core_status(machine->core, &status);
    bool has_resumed = world->plan.resumes && stored_state != 0 && status.state == stored_state;
    if (has_resumed)
        era_resume(world, status.state);
    if (has_resumed && (ledger->incomplete || !era_is_settled(world)))
        world_fail(world, "P2", "a run is resumed that had left something open (D12)");
    if (has_resumed)
        era_goes_on(world);
    if (status.state % 2 == 0)
        world_fail(world, "O3", "a run starts with the even state %u", status.state);
    if (status.state < ledger->state_max || (status.state == ledger->state_max && !has_resumed))
        world_fail(world, "O3", "a run starts with state %u, but %u was answered before",
                   status.state, ledger->state_max);
    if (!ledger->incomplete && !has_resumed && status.state != ((stored_state + 2) | 1))
        world_fail(world, "O3", "a run starts with state %u after %u", status.state, stored_state);
    if (status.epoch <= ledger->epoch_max)
        world_fail(world, "O3", "a run has epoch %llu, but %llu was stored before",
                   (unsigned long long)status.epoch, (unsigned long long)ledger->epoch_max);
    if (status.registrants != disk_count(&world->disk, RECORD_REGISTRANT) && !world->is_unjudged)
        world_fail(world, "O1", "%u registrations are stored, %u were loaded",
                   disk_count(&world->disk, RECORD_REGISTRANT), status.registrants);
    if (status.incomplete != ledger->incomplete)
        world_fail(world, "O1", "the store is %scomplete, the server believes the contrary",
                   ledger->incomplete ? "in" : "");
    machine->boot_state = status.state;
    machine->bumps = 0;
    machine->has_resumed = has_resumed;
    if (!has_resumed)
        ledger->state_floor = ledger->state_max;
    else if (ledger->state_floor >= status.state) /* a run in between left nothing behind */
        ledger->state_floor = status.state - 1;
}

/* One goes for each that comes (R-SEC-12), also where more is stored than the limit of now. */
static void check_growth(struct world *world, enum record_kind kind, uint32_t before)
{
    uint32_t limit = world->machine.clients_max, after = disk_count(&world->disk, kind);
    if (after > limit && after > before)
        world_fail(world, "O5",
                   "there were %u records of kind %u, now there are %u: the limit is %u", before,
                   (unsigned)kind, after, limit);
}

void audit_growth(struct world *world, uint32_t clients, uint32_t registrants)
{
    check_growth(world, RECORD_CLIENT, clients);
    check_growth(world, RECORD_REGISTRANT, registrants);
}

void audit_empty(struct world *world)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    /* Client records stay: a name, its folded form, an address. */
    if (status.registrants != 0 || status.notices != 0 || status.names > 2 * status.clients ||
        status.bytes_used > UINT64_C(96) * status.clients)
        world_fail(world, "O4",
                   "all is unregistered, but %u registrants, %u notices, %u names, "
                   "%llu bytes are left",
                   status.registrants, status.notices, status.names,
                   (unsigned long long)status.bytes_used);
    if (disk_count(&world->disk, RECORD_REGISTRANT) != 0 ||
        disk_count(&world->disk, RECORD_NOTICE) != 0)
        world_fail(world, "O4", "all is unregistered, but the disk still holds records");
}
