/*
 * oracle_host.c -- hosts that the server calls back, made of libtirpc; see oracle_host.h.
 *
 * Which host a call is for is known from the address of the socket it came through. Every GRANTED
 * is answered GRANTED; what a GRANTED_MSG asks is the test's to answer.
 */
#include "oracle_host.h"

#include "nlm4.h"
#include "nlm_prot.h"

#include <netinet/in.h>
#include <poll.h>
#include <rpc/pmap_prot.h>
#include <rpc/rpc.h>
#include <rpc/svc.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MAX    4
#define PORTMAP_PORT 111
#define PATIENCE_S   60

static struct host {
    uint32_t address;
    uint16_t port[2]; /* of NLM: over TCP, over UDP */
    struct oracle_host_call last;
} hosts[HOSTS_MAX];
static int host_count;

static struct host *host_of(const struct svc_req *request)
{
    struct sockaddr_in at;
    socklen_t len = sizeof(at);
    if (getsockname(request->rq_xprt->xp_fd, (struct sockaddr *)&at, &len) != 0)
        return NULL;
    for (int i = 0; i < host_count; i++)
        if (hosts[i].address == ntohl(at.sin_addr.s_addr))
            return &hosts[i];
    return NULL;
}

/* An empty body; libtirpc's own xdr_void has a type that does not fit where it is used. */
static bool_t put_nothing(XDR *xdrs, void *argument)
{
    (void)xdrs;
    (void)argument;
    return TRUE;
}

/* ---- the portmapper ---- */

static void serve_portmap(struct svc_req *request, SVCXPRT *transport)
{
    const struct host *host = host_of(request);
    struct pmap wanted = {0};
    if (!host || (request->rq_proc != PMAPPROC_GETPORT && request->rq_proc != PMAPPROC_NULL)) {
        svcerr_noproc(transport);
        return;
    }
    if (request->rq_proc == PMAPPROC_NULL) {
        (void)svc_sendreply(transport, (xdrproc_t)put_nothing, NULL);
        return;
    }
    if (!svc_getargs(transport, (xdrproc_t)xdr_pmap, (caddr_t)&wanted)) {
        svcerr_decode(transport);
        return;
    }
    u_long port = wanted.pm_prog == NLM_PROG ? host->port[wanted.pm_prot == IPPROTO_UDP] : 0;
    (void)svc_sendreply(transport, (xdrproc_t)xdr_u_long, (caddr_t)&port);
}

/* ---- NLM ---- */

/* Bytes of a netobj or a name, as far as there is room. */
static uint32_t keep(char *ret, const char *bytes, u_int len)
{
    uint32_t kept = len < ORACLE_HOST_BYTES_MAX ? len : ORACLE_HOST_BYTES_MAX - 1;
    memset(ret, 0, ORACLE_HOST_BYTES_MAX);
    memcpy(ret, bytes, kept);
    return kept;
}

/* The types of the versions have the same members. */
#define KEEP_TESTARGS(call, args)                                                                  \
    do {                                                                                           \
        (call)->cookie_len = keep((call)->cookie, (args)->cookie.n_bytes, (args)->cookie.n_len);   \
        (call)->fh_len = keep((call)->fh, (args)->alock.fh.n_bytes, (args)->alock.fh.n_len);       \
        (call)->oh_len = keep((call)->oh, (args)->alock.oh.n_bytes, (args)->alock.oh.n_len);       \
        keep((call)->name, (args)->alock.caller_name, (u_int)strlen((args)->alock.caller_name));   \
        (call)->exclusive = (args)->exclusive;                                                     \
        (call)->svid = (args)->alock.svid;                                                         \
        (call)->offset = (args)->alock.l_offset;                                                   \
        (call)->len = (args)->alock.l_len;                                                         \
    } while (0)

static bool take_testargs(struct oracle_host_call *call, SVCXPRT *transport)
{
    nlm_testargs narrow = {0};
    nlm4_testargs wide = {0};
    bool is_wide = call->vers == 4;
    xdrproc_t routine = is_wide ? (xdrproc_t)xdr_nlm4_testargs : (xdrproc_t)xdr_nlm_testargs;
    caddr_t args = is_wide ? (caddr_t)&wide : (caddr_t)&narrow;
    if (!svc_getargs(transport, routine, args))
        return false;
    if (is_wide)
        KEEP_TESTARGS(call, &wide);
    else
        KEEP_TESTARGS(call, &narrow);
    (void)svc_freeargs(transport, routine, args);
    return true;
}

/* LOCK_RES and the like, and TEST_RES without its holder. */
static bool take_res(struct oracle_host_call *call, SVCXPRT *transport)
{
    union {
        nlm_res res;
        nlm_testres narrow;
        nlm4_testres wide;
    } of;
    bool is_test = call->proc == NLM_TEST_RES;
    xdrproc_t routine = !is_test          ? (xdrproc_t)xdr_nlm_res
                        : call->vers == 4 ? (xdrproc_t)xdr_nlm4_testres
                                          : (xdrproc_t)xdr_nlm_testres;
    memset(&of, 0, sizeof(of));
    if (!svc_getargs(transport, routine, (caddr_t)&of))
        return false;
    /* All three begin with the cookie and the status. */
    call->cookie_len = keep(call->cookie, of.res.cookie.n_bytes, of.res.cookie.n_len);
    call->status = (uint32_t)of.res.stat.stat;
    (void)svc_freeargs(transport, routine, (caddr_t)&of);
    return true;
}

static void serve_nlm(struct svc_req *request, SVCXPRT *transport)
{
    struct host *host = host_of(request);
    struct oracle_host_call call = {.vers = (uint32_t)request->rq_vers,
                                    .proc = (uint32_t)request->rq_proc};
    bool is_grant = call.proc == NLM_GRANTED || call.proc == NLM_GRANTED_MSG;
    bool is_res = call.proc >= NLM_TEST_RES && call.proc <= NLM_GRANTED_RES;
    if (!host || (!is_grant && !is_res)) {
        svcerr_noproc(transport);
        return;
    }
    if (is_grant ? !take_testargs(&call, transport) : !take_res(&call, transport)) {
        svcerr_decode(transport);
        return;
    }
    call.count = host->last.count + 1;
    host->last = call;
    if (call.proc == NLM_GRANTED) {
        nlm_res res = {.cookie = {call.cookie_len, call.cookie}, .stat = {nlm_granted}};
        (void)svc_sendreply(transport, (xdrproc_t)xdr_nlm_res, (caddr_t)&res);
    } else {
        (void)svc_sendreply(transport, (xdrproc_t)put_nothing, NULL);
    }
}

/* ---- hosts ---- */

/* A bound socket, listening if it is a stream; -1: none. */
static int open_socket(uint32_t address, uint16_t port, int type, uint16_t *ret_port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(address)}};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&at, len) != 0 ||
        (type == SOCK_STREAM && listen(fd, 16) != 0) ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        close(fd);
        return -1;
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static bool serve_at(uint32_t address, uint16_t port, int type, bool is_portmapper,
                     uint16_t *ret_port)
{
    static const rpcvers_t versions[] = {1, 3, 4};
    int fd = open_socket(address, port, type, ret_port);
    if (fd < 0)
        return false;
    SVCXPRT *transport = type == SOCK_DGRAM ? svc_dg_create(fd, 0, 0) : svc_vc_create(fd, 0, 0);
    if (!transport)
        return false;
    if (is_portmapper)
        return svc_reg(transport, PMAPPROG, PMAPVERS, serve_portmap, NULL);
    for (uint32_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        if (!svc_reg(transport, NLM_PROG, versions[i], serve_nlm, NULL))
            return false;
    return true;
}

int oracle_host_add(uint32_t address)
{
    uint16_t ignored;
    if (host_count == HOSTS_MAX)
        return -1;
    struct host *host = &hosts[host_count];
    *host = (struct host){.address = address};
    if (!serve_at(address, PORTMAP_PORT, SOCK_DGRAM, true, &ignored) ||
        !serve_at(address, 0, SOCK_STREAM, false, &host->port[0]) ||
        !serve_at(address, 0, SOCK_DGRAM, false, &host->port[1]))
        return -1;
    return host_count++;
}

const struct oracle_host_call *oracle_host_call(int host)
{
    return &hosts[host].last;
}

void oracle_host_forget(int host)
{
    hosts[host].last = (struct oracle_host_call){0};
}

static void turn(int timeout_ms)
{
    struct pollfd fds[64];
    nfds_t count = svc_max_pollfd < 64 ? (nfds_t)svc_max_pollfd : 64;
    memcpy(fds, svc_pollfd, count * sizeof(fds[0]));
    int ready = poll(fds, count, timeout_ms);
    if (ready > 0)
        svc_getreq_poll(fds, ready);
}

void oracle_host_turn(void)
{
    turn(0);
}

bool oracle_host_wait(int host, uint32_t proc)
{
    time_t deadline = time(NULL) + PATIENCE_S;
    while (hosts[host].last.proc != proc && time(NULL) <= deadline)
        turn(10);
    return hosts[host].last.proc == proc;
}
