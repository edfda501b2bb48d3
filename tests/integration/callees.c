/*
 * callees.c -- lock clients' hosts as the server sees them; see callees.h.
 *
 * An answer that is kept back remembers its socket: when that goes, the answer goes with it.
 */
#include "callees.h"

#include "hosts_net.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX 512 /* of GRANTED: a cookie and a status */
#define HELD_MAX   4096

/* An answer that is kept back. */
struct held {
    uint64_t due_ns;
    const struct hosts_net_socket *socket;
    struct dial_endpoint to;
    bool is_granted;
    uint32_t len;
    uint8_t bytes[ANSWER_MAX];
};

struct callees {
    struct callees_config config;
    struct hosts_net *net;
    struct held *held;
    uint32_t held_count, granted_count, stats, strange, served;
    uint64_t delay_ns; /* of the answer in `reply` */
    bool is_granted;   /* the same */
    struct packet reply;
};

/* ---- what they answer ---- */

static bool has_tcp(uint32_t host)
{
    return host % 2 == 0;
}

static uint16_t port_of(const void *context, uint32_t prog, uint32_t vers, uint32_t prot)
{
    const uint32_t *host = context;
    bool is_here = prog == PEER_NLM_PROGRAM || prog == PEER_NSM_PROGRAM;
    (void)vers; /* any */
    return is_here && (prot != IPPROTO_TCP || has_tcp(*host)) ? HOSTS_NET_PORTMAP : 0;
}

static void answer_statd(struct callees *callees, uint32_t host, const struct packet_call *call,
                         struct packet_reader *arguments)
{
    struct packet *reply = &callees->reply;
    uint32_t len;
    (void)packet_get_opaque(arguments, PEER_NLM_NETOBJ_MAX, &len);
    if (call->proc == PEER_NSM_STAT && packet_is_done(arguments)) {
        callees->stats++;
        packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
        packet_put_u32(reply, PEER_NSM_STAT_SUCC);
        packet_put_u32(reply, callees->config.nsm_state);
        return;
    }
    uint32_t state = packet_get_u32(arguments);
    bool is_notice = call->proc == PEER_NSM_NOTIFY && packet_is_done(arguments);
    packet_put_accepted(reply, call->xid, is_notice ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
    callees->strange += !is_notice;
    if (is_notice)
        callees->config.user.notified(callees->config.user.context, host, state);
}

/* GRANTED_MSG is not known here, so that GRANTED is tried then (R-BLK-2). */
static void answer_nlm(struct callees *callees, uint32_t host, const struct packet_call *call,
                       struct packet_reader *arguments)
{
    static struct peer_nlm_args args; /* large */
    static struct peer_nlm_res res;
    struct packet *reply = &callees->reply;
    if (call->proc != PEER_NLM_GRANTED ||
        !peer_nlm_get_args(arguments, call->vers, call->proc, &args)) {
        callees->strange += call->proc != PEER_NLM_GRANTED_MSG;
        packet_put_accepted(reply, call->xid, PACKET_PROC_UNAVAIL);
        return;
    }
    res.cookie = args.cookie;
    res.status =
        callees->config.user.granted(callees->config.user.context, host, &args, &callees->delay_ns);
    callees->is_granted = res.status == PEER_NLM_IS_GRANTED;
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    peer_nlm_put_res(reply, call->vers, call->proc, &res);
}

/* ---- answers on their way ---- */

/* Sends callees->reply, now or later. What cannot be sent is lost, as on any network; the server
 * asks again. */
static void send_or_keep(struct callees *callees, const struct hosts_net_message *message)
{
    const struct packet *reply = &callees->reply;
    if (callees->delay_ns == 0 || callees->held_count == HELD_MAX || reply->len > ANSWER_MAX) {
        (void)hosts_net_send(message->socket, &message->from, reply->bytes, reply->len);
        return;
    }
    struct held *held = &callees->held[callees->held_count++];
    *held = (struct held){.due_ns = dial_now_ns() + callees->delay_ns,
                          .socket = message->socket,
                          .to = message->from,
                          .is_granted = callees->is_granted,
                          .len = reply->len};
    memcpy(held->bytes, reply->bytes, reply->len);
    callees->granted_count += held->is_granted;
}

static void drop_held(struct callees *callees, uint32_t index)
{
    callees->granted_count -= callees->held[index].is_granted;
    callees->held[index] = callees->held[--callees->held_count];
}

static void send_due(struct callees *callees)
{
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < callees->held_count;) {
        const struct held *held = &callees->held[i];
        if (held->due_ns > now_ns) {
            i++;
            continue;
        }
        (void)hosts_net_send(held->socket, &held->to, held->bytes, held->len);
        drop_held(callees, i);
    }
}

static void drop_of_socket(void *context, const struct hosts_net_socket *socket)
{
    struct callees *callees = context;
    for (uint32_t i = callees->held_count; i > 0; i--)
        if (callees->held[i - 1].socket == socket)
            drop_held(callees, i - 1);
}

static bool answer(void *context, const struct hosts_net_message *message)
{
    struct callees *callees = context;
    struct packet_reader reader = {message->bytes, message->len, false};
    struct packet_call call;
    packet_clear(&callees->reply);
    callees->delay_ns = 0;
    callees->is_granted = false;
    if (!packet_get_call(&reader, &call)) {
        callees->strange++;
        return false;
    }
    callees->served++;
    if (call.prog == HOSTS_NET_PORTMAP_PROGRAM) {
        hosts_net_portmap(&call, &reader, port_of, &message->host, &callees->reply);
    } else if (call.prog == PEER_NSM_PROGRAM) {
        answer_statd(callees, message->host, &call, &reader);
    } else if (call.prog == PEER_NLM_PROGRAM) {
        answer_nlm(callees, message->host, &call, &reader);
    } else {
        callees->strange++;
        packet_put_accepted(&callees->reply, call.xid, PACKET_PROG_UNAVAIL);
    }
    send_or_keep(callees, message);
    return true;
}

static bool add_socket(struct callees *callees, uint32_t host, bool is_udp)
{
    struct dial_endpoint at =
        dial_endpoint_v4(callees->config.first_address + host, HOSTS_NET_PORTMAP);
    return hosts_net_listen(callees->net, host, &at, is_udp) >= 0;
}

/* ---- what the tests do ---- */

struct callees *callees_new(const struct callees_config *config)
{
    struct callees *callees = calloc(1, sizeof(*callees));
    if (!callees)
        return NULL;
    callees->config = *config;
    callees->held = calloc(HELD_MAX, sizeof(*callees->held));
    callees->net = hosts_net_new(
        &(struct hosts_net_user){.context = callees, .served = answer, .gone = drop_of_socket});
    bool is_good = callees->net && callees->held;
    for (uint32_t i = 0; i < config->count && is_good; i++)
        is_good = add_socket(callees, i, true) && (!has_tcp(i) || add_socket(callees, i, false));
    if (is_good)
        return callees;
    int error = errno;
    callees_free(callees);
    errno = error;
    return NULL;
}

void callees_free(struct callees *callees)
{
    if (!callees)
        return;
    hosts_net_free(callees->net);
    free(callees->held);
    free(callees);
}

uint32_t callees_turn(struct callees *callees)
{
    callees->served = 0;
    send_due(callees);
    hosts_net_turn(callees->net);
    return callees->served;
}

void callees_forget_server(struct callees *callees)
{
    hosts_net_hang_up(callees->net);
    callees->held_count = callees->granted_count = 0;
}

uint32_t callees_held(const struct callees *callees)
{
    return callees->granted_count;
}

uint32_t callees_stats(const struct callees *callees)
{
    return callees->stats;
}

uint32_t callees_strange(const struct callees *callees)
{
    return callees->strange;
}
