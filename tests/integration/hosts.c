/*
 * hosts.c -- hosts that the server calls; see hosts.h.
 *
 * A thread serves them (hosts_net.h). Its lock is held while a test looks, so what a test sees is
 * consistent.
 */
#include "hosts.h"

#include "hosts_net.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define HOSTS_MAX 2048
#define CALLS_MAX 65536 /* between two hosts_forget_calls */
#define SETTLE_NS UINT64_C(60000000000)

static struct {
    struct hosts_net *net;
    struct hosts_host hosts[HOSTS_MAX];
    uint32_t count;
    struct hosts_call *calls;
    uint32_t call_count;
    struct packet reply;
} hosts;

/* ---- what they answer ---- */

static uint16_t port_of(const void *context, uint32_t prog, uint32_t vers, uint32_t prot)
{
    const struct hosts_host *host = context;
    if (prog != HOSTS_PROG || vers != HOSTS_VERS)
        return 0;
    return prot == IPPROTO_TCP ? host->tcp_port : prot == IPPROTO_UDP ? host->udp_port : 0;
}

/* The call as it was remembered when its datagram came for the first time, or NULL. */
static const struct hosts_call *earlier(const struct hosts_call *call)
{
    for (uint32_t i = hosts.call_count; call->is_udp && i > 0; i--) {
        const struct hosts_call *other = &hosts.calls[i - 1];
        if (other->is_udp && other->host == call->host && other->xid == call->xid)
            return other;
    }
    return NULL;
}

static void answer_service(struct hosts_host *host, struct hosts_call *call,
                           struct packet_reader *arguments)
{
    uint32_t len;
    const struct hosts_call *known = earlier(call);
    if (known) {
        packet_put_accepted(&hosts.reply, call->xid,
                            known->is_refused ? host->refusal : PACKET_SUCCESS);
        return;
    }
    const uint8_t *name = packet_get_opaque(arguments, sizeof(call->name) - 1, &len);
    if (name)
        memcpy(call->name, name, len);
    call->state = packet_get_u32(arguments);
    const uint8_t *priv = packet_get_fixed(arguments, PEER_NSM_PRIV_LEN);
    if (priv)
        memcpy(call->priv, priv, PEER_NSM_PRIV_LEN);
    call->is_readable = packet_is_done(arguments);
    call->at_ns = dial_now_ns();
    call->is_refused = host->refusals > 0;
    host->refusals -= call->is_refused;
    packet_put_accepted(&hosts.reply, call->xid, call->is_refused ? host->refusal : PACKET_SUCCESS);
    if (hosts.call_count == CALLS_MAX) {
        fprintf(stderr, "hosts: more than %d calls\n", CALLS_MAX);
        abort();
    }
    hosts.calls[hosts.call_count++] = *call;
}

static bool answer(void *unused, const struct hosts_net_message *message)
{
    struct packet_reader reader = {message->bytes, message->len, false};
    struct hosts_host *host = &hosts.hosts[message->host];
    struct packet_call header;
    (void)unused;
    if (!packet_get_call(&reader, &header))
        return false;
    const struct sockaddr_in *from = (const struct sockaddr_in *)&message->from.at;
    struct hosts_call call = {.host = message->host,
                              .from = ntohl(from->sin_addr.s_addr),
                              .xid = header.xid,
                              .prog = header.prog,
                              .vers = header.vers,
                              .proc = header.proc,
                              .is_udp = message->is_udp};
    packet_clear(&hosts.reply);
    if (message->port != HOSTS_PORTMAP)
        answer_service(host, &call, &reader);
    else if (call.prog != HOSTS_NET_PORTMAP_PROGRAM)
        packet_put_accepted(&hosts.reply, call.xid, PACKET_PROG_UNAVAIL);
    else if (call.is_udp && host->is_silent)
        return false;
    else
        hosts_net_portmap(&header, &reader, port_of, host, &hosts.reply);
    return hosts_net_send(message->socket, &message->from, hosts.reply.bytes, hosts.reply.len);
}

/* ---- what the tests do ---- */

bool hosts_start(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* what fails shows as a host without a socket */
    hosts.calls = calloc(CALLS_MAX, sizeof(*hosts.calls));
    hosts.net = hosts_net_new(&(struct hosts_net_user){.served = answer});
    return hosts.calls && hosts.net && hosts_net_start(hosts.net);
}

void hosts_stop(void)
{
    hosts_net_free(hosts.net);
    free(hosts.calls);
}

int hosts_add(const struct hosts_host *host)
{
    int index = -1;
    hosts_net_lock(hosts.net);
    if (hosts.count < HOSTS_MAX) {
        index = (int)hosts.count++;
        hosts.hosts[index] = *host;
    }
    hosts_net_unlock(hosts.net);
    return index;
}

bool hosts_listen(uint32_t host, uint16_t port, bool is_udp)
{
    struct dial_endpoint at = dial_endpoint_v4(hosts.hosts[host].address, port);
    hosts_net_lock(hosts.net);
    int fd = hosts_net_listen(hosts.net, host, &at, is_udp);
    int error = errno;
    hosts_net_unlock(hosts.net);
    if (fd < 0)
        fprintf(stderr, "hosts: cannot listen at %s: %s\n", dial_endpoint_text(&at),
                strerror(error));
    return fd >= 0;
}

static uint64_t idle_count(void)
{
    hosts_net_lock(hosts.net);
    uint64_t count = hosts_net_idle_count(hosts.net);
    hosts_net_unlock(hosts.net);
    return count;
}

bool hosts_settle(void)
{
    /* The first idle moment may have begun before the last bytes came. */
    uint64_t wanted = idle_count() + 2, deadline_ns = dial_now_ns() + SETTLE_NS;
    const struct timespec pause = {.tv_nsec = 2000000};
    while (idle_count() < wanted && dial_now_ns() < deadline_ns)
        nanosleep(&pause, NULL);
    return idle_count() >= wanted;
}

void hosts_forget_calls(void)
{
    hosts_net_lock(hosts.net);
    hosts.call_count = 0;
    hosts_net_unlock(hosts.net);
}

void hosts_each_call(hosts_call_fn visit, void *context)
{
    hosts_net_lock(hosts.net);
    for (uint32_t i = 0; i < hosts.call_count; i++)
        visit(context, &hosts.calls[i]);
    hosts_net_unlock(hosts.net);
}
