/*
 * lock_fixture.c -- see lock_fixture.h.
 */
#include "lock_fixture.h"

#include "base/check.h"
#include "fixture.h"

#include <stdlib.h>

enum { SLOTS_MAX = 8192 };

static const struct file_set everything = {
    .name = {(const uint8_t *)"default", 7},
    .prefix = {(const uint8_t *)"", 0},
};

const struct core_limits lock_fixture_limits = {
    .clients_max = 100,
    .locks_max = 8000,
    .locks_per_client_max = 7000,
    .waiters_max = 100,
    .bytes_max = 4 * 1024 * 1024,
    .batch_puts_max = 20000,
    .server_name = {(const uint8_t *)"holdfast.example", 16},
    .file_sets = &everything,
    .file_set_count = 1,
    .notify_timeout_ns = 5 * FIXTURE_SECOND,
    .window_ns = 90 * FIXTURE_SECOND,
    .give_up_ns = 900 * FIXTURE_SECOND,
};

/* The store of the core made last. */
static struct {
    uint8_t *at;
    uint32_t len;
} stored[RECORD_KIND_END][SLOTS_MAX];

static void forget_stored(void)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            free(stored[kind][slot].at);
    memset(stored, 0, sizeof stored);
}

uint64_t lock_fixture_echo_ns;

static struct core *start(struct core *core, uint64_t now_ns)
{
    uint64_t until_ns = lock_fixture_echo_ns == 0 ? 0 : now_ns + lock_fixture_echo_ns;
    core_start(core, &(struct core_boot){.now_ns = now_ns,
                                         .wall_ns = LOCK_FIXTURE_WALL_NS,
                                         .echo_until_ns = until_ns});
    core_check(core);
    (void)lock_fixture_store(core, NULL);
    return core;
}

struct core *lock_fixture_new(const struct core_limits *limits)
{
    struct core *core = core_new(limits, 42);
    CHECK(core != NULL);
    forget_stored();
    return start(core, 0);
}

static bool is_full;

void lock_fixture_free(struct core *core)
{
    is_full = false;
    core_check(core);
    core_free(core);
    forget_stored();
}

void lock_fixture_fill(bool full)
{
    is_full = full;
}

uint32_t lock_fixture_store(struct core *core, bool *ret_must_sync)
{
    struct store_batch batch;
    struct record_change change;
    fixture_check(core);
    if (!core_take_batch(core, &batch))
        return 0;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);) {
        CHECK(change.slot < SLOTS_MAX);
        free(stored[change.kind][change.slot].at);
        stored[change.kind][change.slot].at = NULL;
        stored[change.kind][change.slot].len = 0;
        if (change.deleted)
            continue;
        uint8_t *copy = malloc(change.value.len);
        CHECK(copy != NULL);
        memcpy(copy, change.value.at, change.value.len);
        stored[change.kind][change.slot].at = copy;
        stored[change.kind][change.slot].len = change.value.len;
    }
    struct core_input input = {.kind = CORE_STORED,
                               .now_ns = core->now_ns,
                               .wall_ns = core->wall_ns,
                               .txn = batch.txn,
                               .has_room = !is_full};
    core_step(core, &input, NULL);
    fixture_check(core);
    if (ret_must_sync != NULL)
        *ret_must_sync = batch.must_sync;
    return batch.count - 1;
}

struct bytes lock_fixture_stored(enum record_kind kind, uint32_t slot)
{
    CHECK(slot < SLOTS_MAX);
    return (struct bytes){stored[kind][slot].at, stored[kind][slot].len};
}

struct core *lock_fixture_restart(struct core *core, const struct core_limits *limits,
                                  uint64_t now_ns)
{
    core_free(core);
    struct core_limits grown = *limits;
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            if (stored[kind][slot].len > 0)
                grown.slots_used[kind] = slot + 1;
    core = core_new(&grown, 43); /* nothing that is stored may depend on the seed */
    CHECK(core != NULL);
    for (uint32_t kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            if (stored[kind][slot].len > 0)
                CHECK(core_load(core, (enum record_kind)kind, slot,
                                lock_fixture_stored((enum record_kind)kind, slot)) == RECORD_GOOD);
    CHECK(core_loaded(core) == 0);
    return start(core, now_ns);
}

void lock_fixture_wait(struct core *core, uint64_t seconds)
{
    core->now_ns += seconds * FIXTURE_SECOND;
    core->wall_ns += seconds * FIXTURE_SECOND;
}

uint32_t lock_fixture_client(struct core *core, const char *address, const char *name)
{
    struct peer peer = fixture_peer(address, 700);
    uint32_t slot;
    enum admission result = client_add(core, &peer, bytes_of_text(name), core->wall_ns, &slot);
    CHECK(result == ADMIT_FOUND || result == ADMIT_NEW);
    return slot;
}

struct lock_request lock_fixture_request(const char *fh, const char *oh)
{
    return (struct lock_request){.fh = bytes_of_text(fh), .oh = bytes_of_text(oh), .version = 4};
}

enum lock_status lock_fixture_share(struct core *core, uint32_t client, const char *fh,
                                    const char *oh, uint32_t mode, uint32_t access)
{
    struct lock_request request = lock_fixture_request(fh, oh);
    request.mode = mode;
    request.access = access;
    return share_take(core, client, &request, core->wall_ns);
}

void lock_fixture_lock(struct core *core, uint32_t client, uint32_t svid, const char *fh,
                       uint64_t at)
{
    struct lock_want want = {
        .claim = {.start = at,
                  .end = at,
                  .owner = owner_add(core, client, svid),
                  .file = file_add(core, bytes_of_text(fh)),
                  .exclusive = true},
        .len = 1,
        .oh = bytes_of_text("oh"),
        .wall_ns = core->wall_ns,
    };
    CHECK(want.claim.file != SLOT_NONE);
    CHECK(lock_room(core, client) == ADMIT_NEW);
    CHECK(lock_take(core, &want));
    file_release(core, want.claim.file); /* the lock has its own */
}

void lock_fixture_forget_events(struct core *core)
{
    struct event event;
    while (event_take(core_events(core), &event))
        continue;
}

bool lock_fixture_event(struct core *core, enum event_kind kind, struct event *ret)
{
    struct event event;
    while (event_take(core_events(core), &event))
        if (event.kind == kind) {
            *ret = event;
            return true;
        }
    return false;
}
