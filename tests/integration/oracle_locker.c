/*
 * oracle_locker.c -- two lock clients that somebody else wrote: libtirpc, with XDR routines that
 * rpcgen makes from the system's nlm_prot.x and from nlm4.x.
 *
 * Passing proves, in versions 4, 3 and 1 and over TCP and UDP, what neither src/codec nor
 * tests/peer could prove, since both are ours:
 *  (1) every synchronous procedure: NULL, TEST with its holder, LOCK, CANCEL, UNLOCK, GRANTED, and
 *      in versions 3 and 4 SHARE, UNSHARE, NM_LOCK, FREE_ALL; cookies come back as they were sent;
 *  (2) a blocked LOCK is handed over by a callback that libtirpc's server receives, found through a
 *      portmapper that libtirpc serves, with exactly the lock that was asked for (R-BLK-1);
 *  (3) the messages: LOCK_MSG is answered by LOCK_RES, and a blocked one by GRANTED_MSG, to which
 *      GRANTED_RES is the answer;
 *  (4) FREE_ALL frees the caller's own client and nobody else's (R-NLM-8); statuses that a version
 *      does not have are not sent in it; version 2 is PROG_MISMATCH 1 to 4.
 *
 * Needs root for a network namespace, where port 111 is free; without it the test is skipped.
 */
#include "callbacks.h"
#include "harness.h"
#include "oracle_host.h"

#include "nlm4.h"
#include "nlm_prot.h"

#include <errno.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALPHA_AT UINT32_C(0x7f070001) /* 127.7.0.1 */
#define BETA_AT  UINT32_C(0x7f070002)

static const struct timeval patience = {.tv_sec = 10};

/* One host as a client, in one version over one transport. */
struct locker {
    CLIENT *client;
    uint32_t address, vers;
    bool is_udp;
    int host; /* of oracle_host.h */
    char *name;
    char oh[16];
};

/* What it wants; the file is the case's. */
struct want {
    int svid;
    uint64_t offset, len;
    bool exclusive, block, reclaim;
    uint32_t fh_len; /* 0: 32 */
};

static char handle[64] = "file"; /* changed for every case */
static char cookie[8] = "cookie!";
static const char *what; /* the case, for messages */

/* An empty body; libtirpc's own xdr_void has a type that does not fit where it is used. */
static bool_t nothing(XDR *xdrs, void *argument)
{
    (void)xdrs;
    (void)argument;
    return TRUE;
}

/* The types of the versions have the same members. */
#define FILL_LOCK(alock, locker, want)                                                             \
    do {                                                                                           \
        (alock)->caller_name = (locker)->name;                                                     \
        (alock)->fh = (netobj){(want)->fh_len != 0 ? (want)->fh_len : 32, handle};                 \
        (alock)->oh = (netobj){(u_int)strlen((locker)->oh), (locker)->oh};                         \
        (alock)->svid = (want)->svid;                                                              \
    } while (0)

static nlm_lock narrow_lock(struct locker *locker, const struct want *want)
{
    nlm_lock alock = {.l_offset = (u_int)want->offset, .l_len = (u_int)want->len};
    FILL_LOCK(&alock, locker, want);
    return alock;
}

static nlm4_lock wide_lock(struct locker *locker, const struct want *want)
{
    nlm4_lock alock = {.l_offset = want->offset, .l_len = want->len};
    FILL_LOCK(&alock, locker, want);
    return alock;
}

static struct harness_server server;

static CLIENT *open_client(uint32_t source, bool is_udp, uint32_t vers)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(source)}};
    struct dial_endpoint to = dial_endpoint_v4(INADDR_LOOPBACK, server.port);
    struct netbuf target = {.maxlen = to.len, .len = to.len, .buf = &to.at};
    int fd = socket(AF_INET, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
        (!is_udp && connect(fd, (struct sockaddr *)&to.at, to.len) != 0)) {
        close(fd);
        return NULL;
    }
    CLIENT *client = is_udp ? clnt_dg_create(fd, &target, NLM_PROG, vers, 0, 0)
                            : clnt_vc_create(fd, &target, NLM_PROG, vers, 0, 0);
    if (client)
        clnt_control(client, CLSET_FD_CLOSE, NULL);
    return client;
}

static void close_client(CLIENT *client)
{
    auth_destroy(client->cl_auth);
    clnt_destroy(client);
}

/* One call; the RPC status, negative, or 0. */
static int call(struct locker *locker, rpcproc_t proc, xdrproc_t put, void *args, xdrproc_t get,
                void *result)
{
    /* The result of a message over UDP also comes to the socket that sent it; libtirpc takes what
     * is not the answer there for a time-out. So each has a socket of its own. */
    bool is_alone = locker->is_udp && proc >= NLM_TEST_MSG && proc <= NLM_GRANTED_MSG;
    CLIENT *client = is_alone ? open_client(locker->address, true, locker->vers) : locker->client;
    enum clnt_stat status = clnt_call(client, proc, put, args, get, result, patience);
    if (is_alone)
        close_client(client);
    return -(int)status;
}

/* Any procedure whose result is a nlm_res, or void for a message. The status, or negative. */
static int ask(struct locker *locker, rpcproc_t proc, xdrproc_t put, void *args)
{
    nlm_res res = {.cookie = {0, NULL}};
    bool is_message = proc >= NLM_TEST_MSG && proc <= NLM_GRANTED_RES;
    int failure = call(locker, proc, put, args,
                       is_message ? (xdrproc_t)nothing : (xdrproc_t)xdr_nlm_res, &res);
    if (failure != 0 || is_message)
        return failure;
    HARNESS_EXPECT(res.cookie.n_len == sizeof(cookie) &&
                       memcmp(res.cookie.n_bytes, cookie, sizeof(cookie)) == 0,
                   "%s: procedure %u: another cookie came back", what, (unsigned)proc);
    int status = (int)res.stat.stat;
    xdr_free((xdrproc_t)xdr_nlm_res, (char *)&res);
    return status;
}

#define COOKIE                                                                                     \
    {                                                                                              \
        sizeof(cookie), cookie                                                                     \
    }

static int do_lock(struct locker *locker, rpcproc_t proc, const struct want *want)
{
    nlm_lockargs narrow = {
        COOKIE, want->block, want->exclusive, narrow_lock(locker, want), want->reclaim, 5};
    nlm4_lockargs wide = {
        COOKIE, want->block, want->exclusive, wide_lock(locker, want), want->reclaim, 5};
    return locker->vers == 4 ? ask(locker, proc, (xdrproc_t)xdr_nlm4_lockargs, &wide)
                             : ask(locker, proc, (xdrproc_t)xdr_nlm_lockargs, &narrow);
}

static int do_cancel(struct locker *locker, rpcproc_t proc, const struct want *want)
{
    nlm_cancargs narrow = {COOKIE, want->block, want->exclusive, narrow_lock(locker, want)};
    nlm4_cancargs wide = {COOKIE, want->block, want->exclusive, wide_lock(locker, want)};
    return locker->vers == 4 ? ask(locker, proc, (xdrproc_t)xdr_nlm4_cancargs, &wide)
                             : ask(locker, proc, (xdrproc_t)xdr_nlm_cancargs, &narrow);
}

static int do_unlock(struct locker *locker, rpcproc_t proc, const struct want *want)
{
    nlm_unlockargs narrow = {COOKIE, narrow_lock(locker, want)};
    nlm4_unlockargs wide = {COOKIE, wide_lock(locker, want)};
    return locker->vers == 4 ? ask(locker, proc, (xdrproc_t)xdr_nlm4_unlockargs, &wide)
                             : ask(locker, proc, (xdrproc_t)xdr_nlm_unlockargs, &narrow);
}

/* GRANTED and TEST_MSG. */
static int do_testargs(struct locker *locker, rpcproc_t proc, const struct want *want)
{
    nlm_testargs narrow = {COOKIE, want->exclusive, narrow_lock(locker, want)};
    nlm4_testargs wide = {COOKIE, want->exclusive, wide_lock(locker, want)};
    return locker->vers == 4 ? ask(locker, proc, (xdrproc_t)xdr_nlm4_testargs, &wide)
                             : ask(locker, proc, (xdrproc_t)xdr_nlm_testargs, &narrow);
}

struct holder {
    bool exclusive;
    int svid;
    char oh[16];
    uint64_t offset, len;
};

#define KEEP_HOLDER(to, from)                                                                      \
    do {                                                                                           \
        u_int oh_len = (from)->oh.n_len < sizeof((to)->oh) ? (from)->oh.n_len : 0;                 \
        *(to) = (struct holder){.exclusive = (from)->exclusive,                                    \
                                .svid = (from)->svid,                                              \
                                .offset = (from)->l_offset,                                        \
                                .len = (from)->l_len};                                             \
        memcpy((to)->oh, (from)->oh.n_bytes, oh_len);                                              \
    } while (0)

static int do_test(struct locker *locker, const struct want *want, struct holder *ret)
{
    nlm_testargs narrow = {COOKIE, want->exclusive, narrow_lock(locker, want)};
    nlm4_testargs wide = {COOKIE, want->exclusive, wide_lock(locker, want)};
    nlm_testres narrow_res = {.cookie = {0, NULL}};
    nlm4_testres wide_res = {.cookie = {0, NULL}};
    int failure, status;
    *ret = (struct holder){0};
    if (locker->vers == 4) {
        failure = call(locker, NLM_TEST, (xdrproc_t)xdr_nlm4_testargs, &wide,
                       (xdrproc_t)xdr_nlm4_testres, &wide_res);
        status = (int)wide_res.stat.stat;
        if (failure == 0 && status == NLM4_DENIED)
            KEEP_HOLDER(ret, &wide_res.stat.nlm4_testrply_u.holder);
        xdr_free((xdrproc_t)xdr_nlm4_testres, (char *)&wide_res);
    } else {
        failure = call(locker, NLM_TEST, (xdrproc_t)xdr_nlm_testargs, &narrow,
                       (xdrproc_t)xdr_nlm_testres, &narrow_res);
        status = (int)narrow_res.stat.stat;
        if (failure == 0 && status == nlm_denied)
            KEEP_HOLDER(ret, &narrow_res.stat.nlm_testrply_u.holder);
        xdr_free((xdrproc_t)xdr_nlm_testres, (char *)&narrow_res);
    }
    return failure != 0 ? failure : status;
}

static int do_share(struct locker *locker, rpcproc_t proc, fsh_mode mode, fsh_access access)
{
    nlm_shareargs args = {
        COOKIE,
        {locker->name, {32, handle}, {(u_int)strlen(locker->oh), locker->oh}, mode, access},
        FALSE};
    nlm_shareres res = {.cookie = {0, NULL}};
    int failure =
        call(locker, proc, (xdrproc_t)xdr_nlm_shareargs, &args, (xdrproc_t)xdr_nlm_shareres, &res);
    int status = (int)res.stat, sequence = res.sequence;
    xdr_free((xdrproc_t)xdr_nlm_shareres, (char *)&res);
    HARNESS_EXPECT(failure != 0 || sequence == 0, "%s: sequence %d", what, sequence);
    return failure != 0 ? failure : status;
}

static void demand(int got, int expected, const char *of)
{
    HARNESS_EXPECT(got == expected, "%s: %s: %d and not %d%s%s", what, of, got, expected,
                   got < 0 ? ": " : "", got < 0 ? clnt_sperrno((enum clnt_stat) - got) : "");
}

static void demand_free(struct locker *judge, const struct want *want, const char *of)
{
    struct holder holder;
    demand(do_test(judge, want, &holder), nlm_granted, of);
}

static void demand_held(struct locker *judge, const struct want *want, const struct locker *by)
{
    struct holder holder;
    struct want nobody = *want;
    nobody.svid = 999;
    demand(do_test(judge, &nobody, &holder), nlm_denied, "TEST of what is held");
    HARNESS_EXPECT(holder.svid == want->svid && holder.exclusive == want->exclusive &&
                       holder.offset == want->offset && holder.len == want->len &&
                       strcmp(holder.oh, by->oh) == 0,
                   "%s: held by svid %d, oh %s, %llu+%llu", what, holder.svid, holder.oh,
                   (unsigned long long)holder.offset, (unsigned long long)holder.len);
}

/* ---- the cases ---- */

static const struct want first = {.svid = 11, .offset = 10, .len = 10, .exclusive = true};

static void synchronous(struct locker *alpha, struct locker *beta)
{
    struct want wanted = first, other = first;
    other.svid = 22;
    demand(call(alpha, NULLPROC, (xdrproc_t)nothing, NULL, (xdrproc_t)nothing, NULL), 0, "NULL");
    demand_free(alpha, &wanted, "TEST of what is free");
    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_granted, "LOCK");
    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_granted, "the same LOCK again");
    demand_held(beta, &wanted, alpha);
    demand_free(alpha, &wanted, "TEST of what the owner has");
    demand(do_lock(beta, NLM_LOCK, &other), nlm_denied, "LOCK of what another has");
    other.exclusive = false;
    demand(do_lock(beta, NLM_LOCK, &other), nlm_denied, "shared LOCK of the same");
    demand(do_unlock(beta, NLM_UNLOCK, &other), nlm_granted, "UNLOCK of what another has");
    demand_held(beta, &wanted, alpha);
    demand(do_cancel(beta, NLM_CANCEL, &other), nlm_granted, "CANCEL of nothing");
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK");
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK of nothing");
    demand_free(beta, &other, "TEST after UNLOCK");

    wanted.exclusive = false;
    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_granted, "shared LOCK");
    demand(do_lock(beta, NLM_LOCK, &other), nlm_granted, "a second shared LOCK");
    other.exclusive = true;
    demand(do_lock(beta, NLM_LOCK, &other), nlm_denied, "an upgrade against a reader");
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK");
    demand(do_unlock(beta, NLM_UNLOCK, &other), nlm_granted, "UNLOCK");
    demand(do_testargs(alpha, NLM_GRANTED, &wanted), nlm_denied, "GRANTED to the server");
    wanted.reclaim = true;
    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_denied_grace_period, "a late reclaim");
}

/* R-NLM-1, R-NLM-5, R-RNG-1: what a version cannot say. */
static void refusals(struct locker *alpha)
{
    struct want wanted = first;
    bool is_wide = alpha->vers == 4;
    wanted.fh_len = is_wide ? sizeof(handle) : 31;
    demand(do_lock(alpha, NLM_LOCK, &wanted), is_wide ? nlm_granted : nlm_denied_nolocks,
           "a handle of another length");
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK with that handle");
    if (!is_wide)
        return;
    wanted = first;
    wanted.offset = UINT64_C(1) << 63;
    demand(do_lock(alpha, NLM_LOCK, &wanted), NLM4_FBIG, "LOCK beyond the largest file");
    wanted.offset = UINT64_C(1) << 40;
    wanted.len = 0;
    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_granted, "LOCK to the end");
    demand_held(alpha, &wanted, alpha);
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK to the end");
}

static void handed_over(struct locker *alpha, struct locker *beta)
{
    struct want wanted = first, other = first;
    const struct oracle_host_call *called = oracle_host_call(beta->host);
    other.svid = 22;
    other.block = true;
    oracle_host_forget(beta->host);
    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_granted, "LOCK");
    demand(do_lock(beta, NLM_LOCK, &other), nlm_blocked, "LOCK that waits");
    demand(do_cancel(beta, NLM_CANCEL, &other), nlm_granted, "CANCEL");
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK");
    demand_free(alpha, &wanted, "TEST after CANCEL and UNLOCK");
    oracle_host_turn();
    HARNESS_EXPECT(called->count == 0, "%s: called back after CANCEL", what);

    demand(do_lock(alpha, NLM_LOCK, &wanted), nlm_granted, "LOCK");
    demand(do_lock(beta, NLM_LOCK, &other), nlm_blocked, "LOCK that waits");
    demand(do_unlock(alpha, NLM_UNLOCK, &wanted), nlm_granted, "UNLOCK");
    HARNESS_EXPECT(oracle_host_wait(beta->host, NLM_GRANTED), "%s: no GRANTED", what);
    HARNESS_EXPECT(called->vers == beta->vers && called->svid == other.svid &&
                       called->offset == other.offset && called->len == other.len &&
                       called->exclusive == other.exclusive && called->fh_len == 32 &&
                       memcmp(called->fh, handle, 32) == 0 && strcmp(called->oh, beta->oh) == 0 &&
                       strcmp(called->name, beta->name) == 0,
                   "%s: GRANTED in version %u for svid %d of %s, oh %s, %llu+%llu", what,
                   called->vers, called->svid, called->name, called->oh,
                   (unsigned long long)called->offset, (unsigned long long)called->len);
    demand_held(alpha, &other, beta);
    demand(do_cancel(beta, NLM_CANCEL, &other), nlm_denied, "CANCEL of what was granted");
    demand(do_unlock(beta, NLM_UNLOCK, &other), nlm_granted, "UNLOCK of what was granted");
    demand_free(alpha, &wanted, "TEST at the end");
}

static void demand_res(struct locker *locker, uint32_t proc, uint32_t status)
{
    const struct oracle_host_call *called = oracle_host_call(locker->host);
    bool has_come = oracle_host_wait(locker->host, proc);
    HARNESS_EXPECT(has_come && called->status == status && called->vers == locker->vers &&
                       called->cookie_len == sizeof(cookie) &&
                       memcmp(called->cookie, cookie, sizeof(cookie)) == 0,
                   "%s: %s: got procedure %u in version %u, status %u, expected %u, %u", what,
                   locker->name, called->proc, called->vers, called->status, proc, status);
    oracle_host_forget(locker->host);
}

/* Other clients at the same hosts: which procedure of GRANTED works is remembered (R-BLK-2). */
static char message_names[2][16] = {"alpha.messages", "beta.messages"};

static void messages(struct locker *alpha, struct locker *beta)
{
    struct want wanted = first, other = first;
    other.svid = 22;
    other.block = true;
    char *const names[2] = {alpha->name, beta->name};
    alpha->name = message_names[0];
    beta->name = message_names[1];
    oracle_host_forget(alpha->host);
    oracle_host_forget(beta->host);
    demand(do_testargs(alpha, NLM_TEST_MSG, &wanted), 0, "TEST_MSG");
    demand_res(alpha, NLM_TEST_RES, nlm_granted);
    demand(do_lock(alpha, NLM_LOCK_MSG, &wanted), 0, "LOCK_MSG");
    demand_res(alpha, NLM_LOCK_RES, nlm_granted);
    demand(do_lock(beta, NLM_LOCK_MSG, &other), 0, "LOCK_MSG that waits");
    demand_res(beta, NLM_LOCK_RES, nlm_blocked);
    demand(do_cancel(beta, NLM_CANCEL_MSG, &other), 0, "CANCEL_MSG");
    demand_res(beta, NLM_CANCEL_RES, nlm_granted);
    demand(do_lock(beta, NLM_LOCK_MSG, &other), 0, "LOCK_MSG that waits again");
    demand_res(beta, NLM_LOCK_RES, nlm_blocked);
    demand(do_unlock(alpha, NLM_UNLOCK_MSG, &wanted), 0, "UNLOCK_MSG");
    demand_res(alpha, NLM_UNLOCK_RES, nlm_granted);
    HARNESS_EXPECT(oracle_host_wait(beta->host, NLM_GRANTED_MSG), "%s: no GRANTED_MSG", what);
    struct oracle_host_call granted = *oracle_host_call(beta->host);
    nlm_res answer = {{granted.cookie_len, granted.cookie}, {nlm_granted}};
    demand(ask(beta, NLM_GRANTED_RES, (xdrproc_t)xdr_nlm_res, &answer), 0, "GRANTED_RES");
    demand_held(alpha, &other, beta);
    demand(do_cancel(beta, NLM_CANCEL, &other), nlm_denied, "CANCEL of what was granted");
    demand(do_unlock(beta, NLM_UNLOCK, &other), nlm_granted, "UNLOCK");
    alpha->name = names[0];
    beta->name = names[1];
}

static int do_free_all(struct locker *locker, char *name)
{
    nlm_notify args = {.name = name, .state = 0};
    return call(locker, NLM_FREE_ALL, (xdrproc_t)xdr_nlm_notify, &args, (xdrproc_t)nothing, NULL);
}

static void for_pc(struct locker *alpha, struct locker *beta)
{
    struct want wanted = first, other = first;
    other.svid = 22;
    demand(do_share(alpha, NLM_SHARE, fsm_DW, fsa_RW), nlm_granted, "SHARE");
    demand(do_share(beta, NLM_SHARE, fsm_DN, fsa_W), nlm_denied, "SHARE against a deny");
    demand(do_share(beta, NLM_SHARE, fsm_DR, fsa_R), nlm_denied, "SHARE that denies an access");
    demand(do_share(beta, NLM_SHARE, fsm_DN, fsa_R), nlm_granted, "SHARE that fits");
    demand(do_share(alpha, NLM_UNSHARE, fsm_DW, fsa_RW), nlm_granted, "UNSHARE");
    demand(do_share(beta, NLM_SHARE, fsm_DN, fsa_W), nlm_granted, "SHARE after UNSHARE");
    demand(do_share(beta, NLM_UNSHARE, fsm_DN, fsa_W), nlm_granted, "UNSHARE");
    demand(do_share(beta, NLM_UNSHARE, fsm_DN, fsa_W), nlm_granted, "UNSHARE of nothing");

    demand(do_lock(alpha, NLM_NM_LOCK, &wanted), nlm_granted, "NM_LOCK");
    other.block = true;
    demand(do_lock(beta, NLM_NM_LOCK, &other), nlm_denied, "NM_LOCK never waits");
    demand(do_share(alpha, NLM_SHARE, fsm_DRW, fsa_RW), nlm_granted, "SHARE");
    demand(do_free_all(beta, alpha->name), 0, "FREE_ALL of another's name");
    demand_held(beta, &wanted, alpha);
    demand(do_share(beta, NLM_SHARE, fsm_DN, fsa_R), nlm_denied, "SHARE after that");
    demand(do_free_all(alpha, alpha->name), 0, "FREE_ALL");
    struct holder holder;
    int status = nlm_denied;
    for (uint32_t i = 0; i < 1000 && status == nlm_denied; i++)
        status = do_test(beta, &other, &holder); /* it is freed piece by piece */
    demand(status, nlm_granted, "TEST after FREE_ALL");
    demand(do_share(beta, NLM_SHARE, fsm_DN, fsa_R), nlm_granted, "SHARE after FREE_ALL");
    demand(do_share(beta, NLM_UNSHARE, fsm_DN, fsa_R), nlm_granted, "UNSHARE");
}

/* ---- all of it ---- */

static void run_way(int hosts[2], uint32_t vers, bool is_udp)
{
    static char names[2][8] = {"alpha", "beta"}, label[32];
    static char letter = 'a';
    struct locker lockers[2];
    snprintf(label, sizeof(label), "version %u over %s", vers, is_udp ? "UDP" : "TCP");
    what = label;
    handle[31] = letter++;
    for (int i = 0; i < 2; i++) {
        lockers[i] = (struct locker){.address = i == 0 ? ALPHA_AT : BETA_AT,
                                     .vers = vers,
                                     .is_udp = is_udp,
                                     .host = hosts[i],
                                     .name = names[i]};
        snprintf(lockers[i].oh, sizeof(lockers[i].oh), "oh of %s", names[i]);
        lockers[i].client = open_client(lockers[i].address, is_udp, vers);
        if (!HARNESS_EXPECT(lockers[i].client != NULL, "%s%s", what, clnt_spcreateerror("")))
            return;
    }
    synchronous(&lockers[0], &lockers[1]);
    refusals(&lockers[0]);
    handed_over(&lockers[0], &lockers[1]);
    messages(&lockers[0], &lockers[1]);
    if (vers >= 3)
        for_pc(&lockers[0], &lockers[1]);
    else
        demand(do_free_all(&lockers[0], names[0]), -(int)RPC_PROCUNAVAIL, "FREE_ALL in version 1");
    for (int i = 0; i < 2; i++)
        close_client(lockers[i].client);
    printf("%s: done\n", what);
}

static void version_2(void)
{
    struct rpc_err error = {0};
    what = "version 2";
    struct locker locker = {.client = open_client(ALPHA_AT, false, 2), .vers = 2};
    if (!HARNESS_EXPECT(locker.client != NULL, "%s", clnt_spcreateerror(what)))
        return;
    demand(call(&locker, NULLPROC, (xdrproc_t)nothing, NULL, (xdrproc_t)nothing, NULL),
           -(int)RPC_PROGVERSMISMATCH, "NULL");
    clnt_geterr(locker.client, &error);
    HARNESS_EXPECT(error.re_vers.low == 1 && error.re_vers.high == 4, "versions %u to %u",
                   (unsigned)error.re_vers.low, (unsigned)error.re_vers.high);
    close_client(locker.client);
}

static void count_line(void *context, const char *line)
{
    uint32_t *count = context;
    *count += strncmp(line, "lock ", 5) == 0 || strncmp(line, "share ", 6) == 0;
}

int main(void)
{
    static const uint32_t versions[] = {4, 3, 1};
    uint32_t stored = 0;
    harness_init("oracle_locker");
    if (!callbacks_enter_network()) {
        printf("SKIP oracle_locker: no network namespace of its own (%s); it takes root\n",
               strerror(errno));
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    server.listen = "127.0.0.1";
    server.store = harness_path("store");
    int hosts[2] = {oracle_host_add(ALPHA_AT), oracle_host_add(BETA_AT)};
    if (!HARNESS_EXPECT(hosts[0] >= 0 && hosts[1] >= 0, "no sockets for the hosts") ||
        !harness_start(&server))
        return harness_finish();
    for (uint32_t i = 0; i < 2 * sizeof(versions) / sizeof(versions[0]); i++)
        run_way(hosts, versions[i / 2], i % 2 == 1);
    version_2();
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    if (harness_dump_lines(server.store, count_line, &stored))
        HARNESS_EXPECT(stored == 0, "%u locks and shares are stored at the end", stored);
    return harness_finish();
}
