/*
 * watcher.c -- what those who monitor do; see watcher.h.
 *
 * An owner has one call outstanding. It repeats it with the same xid until an answer comes or it
 * loses patience; then it goes on to something else, or tries the same again under a new xid. A
 * TCP owner that hears nothing closes its connection and repeats the call on a new one, from the
 * same port (as Linux does) or another. When the world is calm, owners repeat until they are
 * answered; at the farewell they unregister everything they may have registered.
 */
#include "watcher.h"

#include "callee.h"
#include "net.h"
#include "oracle.h"
#include "peer/peer_nsm.h"
#include "resolver.h"

#include <stdio.h>
#include <stdlib.h>

static void set_timer(struct world *world, struct owner *owner, uint64_t delay_ns)
{
    queue_add(&world->queue, world->now_ns + delay_ns, QUEUE_OWNER, owner, ++owner->timer);
}

static void encode_call(struct world *world, struct call *call)
{
    static struct packet packet;
    const struct key *key = call->key;
    struct peer_nsm_id id = {.my_name = call->owner->my_name,
                             .mon_name = world->names[key ? key->name : call->name].text,
                             .my_prog = key ? key->my_prog : 100021,
                             .my_vers = key ? key->my_vers : 4,
                             .my_proc = key ? key->my_proc : 16};
    uint8_t priv[PEER_NSM_PRIV_LEN] = "????simulated pr";
    store_be32(priv, call->value->id);
    if (call->must_fail && call->bad_name != NULL)
        id.mon_name = call->bad_name;
    else if (call->must_fail)
        id.my_prog = 100003;

    switch ((enum peer_nsm_procedure)call->procedure) {
    case PEER_NSM_NULL:
        peer_nsm_put_null(&packet, call->xid);
        break;
    case PEER_NSM_STAT:
        peer_nsm_put_stat(&packet, call->xid, id.mon_name);
        break;
    case PEER_NSM_MON:
        peer_nsm_put_mon(&packet, call->xid, &id, priv);
        break;
    case PEER_NSM_UNMON:
        peer_nsm_put_unmon(&packet, call->xid, &id);
        break;
    case PEER_NSM_UNMON_ALL:
        peer_nsm_put_unmon_all(&packet, call->xid, &id);
        break;
    case PEER_NSM_SIMU_CRASH:
        peer_nsm_put_simu_crash(&packet, call->xid);
        break;
    case PEER_NSM_NOTIFY:
        peer_nsm_put_notify(&packet, call->xid, id.mon_name, call->state);
        break;
    }
    call->len = packet.len;
    call->bytes = malloc(packet.len);
    if (call->bytes == NULL)
        abort();
    memcpy(call->bytes, packet.bytes, packet.len);
}

/* Looks random, names the owner, and starts anew when its host does. */
static uint32_t next_xid(struct owner *owner)
{
    return (owner->index << 20 | ++owner->xid_count) * UINT32_C(0x9e3779b1);
}

static struct call *new_call(struct world *world, struct owner *owner, uint32_t procedure,
                             struct key *key)
{
    if (world->call_count == world->call_max) {
        world->call_max = world->call_max ? 2 * world->call_max : 256;
        world->calls = realloc(world->calls, world->call_max * sizeof *world->calls);
        if (world->calls == NULL)
            abort();
    }
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL)
        abort();
    /* The same SM_NOTIFY under the xid of the one that announced the reboot would be a repeat. */
    if (procedure == PEER_NSM_NOTIFY && owner->xid_count + 1 == owner->announced_count)
        owner->xid_count++;
    *call = (struct call){.id = world->call_count,
                          .owner = owner,
                          .number = ++owner->calls_made,
                          .xid = next_xid(owner),
                          .life_count = owner->xid_count,
                          .procedure = procedure,
                          .key = key,
                          .value = call};
    world->calls[world->call_count++] = call;
    owner->life[owner->xid_count % LIFE_MAX] = call;
    if (procedure == PEER_NSM_NOTIFY) {
        call->notify_before = world->notify_last;
        world->notify_last = call;
    }
    return call;
}

/* The call is complete: from now on it is the owner's outstanding one. */
static void begin(struct world *world, struct owner *owner, struct call *call)
{
    encode_call(world, call);
    owner->call = call;
    owner->tries = 0;
    owner->tries_max = 1 + (uint32_t)world_random(world, 6);
    owner->timeout_ns = (owner->is_tcp ? 2 * SECOND : 200 * MILLISECOND) +
                        world_random(world, owner->is_tcp ? 20 * SECOND : SECOND);
    if (call->procedure == PEER_NSM_MON && call->key != NULL)
        call->key->newest = call;
    oracle_sent(world, call);
}

struct call *watcher_call(struct world *world, struct owner *owner, uint32_t procedure,
                          struct key *key)
{
    struct call *call = new_call(world, owner, procedure, key);
    if (procedure == PEER_NSM_NOTIFY)
        call->state = owner->host->nsm_state;
    begin(world, owner, call);
    return call;
}

static void begin_bad(struct world *world, struct owner *owner, uint32_t procedure)
{
    static const char *const names[] = {"", ".hidden", "a/b", "bell\a", "rubout\x7f", "/"};
    struct call *call = new_call(world, owner, procedure, NULL);
    call->must_fail = true;
    call->bad_name = procedure == PEER_NSM_MON && world_chance(world, 30)
                         ? NULL
                         : names[world_random(world, sizeof names / sizeof names[0])];
    call->state = 77;
    begin(world, owner, call);
}

static uint32_t name_for_notice(struct world *world, const struct owner *owner)
{
    if (world_side_chance(world, 30)) { /* another name of its own, if it has one */
        uint32_t name = (uint32_t)world_side(world, world->plan.names);
        for (uint32_t i = 0; i < world->plan.names; i++, name = (name + 1) % world->plan.names)
            if (resolver_is_host_of(world, owner->host, name))
                return name;
    }
    if (world_side_chance(world, 30)) /* one that it watches: that gives it no right */
        return owner->keys[world_side(world, owner->key_count)].name;
    if (world_chance(world, 50))
        return owner->host->index; /* its own address: the first names are those of the hosts */
    return (uint32_t)world_random(world, world->plan.names);
}

static void begin_notify(struct world *world, struct owner *owner)
{
    struct call *call = new_call(world, owner, PEER_NSM_NOTIFY, NULL);
    call->name = name_for_notice(world, owner);
    if (world_chance(world, 70))
        owner->host->nsm_state += 2;
    call->state = owner->host->nsm_state;
    begin(world, owner, call);
}

static void begin_stat(struct world *world, struct owner *owner)
{
    struct call *call = new_call(world, owner, PEER_NSM_STAT, NULL);
    call->name = (uint32_t)world_random(world, world->plan.names);
    begin(world, owner, call);
}

static void begin_mon(struct world *world, struct owner *owner, struct key *key)
{
    struct call *call = new_call(world, owner, PEER_NSM_MON, key);
    if (key->newest != NULL && world_chance(world, 25))
        call->value = key->newest->value; /* the same once more, under a new xid */
    begin(world, owner, call);
}

/* The same as an earlier call, under a new xid or in a new life. */
static void begin_again(struct world *world, struct owner *owner, const struct call *old)
{
    struct call *call = new_call(world, owner, old->procedure, old->key);
    if (call->procedure == PEER_NSM_MON)
        call->value = old->value;
    call->name = old->name;
    call->state = old->state;
    call->must_fail = old->must_fail;
    call->bad_name = old->bad_name;
    begin(world, owner, call);
}

/* Hosts do after a boot what they did after the last: the same calls under the same xids. */
static const struct call *call_of_last_life(struct world *world, const struct owner *owner)
{
    const struct call *old = owner->life[(owner->xid_count + 1) % LIFE_MAX];
    if (owner->life_begins == 0 || old == NULL || old->number >= owner->life_begins ||
        old->life_count != owner->xid_count + 1 || old->procedure == PEER_NSM_NOTIFY)
        return NULL;
    return world_chance(world, 85) ? old : NULL;
}

static void begin_something(struct world *world, struct owner *owner)
{
    struct key *key = &owner->keys[world_random(world, owner->key_count)];
    uint64_t dice = world_random(world, 100);
    bool may_crash = owner->is_privileged && address_is_loopback(&owner->host->address);
    const struct call *old = owner->again ? owner->again : call_of_last_life(world, owner);
    owner->again = NULL;
    if (old != NULL)
        begin_again(world, owner, old);
    else if (dice < 36)
        begin_mon(world, owner, key);
    else if (dice < 56)
        (void)watcher_call(world, owner, PEER_NSM_UNMON, key);
    else if (dice < 60)
        (void)watcher_call(world, owner, PEER_NSM_UNMON_ALL, NULL);
    else if (dice < 72)
        begin_stat(world, owner);
    else if (dice < 75)
        (void)watcher_call(world, owner, PEER_NSM_NULL, NULL);
    else if (dice < 84)
        begin_notify(world, owner);
    else if (dice < 88)
        begin_bad(world, owner, PEER_NSM_MON);
    else if (dice < 90)
        begin_bad(world, owner, world_chance(world, 50) ? PEER_NSM_STAT : PEER_NSM_NOTIFY);
    else if (dice < 91 || (dice < 97 && may_crash))
        (void)watcher_call(world, owner, PEER_NSM_SIMU_CRASH, NULL);
    else
        begin_mon(world, owner, key);
}

/* Unregister everything; true when that is done. */
static bool say_farewell(struct world *world, struct owner *owner)
{
    if (owner->farewell >= owner->key_count) {
        owner->is_finished = true;
        return true;
    }
    if (owner->index % 3 == 0) {
        owner->farewell = owner->key_count;
        (void)watcher_call(world, owner, PEER_NSM_UNMON_ALL, NULL);
    } else {
        (void)watcher_call(world, owner, PEER_NSM_UNMON, &owner->keys[owner->farewell++]);
    }
    return false;
}

static void give_up(struct world *world, struct owner *owner)
{
    world_trace(world, "owner %u gives up %s #%u", owner->index,
                world_procedure_text(owner->call->procedure), owner->call->id);
    owner->call->is_done = true;
    if (world_chance(world, 50))
        owner->again = owner->call;
    if (owner->connection != NULL && world_chance(world, 50))
        net_close(owner->connection);
    owner->call = NULL;
}

void watcher_send(struct world *world, struct owner *owner)
{
    if (owner->is_tcp) {
        if (owner->connection != NULL && (owner->tries > 0 || owner->connection->is_dead))
            net_close(owner->connection);
        if (owner->connection == NULL || !owner->connection->is_open)
            owner->connection = net_connect(world, owner);
        if (owner->connection == NULL) { /* refused: nobody listens */
            set_timer(world, owner, 100 * MILLISECOND + world_random(world, SECOND));
            return;
        }
    }
    world_trace(
        world, "owner %u sends %s #%u%s%.30s, try %u", owner->index,
        world_procedure_text(owner->call->procedure), owner->call->id, owner->call->key ? " " : "",
        owner->call->key ? world->names[owner->call->key->name].text : "", owner->tries + 1);
    net_send_call(world, owner);
    owner->tries++;
    set_timer(world, owner, owner->timeout_ns);
    if (owner->timeout_ns < 20 * SECOND && !world->is_calm)
        owner->timeout_ns *= 2;
}

void watcher_act(struct world *world, struct owner *owner)
{
    if (owner->is_finished)
        return;
    if (owner->call != NULL && owner->tries >= owner->tries_max && !world->is_calm &&
        world_chance(world, 50))
        give_up(world, owner);
    if (owner->call == NULL) {
        if (!world->is_calm)
            begin_something(world, owner);
        else if (!world->is_farewell || say_farewell(world, owner))
            return;
    }
    watcher_send(world, owner);
}

/* A reboot that the server believes: from here on the host may count its xids anew. */
static void reboot_is_known(struct world *world, struct owner *owner, const struct call *call)
{
    if (!call->may_speak || call->breaks != world->names[call->name].breaks)
        return;
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        struct owner *other = &world->owners[i];
        if (other->host != owner->host || other->reboot != call)
            continue;
        other->reboot = NULL;
        if (other->calls_made + 1 != other->void_before + (other == owner ? 1 : 0))
            continue; /* it could not wait, and went on counting */
        world_trace(world, "owner %u counts its xids anew", other->index);
        other->xid_count = 0;
        other->life_begins = other->calls_made + 1;
    }
    if (!world->is_calm && world_chance(world, 50)) /* boot loops happen */
        queue_add(&world->queue, world->now_ns + world_random(world, 8 * SECOND), QUEUE_REBOOT,
                  owner->host, 0);
}

void watcher_receive(struct world *world, struct call *call, struct bytes message)
{
    struct owner *owner = call->owner;
    (void)message;
    if (call != owner->call)
        return; /* late, or a second copy */
    world_trace(world, "owner %u has the answer to %s #%u", owner->index,
                world_procedure_text(call->procedure), call->id);
    call->is_done = call->is_answered = true;
    owner->call = NULL;
    owner->timer++; /* no repetition */
    if (call == owner->reboot)
        reboot_is_known(world, owner, call);
    uint64_t think_ns = world->is_calm ? MILLISECOND : world->plan.think_max_ns;
    if (!world->is_manual)
        set_timer(world, owner, 1 + world_random(world, think_ns));
}

void watcher_connection_lost(struct world *world, struct owner *owner)
{
    if (owner->call != NULL)
        set_timer(world, owner, 1 + world_random(world, SECOND));
}

void watcher_reboot(struct world *world, struct host *host)
{
    struct owner *first = NULL;
    world_trace(world, "host %u reboots", host->index);
    host->nsm_state += 2;
    callee_restart(world, host);
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        struct owner *owner = &world->owners[i];
        if (owner->host != host)
            continue;
        if (first == NULL)
            first = owner;
        if (owner->call != NULL)
            owner->call->is_done = true;
        net_reset(world, owner);
        owner->connection = NULL;
        owner->call = owner->again = NULL;
        owner->void_before = owner->calls_made + 1;
        set_timer(world, owner, SECOND + world_random(world, 20 * SECOND));
    }
    if (first == NULL)
        return;
    struct call *call = new_call(world, first, PEER_NSM_NOTIFY, NULL);
    call->name = host->index;
    call->state = host->nsm_state;
    begin(world, first, call);
    first->announced_count = call->life_count;
    for (uint32_t i = 0; i < world->plan.owners; i++)
        if (world->owners[i].host == host)
            world->owners[i].reboot = call;
    watcher_send(world, first);
}

bool watcher_all_answered(const struct world *world)
{
    for (uint32_t i = 0; i < world->plan.owners; i++)
        if (world->owners[i].call != NULL)
            return false;
    return true;
}

bool watcher_all_finished(const struct world *world)
{
    for (uint32_t i = 0; i < world->plan.owners; i++)
        if (!world->owners[i].is_finished)
            return false;
    return true;
}

static void init_hosts(struct world *world)
{
    /* Two link-local hosts differ only by their interface; one IPv4 host arrives v4-mapped. */
    static const char *const addresses[HOST_MAX] = {"127.0.0.1",   "10.0.0.2",    "::ffff:10.0.0.3",
                                                    "2001:db8::4", "fe80::5%2",   "fe80::5%3",
                                                    "::1",         "192.168.77.7"};
    for (uint32_t i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        host->index = i;
        host->nsm_state = 3 + 10000 * i; /* no two hosts ever carry the same */
        if (!address_parse(bytes_of_text(addresses[i]), &host->address))
            abort();
        const char *local = host->address.family == 4 ? "10.0.0.1" : "2001:db8::1";
        if (!address_parse(bytes_of_text(local), &host->local))
            abort();
    }
}

/* First the hosts' addresses, then names in several spellings, then long ones. */
static void init_names(struct world *world)
{
    for (uint32_t i = 0; i < world->plan.names; i++) {
        char *text = world->names[i].text;
        if (i < world->plan.hosts) {
            address_text(&world->hosts[i].address, text);
        } else if (i < 2 * world->plan.hosts) {
            snprintf(text, NAME_TEXT_MAX, i % 2 ? "host-%u.example" : "HOST-%u.Example", i / 2);
        } else {
            uint32_t len =
                1 + (uint32_t)world_random(
                        world, world_chance(world, world->plan.few_bytes ? 60 : 10) ? 1024 : 60);
            memset(text, 'a' + (int)(i % 26), len);
            text[len] = '\0';
        }
    }
    /* The last three are spellings of one name. */
    snprintf(world->names[world->plan.names - 1].text, NAME_TEXT_MAX, "server");
    snprintf(world->names[world->plan.names - 2].text, NAME_TEXT_MAX, "SERVER");
    snprintf(world->names[world->plan.names - 3].text, NAME_TEXT_MAX, "Server");
    resolver_init(world);
}

static bool has_key(const struct owner *owner, const struct key *key)
{
    for (uint32_t i = 0; i < owner->key_count; i++)
        if (owner->keys[i].name == key->name && owner->keys[i].my_prog == key->my_prog &&
            owner->keys[i].my_proc == key->my_proc)
            return true;
    return false;
}

static void init_keys(struct world *world, struct owner *owner)
{
    static const uint32_t programs[][3] = {{100021, 4, 16}, {100021, 4, 24}, {200048, 1, 1}};
    uint32_t wanted = 1 + (uint32_t)world_random(world, KEY_MAX);
    while (owner->key_count < wanted) {
        const uint32_t *program = programs[world_random(world, 3)];
        struct key key = {.owner = owner,
                          .name = (uint32_t)world_random(world, world->plan.names),
                          .my_prog = program[0],
                          .my_vers = program[1],
                          .my_proc = program[2]};
        if (owner->key_count == 0 && world->plan.reboot > 0 && world_chance(world, 60))
            key.name = owner->host->index; /* it may say that it rebooted */
        if (!has_key(owner, &key))
            owner->keys[owner->key_count++] = key;
    }
}

/* No two owners of a host have the same. Some name a port (D3), some a host that nobody may call
 * because of that, some only look like it. */
static void init_my_name(struct world *world, struct owner *owner, uint32_t at_host)
{
    static const char *const names[] = {"lockd", "NFS NLM", "Lockd"};
    static const char *const odd[] = {
        "10.66.6.6", "10.0.0.2", "lockd:", "lockd:99999", "lockd:x1", ":4000"};
    char *text = owner->my_name;
    owner->hint_port = 12049;
    uint64_t dice = world_random(world, 100);
    if (dice < 25) {
        owner->hint_port = (uint16_t)(4000 + 10 * at_host + world_random(world, 10));
        snprintf(text, sizeof owner->my_name, "%s:%u", dice < 12 ? "192.168.77.7" : "lockd",
                 owner->hint_port);
    } else if (dice < 45) {
        snprintf(text, sizeof owner->my_name, "%s", odd[(owner->host->index + at_host) % 6]);
    } else if (at_host < 3) {
        snprintf(text, sizeof owner->my_name, "%s", names[at_host]);
    } else {
        snprintf(text, sizeof owner->my_name, "lockd-%u", at_host);
    }
}

void watcher_init(struct world *world)
{
    init_hosts(world);
    init_names(world);
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        struct owner *owner = &world->owners[i];
        owner->index = i;
        owner->host = &world->hosts[i % world->plan.hosts];
        init_my_name(world, owner, i / world->plan.hosts);
        owner->is_tcp = world_chance(world, 40);
        owner->keeps_port = world_chance(world, 50);
        owner->is_privileged = i == 0 || world_chance(world, 30);
        owner->port = (uint16_t)((owner->is_privileged ? 600 : 2049) + i);
        init_keys(world, owner);
        if (!world->is_manual)
            set_timer(world, owner, 1 + world_random(world, SECOND));
    }
}

static void free_key(struct key *key)
{
    free(key->later);
    free(key->told);
}

void watcher_done(struct world *world)
{
    for (uint32_t i = 0; i < world->call_count; i++) {
        free(world->calls[i]->bytes);
        free(world->calls[i]);
    }
    free(world->calls);
    for (uint32_t i = 0; i < world->plan.owners; i++)
        for (uint32_t k = 0; k < world->owners[i].key_count; k++)
            free_key(&world->owners[i].keys[k]);
}
