/*
 * oracle_client.c -- a client that somebody else wrote: libtirpc with stubs from rpcgen.
 *
 * Passing proves that all seven procedures work for the RPC library and the protocol file
 * (rpcsvc/sm_inter.x) that other systems use, over TCP and UDP, IPv4 and IPv6, with AUTH_NONE and
 * AUTH_SYS: what neither src/codec nor tests/peer could prove, since both are ours. The port is
 * given, so no rpcbind takes part.
 *
 * SM_NOTIFY is not in that file; its call is made by hand from libtirpc's XDR routines.
 */
#include "harness.h"

#include <netinet/in.h>
#include <rpc/rpc.h>
#include <rpcsvc/sm_inter.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SM_NOTIFY 6

static const struct timeval patience = {.tv_sec = 5};

static struct my_id my_id_of(char *my_name)
{
    return (struct my_id){.my_name = my_name, .my_prog = 100021, .my_vers = 3, .my_proc = 16};
}

/* An empty body; libtirpc's own xdr_void has a type that does not fit where it is used. */
static bool_t put_nothing(XDR *xdrs, void *argument)
{
    (void)xdrs;
    (void)argument;
    return TRUE;
}

static bool_t put_notify(XDR *xdrs, void *argument)
{
    char *name = argument;
    int state = 7;
    return xdr_string(xdrs, &name, SM_MAXSTRLEN) && xdr_int(xdrs, &state);
}

static void call_voids(CLIENT *client, const char *what)
{
    enum clnt_stat status = clnt_call(client, NULLPROC, (xdrproc_t)put_nothing, NULL,
                                      (xdrproc_t)put_nothing, NULL, patience);
    HARNESS_EXPECT(status == RPC_SUCCESS, "%s: NULL: %s", what, clnt_sperrno(status));
    HARNESS_EXPECT(sm_simu_crash_1(NULL, client) != NULL, "%s: SM_SIMU_CRASH %s", what,
                   clnt_sperror(client, ""));
    char name[] = "monitored.example";
    status = clnt_call(client, SM_NOTIFY, (xdrproc_t)put_notify, name, (xdrproc_t)put_nothing, NULL,
                       patience);
    HARNESS_EXPECT(status == RPC_SUCCESS, "%s: SM_NOTIFY: %s", what, clnt_sperrno(status));
    status =
        clnt_call(client, 7, (xdrproc_t)put_nothing, NULL, (xdrproc_t)put_nothing, NULL, patience);
    HARNESS_EXPECT(status == RPC_PROCUNAVAIL, "%s: procedure 7: %s", what, clnt_sperrno(status));
}

/* Leaves one registration behind: "kept.<label>". */
static void call_all(CLIENT *client, const char *label, uint32_t state)
{
    char mon_name[64], my_name[64];
    snprintf(mon_name, sizeof(mon_name), "kept.%s", label);
    snprintf(my_name, sizeof(my_name), "oracle.%s", label);
    call_voids(client, label);

    struct sm_name name = {mon_name};
    struct sm_stat_res *stat = sm_stat_1(&name, client);
    HARNESS_EXPECT(stat && stat->res_stat == stat_succ && stat->state == (int)state,
                   "%s: SM_STAT %s", label, clnt_sperror(client, ""));
    char bad[] = "bad/name", gone[] = "gone";
    name.mon_name = bad;
    stat = sm_stat_1(&name, client);
    HARNESS_EXPECT(stat && stat->res_stat == stat_fail, "%s: SM_STAT of a bad name", label);

    struct mon mon = {.mon_id = {gone, my_id_of(my_name)}, .priv = "0123456789abcde"};
    stat = sm_mon_1(&mon, client);
    HARNESS_EXPECT(stat && stat->res_stat == stat_succ && stat->state == (int)state,
                   "%s: SM_MON %s", label, clnt_sperror(client, ""));
    struct sm_stat *unmon = sm_unmon_1(&mon.mon_id, client);
    HARNESS_EXPECT(unmon && unmon->state == (int)state, "%s: SM_UNMON %s", label,
                   clnt_sperror(client, ""));
    stat = sm_mon_1(&mon, client);
    HARNESS_EXPECT(stat && stat->res_stat == stat_succ, "%s: SM_MON again", label);
    unmon = sm_unmon_all_1(&mon.mon_id.my_id, client);
    HARNESS_EXPECT(unmon && unmon->state == (int)state, "%s: SM_UNMON_ALL %s", label,
                   clnt_sperror(client, ""));
    mon.mon_id.mon_name = mon_name;
    stat = sm_mon_1(&mon, client);
    HARNESS_EXPECT(stat && stat->res_stat == stat_succ, "%s: SM_MON of the one to keep", label);
}

/* libtirpc's own sockets, connected or pointed at our port. */
static CLIENT *open_client(const char *address, uint16_t port, bool is_udp, rpcvers_t version)
{
    struct dial_endpoint server;
    if (!dial_endpoint_parse(address, port, &server))
        return NULL;
    struct netbuf target = {.maxlen = server.len, .len = server.len, .buf = &server.at};
    int family = server.at.ss_family;
    int fd = socket(family, is_udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (!is_udp && connect(fd, (struct sockaddr *)&server.at, server.len) < 0) {
        close(fd);
        return NULL;
    }
    CLIENT *client = is_udp ? clnt_dg_create(fd, &target, SM_PROG, version, 0, 0)
                            : clnt_vc_create(fd, &target, SM_PROG, version, 0, 0);
    if (client)
        clnt_control(client, CLSET_FD_CLOSE, NULL);
    return client;
}

static uint32_t run(const struct harness_server *server)
{
    static const struct {
        const char *label, *address;
        bool is_udp, is_auth_sys;
    } ways[] = {{"tcp4", "127.0.0.1", false, false},    {"udp4", "127.0.0.1", true, false},
                {"tcp4.sys", "127.0.0.1", false, true}, {"udp4.sys", "127.0.0.1", true, true},
                {"tcp6", "::1", false, false},          {"udp6", "::1", true, false}};
    uint32_t kept = 0;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        CLIENT *client = open_client(ways[i].address, server->port, ways[i].is_udp, SM_VERS);
        bool is_v6 = strchr(ways[i].address, ':') != NULL;
        if (!client && is_v6) {
            printf("not shown: %s%s", ways[i].label, clnt_spcreateerror(""));
            continue;
        }
        if (!HARNESS_EXPECT(client != NULL, "%s%s", ways[i].label, clnt_spcreateerror("")))
            continue;
        if (ways[i].is_auth_sys) {
            auth_destroy(client->cl_auth);
            client->cl_auth = authunix_create_default();
        }
        call_all(client, ways[i].label, server->state);
        auth_destroy(client->cl_auth);
        clnt_destroy(client);
        kept++;
    }
    /* Another version: libtirpc must understand our PROG_MISMATCH. */
    CLIENT *client = open_client("127.0.0.1", server->port, false, 2);
    if (HARNESS_EXPECT(client != NULL, "%s", clnt_spcreateerror("version 2"))) {
        struct rpc_err error = {0};
        enum clnt_stat status = clnt_call(client, NULLPROC, (xdrproc_t)put_nothing, NULL,
                                          (xdrproc_t)put_nothing, NULL, patience);
        clnt_geterr(client, &error);
        HARNESS_EXPECT(status == RPC_PROGVERSMISMATCH && error.re_vers.low == 1 &&
                           error.re_vers.high == 1,
                       "version 2: %s", clnt_sperrno(status));
        clnt_destroy(client);
    }
    return kept;
}

static void count_kept(void *context, const struct harness_record *record)
{
    uint32_t *count = context;
    if (record->is_server)
        return;
    HARNESS_EXPECT(strncmp(record->mon_name, "kept.", 5) == 0 &&
                       strcmp(record->priv, "30313233343536373839616263646500") == 0 &&
                       record->my_prog == 100021 && record->my_vers == 3 && record->my_proc == 16,
                   "stored: %s priv %s %u %u %u", record->mon_name, record->priv, record->my_prog,
                   record->my_vers, record->my_proc);
    (*count)++;
}

int main(void)
{
    uint32_t stored = 0;
    harness_init("oracle_client");
    struct harness_server server = {.store = harness_path("store")};
    if (!harness_start(&server))
        return harness_finish();
    uint32_t kept = run(&server);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    harness_dump(server.store, count_kept, &stored);
    HARNESS_EXPECT(stored == kept, "%u registrations left behind, %u stored", kept, stored);
    return harness_finish();
}
