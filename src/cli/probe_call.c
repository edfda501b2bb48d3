/*
 * probe_call.c -- see probe_call.h.
 *
 * The portmapper is asked over UDP, twice, then over TCP, because firewalls may pass only one of
 * them. IPv4 hosts are asked in version 2, which every host understands; IPv6 needs version 4.
 * Services are asked over TCP if they are registered for it, as the server does (D4), else over
 * UDP.
 */
#include "cli/probe_call.h"

#include "base/programs.h"
#include "codec/nsm_xdr.h"
#include "codec/portmap_xdr.h"
#include "codec/rpc_msg.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 1024,
    UDP_TRIES = 2,
};

/* A call and its reply. */
struct exchange {
    uint8_t call[4 + MESSAGE_MAX]; /* with room for a record mark in front */
    uint32_t call_len;             /* without it */
    uint32_t xid;
    uint8_t answer[MESSAGE_MAX];
    struct rpc_answer result;
    bool is_refused; /* connection refused or port unreachable */
};

static socklen_t set_address(const struct address *host, uint16_t port,
                             struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){0};
    if (host->family == 4) {
        struct sockaddr_in *at = (struct sockaddr_in *)ret;
        at->sin_family = AF_INET;
        at->sin_port = htons(port);
        memcpy(&at->sin_addr, host->bytes, 4);
        return sizeof *at;
    }
    struct sockaddr_in6 *at = (struct sockaddr_in6 *)ret;
    at->sin6_family = AF_INET6;
    at->sin6_port = htons(port);
    at->sin6_scope_id = if_nametoindex(host->zone);
    memcpy(&at->sin6_addr, host->bytes, 16);
    return sizeof *at;
}

static struct xdr_out begin(struct exchange *exchange, uint32_t prog, uint32_t vers, uint32_t proc)
{
    struct xdr_out out = xdr_out_of(exchange->call + 4, MESSAGE_MAX);
    if (getrandom(&exchange->xid, sizeof exchange->xid, 0) != (ssize_t)sizeof exchange->xid)
        exchange->xid++;
    rpc_msg_put_call(&out, exchange->xid, prog, vers, proc);
    return out;
}

static void end(struct exchange *exchange, const struct xdr_out *out)
{
    exchange->call_len = xdr_out_len(out);
}

static bool is_readable(int fd, short events, int timeout_ms)
{
    struct pollfd at = {.fd = fd, .events = events};
    return poll(&at, 1, timeout_ms) == 1;
}

static bool read_answer(struct exchange *exchange, size_t len)
{
    struct bytes message = {exchange->answer, (uint32_t)len};
    return rpc_msg_get_answer(message, &exchange->result) && exchange->result.xid == exchange->xid;
}

static bool call_udp(const struct address *host, uint16_t port, int timeout_ms,
                     struct exchange *exchange)
{
    struct sockaddr_storage name;
    socklen_t len = set_address(host, port, &name);
    int fd = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool has_answer = false;
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, len) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    for (int i = 0; i < UDP_TRIES && !has_answer && !exchange->is_refused; i++) {
        if (send(fd, exchange->call + 4, exchange->call_len, MSG_NOSIGNAL) < 0)
            exchange->is_refused = errno == ECONNREFUSED;
        while (!has_answer && !exchange->is_refused &&
               is_readable(fd, POLLIN, timeout_ms / UDP_TRIES)) {
            ssize_t got = recv(fd, exchange->answer, sizeof exchange->answer, MSG_DONTWAIT);
            if (got < 0)
                exchange->is_refused = errno == ECONNREFUSED;
            has_answer = got > 0 && read_answer(exchange, (size_t)got);
            if (got < 0)
                break;
        }
    }
    (void)close(fd);
    return has_answer;
}

/* One record that fits; none of these replies needs more than one fragment. */
static bool receive_record(int fd, int timeout_ms, struct exchange *exchange)
{
    uint8_t buffer[4 + MESSAGE_MAX];
    size_t used = 0;
    while (is_readable(fd, POLLIN, timeout_ms)) {
        ssize_t got = recv(fd, buffer + used, sizeof buffer - used, MSG_DONTWAIT);
        if (got <= 0)
            return false;
        used += (size_t)got;
        uint32_t len = used >= 4 ? load_be32(buffer) & UINT32_C(0x7fffffff) : 0;
        if (len > MESSAGE_MAX)
            return false;
        if (used >= 4 && used - 4 >= len) {
            memcpy(exchange->answer, buffer + 4, len);
            return read_answer(exchange, len);
        }
    }
    return false;
}

static bool call_tcp(const struct address *host, uint16_t port, int timeout_ms,
                     struct exchange *exchange)
{
    struct sockaddr_storage name;
    socklen_t len = set_address(host, port, &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t error_len = sizeof error;
    bool is_connected = fd >= 0 && (connect(fd, (struct sockaddr *)&name, len) == 0 ||
                                    (errno == EINPROGRESS && is_readable(fd, POLLOUT, timeout_ms)));
    if (fd < 0)
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0 || error != 0)
        is_connected = false;
    exchange->is_refused |= error == ECONNREFUSED;
    store_be32(exchange->call, UINT32_C(0x80000000) | exchange->call_len);
    bool has_answer = is_connected &&
                      send(fd, exchange->call, exchange->call_len + 4, MSG_NOSIGNAL) ==
                          (ssize_t)exchange->call_len + 4 &&
                      receive_record(fd, timeout_ms, exchange);
    (void)close(fd);
    return has_answer;
}

/* ---- the portmapper ---- */

static void put_lookup(struct exchange *exchange, const struct address *host, uint32_t prog,
                       uint32_t vers, uint32_t prot)
{
    bool is_v4 = host->family == 4;
    struct xdr_out out =
        begin(exchange, PORTMAP_PROGRAM, is_v4 ? PORTMAP_VERSION_PMAP : PORTMAP_VERSION_RPCB4,
              PORTMAP_GETPORT);
    if (is_v4)
        portmap_xdr_put_mapping(
            &out, &(struct portmap_mapping){.prog = prog, .vers = vers, .prot = prot});
    else
        portmap_xdr_put_rpcb(&out,
                             &(struct portmap_rpcb){.prog = prog,
                                                    .vers = vers,
                                                    .netid = bytes_of_text(portmap_netid(prot, 6)),
                                                    .uaddr = bytes_of_text(""),
                                                    .owner = bytes_of_text("")});
    end(exchange, &out);
}

static uint16_t port_of(const struct exchange *exchange, const struct address *host)
{
    struct xdr_in in = xdr_in_of(exchange->result.results);
    struct bytes uaddr;
    struct address address;
    uint32_t port = 0;
    uint16_t parsed = 0;
    if (exchange->result.stat != RPC_ANSWER_SUCCESS)
        return 0;
    if (host->family == 4)
        return portmap_xdr_get_port(&in, &port) && port <= UINT16_MAX ? (uint16_t)port : 0;
    if (!portmap_xdr_get_uaddr(&in, &uaddr) || uaddr.len == 0 ||
        !portmap_uaddr_parse(uaddr, &address, &parsed))
        return 0;
    return parsed;
}

/* How to reach the portmapper. */
struct portmapper {
    const struct address *host;
    int timeout_ms;
    bool is_tcp;
};

static bool look_up(const struct portmapper *portmapper, uint32_t prog, uint32_t vers,
                    uint32_t prot, struct exchange *exchange, uint16_t *ret_port)
{
    put_lookup(exchange, portmapper->host, prog, vers, prot);
    bool has_answer =
        portmapper->is_tcp
            ? call_tcp(portmapper->host, PORTMAP_PORT, portmapper->timeout_ms, exchange)
            : call_udp(portmapper->host, PORTMAP_PORT, portmapper->timeout_ms, exchange);
    if (has_answer)
        *ret_port = port_of(exchange, portmapper->host);
    return has_answer;
}

/* The first call, which finds out how to reach the portmapper. */
static bool open_portmapper(struct portmapper *portmapper, uint32_t prog, uint32_t vers,
                            struct exchange *exchange, uint16_t *ret_udp_port)
{
    if (look_up(portmapper, prog, vers, TRANSPORT_UDP, exchange, ret_udp_port))
        return true;
    portmapper->is_tcp = true;
    return look_up(portmapper, prog, vers, TRANSPORT_UDP, exchange, ret_udp_port);
}

/* ---- a service ---- */

static bool call_service(const struct address *host, const struct probe_service *service,
                         int timeout_ms, struct exchange *exchange)
{
    if (service->tcp_port != 0 && call_tcp(host, service->tcp_port, timeout_ms, exchange))
        return true;
    return service->udp_port != 0 && call_udp(host, service->udp_port, timeout_ms, exchange);
}

static void ask_null(const struct address *host, uint32_t prog, uint32_t vers, int timeout_ms,
                     struct probe_service *service)
{
    struct exchange exchange = {0};
    struct xdr_out out = begin(&exchange, prog, vers, 0);
    end(&exchange, &out);
    service->is_answering = call_service(host, service, timeout_ms, &exchange) &&
                            exchange.result.stat != RPC_ANSWER_ERROR;
}

static void ask_state(const struct address *host, int timeout_ms, struct probe_report *ret)
{
    struct exchange exchange = {0};
    struct xdr_out out = begin(&exchange, NSM_PROGRAM, NSM_VERSION, NSM_STAT);
    xdr_put_opaque(&out, bytes_of_text("localhost"));
    end(&exchange, &out);
    if (!call_service(host, &ret->status, timeout_ms, &exchange) ||
        exchange.result.stat != RPC_ANSWER_SUCCESS)
        return;
    struct xdr_in in = xdr_in_of(exchange.result.results);
    (void)xdr_get_u32(&in);
    ret->state = xdr_get_u32(&in);
    ret->has_state = !in.failed;
}

void probe_host(const struct address *host, int timeout_ms, struct probe_report *ret)
{
    static const uint32_t nlm_versions[] = {4, 3, 1};
    struct exchange exchange = {0};
    struct portmapper portmapper = {.host = host, .timeout_ms = timeout_ms};
    *ret = (struct probe_report){0};
    ret->has_portmapper =
        open_portmapper(&portmapper, NSM_PROGRAM, NSM_VERSION, &exchange, &ret->status.udp_port);
    ret->is_refused = exchange.is_refused;
    if (!ret->has_portmapper)
        return;
    (void)look_up(&portmapper, NSM_PROGRAM, NSM_VERSION, TRANSPORT_TCP, &exchange,
                  &ret->status.tcp_port);
    uint32_t version = 0;
    for (size_t i = 0; i < sizeof nlm_versions / sizeof nlm_versions[0] &&
                       ret->locks.tcp_port == 0 && ret->locks.udp_port == 0;
         i++) {
        version = nlm_versions[i];
        (void)look_up(&portmapper, NLM_PROGRAM, version, TRANSPORT_TCP, &exchange,
                      &ret->locks.tcp_port);
        (void)look_up(&portmapper, NLM_PROGRAM, version, TRANSPORT_UDP, &exchange,
                      &ret->locks.udp_port);
    }
    ask_null(host, NLM_PROGRAM, version, timeout_ms, &ret->locks);
    ask_null(host, NSM_PROGRAM, NSM_VERSION, timeout_ms, &ret->status);
    if (ret->status.is_answering)
        ask_state(host, timeout_ms, ret);
}

void probe_callback(const struct address *host, uint32_t prog, uint32_t vers, uint16_t port,
                    int timeout_ms, struct probe_service *ret)
{
    struct exchange exchange = {0};
    struct portmapper portmapper = {.host = host, .timeout_ms = timeout_ms};
    *ret = (struct probe_service){0};
    if (open_portmapper(&portmapper, prog, vers, &exchange, &ret->udp_port))
        (void)look_up(&portmapper, prog, vers, TRANSPORT_TCP, &exchange, &ret->tcp_port);
    if (ret->tcp_port == 0 && ret->udp_port == 0)
        ret->tcp_port = ret->udp_port = port;
    ask_null(host, prog, vers, timeout_ms, ret);
}

/* ---- in words ---- */

bool probe_can_be_told(const struct probe_report *report)
{
    return report->status.is_answering;
}

static bool is_registered(const struct probe_service *service)
{
    return service->tcp_port != 0 || service->udp_port != 0;
}

const char *probe_sentence(const struct probe_report *report)
{
    if (!report->has_portmapper)
        return report->is_refused
                   ? "no portmapper: nothing listens on port 111; start rpcbind there"
                   : "no answer on port 111: it is down, or a firewall drops our packets";
    if (!is_registered(&report->status))
        return "no status monitor: rpc.statd is not running there, but is required for remote "
               "locking";
    if (!report->status.is_answering)
        return "its status monitor is registered but does not answer: open its port in the "
               "firewall, or restart rpc.statd there";
    if (!is_registered(&report->locks))
        return "notifications work, but it has no lock manager to call back: it gets a lock it "
               "waits for only when it asks again";
    if (!report->locks.is_answering)
        return "notifications work, but its lock manager does not answer: open its port in the "
               "firewall";
    return "OK: notifications and callbacks work";
}
