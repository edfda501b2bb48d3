/*
 * target.c -- see target.h.
 *
 * Always true:
 *  (1) A mark is cleared by answers and by nothing else, and to the state that the call said.
 *  (2) A lock client's mark is cleared when it has answered under the last name. Its status monitor
 *      answers every name, also those that it does not know, so fewer answers prove nothing (D4).
 *      The first one proves that the host is there (client_alive, which core.c says).
 *  (3) A call goes to the address that the target called us from, and to no other (R-SEC-2).
 */
#include "core/target.h"

#include "base/check.h"
#include "core/state.h"

enum { DEFAULT_PORT = 12049 }; /* D3: where a registrant listens that tells us nothing better */

/* ---- which ---- */

static uint32_t registrants_max(const struct core *core)
{
    return core->registrants.table.max;
}

static uint32_t clients_max(const struct core *core)
{
    return core->clients.table.max;
}

uint32_t target_max(const struct core *core, const uint32_t slots[])
{
    uint32_t watched = core->limits.is_monitor ? slots[RECORD_REGISTRANT] : 0;
    return slots[RECORD_REGISTRANT] + slots[RECORD_CLIENT] + watched;
}

uint32_t target_of_registrant(uint32_t slot)
{
    return slot;
}

uint32_t target_of_client(const struct core *core, uint32_t slot)
{
    return registrants_max(core) + slot;
}

uint32_t target_of_watched(const struct core *core, uint32_t slot)
{
    return registrants_max(core) + clients_max(core) + slot;
}

enum target_kind target_kind(const struct core *core, uint32_t target)
{
    if (target < registrants_max(core))
        return TARGET_REGISTRANT;
    return target - registrants_max(core) < clients_max(core) ? TARGET_CLIENT : TARGET_WATCHED;
}

bool target_is_client(const struct core *core, uint32_t target)
{
    return target_kind(core, target) == TARGET_CLIENT;
}

uint32_t target_client(const struct core *core, uint32_t target)
{
    CHECK(target_is_client(core, target));
    return target - registrants_max(core);
}

/* The slot of the registrant that a target is, or whose host it is. */
static uint32_t registrant_slot(const struct core *core, uint32_t target)
{
    if (target_kind(core, target) == TARGET_REGISTRANT)
        return target;
    CHECK(target_kind(core, target) == TARGET_WATCHED);
    return target - target_of_watched(core, 0);
}

static struct registrant *registrant_of(const struct core *core, uint32_t target)
{
    return table_at(&core->registrants.table, registrant_slot(core, target));
}

static struct client *client_of(const struct core *core, uint32_t target)
{
    return client_at(core, target_client(core, target));
}

/* Registrants, clients, then the hosts of the registrants. */
uint32_t target_next(const struct core *core, uint32_t target)
{
    enum target_kind kind = target == SLOT_NONE ? TARGET_REGISTRANT : target_kind(core, target);
    uint32_t slot = SLOT_NONE;
    if (kind == TARGET_REGISTRANT)
        slot = table_next(&core->registrants.table, target);
    if (slot != SLOT_NONE)
        return target_of_registrant(slot);
    if (kind != TARGET_WATCHED)
        slot = table_next(&core->clients.table,
                          kind == TARGET_CLIENT ? target_client(core, target) : SLOT_NONE);
    if (slot != SLOT_NONE)
        return target_of_client(core, slot);
    if (!core->limits.is_monitor)
        return SLOT_NONE;
    slot = table_next(&core->registrants.table,
                      kind == TARGET_WATCHED ? registrant_slot(core, target) : SLOT_NONE);
    return slot == SLOT_NONE ? SLOT_NONE : target_of_watched(core, slot);
}

uint32_t target_find(const struct core *core, enum target_kind kind, uint64_t handle)
{
    bool is_client = kind == TARGET_CLIENT;
    const struct table *table = is_client ? &core->clients.table : &core->registrants.table;
    uint32_t slot = table_find(table, handle);
    if (slot == SLOT_NONE || kind == TARGET_REGISTRANT)
        return slot;
    return is_client ? target_of_client(core, slot) : target_of_watched(core, slot);
}

/* ---- what is known of it ---- */

bool target_knows(const struct record_server *server, uint32_t told_state)
{
    return told_state != 0 && !client_is_newer_state(server->restart_state, told_state) &&
           !client_is_newer_state(told_state, server->state); /* not one of ours */
}

/* This client knows of it, or need not. */
static bool is_informed(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    return client->recovery.is_spared || target_knows(&core->server, client->stored.told_state);
}

struct target_news target_owed(const struct core *core, uint32_t target)
{
    struct target_news owed = {0};
    if (target_is_client(core, target)) {
        const struct client *client = client_of(core, target);
        bool is_told = is_informed(core, target_client(core, target));
        owed.state =
            client->stored.flags & RECORD_CLIENT_MONITORED && !is_told ? core->server.state : 0;
        return owed;
    }
    const struct registrant *r = registrant_of(core, target);
    uint32_t notice = notice_state(core, r->mon_fold);
    if (target_kind(core, target) == TARGET_WATCHED) {
        bool is_due = watched_is_callable(core, registrant_slot(core, target));
        owed.state = is_due ? core->server.state : 0;
        return owed;
    }
    bool is_monitor = core->limits.is_monitor;
    if (!is_monitor || watched_is_current(core, target))
        owed.notice = notice != r->relayed_state ? notice : 0;
    owed.state = is_monitor || target_knows(&core->server, r->told_state) ? 0 : core->server.state;
    return owed;
}

struct address target_address(const struct core *core, uint32_t target)
{
    if (target_is_client(core, target))
        return client_address(core, target_client(core, target));
    if (target_kind(core, target) == TARGET_WATCHED)
        return watched_address(core, registrant_slot(core, target));
    struct address address;
    uint32_t slot = registrant_of(core, target)->address;
    memcpy(&address, intern_bytes(&core->registrants.index.addresses, slot).at, sizeof address);
    return address;
}

uint64_t target_seen_ns(const struct core *core, uint32_t target)
{
    return target_is_client(core, target) ? client_of(core, target)->stored.seen_wall_ns
                                          : registrant_of(core, target)->registered_ns;
}

void target_report(struct core *core, enum event_kind kind, uint32_t target, uint64_t value)
{
    struct address address = target_address(core, target);
    uint32_t name = target_is_client(core, target) ? client_of(core, target)->stored.name
                    : core->limits.is_monitor      ? registrant_of(core, target)->mon_name
                                                   : registrant_of(core, target)->my_name;
    if (core->limits.is_monitor && target_kind(core, target) == TARGET_REGISTRANT)
        kind = kind == EVENT_TOLD ? EVENT_UPCALL : EVENT_UPCALL_FAILED;
    event_add(&core->events, kind, &address, intern_bytes(&core->names, name), value);
}

/* ---- what is said ---- */

/* D3: the port in a my_name of the form name:port, else the default. */
static uint16_t port_hint(struct bytes my_name)
{
    uint32_t port = 0, at = my_name.len;
    for (uint32_t scale = 1; at > 0 && my_name.at[at - 1] != ':'; at--, scale *= 10) {
        uint8_t c = my_name.at[at - 1];
        if (c < '0' || c > '9' || scale > 10000)
            return DEFAULT_PORT;
        port += scale * (uint32_t)(c - '0');
    }
    bool is_port = at > 1 && at < my_name.len && port > 0 && port <= UINT16_MAX;
    return is_port ? (uint16_t)port : DEFAULT_PORT;
}

static void put_status(struct core_call *call, struct bytes mon_name, uint32_t state)
{
    call->status[call->status_count++] = (struct core_call_status){mon_name, state};
}

/* The kernel hears 127.0.0.1 and a privileged port, and nobody else. Where it is rpcbind knows:
 * a guess would be ourselves. */
static void make_upcall(struct core_call *call)
{
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    call->to = address_v4(loopback);
    call->local = (struct address){0};
    call->port_hint = 0;
    call->transport = TRANSPORT_UDP;
    call->is_upcall = true;
}

static void put_registrant_call(struct core *core, uint32_t target, struct target_news news,
                                struct core_call *ret)
{
    const struct registrant *r = registrant_of(core, target);
    *ret = (struct core_call){
        .id = core_call_id(CALL_OF_NOTIFY, table_handle(&core->registrants.table, target)),
        .kind = CALL_STATUS,
        .to = target_address(core, target),
        .local = r->local,
        .port_hint = port_hint(intern_bytes(&core->names, r->my_name)),
        .my_prog = r->my_prog,
        .my_vers = r->my_vers,
        .my_proc = r->my_proc,
        .priv = {r->priv, RECORD_PRIV_LEN},
    };
    if (core->limits.is_monitor)
        make_upcall(ret);
    if (news.state != 0)
        put_status(ret, core->limits.server_name, news.state);
    if (news.notice != 0)
        put_status(ret, intern_bytes(&core->names, r->mon_name), news.notice);
}

/* From the address that it knows us by (R-NOTIFY-1); TCP first, whatever it locks over (D4). */
static void put_client_call(struct core *core, uint32_t target, struct target_news news,
                            struct core_call *ret)
{
    const struct client *client = client_of(core, target);
    uint64_t handle = table_handle(&core->clients.table, target_client(core, target));
    *ret = (struct core_call){
        .id = core_call_id(CALL_OF_NOTIFY_CLIENT, handle),
        .kind = CALL_NOTIFY,
        .to = target_address(core, target),
        .local = client->stored.local,
        .our_state = news.state,
    };
    ret->our_name_count = naming_list(core, &client->stored.local, ret->our_names);
}

void target_put_call(struct core *core, uint32_t target, struct target_news news,
                     struct core_call *ret)
{
    switch (target_kind(core, target)) {
    case TARGET_REGISTRANT:
        put_registrant_call(core, target, news, ret);
        return;
    case TARGET_CLIENT:
        put_client_call(core, target, news, ret);
        return;
    case TARGET_WATCHED:
        watched_put_call(core, registrant_slot(core, target), ret);
        return;
    }
    UNREACHABLE();
}

/* ---- what came of it ---- */

static void registrant_answered(struct core *core, uint32_t target, struct target_news news,
                                uint32_t answered_count)
{
    struct registrant *r = registrant_of(core, target);
    if (answered_count > 0)
        registrant_alive(core, target);
    if (news.state != 0 && answered_count > 0) {
        r->told_state = news.state;
        answered_count--;
        dirty_put(&core->dirty, RECORD_REGISTRANT, target);
    } else if (news.state != 0) {
        return;
    }
    if (news.notice != 0 && answered_count > 0) {
        r->relayed_state = news.notice;
        dirty_put(&core->dirty, RECORD_REGISTRANT, target);
    }
}

static void note_told(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    grace_told(core, slot);
    if (client->life.waiter_count == 0)
        client->stored.flags &= ~(uint32_t)RECORD_CLIENT_WAITS;
}

static void client_answered(struct core *core, uint32_t target, struct target_news news,
                            bool is_answered)
{
    uint32_t slot = target_client(core, target);
    struct client *client = client_of(core, target);
    if (is_answered && client_is_newer_state(client->recovery.must_know, news.state))
        return; /* what it must know was not yet said when this call began */
    if (is_answered) {
        client->stored.told_state = news.state;
        client->recovery.must_know = 0;
        client->stored.untold_ns = 0;
        if (target_knows(&core->server, news.state)) /* and not only of a restart before that */
            note_told(core, slot);
        evict_rank(core, slot);
    } else if (client->stored.untold_ns == 0) {
        client->stored.untold_ns = core->wall_ns;
    } else {
        return;
    }
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

void target_answered(struct core *core, uint32_t target, struct target_news news, bool is_answered,
                     uint32_t answered_count)
{
    switch (target_kind(core, target)) {
    case TARGET_REGISTRANT:
        registrant_answered(core, target, news, answered_count);
        return;
    case TARGET_CLIENT:
        client_answered(core, target, news, is_answered);
        return;
    case TARGET_WATCHED:
        watched_answered(core, registrant_slot(core, target), news.state, is_answered);
        return;
    }
    UNREACHABLE();
}

bool target_has_other_way(const struct core *core, uint32_t target)
{
    return target_kind(core, target) == TARGET_WATCHED &&
           watched_has_other_way(core, registrant_slot(core, target));
}

bool target_clear_debt(struct core *core, uint32_t target)
{
    return target_kind(core, target) == TARGET_WATCHED &&
           watched_clear_debt(core, registrant_slot(core, target));
}

void target_given_up(struct core *core, uint32_t target)
{
    if (target_kind(core, target) == TARGET_WATCHED)
        watched_given_up(core, registrant_slot(core, target));
    if (!target_is_client(core, target))
        return;
    grace_given_up(core, target_client(core, target));
    evict_rank(core, target_client(core, target));
}
