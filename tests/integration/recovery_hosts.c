/*
 * recovery_hosts.c -- the hosts of lock clients; see recovery_hosts.h.
 *
 * A thread serves them (hosts_net.h). Its lock is held while a test looks.
 *
 * A cut is a socket filter that accepts no packet: the kernel drops even the SYN of a connection,
 * without a word to the sender, as a dead cable does.
 */
#include "recovery_hosts.h"

#include "hosts_net.h"
#include "peer/peer_nlm.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
    struct recovery_host host;
    int fds[2]; /* UDP, the listener */
};

static struct {
    struct hosts_net *net;
    struct place *places;
    uint32_t count, places_max;
    uint32_t *told; /* a ring of hosts; each is in it at most once */
    bool *is_told;
    uint32_t told_first, told_count;
    struct packet reply;
} hosts;

/* ---- what they answer ---- */

static uint16_t port_of(const void *context, uint32_t prog, uint32_t vers, uint32_t prot)
{
    const struct recovery_host *host = context;
    bool is_here = prog == PEER_NLM_PROGRAM || prog == PEER_NSM_PROGRAM;
    (void)vers; /* any */
    return is_here && !(prot == IPPROTO_TCP && host->is_udp_only) ? HOSTS_NET_PORTMAP : 0;
}

/* We restarted, says somebody: a state that it knows already is no news. */
static void hear_notice(uint32_t index, uint32_t state)
{
    struct recovery_host *host = &hosts.places[index].host;
    host->notices++;
    if (state == host->told_state)
        return;
    host->told_state = state;
    host->told_count++;
    host->told_ns = dial_now_ns();
    if (hosts.is_told[index])
        return;
    hosts.is_told[index] = true;
    hosts.told[(hosts.told_first + hosts.told_count++) % hosts.places_max] = index;
}

static void answer_statd(uint32_t index, const struct packet_call *call,
                         struct packet_reader *arguments)
{
    struct recovery_host *host = &hosts.places[index].host;
    uint32_t len;
    (void)packet_get_opaque(arguments, PEER_NLM_NETOBJ_MAX, &len);
    if (call->proc == PEER_NSM_STAT && packet_is_done(arguments)) {
        host->stats++;
        packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
        packet_put_u32(&hosts.reply, PEER_NSM_STAT_SUCC);
        packet_put_u32(&hosts.reply, host->state);
        return;
    }
    uint32_t state = packet_get_u32(arguments);
    bool is_notice = call->proc == PEER_NSM_NOTIFY && packet_is_done(arguments);
    packet_put_accepted(&hosts.reply, call->xid, is_notice ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
    if (is_notice)
        hear_notice(index, state);
    else
        host->strange_calls++;
}

/* It waits for every lock that is offered, and takes it. GRANTED_MSG is not known here, so that
 * GRANTED is tried then (R-BLK-2). */
static void answer_nlm(uint32_t index, const struct packet_call *call,
                       struct packet_reader *arguments)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct recovery_host *host = &hosts.places[index].host;
    if (call->proc == PEER_NLM_NULL) {
        packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
        return;
    }
    if (call->proc != PEER_NLM_GRANTED ||
        !peer_nlm_get_args(arguments, call->vers, call->proc, &args)) {
        host->strange_calls += call->proc != PEER_NLM_GRANTED_MSG;
        packet_put_accepted(&hosts.reply, call->xid, PACKET_PROC_UNAVAIL);
        return;
    }
    host->grants++;
    host->granted_svid = args.lock.svid;
    host->granted_ns = dial_now_ns();
    res.cookie = args.cookie;
    res.status = PEER_NLM_IS_GRANTED;
    packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
    peer_nlm_put_res(&hosts.reply, call->vers, call->proc, &res);
}

static bool answer(void *unused, const struct hosts_net_message *message)
{
    struct packet_reader reader = {message->bytes, message->len, false};
    struct recovery_host *host = &hosts.places[message->host].host;
    struct packet_call call;
    (void)unused;
    if (!packet_get_call(&reader, &call))
        return false;
    packet_clear(&hosts.reply);
    if (call.prog == HOSTS_NET_PORTMAP_PROGRAM) {
        hosts_net_portmap(&call, &reader, port_of, host, &hosts.reply);
    } else if (call.prog == PEER_NSM_PROGRAM) {
        answer_statd(message->host, &call, &reader);
    } else if (call.prog == PEER_NLM_PROGRAM) {
        answer_nlm(message->host, &call, &reader);
    } else {
        host->strange_calls++;
        packet_put_accepted(&hosts.reply, call.xid, PACKET_PROG_UNAVAIL);
    }
    return hosts_net_send(message->socket, &message->from, hosts.reply.bytes, hosts.reply.len);
}

/* ---- what the tests do ---- */

bool recovery_hosts_start(uint32_t hosts_max)
{
    hosts.places_max = hosts_max;
    hosts.places = calloc(hosts_max, sizeof(*hosts.places));
    hosts.told = calloc(hosts_max, sizeof(*hosts.told));
    hosts.is_told = calloc(hosts_max, sizeof(*hosts.is_told));
    hosts.net = hosts_net_new(&(struct hosts_net_user){.served = answer});
    return hosts.places && hosts.told && hosts.is_told && hosts.net && hosts_net_start(hosts.net);
}

void recovery_hosts_stop(void)
{
    hosts_net_free(hosts.net);
    free(hosts.places);
    free(hosts.told);
    free(hosts.is_told);
}

uint32_t recovery_hosts_add(uint32_t address, const char *name, bool is_udp_only)
{
    hosts_net_lock(hosts.net);
    uint32_t index = hosts.count;
    struct place *place = &hosts.places[index];
    struct dial_endpoint at = dial_endpoint_v4(address, HOSTS_NET_PORTMAP);
    bool has_place = index < hosts.places_max, is_there = has_place;
    for (int i = 0; i < 2 && is_there; i++) {
        place->fds[i] = hosts_net_listen(hosts.net, index, &at, i == 0);
        is_there = place->fds[i] >= 0;
    }
    if (!is_there) {
        fprintf(stderr, "recovery_hosts: %s: %s\n", name,
                has_place ? strerror(errno) : "more than were announced");
        exit(1);
    }
    place->host =
        (struct recovery_host){.address = address, .state = 3, .is_udp_only = is_udp_only};
    snprintf(place->host.name, sizeof(place->host.name), "%s", name);
    hosts.count++;
    hosts_net_unlock(hosts.net);
    return index;
}

struct recovery_host recovery_hosts_look(uint32_t host)
{
    hosts_net_lock(hosts.net);
    struct recovery_host copy = hosts.places[host].host;
    hosts_net_unlock(hosts.net);
    return copy;
}

void recovery_hosts_set_state(uint32_t host, uint32_t state)
{
    hosts_net_lock(hosts.net);
    hosts.places[host].host.state = state;
    hosts_net_unlock(hosts.net);
}

void recovery_hosts_cut(uint32_t host, bool is_cut)
{
    struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog filter = {.len = 1, .filter = nothing};
    int unused = 0;
    for (int i = 0; i < 2; i++) {
        int fd = hosts.places[host].fds[i]; /* never changes */
        int result = is_cut ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter))
                            : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
        if (result < 0 && (is_cut || errno != ENOENT)) {
            perror("recovery_hosts_cut");
            exit(1);
        }
    }
}

bool recovery_hosts_take_told(uint32_t *ret_host)
{
    hosts_net_lock(hosts.net);
    bool is_there = hosts.told_count > 0;
    if (is_there) {
        uint32_t host = hosts.told[hosts.told_first];
        hosts.told_first = (hosts.told_first + 1) % hosts.places_max;
        hosts.told_count--;
        hosts.is_told[host] = false;
        *ret_host = host;
    }
    hosts_net_unlock(hosts.net);
    return is_there;
}

void recovery_hosts_forget_told(void)
{
    uint32_t host;
    while (recovery_hosts_take_told(&host))
        continue;
}
