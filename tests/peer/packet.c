/*
 * packet.c -- the tests' own XDR and RPC messages; see packet.h.
 *
 * Written from RFC 4506 and RFC 5531, byte by byte, without a look at src/codec.
 */
#include "peer/packet.h"

#include <string.h>

enum {
    MESSAGE_CALL = 0,
    MESSAGE_REPLY = 1,
    RPC_VERSION = 2,
    AUTH_BODY_MAX = 400,
};

void packet_clear(struct packet *packet)
{
    packet->len = 0;
    packet->overflowed = false;
}

void packet_put_bytes(struct packet *packet, const void *bytes, uint32_t len)
{
    if (len > PACKET_MAX - packet->len) {
        packet->overflowed = true;
        return;
    }
    if (len > 0)
        memcpy(packet->bytes + packet->len, bytes, len);
    packet->len += len;
}

void packet_put_u32(struct packet *packet, uint32_t value)
{
    uint8_t word[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                       (uint8_t)value};
    packet_put_bytes(packet, word, sizeof(word));
}

void packet_put_u64(struct packet *packet, uint64_t value)
{
    packet_put_u32(packet, (uint32_t)(value >> 32));
    packet_put_u32(packet, (uint32_t)value);
}

void packet_put_opaque(struct packet *packet, const void *bytes, uint32_t len)
{
    static const uint8_t zeros[4] = {0};
    packet_put_u32(packet, len);
    packet_put_bytes(packet, bytes, len);
    packet_put_bytes(packet, zeros, (4 - len % 4) % 4);
}

void packet_put_text(struct packet *packet, const char *text)
{
    packet_put_opaque(packet, text, (uint32_t)strlen(text));
}

const uint8_t *packet_get_fixed(struct packet_reader *reader, uint32_t len)
{
    if (reader->failed || len > reader->left) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *at = reader->at;
    reader->at += len;
    reader->left -= len;
    return at;
}

uint32_t packet_get_u32(struct packet_reader *reader)
{
    const uint8_t *at = packet_get_fixed(reader, 4);
    if (!at)
        return 0;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint64_t packet_get_u64(struct packet_reader *reader)
{
    uint64_t high = packet_get_u32(reader);
    return high << 32 | packet_get_u32(reader);
}

const uint8_t *packet_get_opaque(struct packet_reader *reader, uint32_t len_max, uint32_t *ret_len)
{
    uint32_t len = packet_get_u32(reader);
    if (len > len_max)
        reader->failed = true;
    const uint8_t *at = packet_get_fixed(reader, len);
    packet_get_fixed(reader, (4 - len % 4) % 4);
    *ret_len = reader->failed ? 0 : len;
    return reader->failed ? NULL : at;
}

bool packet_is_done(const struct packet_reader *reader)
{
    return !reader->failed && reader->left == 0;
}

void packet_put_call(struct packet *packet, const struct packet_call *call)
{
    packet_put_u32(packet, call->xid);
    packet_put_u32(packet, MESSAGE_CALL);
    packet_put_u32(packet, RPC_VERSION);
    packet_put_u32(packet, call->prog);
    packet_put_u32(packet, call->vers);
    packet_put_u32(packet, call->proc);
    packet_put_u32(packet, (uint32_t)call->auth);
    if (call->auth == PACKET_AUTH_SYS) {
        packet_put_u32(packet, 28); /* length of the five fields below with one gid */
        packet_put_u32(packet, 1);  /* stamp */
        packet_put_text(packet, "peer");
        packet_put_u32(packet, 0); /* uid */
        packet_put_u32(packet, 0); /* gid */
        packet_put_u32(packet, 1); /* one more group */
        packet_put_u32(packet, 0);
    } else {
        packet_put_u32(packet, 0);
    }
    packet_put_u32(packet, PACKET_AUTH_NONE); /* verifier */
    packet_put_u32(packet, 0);
}

bool packet_get_call(struct packet_reader *reader, struct packet_call *ret)
{
    struct packet_call call = {.xid = packet_get_u32(reader)};
    uint32_t type = packet_get_u32(reader), rpc_version = packet_get_u32(reader), ignored;
    call.prog = packet_get_u32(reader);
    call.vers = packet_get_u32(reader);
    call.proc = packet_get_u32(reader);
    call.auth = packet_get_u32(reader) == PACKET_AUTH_SYS ? PACKET_AUTH_SYS : PACKET_AUTH_NONE;
    packet_get_opaque(reader, AUTH_BODY_MAX, &ignored);
    packet_get_u32(reader); /* verifier */
    packet_get_opaque(reader, AUTH_BODY_MAX, &ignored);
    if (reader->failed || type != MESSAGE_CALL || rpc_version != RPC_VERSION)
        return false;
    *ret = call;
    return true;
}

void packet_put_accepted(struct packet *packet, uint32_t xid, uint32_t status)
{
    packet_put_u32(packet, xid);
    packet_put_u32(packet, MESSAGE_REPLY);
    packet_put_u32(packet, 0); /* accepted */
    packet_put_u32(packet, PACKET_AUTH_NONE);
    packet_put_u32(packet, 0);
    packet_put_u32(packet, status);
}

uint32_t packet_xid(const void *bytes, uint32_t len)
{
    struct packet_reader reader = {bytes, len, false};
    return packet_get_u32(&reader);
}

void packet_set_xid(struct packet *packet, uint32_t xid)
{
    uint32_t len = packet->len;
    packet->len = 0;
    packet_put_u32(packet, xid);
    if (len > packet->len)
        packet->len = len;
}

static void get_accepted(struct packet_reader *reader, struct packet_reply *reply)
{
    /* The verifier: we only ever expect AUTH_NONE with an empty body. */
    if (packet_get_u32(reader) != PACKET_AUTH_NONE || packet_get_u32(reader) != 0)
        reader->failed = true;
    reply->status = packet_get_u32(reader);
    if (reply->status == PACKET_PROG_MISMATCH) {
        reply->low = packet_get_u32(reader);
        reply->high = packet_get_u32(reader);
    }
    if (reply->status > PACKET_SYSTEM_ERR)
        reader->failed = true;
    if (reply->status == PACKET_SUCCESS && !reader->failed) {
        reply->body_len = reader->left;
        reply->body = packet_get_fixed(reader, reader->left);
    }
}

static void get_denied(struct packet_reader *reader, struct packet_reply *reply)
{
    reply->status = packet_get_u32(reader);
    if (reply->status == PACKET_RPC_MISMATCH) {
        reply->low = packet_get_u32(reader);
        reply->high = packet_get_u32(reader);
    } else if (reply->status == PACKET_AUTH_ERROR) {
        reply->auth_why = packet_get_u32(reader);
    } else {
        reader->failed = true;
    }
}

bool packet_get_reply(const void *bytes, uint32_t len, struct packet_reply *ret)
{
    struct packet_reader reader = {bytes, len, false};
    struct packet_reply reply = {.xid = packet_get_u32(&reader)};
    if (packet_get_u32(&reader) != MESSAGE_REPLY)
        return false;
    uint32_t denied = packet_get_u32(&reader);
    if (denied > 1)
        return false;
    reply.accepted = denied == 0;
    if (reply.accepted)
        get_accepted(&reader, &reply);
    else
        get_denied(&reader, &reply);
    if (!packet_is_done(&reader))
        return false;
    *ret = reply;
    return true;
}

const char *packet_reply_text(const struct packet_reply *reply)
{
    static const char *const accepted[] = {"SUCCESS",      "PROG_UNAVAIL", "PROG_MISMATCH",
                                           "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"};
    if (reply->accepted)
        return reply->status <= PACKET_SYSTEM_ERR ? accepted[reply->status] : "?";
    return reply->status == PACKET_RPC_MISMATCH ? "RPC_MISMATCH" : "AUTH_ERROR";
}
