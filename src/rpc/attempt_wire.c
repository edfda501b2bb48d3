/*
 * attempt_wire.c -- what the wire has to do for an attempt: its xid, its connection, its messages.
 *
 * It is a set of flags; attempts with flags wait in one of four queues. What was begun is finished
 * first: a machine that is too slow for all calls then makes some of them, instead of opening
 * connections for all of them until the time of each is over. Connections that were answered are
 * closed last: nobody waits for that, while hosts may still have to be told. Only where connections
 * or room for calls run short they are closed first (client.c).
 *
 * Connections: the wire opens connections_max at once; the others wait for their turn, oldest
 * first. Who got no connection within CONNECT_NS while others wait goes to the end of the line:
 * hosts that swallow packets must not keep the turns from hosts that answer.
 */
#include "rpc/attempt.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/sip.h"
#include "codec/record_mark.h"

enum { XID_ROUNDS = 6 };

struct attempt *attempt_at(const struct rpc_client *client, uint32_t slot)
{
    return table_at(&client->attempts, slot);
}

uint64_t attempt_xid_hash(const struct rpc_client *client, uint32_t xid)
{
    return hash_number(client->seed, xid);
}

uint64_t attempt_awaited_hash(const struct rpc_client *client, const struct address *host,
                              uint16_t port)
{
    uint64_t hash = hash_bytes(client->seed, (struct bytes){(const uint8_t *)host, sizeof *host});
    return hash_number(hash, port);
}

/*
 * The xid is all that a datagram must have to pass for an answer, if its sender's address and port
 * are forged. So who has seen many of ours cannot tell any other: each is the number of the call in
 * a secret order of all 2^32, which the rounds of a Feistel network with a keyed hash make. None
 * comes twice before all have.
 */
uint32_t attempt_next_xid(struct rpc_client *client)
{
    uint32_t left = client->next_call >> 16, right = client->next_call & 0xffff;
    client->next_call++;
    for (uint32_t round = 0; round < XID_ROUNDS; round++) {
        struct sip sip = sip_begin(client->seed, round);
        uint32_t hash = (uint32_t)sip_end(&sip, right, 2, 4);
        uint32_t mixed = left ^ (hash & 0xffff);
        left = right;
        right = mixed;
    }
    return left << 16 | right;
}

/* A new question gets a new xid; an answer to an older one is then nobody's. */
void attempt_change_xid(struct rpc_client *client, struct attempt *a)
{
    hash_index_remove(&client->by_xid, a->slot);
    a->xid = attempt_next_xid(client);
    hash_index_add(&client->by_xid, attempt_xid_hash(client, a->xid), a->slot);
}

static enum attempt_rank rank_of(const struct attempt *a, uint32_t todo)
{
    bool was_answered = a->message_index == a->call.message_count;
    if ((todo & (uint32_t)ATTEMPT_DISCONNECT) != 0)
        return was_answered ? ATTEMPT_PARTS : ATTEMPT_CLOSES;
    bool was_begun = (todo & (uint32_t)(ATTEMPT_LOOKUP_TCP | ATTEMPT_ASK)) != 0;
    return was_begun ? ATTEMPT_GOES_ON : ATTEMPT_BEGINS;
}

/* Only the first of a queue is asked for its ticket, so tickets grow from there on. Who comes back
 * with an old one goes to the front, or waits as long as the last one does. */
static void enqueue(struct rpc_client *client, struct attempt *a)
{
    struct list *queue = &client->todo[a->rank];
    if (attempt_only_closes(a->rank) || list_is_empty(queue)) {
        list_append(queue, &a->by_todo);
        return;
    }
    const struct attempt *last = LIST_ELEMENT(queue->prev, struct attempt, by_todo);
    bool is_behind = a->ticket < last->ticket;
    if (is_behind && a->ticket <= client->released) {
        list_append(queue->next, &a->by_todo);
        return;
    }
    if (is_behind)
        a->ticket = last->ticket;
    list_append(queue, &a->by_todo);
}

static void set_todo(struct rpc_client *client, struct attempt *a, uint32_t todo)
{
    enum attempt_rank rank = rank_of(a, todo);
    a->todo = todo;
    if (todo != 0 && rank == a->rank && !list_is_empty(&a->by_todo))
        return;
    list_remove(&a->by_todo);
    a->rank = rank;
    if (todo != 0)
        enqueue(client, a);
}

/* What was due before stays due since then: a repeat of what has not left yet needs no new
 * commit. */
void attempt_add_todo(struct rpc_client *client, struct attempt *a, enum attempt_todo todo)
{
    if (todo != ATTEMPT_DISCONNECT && (a->todo & (uint32_t)todo) == 0) {
        if (a->ticket != client->ticket)
            list_remove(&a->by_todo); /* from its place: it waits for longer than the others */
        a->ticket = client->ticket;
        client->is_due = true;
    }
    set_todo(client, a, a->todo | (uint32_t)todo);
}

void attempt_drop_todo(struct rpc_client *client, struct attempt *a, uint32_t todo)
{
    set_todo(client, a, a->todo & ~todo);
}

/* What the network says of a port is of interest from the first datagram to it on. */
void attempt_await(struct rpc_client *client, struct attempt *a, uint16_t port)
{
    if (a->awaited_port == port)
        return;
    if (a->awaited_port != 0)
        hash_index_remove(&client->by_awaited, a->slot);
    a->awaited_port = port;
    if (port != 0)
        hash_index_add(&client->by_awaited, attempt_awaited_hash(client, &a->call.to, port),
                       a->slot);
}

/* ---- connections ---- */

/* The attempt that waited longest may open one, as long as there may be one more. */
static void open_next(struct rpc_client *client)
{
    while (client->open_count < client->limits.connections_max &&
           !list_is_empty(&client->waiting_turn)) {
        struct attempt *a = LIST_ELEMENT(client->waiting_turn.next, struct attempt, by_turn);
        list_remove(&a->by_turn);
        a->wants_connection = false;
        client->open_count++;
        if (++client->serial == 0)
            client->serial = 1; /* 0 would make the connection of slot 0 "none" */
        a->connection = (uint64_t)client->serial << 32 | a->slot;
        attempt_add_todo(client, a, ATTEMPT_CONNECT);
    }
}

/* Asks for a connection to the portmapper or to the service; it may have to wait for its turn. */
void attempt_want_connection(struct rpc_client *client, struct attempt *a, bool is_portmapper)
{
    a->is_portmapper = is_portmapper;
    a->has_tried_tcp |= is_portmapper;
    a->wants_connection = true;
    if (a->connection == 0 && list_is_empty(&a->by_turn))
        list_append(&client->waiting_turn, &a->by_turn);
    open_next(client);
}

/* The connection of an attempt is gone; the next attempt in turn gets one. */
void attempt_release_connection(struct rpc_client *client, struct attempt *a)
{
    CHECK(a->connection != 0);
    CHECK(client->open_count > 0);
    a->connection = 0;
    a->is_connected = false;
    a->is_unanswered = false;
    client->open_count--;
    if (a->wants_connection)
        list_append(&client->waiting_turn, &a->by_turn);
    open_next(client);
}

/* No connection, and no wish for one; nothing is to be done but to close it. */
void attempt_disconnect(struct rpc_client *client, struct attempt *a)
{
    bool is_unheard_of = (a->todo & ATTEMPT_CONNECT) != 0; /* by the wire */
    list_remove(&a->by_turn);
    a->wants_connection = false;
    a->is_connected = false;
    set_todo(client, a, a->todo & (uint32_t)ATTEMPT_DISCONNECT);
    if (is_unheard_of)
        attempt_release_connection(client, a);
    else if (a->connection != 0)
        attempt_add_todo(client, a, ATTEMPT_DISCONNECT);
}

/* ---- what the wire has to do ---- */

/* Builds a call in client->message with the record mark in front that a TCP stream needs. */
static struct bytes put_call(struct rpc_client *client, const struct attempt *a, bool is_question,
                             bool is_record)
{
    uint32_t skip = is_record ? RECORD_MARK_LEN : 0;
    uint32_t way = is_record ? TRANSPORT_TCP : TRANSPORT_UDP;
    struct xdr_out out =
        xdr_out_of(client->message + skip, (uint32_t)sizeof client->message - skip);
    if (is_question) {
        lookup_put(&a->lookup, way, a->xid, a->call.prog, a->call.vers, &out);
    } else {
        uint32_t i = a->message_index;
        rpc_msg_put_call(&out, a->xid, a->call.prog, a->call.vers, a->call.proc);
        xdr_put_fixed(&out, arena_at(client->arena, a->cells[i], a->call.messages[i].len));
    }
    CHECK(!out.overflowed);
    if (is_record)
        store_be32(client->message, RECORD_MARK_LAST | xdr_out_len(&out));
    return (struct bytes){client->message, skip + xdr_out_len(&out)};
}

void attempt_act(struct rpc_client *client, struct attempt *a, struct client_action *ret)
{
    CHECK(a->todo != 0);
    uint32_t first = a->todo & -a->todo;
    attempt_drop_todo(client, a, first);
    *ret = (struct client_action){
        .connection = a->connection, .to = a->call.to, .local = a->call.local};
    switch ((enum attempt_todo)first) {
    case ATTEMPT_DISCONNECT:
        ret->kind = CLIENT_DISCONNECT;
        ret->is_abort = a->is_unanswered;
        attempt_release_connection(client, a);
        if (attempt_is_tellable(a) && list_is_empty(&a->by_result))
            list_append(&client->results, &a->by_result);
        return;
    case ATTEMPT_CONNECT:
        ret->kind = CLIENT_CONNECT;
        ret->port = a->is_portmapper ? PORTMAP_PORT : a->port;
        ret->is_privileged = a->call.is_privileged && !a->is_portmapper;
        return;
    case ATTEMPT_LOOKUP_UDP:
        ret->kind = CLIENT_DATAGRAM;
        ret->port = PORTMAP_PORT;
        ret->bytes = put_call(client, a, true, false);
        return;
    case ATTEMPT_LOOKUP_TCP:
        ret->kind = CLIENT_WRITE;
        ret->bytes = put_call(client, a, true, true);
        a->is_unanswered = true;
        return;
    case ATTEMPT_ASK:
        ret->kind = a->prot == TRANSPORT_UDP ? CLIENT_DATAGRAM : CLIENT_WRITE;
        ret->port = a->port;
        ret->from_listener = a->call.from_listener && a->prot == TRANSPORT_UDP;
        ret->is_privileged = a->call.is_privileged;
        ret->bytes = put_call(client, a, false, a->prot == TRANSPORT_TCP);
        a->is_unanswered = a->prot == TRANSPORT_TCP;
        a->is_maybe_delivered = true;
        a->was_refused = false;
        a->is_repeated |= a->is_sent || a->prot == TRANSPORT_UDP; /* the network repeats, too */
        a->is_sent = true;
        if (a->call.is_one_way && a->prot == TRANSPORT_UDP)
            attempt_end(client, a, CLIENT_UNKNOWN);
        return;
    }
    UNREACHABLE();
}
