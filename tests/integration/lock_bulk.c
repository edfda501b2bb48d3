/*
 * lock_bulk.c -- many NLM calls of one address; see lock_bulk.h.
 */
#include "lock_bulk.h"

#include "peer/load.h"

#define LINKS       8
#define DEPTH       32
#define PATIENCE_NS UINT64_C(120000000000)

struct run {
    struct lock_bulk *bulk;
    struct load *load;
    uint32_t posted;
    bool is_over;
};

static void post_next(struct run *run, uint32_t link)
{
    static struct packet packet;
    struct lock_bulk *bulk = run->bulk;
    if (run->posted == bulk->count || run->is_over)
        return;
    uint32_t number = bulk->first + run->posted;
    struct lock_call call = bulk->call(number);
    lock_call_put(&packet, &call);
    if (load_post(run->load, link, number, &packet))
        run->posted++;
}

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    struct run *run = context;
    struct lock_bulk *bulk = run->bulk;
    struct lock_call call = bulk->call((uint32_t)tag);
    int status = lock_call_status(&call, reply, NULL);
    bulk->answered++;
    if (status >= 0 && status < LOCK_BULK_STATUSES)
        bulk->by_status[status]++;
    else
        bulk->unreadable++;
    run->is_over |= bulk->stop_at_refusal && status == PEER_NLM_IS_NOLOCKS;
    post_next(run, link);
}

bool lock_bulk_run(const struct harness_server *server, struct lock_bulk *bulk)
{
    struct run run = {.bulk = bulk, .load = load_new(LINKS, on_answer, &run)};
    bool is_open = run.load != NULL;
    for (uint32_t i = 0; i < LINKS && is_open; i++) {
        struct dial_route route = harness_route(server, false);
        route.source = dial_endpoint_v4(bulk->source, 0);
        is_open = load_open(run.load, &route) == (int)i;
    }
    uint64_t start_ns = dial_now_ns();
    for (uint32_t i = 0; i < LINKS * DEPTH && is_open; i++)
        post_next(&run, i % LINKS);
    while (is_open && bulk->answered < run.posted && dial_now_ns() - start_ns < PATIENCE_NS)
        load_turn(run.load, 10);
    bulk->elapsed_ns = dial_now_ns() - start_ns;
    load_free(run.load);
    bool is_complete = bulk->answered == run.posted && (run.is_over || run.posted == bulk->count);
    return HARNESS_EXPECT(is_open && is_complete && bulk->unreadable == 0,
                          "%s: %u posted, %u answered, %u answers cannot be read", bulk->what,
                          run.posted, bulk->answered, bulk->unreadable);
}
