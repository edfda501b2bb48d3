/*
 * leaving.c -- answers on their way out of the server: those whose time had to come, and those that
 * the store has made true.
 */
#include "base/check.h"
#include "base/units.h"
#include "rpc/incoming.h"

#define RESULT_PATIENCE_NS (5 * SECOND_NS) /* with a call that carries a result (D4) */

uint64_t leaving_keep_late(struct rpc_server *server, uint32_t ticket,
                           const struct outbox_entry *entry, const struct rpc_source *to,
                           uint32_t len)
{
    CHECK(ticket < CORE_LATE_MAX);
    server->late[ticket] = (struct late_answer){.entry = *entry, .to = *to};
    server->late[ticket].entry.len = len;
    memcpy(server->late_bytes + (size_t)ticket * server->reply_max, outbox_reserve(server->outbox),
           len);
    return LATE_NUMBER | ticket;
}

/* An error in place of an answer that nobody knows: a repeat is a new call. */
static void fail(struct rpc_server *server, struct outbox_entry *entry, const uint8_t *bytes)
{
    struct xdr_out out = xdr_out_of(outbox_reserve(server->outbox), server->reply_max);
    rpc_msg_put_accepted(&out, load_be32(bytes), RPC_SYSTEM_ERR);
    entry->len = xdr_out_len(&out);
    entry->is_error = true;
    if (entry->cache_entry != DRC_NONE)
        drc_abandon(server->cache, entry->cache_entry);
    entry->cache_entry = DRC_NONE;
}

/* Those whose time has come join the queue. */
static void take_late(struct rpc_server *server)
{
    struct core_late late;
    while (outbox_has_room(server->outbox) && core_next_answer(server->core, &late)) {
        MARK("server_late_answer");
        struct outbox_entry entry = server->late[late.ticket].entry;
        const uint8_t *bytes = server->late_bytes + (size_t)late.ticket * server->reply_max;
        entry.after_txn = late.after_txn;
        if (late.is_unknown)
            fail(server, &entry, bytes);
        else
            memcpy(outbox_reserve(server->outbox), bytes, entry.len);
        uint64_t number =
            outbox_add(server->outbox, &entry, &server->late[late.ticket].to, entry.len);
        if (entry.cache_entry != DRC_NONE)
            drc_move(server->cache, entry.cache_entry, number);
    }
}

/*
 * The client carries the result of a message to where the host's program is registered. When it has
 * no room, that copy is lost like a datagram: the caller repeats its message.
 */
static void carry(struct rpc_server *server, const struct peer *to, struct bytes message,
                  uint64_t now_ns)
{
    struct rpc_call call;
    CHECK(to != NULL); /* the outbox remembers it for a call (outbox.h) */
    CHECK(rpc_msg_get_call(message, &call) == RPC_CALL_OK);
    bool is_udp = to->transport == TRANSPORT_UDP;
    struct client_attempt attempt = {
        .to = to->address,
        .local = to->local,
        .prog = call.prog,
        .vers = call.vers,
        .proc = call.proc,
        .way = is_udp ? CLIENT_UDP_ONLY : CLIENT_TCP_FIRST,
        .from_listener = true,
        .is_one_way = true,
        .sent_port = is_udp ? to->port : 0,
        .message_count = 1,
        .messages = {call.args},
        .deadline_ns = now_ns + RESULT_PATIENCE_NS,
    };
    if (!rpc_client_start(server->client, &attempt, now_ns))
        MARK("server_result_not_carried");
}

bool rpc_server_next(struct rpc_server *server, uint64_t now_ns, struct rpc_reply *ret)
{
    take_late(server);
    const struct outbox_entry *head = outbox_head(server->outbox, core_durable_txn(server->core));
    if (head == NULL)
        return false;
    const struct peer *peer = outbox_peer(server->outbox, head);
    *ret = (struct rpc_reply){
        .route = head->route,
        .transport = peer != NULL ? peer->transport : TRANSPORT_TCP,
        .peer = peer,
        .taken_by = head->taken_by,
        .message = outbox_message(server->outbox, head),
        .is_call = head->is_call,
    };
    if (head->cache_entry != DRC_NONE)
        drc_end(server->cache, head->cache_entry, ret->message, now_ns);
    if (server->meter != NULL)
        meter_count(server->meter, head->meter_row, head->is_error, now_ns - head->received_ns);
    if (head->is_call && server->client != NULL)
        carry(server, peer, ret->message, now_ns);
    if (head->is_call && ret->transport != TRANSPORT_UDP)
        ret->message = (struct bytes){0};
    outbox_pop(server->outbox);
    return true;
}
