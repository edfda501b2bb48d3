/*
 * emu_portmap.c -- the portmapper of an emulated host, and how a host asks another's; see
 * emu_portmap.h.
 *
 * A universal address is the address and the two bytes of the port, all in decimal with dots
 * between; an empty one means that nothing is registered.
 */
#include "peer/emu_portmap.h"

#include "peer/peer_nsm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTMAP_PROGRAM = 100000, PORTMAP_VERSION = 2, PORTMAP_LOOKUP = 3 };

#define UADDR_MAX 64

/* ---- answering ---- */

static uint16_t port_of(const struct emu_host *host, uint32_t prog, uint32_t vers, bool is_udp)
{
    if (host->portmap_mode == EMU_PORTMAP_EMPTY)
        return 0;
    if (prog == PEER_NLM_PROGRAM && (vers == 1 || vers == 3 || vers == 4))
        return host->is_hidden[is_udp] ? 0 : host->nlm_port[is_udp];
    if (prog == PEER_NSM_PROGRAM && vers == PEER_NSM_VERSION)
        return host->statd_port[is_udp];
    return 0;
}

static void answer_getport(const struct emu_host *host, struct packet_reader *reader,
                           struct packet *reply)
{
    uint32_t prog = packet_get_u32(reader), vers = packet_get_u32(reader);
    uint32_t prot = packet_get_u32(reader);
    packet_get_u32(reader); /* port: ignored */
    bool is_known = prot == IPPROTO_TCP || prot == IPPROTO_UDP;
    packet_put_u32(reply, is_known ? port_of(host, prog, vers, prot == IPPROTO_UDP) : 0);
}

static void answer_getaddr(const struct emu_host *host, struct packet_reader *reader,
                           struct packet *reply)
{
    char uaddr[UADDR_MAX] = "";
    uint32_t prog = packet_get_u32(reader), vers = packet_get_u32(reader), len, ignored;
    const uint8_t *netid = packet_get_opaque(reader, UADDR_MAX, &len);
    packet_get_opaque(reader, UADDR_MAX, &ignored); /* address */
    packet_get_opaque(reader, UADDR_MAX, &ignored); /* owner */
    bool is_tcp = netid && len == 3 && memcmp(netid, "tcp", 3) == 0;
    bool is_udp = netid && len == 3 && memcmp(netid, "udp", 3) == 0;
    uint16_t port = is_tcp || is_udp ? port_of(host, prog, vers, is_udp) : 0;
    if (port != 0)
        snprintf(uaddr, sizeof(uaddr), "%s.%u.%u", emu_host_address_text(host->address), port >> 8,
                 port & 255u);
    packet_put_text(reply, uaddr);
}

bool emu_portmap_serve(struct emu_host *host, const struct emu_net_message *message,
                       const struct packet_call *call, struct packet_reader *reader,
                       struct packet *reply)
{
    (void)emu_host_record(host, message, call);
    if (host->portmap_mode == EMU_PORTMAP_SILENT)
        return false;
    bool is_version = call->vers >= PORTMAP_VERSION && call->vers <= host->portmap_version_max;
    if (call->prog != PORTMAP_PROGRAM) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_UNAVAIL);
    } else if (!is_version) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(reply, PORTMAP_VERSION);
        packet_put_u32(reply, host->portmap_version_max);
    } else if (call->proc != 0 && call->proc != PORTMAP_LOOKUP) {
        packet_put_accepted(reply, call->xid, PACKET_PROC_UNAVAIL);
    } else {
        packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
        if (call->proc == PORTMAP_LOOKUP && call->vers == PORTMAP_VERSION)
            answer_getport(host, reader, reply);
        else if (call->proc == PORTMAP_LOOKUP)
            answer_getaddr(host, reader, reply);
        if (!packet_is_done(reader)) {
            packet_clear(reply);
            packet_put_accepted(reply, call->xid, PACKET_GARBAGE_ARGS);
        }
    }
    return true;
}

/* ---- asking ---- */

static int port_of_uaddr(const uint8_t *bytes, uint32_t len)
{
    char text[UADDR_MAX + 1];
    if (!bytes || len > UADDR_MAX)
        return -EBADMSG;
    memcpy(text, bytes, len);
    text[len] = '\0';
    char *low = strrchr(text, '.');
    if (len == 0)
        return 0;
    if (!low)
        return -EBADMSG;
    *low = '\0';
    char *high = strrchr(text, '.');
    if (!high)
        return -EBADMSG;
    return (int)(strtoul(high + 1, NULL, 10) << 8 | strtoul(low + 1, NULL, 10));
}

/* One version of the question. -EPROTONOSUPPORT: the other side does not speak it. */
static int ask(const struct dial_route *route, const struct emu_portmap_query *query, uint32_t vers,
               uint32_t timeout_ms)
{
    static struct packet call, answer;
    struct packet_reply reply;
    struct packet_call header = {.xid = (uint32_t)dial_now_ns(),
                                 .prog = PORTMAP_PROGRAM,
                                 .vers = vers,
                                 .proc = PORTMAP_LOOKUP};
    packet_clear(&call);
    packet_put_call(&call, &header);
    packet_put_u32(&call, query->prog);
    packet_put_u32(&call, query->vers);
    if (vers == PORTMAP_VERSION) {
        packet_put_u32(&call, query->is_udp ? IPPROTO_UDP : IPPROTO_TCP);
        packet_put_u32(&call, 0);
    } else {
        packet_put_text(&call, query->is_udp ? "udp" : "tcp");
        packet_put_text(&call, "");
        packet_put_text(&call, "");
    }
    int result = dial_call(route, &call, timeout_ms, &answer, &reply);
    if (result < 0)
        return result;
    if (!reply.accepted || reply.status != PACKET_SUCCESS)
        return -EPROTONOSUPPORT;
    struct packet_reader reader = {reply.body, reply.body_len, false};
    if (vers == PORTMAP_VERSION) {
        result = (int)packet_get_u32(&reader);
    } else {
        uint32_t len;
        const uint8_t *uaddr = packet_get_opaque(&reader, UADDR_MAX, &len);
        result = port_of_uaddr(uaddr, len);
    }
    return packet_is_done(&reader) ? result : -EBADMSG;
}

int emu_portmap_find(const struct dial_route *route, const struct emu_portmap_query *query,
                     uint32_t timeout_ms)
{
    struct dial_route asked = *route;
    asked.is_udp = query->is_asked_over_udp;
    int result = -EPROTONOSUPPORT;
    if (query->lookup != EMU_LOOKUP_PMAP2)
        result = ask(&asked, query, 4, timeout_ms);
    if (query->lookup != EMU_LOOKUP_PMAP2 && result == -EPROTONOSUPPORT)
        result = ask(&asked, query, 3, timeout_ms);
    if (query->lookup != EMU_LOOKUP_RPCB_ONLY && result == -EPROTONOSUPPORT)
        result = ask(&asked, query, PORTMAP_VERSION, timeout_ms);
    return result;
}
