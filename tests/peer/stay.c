/*
 * stay.c -- see stay.h.
 *
 * A server that is away is waited for, as a hard mount does.
 */
#include "peer/stay.h"

#include "peer/emu_client.h"
#include "peer/emu_portmap.h"
#include "peer/emu_table.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 1000

static uint32_t v4_address(const struct dial_endpoint *endpoint)
{
    struct sockaddr_in v4;
    memcpy(&v4, &endpoint->at, sizeof(v4));
    return endpoint->len > 0 && v4.sin_family == AF_INET ? ntohl(v4.sin_addr.s_addr) : 0;
}

/* With a portmapper if port 111 can be had, else without any service. */
static struct emu_host *open_host(const struct locks_options *options, struct emu_kind *kind)
{
    struct emu_host_config config = {.address = v4_address(&options->route.source),
                                     .name = locks_name(options),
                                     .server = options->route.server,
                                     .portmap_port = EMU_PORTMAP_PORT};
    if (config.address == 0)
        config.address = INADDR_LOOPBACK;
    *kind = emu_table_get("linux")->kind;
    kind->vers = options->vers;
    struct emu_host *host = emu_host_new(kind, &config);
    if (!host) {
        kind->is_unreachable = true;
        host = emu_host_new(kind, &config);
    }
    if (host) {
        host->state = 0; /* a status monitor that does not say how often it started */
        host->is_udp = options->route.is_udp;
        host->is_privileged = false;
        host->timeout_ms = options->timeout_ms;
        host->poll_ms = POLL_MS;
    }
    return host;
}

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static void pause_poll(void)
{
    nanosleep(&(struct timespec){.tv_sec = POLL_MS / 1000}, NULL);
}

/* ---- wait ---- */

static int wait_for(struct emu_host *host, const struct emu_request *request)
{
    uint32_t wait;
    int status = emu_client_block(host, request, &wait);
    if (status != PEER_NLM_IS_BLOCKED && status != PEER_NLM_IS_GRACE)
        return status;
    say(host->kind->is_unreachable ? "waiting, asking every second" : "waiting");
    for (;;) {
        status = emu_client_wait(host, wait, UINT32_MAX);
        if (status >= 0 && status != PEER_NLM_IS_GRACE)
            return status;
        if (status != -ETIMEDOUT)
            pause_poll();
    }
}

/* ---- keep ---- */

/* A LOCK until it is answered with something other than "in grace". */
static int lock_now(struct emu_host *host, const struct emu_request *request)
{
    bool is_told = false;
    for (;;) {
        int status = emu_client_lock(host, request);
        if (status >= 0 && status != PEER_NLM_IS_GRACE)
            return status;
        if (!is_told && !request->reclaim)
            say(status < 0 ? "the server does not answer" : "in grace");
        if (request->reclaim && status >= 0)
            return status;
        is_told = true;
        pause_poll();
    }
}

/* SM_STAT; 0: no answer. */
static uint32_t ask_state(const struct locks_options *options)
{
    static struct packet call, answer;
    struct packet_reply reply;
    uint32_t res, state;
    peer_nsm_put_stat(&call, (uint32_t)dial_now_ns(), locks_name(options));
    if (dial_call(&options->route, &call, options->timeout_ms, &answer, &reply) < 0 ||
        !peer_nsm_get_stat_res(&reply, &res, &state))
        return 0;
    return state;
}

struct notice {
    const struct emu_host *host;
    uint32_t seen;
};

static bool has_notice(void *context)
{
    const struct notice *notice = context;
    return notice->host->restarts_seen != notice->seen;
}

/* Returns when the server has restarted since the last time, with its state. */
static uint32_t next_restart(const struct locks_options *options, struct emu_host *host,
                             uint32_t *restarts_seen, uint32_t state)
{
    if (host->kind->is_unreachable) {
        uint32_t now;
        do {
            pause_poll();
            now = ask_state(options);
        } while (now == 0 || now == state);
        return now;
    }
    struct notice notice = {host, *restarts_seen};
    while (!emu_net_wait(has_notice, &notice, POLL_MS))
        ;
    emu_net_lock();
    *restarts_seen = host->restarts_seen;
    uint32_t told = host->server_state_seen;
    emu_net_unlock();
    return told;
}

static int keep(const struct locks_options *options, struct emu_host *host,
                struct emu_request *request)
{
    uint32_t restarts = 0, state = 0;
    int status = lock_now(host, request);
    if (status != PEER_NLM_IS_GRANTED)
        return status;
    if (host->kind->is_unreachable)
        state = ask_state(options);
    say(host->kind->is_unreachable ? "granted, asking for restarts every second" : "granted");
    for (;;) {
        state = next_restart(options, host, &restarts, state);
        request->reclaim = true;
        status = lock_now(host, request);
        if (status != PEER_NLM_IS_GRANTED) {
            printf("the server restarted (state %u), and the lock is lost: ", state);
            return status;
        }
        printf("the server restarted (state %u): reclaimed\n", state);
        fflush(stdout);
    }
}

/* ---- both ---- */

static int run(const struct locks_options *options, const struct peer_nlm_args *args, bool is_keep)
{
    static struct emu_kind kind;
    struct emu_request request = {.svid = args->lock.svid,
                                  .exclusive = args->exclusive,
                                  .offset = args->lock.offset,
                                  .len = args->lock.len,
                                  .fh = &args->lock.fh};
    if (v4_address(&options->route.server) == 0) {
        puts("failed: this command needs an IPv4 address of the server");
        return 2;
    }
    if (!emu_net_start())
        return locks_print(options, -errno, NULL);
    struct emu_host *host = open_host(options, &kind);
    int status = -errno;
    if (host)
        status = is_keep ? keep(options, host, &request) : wait_for(host, &request);
    bool is_called = host && emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED) +
                                     emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED_MSG) >
                                 0;
    emu_host_free(host);
    emu_net_stop();
    if (status == PEER_NLM_IS_GRANTED && is_called) {
        puts("granted, the server called back");
        return 0;
    }
    return locks_print(options, status, NULL);
}

int stay_wait(const struct locks_options *options, const struct peer_nlm_args *args)
{
    return run(options, args, false);
}

int stay_keep(const struct locks_options *options, const struct peer_nlm_args *args)
{
    return run(options, args, true);
}
