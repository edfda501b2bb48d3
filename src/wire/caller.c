/*
 * caller.c -- the actions of an rpc_client, a few per turn, and its timer; see caller.h.
 *
 * A turn has a budget: one connection costs the kernel as much as many datagrams, and while ten
 * thousand hosts are being called, replies to clients must still leave within milliseconds.
 *
 * libuv runs timers before it sleeps, and the owner's turn comes after the sleep. So whenever there
 * is work that no socket will announce, an idle handle keeps the loop from sleeping.
 */
#include "wire/caller.h"

#include "base/check.h"
#include "base/units.h"
#include "wire/caller_tcp.h"
#include "wire/caller_udp.h"

#include <stdlib.h>

enum { TURN_BUDGET = 256 };

static const uint32_t costs[] = {
    [CLIENT_DATAGRAM] = 1,
    [CLIENT_CONNECT] = 8,
    [CLIENT_WRITE] = 4,
    [CLIENT_DISCONNECT] = 4,
};

struct caller {
    struct rpc_client *client;
    struct clock *clock;
    struct caller_udp *udp;
    struct caller_tcp *tcp;
    struct wire *listener;
    uv_timer_t timer;
    uv_idle_t no_sleep;
    uint64_t timer_ns; /* what it is set to; UINT64_MAX: not set */
};

struct caller *caller_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                          const struct caller_options *options)
{
    struct caller *caller = calloc(1, sizeof *caller);
    if (caller == NULL)
        return NULL;
    caller->client = client;
    caller->clock = clock;
    caller->timer_ns = UINT64_MAX;
    caller->listener = options->listener;
    caller->udp = caller_udp_new(loop, client, clock, options);
    caller->tcp = caller_tcp_new(loop, client, clock, options);
    if (caller->udp == NULL || caller->tcp == NULL) {
        caller_free(caller);
        return NULL;
    }
    CHECK(uv_timer_init(loop, &caller->timer) == 0);
    CHECK(uv_idle_init(loop, &caller->no_sleep) == 0);
    caller->timer.data = caller->no_sleep.data = caller;
    return caller;
}

void caller_free(struct caller *caller)
{
    if (caller == NULL)
        return;
    caller_udp_free(caller->udp);
    caller_tcp_free(caller->tcp);
    free(caller);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* that it is there is enough */
}

static void stay_awake(struct caller *caller)
{
    (void)uv_idle_start(&caller->no_sleep, on_idle); /* cannot fail */
}

static void on_time(uv_timer_t *timer)
{
    struct caller *caller = timer->data;
    caller->timer_ns = UINT64_MAX;
    rpc_client_tick(caller->client, clock_now_ns(caller->clock));
    stay_awake(caller);
}

static void set_timer(struct caller *caller)
{
    uint64_t deadline_ns = rpc_client_deadline_ns(caller->client);
    if (deadline_ns == caller->timer_ns)
        return;
    caller->timer_ns = deadline_ns;
    if (deadline_ns == UINT64_MAX) {
        (void)uv_timer_stop(&caller->timer);
        return;
    }
    uint64_t now_ns = clock_now_ns(caller->clock);
    uint64_t wait_ms = deadline_ns > now_ns ? (deadline_ns - now_ns + MS_NS - 1) / MS_NS : 0;
    (void)uv_timer_start(&caller->timer, on_time, wait_ms, 0);
}

void caller_turn(struct caller *caller)
{
    struct client_action action;
    uint32_t spent = 0;
    bool has_news = false; /* results that waited for an abort */
    while (spent < TURN_BUDGET && !caller_udp_is_blocked(caller->udp) &&
           rpc_client_next_action(caller->client, &action)) {
        spent += costs[action.kind];
        switch (action.kind) {
        case CLIENT_DATAGRAM:
            if (!action.from_listener)
                caller_udp_send(caller->udp, &action);
            else if (caller->listener != NULL)
                wire_call(caller->listener, &action);
            break;
        case CLIENT_CONNECT:
            caller_tcp_connect(caller->tcp, &action);
            break;
        case CLIENT_WRITE:
            caller_tcp_write(caller->tcp, &action);
            break;
        case CLIENT_DISCONNECT:
            caller_tcp_disconnect(caller->tcp, &action);
            has_news |= action.is_abort;
            break;
        }
    }
    caller_udp_flush(caller->udp);
    if (caller->listener != NULL)
        wire_flush_calls(caller->listener);
    if (spent >= TURN_BUDGET || has_news)
        stay_awake(caller);
    else
        (void)uv_idle_stop(&caller->no_sleep);
    set_timer(caller);
}

void caller_close(struct caller *caller)
{
    caller_udp_close(caller->udp);
    caller_tcp_close(caller->tcp);
    uv_close((uv_handle_t *)&caller->timer, NULL);
    uv_close((uv_handle_t *)&caller->no_sleep, NULL);
}
