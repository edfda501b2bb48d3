/*
 * full_disk_locks.c -- locks on a file system that is full; see full_disk.c for what that proves.
 *
 * Client names of 900 bytes make locks long in the store, because each carries its oh.
 */
#include "full_disk_locks.h"

#include "lock_bulk.h"
#include "lock_dump.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SOURCE    UINT32_C(0x7f0a0001) /* 127.10.0.1 */
#define LOCKS_MAX 60000
#define EXTRA     400
#define PARTS     100 /* locks that an UNLOCK splits */
#define NAME_LEN  900

static char name[NAME_LEN + 1];

static struct lock_call lock(uint32_t number)
{
    return (struct lock_call){.procedure = PEER_NLM_LOCK,
                              .name = name,
                              .svid = 5,
                              .file = 1,
                              .offset = (uint64_t)number * 20,
                              .len = 10,
                              .exclusive = true,
                              .state = 3};
}

static struct lock_call unlock(uint32_t number)
{
    struct lock_call call = lock(number);
    call.procedure = PEER_NLM_UNLOCK;
    return call;
}

static struct lock_call unlock_middle(uint32_t number)
{
    struct lock_call call = unlock(number);
    call.offset += 4;
    call.len = 2;
    return call;
}

static void run(const struct harness_server *server, struct lock_bulk *bulk)
{
    bulk->source = SOURCE;
    (void)lock_bulk_run(server, bulk);
    HARNESS_EXPECT(harness_is_alive(server), "%s: the server ended", bulk->what);
}

static uint32_t granted(const struct lock_bulk *bulk)
{
    return bulk->by_status[PEER_NLM_IS_GRANTED];
}

static void demand_refusal(const struct harness_server *server, const char *when)
{
    struct lock_bulk more = {
        .what = "LOCK on a full disk", .first = LOCKS_MAX, .count = EXTRA, .call = lock};
    run(server, &more);
    HARNESS_EXPECT(more.by_status[PEER_NLM_IS_NOLOCKS] == EXTRA, "%u new locks granted %s",
                   granted(&more), when);
}

/* Everything that needs no new space, then everything given back. */
static void empty(const struct harness_server *server)
{
    struct lock_bulk again = {.what = "LOCK again", .count = PARTS, .call = lock};
    run(server, &again);
    HARNESS_EXPECT(granted(&again) == PARTS, "%u of %u repeats granted", granted(&again), PARTS);
    struct lock_bulk split = {.what = "UNLOCK of a part", .count = PARTS, .call = unlock_middle};
    run(server, &split);
    HARNESS_EXPECT(granted(&split) == PARTS, "%u of %u splits granted", granted(&split), PARTS);
    struct lock_bulk all = {.what = "UNLOCK", .count = LOCKS_MAX, .call = unlock};
    run(server, &all);
    HARNESS_EXPECT(granted(&all) == LOCKS_MAX, "%u of %u UNLOCKs granted", granted(&all),
                   LOCKS_MAX);
    /* The store thread looks for room once a second: ask until it has found it. */
    struct lock_bulk after = {0};
    for (uint32_t try = 0; try < 2000 && granted(&after) != EXTRA; try++) {
        after = (struct lock_bulk){.what = "LOCK after UNLOCK", .count = EXTRA, .call = lock};
        run(server, &after);
    }
    HARNESS_EXPECT(granted(&after) == EXTRA, "%u of %u granted in the space that came free",
                   granted(&after), EXTRA);
}

void full_disk_locks(const char *store)
{
    struct harness_server server = {
        .listen = "127.0.0.1", .store = store, .extra = {"--recovery", "resume"}};
    struct lock_dump dump = {0};
    memset(name, 'n', NAME_LEN);
    if (!harness_start(&server))
        return;
    /* Some that are held for certain, whichever connection is served first. */
    struct lock_bulk sure = {.what = "LOCK", .count = PARTS, .call = lock};
    run(&server, &sure);
    struct lock_bulk fill = {.what = "LOCK until the disk is full",
                             .first = PARTS,
                             .count = LOCKS_MAX - PARTS,
                             .call = lock,
                             .stop_at_refusal = true};
    run(&server, &fill);
    uint32_t held = granted(&sure) + granted(&fill);
    printf("%u locks, then refused\n", held);
    HARNESS_EXPECT(granted(&sure) == PARTS && granted(&fill) > 0 &&
                       fill.by_status[PEER_NLM_IS_NOLOCKS] > 0,
                   "%u locks granted and %u refused", held, fill.by_status[PEER_NLM_IS_NOLOCKS]);
    demand_refusal(&server, "on a full disk");
    HARNESS_EXPECT(harness_log_contains(&server, "space"), "the log does not say why");
    HARNESS_EXPECT(harness_stop(&server, SIGKILL) == 128 + SIGKILL, "SIGKILL");
    if (lock_dump_read(store, NULL, NULL, &dump))
        HARNESS_EXPECT(dump.locks == held, "%u acknowledged, %u stored", held, dump.locks);

    if (!harness_start(&server))
        return;
    HARNESS_EXPECT(server.locks == held, "%u locks after the restart", server.locks);
    demand_refusal(&server, "after the restart");
    empty(&server);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}
