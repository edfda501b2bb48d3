/*
 * limits.c -- many registrations, and one too many.
 *
 * Passing proves (D2, P7):
 *  (1) with --max-clients 100 the 101st new registration is answered STAT_FAIL, over TCP and UDP,
 *      while repeats of the 100 succeed and update their priv; a removal makes room for one more;
 *  (2) a restart with a lower limit keeps what is stored and refuses only new ones;
 *  (3) 10,000 registrations fit the default limit exactly, and 100,000 work with --max-clients
 *      200000; all of them are there after a restart;
 *  (4) a registration at 10,000 or 100,000 registered does not cost absurdly more than at none. The
 *      ratios are printed; only a factor of five fails, because timing belongs to the bench.
 */
#include "bulk.h"
#include "peer/peer_nsm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct stored {
    uint32_t registrants, with_priv_2;
};

static void count_record(void *context, const struct harness_record *record)
{
    struct stored *stored = context;
    if (record->is_server)
        return;
    stored->registrants++;
    stored->with_priv_2 += strncmp(record->priv, "0202", 4) == 0;
}

/* Runs a bulk and demands its outcome. */
static struct bulk_result demand(const struct harness_server *server, struct bulk bulk,
                                 uint32_t accepted, uint32_t refused)
{
    struct bulk_result result = {0};
    bool is_complete = bulk_run(server, &bulk, &result);
    HARNESS_EXPECT(is_complete && result.accepted == accepted && result.refused == refused &&
                       result.wrong == 0,
                   "clients %u..%u: %u accepted, %u refused, %u wrong; expected %u and %u",
                   bulk.first, bulk.first + bulk.count, result.accepted, result.refused,
                   result.wrong, accepted, refused);
    return result;
}

static void refuse_over_udp(const struct harness_server *server)
{
    static struct packet call, answer;
    struct packet_reply reply;
    uint32_t res = 9, state;
    uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
    struct peer_nsm_id id = {"one.too.many", "udp", 100021, 3, 16};
    struct dial_route route = harness_route(server, true);
    peer_nsm_put_mon(&call, 77, &id, priv);
    int result = dial_call(&route, &call, 5000, &answer, &reply);
    HARNESS_EXPECT(result == 0 && peer_nsm_get_stat_res(&reply, &res, &state) &&
                       res == PEER_NSM_STAT_FAIL,
                   "SM_MON over the limit by UDP: result %d, res %u", result, res);
}

static void small_limit(void)
{
    struct harness_server server = {
        .listen = "127.0.0.1", .store = harness_path("small"), .extra = {"--max-clients", "100"}};
    struct stored stored = {0};
    if (!harness_start(&server))
        return;
    demand(&server, (struct bulk){.first = 0, .count = 100, .priv = 1}, 100, 0);
    demand(&server, (struct bulk){.first = 100, .count = 50, .priv = 1}, 0, 50);
    demand(&server, (struct bulk){.first = 0, .count = 100, .priv = 2}, 100, 0);
    refuse_over_udp(&server);
    demand(&server, (struct bulk){.kind = BULK_UNMON, .first = 0, .count = 1}, 1, 0);
    demand(&server, (struct bulk){.first = 100, .count = 2, .priv = 2}, 1, 1);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    harness_dump(server.store, count_record, &stored);
    HARNESS_EXPECT(stored.registrants == 100 && stored.with_priv_2 == 100,
                   "%u registrants stored, %u with the updated priv", stored.registrants,
                   stored.with_priv_2);

    server.extra[1] = "50";
    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.clients == 100, "%u clients under a lower limit", server.clients);
    demand(&server, (struct bulk){.first = 1, .count = 99, .priv = 3}, 99, 0);
    demand(&server, (struct bulk){.first = 200, .count = 1, .priv = 3}, 0, 1);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}

static void default_limit(void)
{
    struct harness_server server = {.listen = "127.0.0.1", .store = harness_path("default")};
    if (!harness_start(&server))
        return;
    demand(&server, (struct bulk){.first = 0, .count = 10000}, 10000, 0);
    demand(&server, (struct bulk){.first = 10000, .count = 1}, 0, 1);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}

static double ratio_of(const struct bulk_result *empty, const struct bulk_result *full)
{
    return bulk_rate(empty) / bulk_rate(full);
}

static void raised_limit(void)
{
    struct harness_server server = {.listen = "127.0.0.1",
                                    .store = harness_path("raised"),
                                    .extra = {"--max-clients", "200000"}};
    if (!harness_start(&server))
        return;
    struct bulk_result at_0 = demand(&server, (struct bulk){.first = 0, .count = 5000}, 5000, 0);
    demand(&server, (struct bulk){.first = 5000, .count = 5000}, 5000, 0);
    struct bulk_result at_10k =
        demand(&server, (struct bulk){.first = 10000, .count = 5000}, 5000, 0);
    demand(&server, (struct bulk){.first = 15000, .count = 80000}, 80000, 0);
    struct bulk_result at_100k =
        demand(&server, (struct bulk){.first = 95000, .count = 5000}, 5000, 0);
    double ratio_10k = ratio_of(&at_0, &at_10k), ratio_100k = ratio_of(&at_0, &at_100k);
    printf("acknowledged SM_MON per second: %.0f at none registered, %.0f at 10,000 (cost %.2f "
           "times), %.0f at 95,000 (cost %.2f times)\n",
           bulk_rate(&at_0), bulk_rate(&at_10k), ratio_10k, bulk_rate(&at_100k), ratio_100k);
    HARNESS_EXPECT(ratio_10k < 5.0, "SM_MON at 10,000 costs %.2f times as much", ratio_10k);
    HARNESS_EXPECT(ratio_100k < 5.0, "SM_MON at 95,000 costs %.2f times as much", ratio_100k);
    HARNESS_EXPECT(harness_stop(&server, SIGKILL) == 128 + SIGKILL, "SIGKILL");
    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.clients == 100000, "%u clients after a restart", server.clients);
    printf("ready with 100,000 registered in %llu ms\n",
           (unsigned long long)(server.start_ns / 1000000));
    demand(&server, (struct bulk){.kind = BULK_UNMON, .first = 0, .count = 20000}, 20000, 0);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    struct stored stored = {0};
    harness_dump(server.store, count_record, &stored);
    HARNESS_EXPECT(stored.registrants == 80000, "%u registrants stored", stored.registrants);
}

int main(void)
{
    harness_init("limits");
    small_limit();
    default_limit();
    raised_limit();
    return harness_finish();
}
