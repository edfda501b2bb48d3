/*
 * client.c -- all attempts together: starting, finding the one that an event is about, ending.
 *
 * What happens to a single attempt is in attempt.c. Events find their attempt by xid and host
 * (datagrams), by connection (which carries the slot), or by host and port (ICMP).
 *
 * What an ICMP message costs is bounded by what it changes: it names a host and a port, not a call,
 * so everybody who awaits something there is told, and nobody awaits it any longer (P7). Without
 * that, n registrants at one host without a portmapper would cost n squared.
 */
#include "rpc/client.h"

#include "base/check.h"
#include "base/hash.h"
#include "rpc/attempt.h"

#include <stdlib.h>

/* ---- birth and death ---- */

/* How many attempts that nobody waits for there may be, beside the others. */
static uint32_t one_way_max(const struct rpc_client *client)
{
    uint32_t max = client->limits.attempts_max / 4;
    return max > 0 ? max : 1;
}

struct rpc_client *rpc_client_new(const struct rpc_client_limits *limits, uint32_t first_call,
                                  uint64_t seed)
{
    struct rpc_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    client->limits = *limits;
    client->next_call = first_call;
    client->seed = seed;
    for (uint32_t i = 0; i < ATTEMPT_RANK_END; i++)
        list_init(&client->todo[i]);
    client->ticket = 1;
    client->released = lease_is_shared(limits->lease) ? 0 : UINT64_MAX;
    list_init(&client->results);
    list_init(&client->waiting_turn);
    client->arena = arena_new(limits->bytes_max);
    uint32_t slots = limits->attempts_max + one_way_max(client);
    client->ports = port_cache_new(2 * slots, seed); /* a program is on two */
    if (client->arena == NULL || client->ports == NULL ||
        table_init(&client->attempts, slots, sizeof(struct attempt)) != 0 ||
        timers_init(&client->timers, slots) != 0 || hash_index_init(&client->by_xid, slots) != 0 ||
        hash_index_init(&client->by_id, slots) != 0 ||
        hash_index_init(&client->by_awaited, slots) != 0) {
        rpc_client_free(client);
        return NULL;
    }
    return client;
}

void rpc_client_free(struct rpc_client *client)
{
    if (client == NULL)
        return;
    arena_free(client->arena);
    port_cache_free(client->ports);
    table_done(&client->attempts);
    timers_done(&client->timers);
    hash_index_done(&client->by_xid);
    hash_index_done(&client->by_id);
    hash_index_done(&client->by_awaited);
    free(client);
}

static uint64_t id_hash(const struct rpc_client *client, uint64_t id)
{
    return hash_number(client->seed, id);
}

/* How many attempts somebody waits for. */
uint32_t rpc_client_awaited(const struct rpc_client *client)
{
    return client->attempts.count - client->one_way_count;
}

bool rpc_client_has_room(const struct rpc_client *client)
{
    return rpc_client_awaited(client) < client->limits.attempts_max &&
           arena_has_room(client->arena, CLIENT_MESSAGES_MAX);
}

bool rpc_client_is_crowded(const struct rpc_client *client)
{
    uint32_t max = client->limits.attempts_max;
    return rpc_client_awaited(client) >= max - max / 4;
}

static void remove_messages(struct rpc_client *client, struct attempt *a, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        arena_remove(client->arena, a->cells[i], a->call.messages[i].len);
}

bool rpc_client_start(struct rpc_client *client, const struct client_attempt *call, uint64_t now_ns)
{
    CHECK(call->message_count > 0 && call->message_count <= CLIENT_MESSAGES_MAX);
    CHECK(!call->is_one_way || call->message_count == 1);
    bool is_full = call->is_one_way ? client->one_way_count == one_way_max(client)
                                    : rpc_client_awaited(client) == client->limits.attempts_max;
    if (is_full)
        return false;
    uint32_t slot = table_add(&client->attempts);
    CHECK(slot != SLOT_NONE);
    struct attempt *a = attempt_at(client, slot);
    *a = (struct attempt){.call = *call, .slot = slot, .xid = attempt_next_xid(client)};
    for (uint32_t i = 0; i < call->message_count; i++) {
        CHECK(call->messages[i].len <= CLIENT_ARGS_MAX);
        a->cells[i] = arena_add(client->arena, call->messages[i]);
        if (a->cells[i] == ARENA_NONE) {
            remove_messages(client, a, i);
            table_remove(&client->attempts, slot);
            return false;
        }
        a->call.messages[i].at = NULL; /* the caller's; ours are in the arena */
    }
    list_init(&a->by_todo);
    list_init(&a->by_result);
    list_init(&a->by_turn);
    hash_index_add(&client->by_xid, attempt_xid_hash(client, a->xid), slot);
    hash_index_add(&client->by_id, id_hash(client, call->id), slot);
    client->one_way_count += call->is_one_way;
    attempt_look_up(client, a, now_ns);
    return true;
}

/* Gone for good, if there is nothing left to do and nothing to tell. */
static void forget(struct rpc_client *client, struct attempt *a)
{
    if (a->phase != ATTEMPT_ENDED || a->has_result || a->todo != 0)
        return;
    CHECK(a->connection == 0);
    hash_index_remove(&client->by_xid, a->slot);
    hash_index_remove(&client->by_id, a->slot);
    remove_messages(client, a, a->call.message_count);
    client->one_way_count -= a->call.is_one_way;
    table_remove(&client->attempts, a->slot);
}

static void take_result(struct rpc_client *client, struct attempt *a)
{
    list_remove(&a->by_result);
    a->has_result = false;
    forget(client, a);
}

/* The attempt with this id that somebody still waits for; NULL: none. */
static struct attempt *find_awaited(const struct rpc_client *client, uint64_t id)
{
    uint32_t slot = hash_index_first(&client->by_id, id_hash(client, id));
    for (; slot != SLOT_NONE; slot = hash_index_next(&client->by_id, slot)) {
        struct attempt *a = attempt_at(client, slot);
        if (!a->call.is_one_way && a->call.id == id && (a->phase != ATTEMPT_ENDED || a->has_result))
            return a;
    }
    return NULL;
}

void rpc_client_cancel(struct rpc_client *client, uint64_t id)
{
    struct attempt *a = find_awaited(client, id);
    if (a == NULL)
        return;
    if (a->phase != ATTEMPT_ENDED)
        attempt_end(client, a, CLIENT_UNKNOWN);
    take_result(client, a);
}

void rpc_client_finish(struct rpc_client *client, uint64_t id, uint64_t deadline_ns,
                       uint64_t now_ns)
{
    struct attempt *a = find_awaited(client, id);
    if (a != NULL && a->phase != ATTEMPT_ENDED)
        attempt_finish(client, a, deadline_ns, now_ns);
}

bool rpc_client_has_result(const struct rpc_client *client)
{
    return !list_is_empty(&client->results);
}

bool rpc_client_next_result(struct rpc_client *client, struct client_result *ret)
{
    while (!list_is_empty(&client->results)) {
        struct attempt *a = LIST_ELEMENT(client->results.next, struct attempt, by_result);
        bool is_awaited = !a->call.is_one_way;
        if (is_awaited) {
            memcpy(client->body, a->body, sizeof client->body);
            *ret = (struct client_result){.id = a->call.id,
                                          .outcome = a->outcome,
                                          .answered_count = a->message_index,
                                          .is_repeated = a->is_repeated,
                                          .body = {client->body, a->body_len}};
        }
        take_result(client, a);
        if (is_awaited)
            return true;
    }
    return false;
}

const struct lease *rpc_client_lease(const struct rpc_client *client)
{
    return client->limits.lease;
}

uint32_t rpc_client_take_xid(struct rpc_client *client)
{
    return attempt_next_xid(client);
}

bool rpc_client_is_due(const struct rpc_client *client)
{
    return lease_is_shared(client->limits.lease) && client->is_due;
}

uint64_t rpc_client_ask(struct rpc_client *client)
{
    client->is_due = false;
    return client->ticket++;
}

void rpc_client_release(struct rpc_client *client, uint64_t ticket)
{
    CHECK(ticket > client->released);
    CHECK(ticket < client->ticket);
    client->released = ticket;
}

/* Somebody waits for a connection, or soon for room: what is over must go. */
static bool is_short(const struct rpc_client *client)
{
    return !list_is_empty(&client->waiting_turn) || rpc_client_is_crowded(client) ||
           client->one_way_count == one_way_max(client) ||
           !arena_has_room(client->arena, CLIENT_MESSAGES_MAX);
}

bool rpc_client_next_action(struct rpc_client *client, struct client_action *ret)
{
    uint32_t first = is_short(client) ? ATTEMPT_PARTS : 0;
    for (uint32_t i = 0; i < ATTEMPT_RANK_END; i++) {
        uint32_t rank = (first + i) % ATTEMPT_RANK_END;
        struct list *queue = &client->todo[rank];
        if (list_is_empty(queue))
            continue;
        struct attempt *a = LIST_ELEMENT(queue->next, struct attempt, by_todo);
        if (!attempt_only_closes(rank) && a->ticket > client->released) {
            MARK("client_waits_for_the_fence");
            continue;
        }
        attempt_act(client, a, ret);
        forget(client, a);
        return true;
    }
    return false;
}

void rpc_client_host_restarted(struct rpc_client *client, const struct address *host)
{
    port_cache_drop_host(client->ports, host);
}

/* ---- what happened ---- */

/* The attempt whose connection this still is, as far as the wire was told; or NULL. */
static struct attempt *attempt_of(const struct rpc_client *client, uint64_t connection)
{
    uint32_t slot = (uint32_t)connection;
    if (connection == 0 || !table_is_live(&client->attempts, slot))
        return NULL;
    struct attempt *a = attempt_at(client, slot);
    bool is_wires = !(a->todo & (uint32_t)(ATTEMPT_CONNECT | ATTEMPT_DISCONNECT));
    return a->connection == connection && is_wires ? a : NULL;
}

/* An answer from elsewhere than the port that was asked is somebody else's, and so is one that
 * comes to where we listen, unless that is where it was asked from. */
static bool is_asked(const struct attempt *a, uint16_t port, bool at_listener)
{
    if (a->phase == ATTEMPT_LOOKING_UP)
        return port == PORTMAP_PORT && !at_listener;
    return a->phase == ATTEMPT_ASKING && a->prot == TRANSPORT_UDP && port == a->port &&
           (!at_listener || a->call.from_listener);
}

static void heard(struct rpc_client *client, const struct address *from, uint16_t port,
                  struct bytes message, bool at_listener, uint64_t now_ns)
{
    struct rpc_answer answer;
    if (!rpc_msg_get_answer(message, &answer))
        return;
    uint32_t slot = hash_index_first(&client->by_xid, attempt_xid_hash(client, answer.xid));
    for (; slot != SLOT_NONE; slot = hash_index_next(&client->by_xid, slot)) {
        struct attempt *a = attempt_at(client, slot);
        bool is_ours = a->xid == answer.xid && address_equal(&a->call.to, from);
        if (!is_ours || !is_asked(a, port, at_listener))
            continue;
        attempt_answered(client, a, TRANSPORT_UDP, &answer, now_ns);
        return;
    }
}

void rpc_client_datagram(struct rpc_client *client, const struct address *from, uint16_t port,
                         struct bytes message, uint64_t now_ns)
{
    heard(client, from, port, message, false, now_ns);
}

void rpc_client_datagram_at_listener(struct rpc_client *client, const struct address *from,
                                     uint16_t port, struct bytes message, uint64_t now_ns)
{
    heard(client, from, port, message, true, now_ns);
}

void rpc_client_unreachable(struct rpc_client *client, const struct address *to, uint16_t port,
                            uint64_t now_ns)
{
    uint32_t slot = hash_index_first(&client->by_awaited, attempt_awaited_hash(client, to, port));
    while (slot != SLOT_NONE) {
        struct attempt *a = attempt_at(client, slot);
        slot = hash_index_next(&client->by_awaited, slot);
        if (a->awaited_port == port && address_equal(&a->call.to, to))
            attempt_unreachable(client, a, now_ns);
    }
}

void rpc_client_connected(struct rpc_client *client, uint64_t connection, bool is_open,
                          uint64_t now_ns)
{
    struct attempt *a = attempt_of(client, connection);
    if (a == NULL || a->is_connected)
        return;
    if (is_open)
        attempt_connected(client, a, now_ns);
    else
        attempt_lost(client, a, now_ns);
}

void rpc_client_record(struct rpc_client *client, uint64_t connection, struct bytes record,
                       uint64_t now_ns)
{
    struct rpc_answer answer;
    struct attempt *a = attempt_of(client, connection);
    if (a != NULL && a->is_connected && rpc_msg_get_answer(record, &answer) && answer.xid == a->xid)
        attempt_answered(client, a, TRANSPORT_TCP, &answer, now_ns);
}

void rpc_client_lost(struct rpc_client *client, uint64_t connection, uint64_t now_ns)
{
    struct attempt *a = attempt_of(client, connection);
    if (a != NULL)
        attempt_lost(client, a, now_ns);
}

/* ---- time ---- */

uint64_t rpc_client_deadline_ns(const struct rpc_client *client)
{
    return timers_next_ns(&client->timers);
}

void rpc_client_tick(struct rpc_client *client, uint64_t now_ns)
{
    uint32_t slot;
    while ((slot = timers_take(&client->timers, now_ns)) != SLOT_NONE)
        attempt_time_out(client, attempt_at(client, slot), now_ns);
}

uint32_t rpc_client_count(const struct rpc_client *client)
{
    return client->attempts.count;
}

uint32_t rpc_client_max(const struct rpc_client *client)
{
    return client->limits.attempts_max;
}

uint32_t rpc_client_connections_max(const struct rpc_client *client)
{
    return client->limits.connections_max;
}

void rpc_client_check(const struct rpc_client *client)
{
    table_check(&client->attempts);
    timers_check(&client->timers);
    uint32_t open = 0, one_way = 0;
    uint32_t slot = table_next(&client->attempts, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&client->attempts, slot)) {
        const struct attempt *a = attempt_at(client, slot);
        CHECK(a->slot == slot);
        attempt_check(client, a);
        open += a->connection != 0;
        one_way += a->call.is_one_way;
    }
    CHECK(open == client->open_count);
    CHECK(one_way == client->one_way_count);
    CHECK(open <= client->limits.connections_max);
    CHECK(list_is_empty(&client->waiting_turn) || open == client->limits.connections_max);
    CHECK(client->attempts.count > 0 || arena_used(client->arena) == 0);
}
