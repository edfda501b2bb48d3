/*
 * watcher.c -- a host that watches others, as the lock manager of a kernel does, made of libtirpc.
 *
 * usage: watcher serve
 *        watcher mon HOST tcp|udp MON_NAME MY_NAME PRIV
 *        watcher enter PROGRAM VERSION
 *
 * `serve` offers program 100021 version 3 on free ports, registers it with the rpcbind of this
 * machine, and prints two lines for each call of procedure 16: from what kind of port it comes; who
 * called over what, and what libtirpc and the routines of rpcgen read in it. `mon` calls SM_MON at
 * the host, found through its rpcbind, for such a service; PRIV is 16 characters. `enter`
 * registers what is not there. Not a line of
 * ours decides about a byte on the wire: statd.sh has this program beside the server and beside a
 * real rpc.statd.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rpc/pmap_clnt.h>
#include <rpc/rpc.h>
#include <rpcsvc/sm_inter.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PROGRAM   100021
#define VERSION   3
#define PROCEDURE 16

/* An empty body; libtirpc's own xdr_void has a type that does not fit where it is used. */
static bool_t put_nothing(XDR *xdrs, void *argument)
{
    (void)xdrs;
    (void)argument;
    return TRUE;
}

static void print_call(SVCXPRT *transport, const struct status *status)
{
    struct sockaddr_storage from = {0};
    const struct netbuf *caller = svc_getrpccaller(transport);
    char address[INET6_ADDRSTRLEN] = "?";
    memcpy(&from, caller->buf, caller->len < sizeof(from) ? caller->len : sizeof(from));
    /* In the same place for both families. The kernel takes such calls from below 1024 only. */
    bool is_privileged = ntohs(((struct sockaddr_in *)&from)->sin_port) < IPPORT_RESERVED;
    if (from.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&from)->sin_addr, address, sizeof(address));
    else if (from.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&from)->sin6_addr, address, sizeof(address));
    printf("from %s port\n", is_privileged ? "a privileged" : "an unprivileged");
    printf("told by %s over %s: mon_name=%s state=%d priv=%.16s\n", address, transport->xp_netid,
           status->mon_name, status->state, status->priv);
    fflush(stdout);
}

static void serve_call(struct svc_req *request, SVCXPRT *transport)
{
    struct status status = {0};
    if (request->rq_proc == NULLPROC) {
        svc_sendreply(transport, (xdrproc_t)put_nothing, NULL);
        return;
    }
    if (request->rq_proc != PROCEDURE) {
        printf("called with procedure %u\n", (unsigned)request->rq_proc);
        fflush(stdout);
        svcerr_noproc(transport);
        return;
    }
    if (!svc_getargs(transport, (xdrproc_t)xdr_status, &status)) {
        printf("called with arguments that libtirpc cannot read\n");
        fflush(stdout);
        svcerr_decode(transport);
        return;
    }
    print_call(transport, &status);
    svc_sendreply(transport, (xdrproc_t)put_nothing, NULL);
    svc_freeargs(transport, (xdrproc_t)xdr_status, &status);
}

static int serve(void)
{
    rpcb_unset(PROGRAM, VERSION, NULL);
    if (svc_create(serve_call, PROGRAM, VERSION, "tcp") == 0 ||
        svc_create(serve_call, PROGRAM, VERSION, "udp") == 0) {
        fprintf(stderr, "watcher: libtirpc cannot serve or register; is rpcbind running?\n");
        return 1;
    }
    printf("serving\n");
    fflush(stdout);
    svc_run();
    return 1;
}

static int monitor(char **arguments)
{
    CLIENT *client = clnt_create(arguments[0], SM_PROG, SM_VERS, arguments[1]);
    if (!client) {
        printf("%s\n", clnt_spcreateerror("watcher"));
        return 1;
    }
    struct mon mon = {.mon_id = {.mon_name = arguments[2],
                                 .my_id = {.my_name = arguments[3],
                                           .my_prog = PROGRAM,
                                           .my_vers = VERSION,
                                           .my_proc = PROCEDURE}}};
    memcpy(mon.priv, arguments[4], sizeof(mon.priv));
    struct sm_stat_res *answer = sm_mon_1(&mon, client);
    if (answer)
        printf("%s %d\n", answer->res_stat == stat_succ ? "succ" : "fail", answer->state);
    else
        printf("%s\n", clnt_sperror(client, "watcher"));
    int code = answer && answer->res_stat == stat_succ ? 0 : 1;
    clnt_destroy(client);
    return code;
}

/* Has the rpcbind of this machine name a service, over TCP, that is not there. */
static int enter(const char *program, const char *version)
{
    return pmap_set(strtoul(program, NULL, 10), strtoul(version, NULL, 10), IPPROTO_TCP, 2049) ? 0
                                                                                               : 1;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "serve") == 0)
        return serve();
    if (count == 7 && strcmp(arguments[1], "mon") == 0 &&
        strlen(arguments[6]) == sizeof(((struct mon *)0)->priv))
        return monitor(arguments + 2);
    if (count == 4 && strcmp(arguments[1], "enter") == 0)
        return enter(arguments[2], arguments[3]);
    fprintf(stderr, "usage: watcher serve | watcher enter PROGRAM VERSION | watcher mon HOST "
                    "tcp|udp MON_NAME MY_NAME PRIV\n");
    return 2;
}
