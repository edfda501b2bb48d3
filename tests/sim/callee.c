/*
 * callee.c -- portmapper and service of a host; see callee.h.
 *
 * A host has three programs, 100021, 200048 and 100024, at ports that change when it starts anew.
 * Its portmapper speaks some of the versions 2, 3 and 4. Hosts without registration listen at the
 * ports that their owners' my_names hint at.
 */
#include "callee.h"

#include "called.h"
#include "era.h"
#include "peer/packet.h"
#include "stranger.h"
#include "told.h"

#include <stdio.h>

enum { PORTMAPPER = 111, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, GETPORT = 3 };

void callee_restart(struct world *world, struct host *host)
{
    host->port_base = (uint16_t)(600 + 8 * world_random(world, 40));
}

void callee_init(struct world *world)
{
    static const uint32_t versions[] = {1U << 2 | 1U << 3 | 1U << 4, 1U << 3 | 1U << 4, 1U << 3};
    for (uint32_t i = 0; i < world_host_count(world); i++) {
        struct host *host = &world->hosts[i];
        host->kind = world_chance(world, 40)
                         ? CALLEE_BOTH
                         : (enum callee_kind)world_random(world, CALLEE_KIND_END);
        host->versions = versions[world_chance(world, 70) ? 0 : world_random(world, 3)];
        host->portmapper_tcp_only = world_chance(world, 15);
        host->is_gone = world_chance(world, world->plan.gone);
        if (!world_allows(world, WORLD_UNTOLD) && i >= world->plan.hosts)
            host->kind = world_chance(world, 70) ? CALLEE_BOTH : CALLEE_UDP; /* it can be told */
        callee_restart(world, host);
        if (!world->is_calm)
            callee_change_mood(world, host);
    }
}

void callee_change_mood(struct world *world, struct host *host)
{
    if (world->is_calm)
        return;
    static const enum callee_mood gone[] = {CALLEE_SILENT, CALLEE_REFUSING, CALLEE_NOT_YET};
    if (host->is_gone)
        host->mood = gone[world_random(world, 3)];
    else if (!era_is_pressing(world) && world_chance(world, world->plan.moody))
        host->mood = (enum callee_mood)(1 + world_random(world, CALLEE_MOOD_END - 1));
    else
        host->mood = CALLEE_WELL;
    if (host->mood == CALLEE_NOT_YET || world_chance(world, 10))
        callee_restart(world, host);
    world_trace(world, "host %u, kind %d: mood %d", host->index, (int)host->kind, (int)host->mood);
    queue_add(&world->queue, world->now_ns + SECOND + world_random(world, 20 * SECOND), QUEUE_MOOD,
              host, 0);
}

void callee_be_well(struct world *world)
{
    for (uint32_t i = 0; i < world_host_count(world); i++)
        world->hosts[i].mood = CALLEE_WELL;
}

/* ---- who listens where ---- */

static uint16_t port_of(const struct host *host, uint32_t prog, uint32_t protocol)
{
    bool is_registered =
        host->mood != CALLEE_NOT_YET &&
        (host->kind == CALLEE_BOTH || (host->kind == CALLEE_UDP && protocol == PROTOCOL_UDP));
    if ((prog == 100024 && host->has_no_statd) || (prog == 100021 && host->has_no_lockd))
        return 0;
    if (!is_registered || (prog != 100021 && prog != 200048 && prog != 100024))
        return 0;
    return (uint16_t)(host->port_base +
                      (prog == 200048   ? 2
                       : prog == 100024 ? 4
                                        : 0) +
                      (protocol == PROTOCOL_UDP ? 1 : 0));
}

static bool is_hinted(const struct world *world, const struct host *host, uint16_t port)
{
    for (uint32_t i = 0; i < world->plan.owners; i++)
        if (world->owners[i].host == host && world->owners[i].hint_port == port)
            return true;
    return false;
}

static bool listens(const struct world *world, const struct letter *letter)
{
    const struct host *host = letter->host;
    uint32_t protocol = letter->line != NULL ? PROTOCOL_TCP : PROTOCOL_UDP;
    if (host->mood == CALLEE_REFUSING)
        return false;
    if (letter->port == PORTMAPPER)
        return host->kind != CALLEE_BARE;
    if (host->mood == CALLEE_NOT_YET)
        return false;
    if (host->kind == CALLEE_HINT || host->kind == CALLEE_BARE)
        return protocol == PROTOCOL_TCP && is_hinted(world, host, letter->port);
    return letter->port == port_of(host, 100021, protocol) ||
           letter->port == port_of(host, 200048, protocol) ||
           letter->port == port_of(host, 100024, protocol);
}

/* ---- answers ---- */

static struct packet packet;

static void begin_reply(uint32_t xid, uint32_t accept_status)
{
    packet_clear(&packet);
    packet_put_u32(&packet, xid);
    packet_put_u32(&packet, 1); /* REPLY */
    packet_put_u32(&packet, 0); /* accepted, verifier AUTH_NONE */
    packet_put_u32(&packet, 0);
    packet_put_u32(&packet, 0);
    packet_put_u32(&packet, accept_status);
    if (accept_status == PACKET_PROG_MISMATCH) {
        packet_put_u32(&packet, 3);
        packet_put_u32(&packet, 4);
    }
}

static void send_reply(struct world *world, const struct letter *letter)
{
    uint64_t after_ns = letter->host->mood == CALLEE_SLOW ? world_random(world, 7 * SECOND) : 0;
    struct bytes bytes = {packet.bytes, packet.len};
    line_answer(world, letter, bytes, after_ns);
    if (letter->host->mood == CALLEE_TWICE)
        line_answer(world, letter, bytes, after_ns + world_random(world, SECOND));
}

/* Any of the ways to say no. */
static void send_error(struct world *world, const struct letter *letter, uint32_t xid)
{
    uint32_t status = PACKET_PROG_UNAVAIL + (uint32_t)world_random(world, 6);
    if (status <= PACKET_SYSTEM_ERR) {
        begin_reply(xid, status);
    } else {
        packet_clear(&packet);
        packet_put_u32(&packet, xid);
        packet_put_u32(&packet, 1);
        packet_put_u32(&packet, 1); /* denied */
        packet_put_u32(&packet, PACKET_AUTH_ERROR);
        packet_put_u32(&packet, 5); /* too weak */
    }
    send_reply(world, letter);
}

/* ---- the portmapper ---- */

/* In versions 3 and 4, which is all that is spoken over IPv6, it says only over UDP what is on UDP:
 * where that is all there is, it is not silent. */
static bool is_portmapper_tcp_only(const struct host *host)
{
    bool is_rpcb = host->address.family == 6 || !(host->versions & 1U << 2);
    return host->portmapper_tcp_only && !(is_rpcb && host->kind == CALLEE_UDP);
}

/* "10.0.0.2.2.89", "2001:db8::4.2.89". */
static void put_universal(const struct host *host, uint16_t port)
{
    char text[ADDRESS_TEXT_MAX + 16], address[ADDRESS_TEXT_MAX];
    struct address plain = address_without_zone(&host->address);
    address_text(&plain, address);
    snprintf(text, sizeof text, "%s.%u.%u", address, port >> 8, port & 255U);
    packet_put_text(&packet, port == 0 ? "" : text);
}

static bool is_netid(const uint8_t *netid, uint32_t len, const char *text)
{
    return len == strlen(text) && memcmp(netid, text, len) == 0;
}

static void look_up(struct world *world, const struct letter *letter, struct packet_reader *reader,
                    uint32_t xid, uint32_t version)
{
    struct host *host = letter->host;
    uint32_t prog = packet_get_u32(reader), vers = packet_get_u32(reader), protocol;
    if (version == 2) {
        protocol = packet_get_u32(reader);
        (void)packet_get_u32(reader); /* port */
    } else {
        uint32_t len, ignored;
        const uint8_t *netid = packet_get_opaque(reader, 16, &len);
        (void)packet_get_opaque(reader, 128, &ignored);
        (void)packet_get_opaque(reader, 128, &ignored);
        bool is_v6 = host->address.family == 6;
        protocol = netid == NULL                                  ? 0
                   : is_netid(netid, len, is_v6 ? "tcp6" : "tcp") ? PROTOCOL_TCP
                   : is_netid(netid, len, is_v6 ? "udp6" : "udp") ? PROTOCOL_UDP
                                                                  : 0;
        /* rpcbind would answer for the way of the question all the same (RFC 1833). */
        if (protocol != (letter->line != NULL ? PROTOCOL_TCP : PROTOCOL_UDP))
            world_fail(world, "O10", "a look-up in version %u asks for the other transport",
                       version);
    }
    if (!packet_is_done(reader) || (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP))
        world_fail(world, "O10", "a look-up in version %u cannot be read", version);
    if (vers != 4 && vers != 3 && vers != 1)
        world_fail(world, "O10", "a look-up asks for version %u of %u", vers, prog);
    uint16_t port = port_of(host, prog, protocol);
    begin_reply(xid, PACKET_SUCCESS);
    if (version == 2)
        packet_put_u32(&packet, port);
    else
        put_universal(host, port);
    send_reply(world, letter);
}

static void ask_portmapper(struct world *world, const struct letter *letter, struct bytes message)
{
    struct packet_reader reader = {message.at, message.len, false};
    uint32_t words[10];
    for (uint32_t i = 0; i < 10; i++)
        words[i] = packet_get_u32(&reader);
    uint32_t xid = words[0], version = words[4];
    /* CALL, RPC version 2, the portmapper's program, GETPORT, AUTH_NONE twice. */
    if (reader.failed || words[1] != 0 || words[2] != 2 || words[3] != 100000 || version < 2 ||
        version > 4 || words[5] != GETPORT || (words[6] | words[7] | words[8] | words[9]) != 0)
        world_fail(world, "O10", "something that is no look-up is sent to a portmapper");
    if (letter->host->mood == CALLEE_FAILING && world_chance(world, 40)) {
        send_error(world, letter, xid);
    } else if (!(letter->host->versions & 1U << version)) {
        begin_reply(xid, PACKET_PROG_MISMATCH);
        send_reply(world, letter);
    } else {
        look_up(world, letter, &reader, xid, version);
    }
}

/* ---- the service ---- */

static bool is_served_here(const struct letter *letter, uint32_t prog)
{
    const struct host *host = letter->host;
    uint32_t protocol = letter->line != NULL ? PROTOCOL_TCP : PROTOCOL_UDP;
    return host->kind == CALLEE_HINT || host->kind == CALLEE_BARE ||
           letter->port == port_of(host, prog, protocol);
}

/* A call to a locker, or to a stranger. */
static void serve_locker(struct world *world, const struct letter *letter, struct bytes message)
{
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call = {0};
    (void)packet_get_call(&reader, &call);
    enum callee_mood mood = letter->host->mood;
    if (!is_served_here(letter, call.prog)) {
        begin_reply(call.xid, PACKET_PROG_UNAVAIL);
        send_reply(world, letter);
        return;
    }
    if (mood == CALLEE_FAILING) {
        send_error(world, letter, call.xid);
        return;
    }
    bool is_executed = mood != CALLEE_VANISHING || world_chance(world, 50);
    bool has_answer = is_executed && (stranger_is_at(world, &letter->host->address)
                                          ? stranger_execute(world, message, &packet)
                                          : called_execute(world, letter, message, &packet));
    if (mood == CALLEE_VANISHING) {
        if (letter->line != NULL || world_chance(world, 50))
            line_break(world, letter, 0);
    } else if (has_answer) {
        send_reply(world, letter);
    }
}

static void serve(struct world *world, const struct letter *letter, struct bytes message)
{
    struct told_call call;
    told_read(world, message, &call);
    enum callee_mood mood = letter->host->mood;
    if (!is_served_here(letter, call.prog)) {
        begin_reply(call.xid, PACKET_PROG_UNAVAIL);
        send_reply(world, letter);
        return;
    }
    if (mood == CALLEE_FAILING) {
        send_error(world, letter, call.xid);
        return;
    }
    if (mood != CALLEE_VANISHING || world_chance(world, 50))
        told_executed(world, &call);
    if (mood == CALLEE_VANISHING) {
        if (letter->line != NULL || world_chance(world, 50))
            line_break(world, letter, 0);
        return;
    }
    begin_reply(call.xid, PACKET_SUCCESS);
    send_reply(world, letter);
}

void callee_receive(struct world *world, const struct letter *letter)
{
    const struct host *host = letter->host;
    if (host->mood == CALLEE_SILENT ||
        (letter->line == NULL && letter->port == PORTMAPPER && is_portmapper_tcp_only(host)))
        return;
    if (!listens(world, letter)) {
        if (letter->kind == LETTER_CONNECT)
            line_accept(world, letter, false);
        else if (letter->kind == LETTER_RECORD || world_chance(world, 60))
            line_break(world, letter, 0);
        return;
    }
    if (letter->kind == LETTER_CONNECT) {
        line_accept(world, letter, true);
        return;
    }
    if (host->mood == CALLEE_DEAF && letter->port != PORTMAPPER)
        return;
    uint32_t skip = letter->kind == LETTER_RECORD ? 4 : 0; /* the record mark */
    struct bytes message = {letter->bytes + skip, letter->len - skip};
    if (letter->port == PORTMAPPER)
        ask_portmapper(world, letter, message);
    else if (stranger_is_at(world, &host->address) || called_is_for_locker(world, host, message))
        serve_locker(world, letter, message);
    else
        serve(world, letter, message);
}
