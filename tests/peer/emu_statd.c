/*
 * emu_statd.c -- the status monitor of an emulated host; see emu_statd.h.
 *
 * SM_NOTIFY is always answered void; whether it means the server, and so would start a reclaim, is
 * decided as the real receivers do. None of them has DNS here: the address
 * of the server and its name as mounted are all that is known of it.
 */
#include "peer/emu_statd.h"

#include "peer/peer_nsm.h"

#include <netinet/in.h>
#include <string.h>
#include <strings.h>

static bool is_from_server(const struct emu_host *host, const struct emu_net_message *message)
{
    struct sockaddr_in from, server;
    memcpy(&from, &message->from.at, sizeof(from));
    memcpy(&server, &host->server.at, sizeof(server));
    return from.sin_addr.s_addr == server.sin_addr.s_addr;
}

static const char *server_address(const struct emu_host *host)
{
    struct sockaddr_in server;
    memcpy(&server, &host->server.at, sizeof(server));
    return emu_host_address_text(ntohl(server.sin_addr.s_addr));
}

/* The first two and the last two characters choose the place that illumos looks into. */
static bool is_same_bucket(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    return a_len >= 2 && b_len >= 2 && memcmp(a, b, 2) == 0 &&
           memcmp(a + a_len - 2, b + b_len - 2, 2) == 0;
}

static bool is_meant(const struct emu_host *host, const struct emu_net_message *message,
                     const char *mon_name, uint32_t state)
{
    switch (host->kind->statd) {
    case EMU_STATD_NONE:
        return false;
    case EMU_STATD_ADDRESS_OR_NAME:
        return state != host->server_state_seen &&
               (is_from_server(host, message) || strcasecmp(mon_name, host->server_name) == 0 ||
                strcmp(mon_name, server_address(host)) == 0);
    case EMU_STATD_EXACT_NAME:
        return strcasecmp(mon_name, host->server_name) == 0;
    case EMU_STATD_NAME_OR_REVERSE:
        return strcmp(mon_name, host->server_name) == 0 || is_from_server(host, message);
    case EMU_STATD_BUCKET:
        return is_same_bucket(mon_name, host->server_name) &&
               strcmp(mon_name, host->server_name) == 0;
    }
    return false;
}

static void take_notice(struct emu_host *host, const struct emu_net_message *message,
                        struct packet_reader *reader, struct emu_record *record)
{
    char name[PEER_NLM_KEPT_MAX + 1];
    uint32_t len;
    const uint8_t *at = packet_get_opaque(reader, PEER_NLM_NETOBJ_MAX, &len);
    record->args.lock.caller_name = peer_nlm_bytes_of(at, len);
    record->args.state = packet_get_u32(reader);
    record->is_readable = packet_is_done(reader);
    if (!record->is_readable)
        return;
    if (len > 0)
        memcpy(name, at, len);
    name[len] = '\0';
    record->is_accepted = is_meant(host, message, name, record->args.state);
    if (!record->is_accepted)
        return;
    host->server_state_seen = record->args.state;
    host->restarts_seen++;
}

bool emu_statd_serve(struct emu_host *host, const struct emu_net_message *message,
                     const struct packet_call *call, struct packet_reader *reader,
                     struct packet *reply)
{
    struct emu_record *record = emu_host_record(host, message, call);
    if (call->prog != PEER_NSM_PROGRAM || call->vers != PEER_NSM_VERSION) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_UNAVAIL);
        return true;
    }
    switch (call->proc) {
    case PEER_NSM_NULL:
        packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
        return true;
    case PEER_NSM_STAT:
        packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
        packet_put_u32(reply, PEER_NSM_STAT_SUCC);
        packet_put_u32(reply, host->state);
        return true;
    case PEER_NSM_NOTIFY:
        take_notice(host, message, reader, record);
        packet_put_accepted(reply, call->xid,
                            record->is_readable ? PACKET_SUCCESS : PACKET_GARBAGE_ARGS);
        return true;
    default:
        packet_put_accepted(reply, call->xid, PACKET_PROC_UNAVAIL);
        return true;
    }
}
