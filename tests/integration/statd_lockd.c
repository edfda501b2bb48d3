/*
 * statd_lockd.c -- the lock manager of a client host as a kernel has it, made of libtirpc: it locks
 * at a server, has its rpc.statd watch that server, and reclaims when rpc.statd calls.
 *
 * usage: statd_lockd SERVER MON_NAME CALLER_NAME PRIV FILE...
 *
 * In the order of a Linux kernel: it registers program 100021 with the rpcbind of its host, asks
 * the rpc.statd of its host over TCP and loopback to watch MON_NAME for procedure 16 of version 3
 * with PRIV (16 characters), and takes an exclusive lock on all of each FILE at SERVER, which is
 * found through its rpcbind, with the state number that rpc.statd told. Without SM_MON no lock.
 *
 * The upcall counts if it comes from loopback and a privileged port, with that PRIV and a state
 * that was not told before. It is answered, then every lock is reclaimed, one call after another,
 * with state 0, as Linux does. Locks end with nothing: a host that is killed does not unlock.
 *
 * Every step is a line of output, which statd_locks.sh reads. The bytes on the wire are libtirpc's
 * and rpcgen's. Files and owners are those of `peer`: svid 1, its handle is the word FILE.
 */
#include "nlm4.h"
#include "nlm_prot.h"
#include "sm_inter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <rpc/svc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define UPCALL_VERSION   3
#define UPCALL_PROCEDURE 16
#define NLM4_VERSION     4
#define HANDLE_LEN       32
#define PRIVILEGED_END   1024
#define POLL_MAX         64

static const struct timeval patience = {.tv_sec = 10};

/* What the arguments and rpc.statd said, and what the upcalls said since. */
static struct {
    char *server, *mon_name, *caller_name, *priv;
    char **files;
    int file_count;
    int own_state;    /* of this host, from SM_MON */
    int server_state; /* the last one an upcall told; 0: none */
    bool is_reclaim_due;
} host;

/* An empty body; libtirpc's own xdr_void has a type that does not fit where it is used. */
static bool_t put_nothing(XDR *xdrs, void *argument)
{
    (void)xdrs;
    (void)argument;
    return TRUE;
}

/* ---- upcalls ---- */

/* Who calls, as text; its port is returned. */
static uint16_t caller_of(SVCXPRT *transport, char text[static INET6_ADDRSTRLEN])
{
    struct sockaddr_storage from = {0};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    const struct netbuf *caller = svc_getrpccaller(transport);
    memcpy(&from, caller->buf, caller->len < sizeof(from) ? caller->len : sizeof(from));
    memcpy(&v4, &from, sizeof(v4));
    memcpy(&v6, &from, sizeof(v6));
    if (from.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6.sin6_addr, text, INET6_ADDRSTRLEN);
        return ntohs(v6.sin6_port);
    }
    inet_ntop(AF_INET, &v4.sin_addr, text, INET6_ADDRSTRLEN);
    return ntohs(v4.sin_port);
}

static void hear(SVCXPRT *transport, const struct status *status)
{
    char from[INET6_ADDRSTRLEN] = "?";
    uint16_t port = caller_of(transport, from);
    bool is_own = strcmp(from, "127.0.0.1") == 0 && port < PRIVILEGED_END;
    bool is_meant = memcmp(status->priv, host.priv, sizeof(status->priv)) == 0;
    bool is_new = status->state != host.server_state;
    printf("%s: mon_name=%s state=%d priv=%.16s\n",
           is_own && is_meant && is_new ? "upcall" : "upcall ignored", status->mon_name,
           status->state, status->priv);
    if (!is_own || !is_meant || !is_new)
        return;
    host.server_state = status->state;
    host.is_reclaim_due = true;
}

static void serve_call(struct svc_req *request, SVCXPRT *transport)
{
    struct status status = {0};
    if (request->rq_proc == NULLPROC) {
        (void)svc_sendreply(transport, (xdrproc_t)put_nothing, NULL);
        return;
    }
    if (request->rq_vers != UPCALL_VERSION || request->rq_proc != UPCALL_PROCEDURE) {
        printf("called with procedure %u of version %u\n", (unsigned)request->rq_proc,
               (unsigned)request->rq_vers);
        svcerr_noproc(transport);
        return;
    }
    if (!svc_getargs(transport, (xdrproc_t)xdr_status, (caddr_t)&status)) {
        printf("called with arguments that libtirpc cannot read\n");
        svcerr_decode(transport);
        return;
    }
    hear(transport, &status);
    (void)svc_sendreply(transport, (xdrproc_t)put_nothing, NULL);
    (void)svc_freeargs(transport, (xdrproc_t)xdr_status, (caddr_t)&status);
}

static bool offer(void)
{
    static const rpcvers_t versions[] = {1, UPCALL_VERSION, NLM4_VERSION};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        rpcb_unset(NLM_PROG, versions[i], NULL);
        if (svc_create(serve_call, NLM_PROG, versions[i], "tcp") == 0 ||
            svc_create(serve_call, NLM_PROG, versions[i], "udp") == 0)
            return false;
    }
    return true;
}

/* ---- calls ---- */

static void close_client(CLIENT *client)
{
    auth_destroy(client->cl_auth);
    clnt_destroy(client);
}

/* SM_MON at the rpc.statd of this host. */
static bool monitor(void)
{
    struct mon mon = {.mon_id = {.mon_name = host.mon_name,
                                 .my_id = {.my_name = host.caller_name,
                                           .my_prog = NLM_PROG,
                                           .my_vers = UPCALL_VERSION,
                                           .my_proc = UPCALL_PROCEDURE}}};
    struct sm_stat_res res = {0};
    memcpy(mon.priv, host.priv, sizeof(mon.priv));
    CLIENT *client = clnt_create("127.0.0.1", SM_PROG, SM_VERS, "tcp");
    if (!client) {
        printf("cannot monitor: %s\n", clnt_spcreateerror("rpc.statd"));
        return false;
    }
    enum clnt_stat result = clnt_call(client, SM_MON, (xdrproc_t)xdr_mon, (caddr_t)&mon,
                                      (xdrproc_t)xdr_sm_stat_res, (caddr_t)&res, patience);
    close_client(client);
    if (result != RPC_SUCCESS || res.res_stat != stat_succ) {
        printf("cannot monitor: %s\n", result != RPC_SUCCESS ? clnt_sperrno(result) : "stat_fail");
        return false;
    }
    host.own_state = res.state;
    printf("monitored: state=%d\n", res.state);
    return true;
}

static const char *status_text(int status)
{
    static const char *const words[] = {"granted", "denied", "no resources", "blocked", "in grace"};
    return status >= 0 && (size_t)status < sizeof(words) / sizeof(words[0]) ? words[status] : "?";
}

/* One LOCK; true when it is granted. */
static bool lock(CLIENT *client, char *file, bool is_reclaim)
{
    static uint32_t count;
    char oh[128], handle[HANDLE_LEN] = "";
    snprintf(oh, sizeof(oh), "1@%s", host.caller_name);
    snprintf(handle, sizeof(handle), "%s", file);
    count++;
    nlm4_lockargs args = {
        .cookie = {sizeof(count), (char *)&count},
        .exclusive = TRUE,
        .alock = {.caller_name = host.caller_name,
                  .fh = {HANDLE_LEN, handle},
                  .oh = {(u_int)strlen(oh), oh},
                  .svid = 1},
        .reclaim = is_reclaim,
        .state = is_reclaim ? 0 : host.own_state,
    };
    nlm_res res = {.cookie = {0, NULL}};
    enum clnt_stat result =
        clnt_call(client, NLM_LOCK, (xdrproc_t)xdr_nlm4_lockargs, (caddr_t)&args,
                  (xdrproc_t)xdr_nlm_res, (caddr_t)&res, patience);
    printf("%s %s: %s\n", is_reclaim ? "reclaim" : "lock", file,
           result == RPC_SUCCESS ? status_text((int)res.stat.stat) : clnt_sperrno(result));
    bool is_granted = result == RPC_SUCCESS && res.stat.stat == nlm_granted;
    if (result == RPC_SUCCESS)
        (void)clnt_freeres(client, (xdrproc_t)xdr_nlm_res, (caddr_t)&res);
    return is_granted;
}

/* All files, over one connection. */
static bool lock_all(bool is_reclaim)
{
    bool is_granted = true;
    CLIENT *client = clnt_create(host.server, NLM_PROG, NLM4_VERSION, "tcp");
    if (!client) {
        printf("%s\n", clnt_spcreateerror(host.server));
        return false;
    }
    auth_destroy(client->cl_auth);
    client->cl_auth = authunix_create_default();
    for (int i = 0; i < host.file_count; i++)
        is_granted = lock(client, host.files[i], is_reclaim) && is_granted;
    close_client(client);
    return is_granted;
}

/* ---- the program ---- */

/* For ever: what arrives is served, what an upcall asked for is done after its answer. */
static void serve(void)
{
    for (;;) {
        struct pollfd fds[POLL_MAX];
        nfds_t count = svc_max_pollfd < POLL_MAX ? (nfds_t)svc_max_pollfd : POLL_MAX;
        memcpy(fds, svc_pollfd, count * sizeof(fds[0]));
        int ready = poll(fds, count, -1);
        if (ready > 0)
            svc_getreq_poll(fds, ready);
        if (!host.is_reclaim_due)
            continue;
        host.is_reclaim_due = false;
        printf("reclaim is over: %s\n", lock_all(true) ? "all granted" : "not all granted");
    }
}

int main(int count, char **arguments)
{
    if (count < 6 || strlen(arguments[4]) != sizeof(((struct mon *)0)->priv)) {
        fprintf(stderr, "usage: statd_lockd SERVER MON_NAME CALLER_NAME PRIV FILE...\n");
        return 2;
    }
    host.server = arguments[1];
    host.mon_name = arguments[2];
    host.caller_name = arguments[3];
    host.priv = arguments[4];
    host.files = arguments + 5;
    host.file_count = count - 5;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!offer()) {
        printf("cannot serve or register; is rpcbind running?\n");
        return 1;
    }
    if (!monitor() || !lock_all(false))
        return 1;
    printf("serving\n");
    serve();
}
