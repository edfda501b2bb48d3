/*
 * told.c -- what was told to whom; see told.h.
 */
#include "told.h"

#include "era.h"
#include "still.h"

#include "peer/packet.h"

#include <stdlib.h>

enum { NAME_MAX_LEN = 1024, PRIV_LEN = 16 };

static const char *name_of(const struct world *world, const struct key *key)
{
    return world->names[key->name].text;
}

void told_read(struct world *world, struct bytes message, struct told_call *ret)
{
    struct packet_reader reader = {message.at, message.len, false};
    uint32_t words[10];
    for (uint32_t i = 0; i < 10; i++)
        words[i] = packet_get_u32(&reader);
    uint32_t name_len;
    const uint8_t *name = packet_get_opaque(&reader, NAME_MAX_LEN, &name_len);
    uint32_t state = packet_get_u32(&reader);
    const uint8_t *priv = packet_get_fixed(&reader, PRIV_LEN);
    if (!packet_is_done(&reader) || words[1] != 0 || words[2] != 2)
        world_fail(world, "O10", "a call to a registrant cannot be read");
    if ((words[6] | words[7] | words[8] | words[9]) != 0)
        world_fail(world, "O10", "a call to a registrant does not carry AUTH_NONE (D3)");
    uint32_t id = packet_xid(priv, PRIV_LEN);
    if (id >= world->call_count || memcmp(priv + 4, "simulated pr", 12) != 0 ||
        world->calls[id]->key == NULL)
        world_fail(world, "O10", "a registrant is told a priv that nobody ever sent");
    struct key *key = world->calls[id]->key;
    struct bytes said = {name, name_len};
    *ret = (struct told_call){.key = key,
                              .value = world->calls[id],
                              .is_restart = bytes_equal(said, bytes_of_text(TOLD_SERVER_NAME)),
                              .xid = words[0],
                              .prog = words[3],
                              .vers = words[4],
                              .proc = words[5],
                              .state = state};
    if (!ret->is_restart && !bytes_equal(said, bytes_of_text(name_of(world, key))))
        world_fail(world, "O10", "a registrant that watches %.40s is told of %.*s",
                   name_of(world, key), (int)(name_len < 40 ? name_len : 40), (const char *)name);
}

static bool is_recent(const struct world *world, uint64_t since_ns)
{
    return still_lived_ns(world) - since_ns <= TOLD_TIMEOUT_NS;
}

static void check_destination(struct world *world, const struct host *host,
                              const struct address *local, const struct told_call *call)
{
    const struct key *key = call->key;
    if (key->owner->host != host)
        world_fail(world, "O10", "host %u is called for owner %u, which registered at host %u",
                   host->index, key->owner->index, key->owner->host->index);
    if (!address_equal(local, &host->local))
        world_fail(world, "O10", "host %u is called from another address than it knows",
                   host->index);
    if (call->prog != key->my_prog || call->vers != key->my_vers || call->proc != key->my_proc)
        world_fail(world, "O10", "procedure %u of %u version %u is called, registered was %u of %u",
                   call->proc, call->prog, call->vers, key->my_proc, key->my_prog);
    bool is_durable = key->disk_value == call->value;
    bool was_durable = call->value->undone_ns != 0 && is_recent(world, call->value->undone_ns);
    if (!is_durable && !was_durable)
        world_fail(world, "O10", "owner %u is told of %.40s with the priv of call %u: not durable",
                   key->owner->index, name_of(world, key), call->value->id);
}

static bool was_notice(const struct world *world, const struct name *name, uint32_t state)
{
    if (name->disk_notice == state)
        return true;
    for (uint32_t i = 0; i < PAST_MAX && i < name->past_count; i++)
        if (name->past[i].state == state && is_recent(world, name->past[i].until_ns))
            return true;
    return false;
}

static void check_content(struct world *world, const struct told_call *call)
{
    const struct key *key = call->key;
    /* A call that a registration before this one began may still be under way. */
    bool is_settled = key->record_id != 0 && !is_recent(world, key->record_since_ns);
    if (call->is_restart) {
        struct record_server server = {0};
        (void)disk_server(&world->disk, &server);
        if (call->state > server.state || call->state % 2 == 0)
            world_fail(world, "O10", "state %u is told, durable is %u", call->state, server.state);
        if (is_settled && call->state <= key->disk_told)
            world_fail(world, "O12", "owner %u is told of state %u, but was told of %u already",
                       key->owner->index, call->state, key->disk_told);
        return;
    }
    if (!was_notice(world, &world->names[key->name], call->state))
        world_fail(world, "O10", "%.40s is said to be at state %u: no such notice is durable",
                   name_of(world, key), call->state);
    if (is_settled && call->state == key->disk_relayed)
        world_fail(world, "O12", "owner %u is told a second time that %.40s is at state %u",
                   key->owner->index, name_of(world, key), call->state);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The registrant's own word is news for certain, the word of somebody about the name only if that
 * one was believed: patience begins at the first of these times at the earliest, at the last one at
 * the latest. */
static uint64_t patience_begins_ns(const struct world *world, const struct key *key,
                                   bool is_earliest)
{
    const struct plan *plan = &world->plan;
    uint64_t news_ns = is_earliest ? 0 : world->names[key->name].news_ns;
    uint64_t window_end_ns = world->machine.ready_ns + later(plan->window_ns, plan->grace_ns);
    return later(window_end_ns, later(key->news_ns, news_ns));
}

bool told_may_be_given_up(const struct world *world, const struct key *key)
{
    return world->machine.is_ready && key->record_id != 0 &&
           still_lived_ns(world) >= patience_begins_ns(world, key, true) + world->plan.give_up_ns;
}

/* Nothing is called for longer than --give-up after the window, or after the last news. */
static void check_patience(struct world *world, const struct told_call *call)
{
    const struct plan *plan = &world->plan;
    if (plan->few_calls)
        return; /* an attempt may have to wait for others */
    uint64_t begin_ns = patience_begins_ns(world, call->key, false);
    uint64_t slack_ns = (plan->stall > 0 ? 120 : 5) * SECOND; /* a stalled store holds it back */
    if (still_lived_ns(world) > begin_ns + plan->give_up_ns + TOLD_TIMEOUT_NS + slack_ns)
        world_fail(world, "O12", "owner %u is called, %llu s after the last reason to",
                   call->key->owner->index,
                   (unsigned long long)((still_lived_ns(world) - begin_ns) / SECOND));
}

void told_sent(struct world *world, const struct host *host, const struct address *local,
               struct bytes message)
{
    struct told_call call;
    told_read(world, message, &call);
    world->calls_out++;
    world_trace(world, "owner %u is told that %.30s is at state %u", call.key->owner->index,
                call.is_restart ? TOLD_SERVER_NAME : name_of(world, call.key), call.state);
    if (world->is_unjudged)
        return;
    if (!world->machine.is_ready && !world->machine.ghost_speaks)
        world_fail(world, "O10", "somebody is called before the server is ready (R-NOTIFY-7)");
    check_destination(world, host, local, &call);
    check_content(world, &call);
    check_patience(world, &call);
}

void told_executed(struct world *world, const struct told_call *call)
{
    struct key *key = call->key;
    world_trace(world, "owner %u knows that %.30s is at state %u", key->owner->index,
                call->is_restart ? TOLD_SERVER_NAME : name_of(world, key), call->state);
    if (key->told_count == key->told_max) {
        key->told_max = key->told_max ? 2 * key->told_max : 8;
        key->told = realloc(key->told, key->told_max * sizeof *key->told);
        if (key->told == NULL)
            abort();
    }
    key->told[key->told_count++] = (struct told){call->state, call->is_restart};
}

static bool was_told(const struct key *key, bool is_restart, uint32_t state)
{
    for (uint32_t i = key->told_count; i > 0; i--)
        if (key->told[i - 1].state == state && key->told[i - 1].is_restart == is_restart)
            return true;
    return false;
}

static void check_marks(struct world *world, const struct key *key,
                        const struct record_registrant *record)
{
    const struct machine *machine = &world->machine;
    if (key->record_id != record->id) { /* new: its answer carries our state */
        if (record->told_state < machine->boot_state ||
            record->told_state > machine->boot_state + 2 * machine->bumps)
            world_fail(world, "O9", "a registration of owner %u begins as if told of state %u",
                       key->owner->index, record->told_state);
        return;
    }
    if (record->told_state != key->disk_told && !was_told(key, true, record->told_state))
        world_fail(world, "O9", "the disk says that owner %u was told of state %u: it was not",
                   key->owner->index, record->told_state);
    if (record->relayed_state != key->disk_relayed && !was_told(key, false, record->relayed_state))
        world_fail(world, "O9", "the disk says that owner %u knows %.40s at state %u: it does not",
                   key->owner->index, name_of(world, key), record->relayed_state);
}

static void set_value(struct world *world, struct key *key, struct call *value)
{
    if (key->disk_value == value)
        return;
    if (key->disk_value != NULL)
        key->disk_value->undone_ns = still_lived_ns(world);
    key->disk_value = value;
}

void told_audit(struct world *world, struct key *key, struct call *value,
                const struct record_registrant *record, bool is_loss)
{
    if (!is_loss)
        check_marks(world, key, record);
    if (key->record_id != record->id)
        key->record_since_ns = still_lived_ns(world);
    key->record_id = record->id;
    key->disk_told = record->told_state;
    key->disk_relayed = record->relayed_state;
    set_value(world, key, value);
}

void told_audit_absent(struct world *world, struct key *key)
{
    key->record_id = 0;
    set_value(world, key, NULL);
}

void told_audit_notice(struct world *world, struct name *name, uint32_t state)
{
    if (name->disk_notice == state)
        return;
    name->past[name->past_count % PAST_MAX].state = name->disk_notice;
    name->past[name->past_count++ % PAST_MAX].until_ns = still_lived_ns(world);
    name->disk_notice = state;
}

bool told_all_ended(const struct world *world)
{
    struct record_server server = {0};
    struct core_status status;
    if (!world->machine.is_up || !disk_server(&world->disk, &server))
        return false;
    core_status(world->machine.core, &status);
    uint32_t untellable = era_untellable_count(world);
    if (status.notify.owed > untellable || status.state != server.state || !era_all_told(world) ||
        (untellable == 0 && rpc_client_count(world->machine.client) != 0))
        return false;
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++) {
            const struct key *key = &world->owners[i].keys[k];
            uint32_t notice = world->names[key->name].disk_notice;
            if (key->record_id != 0 && (key->disk_told < server.restart_state ||
                                        (notice != 0 && key->disk_relayed != notice)))
                return false;
        }
    return true;
}
