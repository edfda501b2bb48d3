/*
 * net.c -- TCP keeps order and breaks; UDP loses, repeats, reorders and delays. See net.h.
 *
 * One thing it does not do, unless the world allows it (WORLD_LATE): it does not deliver a datagram
 * after a later call of the same owner was executed, nor what was sent on a connection that its
 * owner gave up, except while the duplicate cache protects (same run, less than 120 s after the
 * answer). That is exclusion (5) of P2: no server can tell such a call from a new one. The cache
 * itself is thus tested with every old call that it must recognise.
 *
 * Segments are lost and sent again by each connection for itself, for up to 25 s.
 */
#include "net.h"

#include "kernel.h"
#include "machine.h"
#include "oracle.h"
#include "peer/packet.h"
#include "peer/peer_nsm.h"
#include "watcher.h"

#include <stdlib.h>

struct connection *net_connect(struct world *world, struct owner *owner)
{
    if (!world->machine.is_up)
        return NULL;
    if (world->connection_count == world->connection_max) {
        world->connection_max = world->connection_max ? 2 * world->connection_max : 64;
        world->connections =
            realloc(world->connections, world->connection_max * sizeof *world->connections);
        if (world->connections == NULL)
            abort();
    }
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        abort();
    if (!owner->keeps_port) { /* a port that it has not used for long */
        uint32_t turn = world->connection_count;
        owner->port = (uint16_t)(owner->is_privileged ? 600 + turn % 400 : 2000 + turn % 60000);
    }
    if (owner->keeps_port)
        net_reset(world, owner); /* the same two ports: what was there is no more */
    *connection = (struct connection){
        .owner = owner, .route = world->connection_count + 1, .port = owner->port, .is_open = true};
    world->connections[world->connection_count++] = connection;
    return connection;
}

void net_close(struct connection *connection)
{
    connection->is_open = false;
}

void net_reset(struct world *world, const struct owner *owner)
{
    for (uint32_t i = 0; i < world->connection_count; i++) {
        struct connection *connection = world->connections[i];
        if (connection->owner != owner)
            continue;
        connection->is_open = false;
        connection->is_dead = true;
    }
}

static void hang_up(struct world *world, struct connection *connection)
{
    if (!connection->is_open)
        return;
    connection->is_open = false;
    watcher_connection_lost(world, connection->owner);
}

void net_break_connections(struct world *world, bool is_replaced)
{
    for (uint32_t i = 0; i < world->connection_count; i++) {
        struct connection *connection = world->connections[i];
        if (is_replaced && !connection->is_dead)
            connection->kept = kernel_keep(world);
        else if (!is_replaced)
            hang_up(world, connection);
        connection->is_dead = true;
    }
}

void net_end(struct world *world, uint32_t run)
{
    for (uint32_t i = 0; i < world->connection_count; i++)
        if (world->connections[i]->kept.run == run)
            hang_up(world, world->connections[i]);
}

static struct parcel *new_parcel(bool to_server, struct call *call, struct connection *connection,
                                 uint16_t port, struct bytes message)
{
    struct parcel *parcel = malloc(sizeof *parcel + message.len);
    if (parcel == NULL)
        abort();
    *parcel = (struct parcel){.to_server = to_server,
                              .call = call,
                              .connection = connection,
                              .port = port,
                              .len = message.len};
    memcpy(parcel->bytes, message.at, message.len);
    return parcel;
}

static uint64_t delay_ns(struct world *world)
{
    if (world->is_calm)
        return 1 + world_random(world, MILLISECOND);
    return 1 + world_random(world, world->plan.delay_max_ns);
}

static void send_datagram(struct world *world, bool to_server, struct call *call,
                          struct bytes message)
{
    const struct plan *plan = &world->plan;
    uint32_t copies = 1;
    if (!world->is_calm && world_chance(world, plan->loss))
        copies = 0;
    while (!world->is_calm && copies < 4 && world_chance(world, plan->duplication))
        copies++;
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t delay = delay_ns(world);
        if (!world->is_calm && world_chance(world, plan->late))
            delay += world_random(world, world_chance(world, 50) ? 10 * SECOND : 200 * SECOND);
        struct parcel *parcel = new_parcel(to_server, call, NULL, call->owner->port, message);
        queue_add(&world->queue, world->now_ns + delay, QUEUE_PARCEL, parcel, 0);
    }
}

/* Bytes of a connection arrive in order. */
static void send_stream(struct world *world, bool to_server, struct call *call,
                        struct connection *connection, struct bytes message)
{
    uint64_t *last_ns = to_server ? &connection->to_server_ns : &connection->to_client_ns;
    uint64_t at_ns = world->now_ns + delay_ns(world) + world_resend_ns(world);
    if (at_ns <= *last_ns)
        at_ns = *last_ns + 1;
    *last_ns = at_ns;
    struct parcel *parcel = new_parcel(to_server, call, connection, connection->port, message);
    parcel->order = to_server ? connection->sent++ : 0;
    queue_add(&world->queue, at_ns, QUEUE_PARCEL, parcel, 0);
}

void net_send_call(struct world *world, struct owner *owner)
{
    struct call *call = owner->call;
    struct bytes message = {call->bytes, call->len};
    if (owner->is_tcp)
        send_stream(world, true, call, owner->connection, message);
    else
        send_datagram(world, true, call, message);
}

void net_send_reply(struct world *world, struct call *call, struct connection *connection,
                    struct bytes message)
{
    if (connection != NULL)
        send_stream(world, false, call, connection, message);
    else
        send_datagram(world, false, call, message);
}

/* Exclusion (5): of datagrams, and of a connection that was given up; and the same for a call that
 * was refused and that its owner is done with. */
static bool is_excluded(const struct world *world, const struct parcel *parcel)
{
    const struct call *call = parcel->call;
    bool is_in_use = parcel->connection != NULL && parcel->connection->is_open;
    if (is_in_use || world_allows(world, WORLD_LATE) || oracle_is_cached(world, call))
        return false;
    if (call->number < call->owner->void_before)
        return true;
    return call->number < call->owner->taken_number || (call->is_refused && call->is_done);
}

static void arrive_at_server(struct world *world, struct parcel *parcel)
{
    struct connection *connection = parcel->connection;
    if (!world->machine.is_up || (connection != NULL && connection->is_dead)) {
        free(parcel);
        return;
    }
    bool in_turn = connection == NULL || parcel->order == connection->delivered;
    if (in_turn && is_excluded(world, parcel)) {
        world->excluded++;
        if (connection != NULL)
            connection->delivered++;
        free(parcel);
        return;
    }
    if (in_turn && machine_receive(world, parcel)) {
        if (connection != NULL)
            connection->delivered++;
        free(parcel);
        return;
    }
    if (connection == NULL) {
        free(parcel); /* a datagram that nobody takes is gone */
        return;
    }
    queue_add(&world->queue, world->now_ns + 1 + world_random(world, 5 * MILLISECOND), QUEUE_PARCEL,
              parcel, 0);
}

void net_arrive(struct world *world, struct parcel *parcel)
{
    if (parcel->to_server) {
        arrive_at_server(world, parcel);
        return;
    }
    struct connection *connection = parcel->connection;
    bool is_open = connection == NULL || connection->is_open;
    if (connection != NULL && is_open &&
        kernel_holds(world, &connection->kept, QUEUE_PARCEL, parcel))
        return;
    if (is_open && (connection == NULL || !kernel_has_dropped(world, &connection->kept)))
        watcher_receive(world, parcel->call, (struct bytes){parcel->bytes, parcel->len});
    free(parcel);
}

/* Of two calls under one xid, made before and after a reboot, the answer to SM_NOTIFY is the one
 * that says nothing: it may wait for the resolver until the other one was answered. */
static bool may_answer(const struct call *call, struct bytes message)
{
    struct packet_reply reply;
    bool has_body = call->procedure == PEER_NSM_MON || call->procedure == PEER_NSM_UNMON ||
                    call->procedure == PEER_NSM_UNMON_ALL || call->procedure == PEER_NSM_STAT;
    return !has_body || !packet_get_reply(message.at, message.len, &reply) || !reply.accepted ||
           (reply.status == PACKET_SUCCESS ? reply.body_len > 0
                                           : reply.status != PACKET_SYSTEM_ERR);
}

/* Does it go to another host? A datagram says where, and a connection is its owner's. What says
 * neither, and is no stranger's, goes nowhere: it is for whom it answers. */
static bool is_for_another(const struct rpc_reply *reply, const struct connection *connection,
                           const struct host *host)
{
    if (connection != NULL)
        return !address_equal(&connection->owner->host->address, &host->address);
    if (reply->peer != NULL)
        return !address_equal(&reply->peer->address, &host->address);
    return reply->route >= NET_STRANGER_ROUTE;
}

/* Over a connection of who called, or as a datagram to one who has none. */
static bool is_way_back(const struct rpc_reply *reply, const struct connection *connection,
                        const struct call *call)
{
    if (connection != NULL)
        return reply->transport == TRANSPORT_TCP && connection->owner == call->owner;
    return reply->transport == TRANSPORT_UDP && reply->peer != NULL && reply->route == 0 &&
           !call->owner->is_tcp;
}

struct call *net_find_call(struct world *world, const struct rpc_reply *reply,
                           struct connection **ret_connection)
{
    struct bytes message = reply->message;
    *ret_connection = NULL;
    uint32_t xid = packet_xid(message.at, message.len);
    struct call *call = NULL;
    for (uint32_t i = world->call_count; i > 0 && call == NULL; i--)
        if (world->calls[i - 1]->xid == xid && may_answer(world->calls[i - 1], message))
            call = world->calls[i - 1];
    struct connection *connection = NULL;
    if (reply->route > 0 && reply->route <= world->connection_count)
        connection = world->connections[reply->route - 1];
    if (call == NULL || is_for_another(reply, connection, call->owner->host))
        return NULL;
    *ret_connection = connection;
    if (!is_way_back(reply, connection, call))
        world_fail(world, "O6", "an answer leaves the wrong way");
    return call;
}

void net_arrive_late(struct world *world, struct call *call)
{
    struct bytes message = {call->bytes, call->len};
    world_trace(world, "an old copy of %s #%u arrives", world_procedure_text(call->procedure),
                call->id);
    net_arrive(world, new_parcel(true, call, NULL, call->owner->port, message));
}
