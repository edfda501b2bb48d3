/*
 * bulk.c -- registers or removes a range of clients; see bulk.h.
 */
#include "bulk.h"

#include "peer/load.h"
#include "peer/peer_nsm.h"

#include <stdio.h>
#include <string.h>

#define LINKS        200
#define IN_FLIGHT    16
#define FIRST_SOURCE UINT32_C(0x7f020001) /* 127.2.0.1 */
#define PATIENCE_NS  UINT64_C(180000000000)
#define NAME_MAX_LEN 1024

struct run {
    const struct harness_server *server;
    const struct bulk *bulk;
    struct load *load;
    uint32_t next[LINKS]; /* the next client of each link; they are LINKS apart */
    uint32_t in_flight;
    struct bulk_result result;
};

static void pad(char *name, uint32_t name_len)
{
    size_t len = strlen(name);
    if (len < name_len) {
        memset(name + len, 'x', name_len - len);
        name[name_len] = '\0';
    }
}

static void put_call(const struct bulk *bulk, uint32_t client, struct packet *call)
{
    char mon_name[NAME_MAX_LEN + 1], my_name[NAME_MAX_LEN + 1];
    uint8_t priv[PEER_NSM_PRIV_LEN];
    snprintf(mon_name, sizeof(mon_name), "m%u.", client);
    snprintf(my_name, sizeof(my_name), "bulk");
    pad(mon_name, bulk->name_len);
    pad(my_name, bulk->name_len);
    memset(priv, bulk->priv, sizeof(priv));
    struct peer_nsm_id id = {mon_name, my_name, 100021, 3, 16};
    if (bulk->kind == BULK_MON)
        peer_nsm_put_mon(call, 0, &id, priv);
    else
        peer_nsm_put_unmon(call, 0, &id);
}

static void post_next(struct run *run, uint32_t link)
{
    static struct packet call;
    const struct bulk *bulk = run->bulk;
    uint32_t client = run->next[link];
    if (client >= bulk->first + bulk->count || (bulk->stop_at_refusal && run->result.refused > 0))
        return;
    put_call(bulk, client, &call);
    if (!load_post(run->load, link, client, &call))
        return;
    run->next[link] += LINKS;
    run->in_flight++;
}

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    struct run *run = context;
    uint32_t res = PEER_NSM_STAT_SUCC, state = 0;
    bool is_readable = run->bulk->kind == BULK_MON ? peer_nsm_get_stat_res(reply, &res, &state)
                                                   : peer_nsm_get_stat(reply, &state);
    (void)tag;
    run->in_flight--;
    if (!is_readable || (res == PEER_NSM_STAT_SUCC && state != run->server->state))
        run->result.wrong++;
    else if (res == PEER_NSM_STAT_SUCC)
        run->result.accepted++;
    else
        run->result.refused++;
    post_next(run, link);
}

static bool open_links(struct run *run)
{
    for (uint32_t i = 0; i < LINKS; i++) {
        struct dial_route route = harness_route(run->server, false);
        route.source = dial_endpoint_v4(FIRST_SOURCE + i, 0);
        if (load_open(run->load, &route) < 0)
            return false;
        run->next[i] = run->bulk->first - run->bulk->first % LINKS + i;
        if (run->next[i] < run->bulk->first)
            run->next[i] += LINKS;
    }
    return true;
}

bool bulk_run(const struct harness_server *server, const struct bulk *bulk, struct bulk_result *ret)
{
    struct run run = {.server = server, .bulk = bulk};
    run.load = load_new(LINKS, on_answer, &run);
    if (!run.load)
        return false;
    bool is_complete = open_links(&run);
    uint64_t start_ns = dial_now_ns();
    for (uint32_t i = 0; is_complete && i < LINKS * IN_FLIGHT; i++)
        post_next(&run, i % LINKS);
    while (run.in_flight > 0 && dial_now_ns() - start_ns < PATIENCE_NS)
        load_turn(run.load, 20);
    run.result.elapsed_ns = dial_now_ns() - start_ns;
    load_free(run.load);
    *ret = run.result;
    return is_complete && run.in_flight == 0;
}

double bulk_rate(const struct bulk_result *result)
{
    return (double)result->accepted * 1e9 / (double)(result->elapsed_ns + 1);
}
