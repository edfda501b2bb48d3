/*
 * fixture.c -- see fixture.h.
 */
#include "fixture.h"

#include "base/check.h"
#include "core/state.h"

const struct core_limits fixture_limits = {
    .clients_max = 100,
    .locks_max = 1000,
    .locks_per_client_max = 500,
    .waiters_max = 100,
    .file_sets = &(const struct file_set){{(const uint8_t *)"default", 7}, {NULL, 0}},
    .file_set_count = 1,
    .bytes_max = 1024 * 1024,
    .batch_puts_max = 64,
    .server_name = {(const uint8_t *)"holdfast.example", 16},
    .notify_timeout_ns = 5 * FIXTURE_SECOND,
    .window_ns = 90 * FIXTURE_SECOND,
    .give_up_ns = 900 * FIXTURE_SECOND,
    .grace_ns = 90 * FIXTURE_SECOND,
};

static uint64_t now_ns; /* of the core made last */

struct address fixture_address(const char *text)
{
    struct address address = {0};
    CHECK(address_parse(bytes_of_text(text), &address));
    return address;
}

struct peer fixture_peer(const char *address, uint16_t port)
{
    return (struct peer){.address = fixture_address(address),
                         .local = fixture_address("10.0.0.1"),
                         .port = port,
                         .transport = TRANSPORT_TCP};
}

struct core *fixture_new(const struct core_limits *limits)
{
    struct core *core = core_new(limits, 42);
    CHECK(core != NULL);
    now_ns = 0;
    core_start(core, &(struct core_boot){.wall_ns = UINT64_C(1700000000000000000)});
    return core;
}

void fixture_check(const struct core *core)
{
    enum { LOOKS_PER_STEP = 64 };
    static uint32_t steps; /* since the last look */
    uint32_t stored = core->locks.table.count + core->waiters.table.count +
                      core->clients.table.count + core->registrants.table.count;
    if (++steps * LOOKS_PER_STEP < stored)
        return;
    steps = 0;
    core_check(core);
}

struct core_answer fixture_step(struct core *core, const struct peer *from,
                                const struct request *request)
{
    struct core_answer answer;
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = now_ns,
                               .wall_ns = now_ns,
                               .from = from,
                               .request = request};
    core_step(core, &input, &answer);
    fixture_check(core);
    return answer;
}

static struct request request_of(enum request_kind kind, const char *mon_name, const char *my_name)
{
    return (struct request){.kind = kind,
                            .mon_name = bytes_of_text(mon_name),
                            .my_name = bytes_of_text(my_name),
                            .my_prog = 100021,
                            .my_vers = 4,
                            .my_proc = 16};
}

struct core_answer fixture_mon(struct core *core, const char *from, const char *mon_name,
                               const char *my_name, uint8_t priv)
{
    struct peer peer = fixture_peer(from, 2000);
    uint8_t bytes[RECORD_PRIV_LEN];
    memset(bytes, priv, sizeof bytes);
    struct request request = request_of(REQUEST_NSM_MON, mon_name, my_name);
    request.priv = (struct bytes){bytes, sizeof bytes};
    return fixture_step(core, &peer, &request);
}

struct core_answer fixture_unmon(struct core *core, const char *from, const char *mon_name,
                                 const char *my_name)
{
    struct peer peer = fixture_peer(from, 2000);
    struct request request = request_of(REQUEST_NSM_UNMON, mon_name, my_name);
    return fixture_step(core, &peer, &request);
}

struct core_answer fixture_unmon_all(struct core *core, const char *from, const char *my_name)
{
    struct peer peer = fixture_peer(from, 2000);
    struct request request = request_of(REQUEST_NSM_UNMON_ALL, "", my_name);
    return fixture_step(core, &peer, &request);
}

struct core_answer fixture_notify(struct core *core, const char *from, const char *mon_name,
                                  uint32_t state)
{
    struct peer peer = fixture_peer(from, 2000);
    struct request request = request_of(REQUEST_NSM_NOTIFY, mon_name, "");
    request.state = state;
    return fixture_step(core, &peer, &request);
}

bool fixture_resolve(struct core *core, const char *const *addresses)
{
    struct core_lookup lookup;
    struct address list[8];
    uint32_t count = 0;
    if (!core_next_lookup(core, now_ns, &lookup))
        return false;
    for (; addresses != NULL && addresses[count] != NULL; count++)
        list[count] = fixture_address(addresses[count]);
    struct core_input input = {.kind = CORE_RESOLVED,
                               .now_ns = now_ns,
                               .wall_ns = now_ns,
                               .lookup = lookup.id,
                               .addresses = list,
                               .address_count = count};
    core_step(core, &input, NULL);
    fixture_check(core);
    return true;
}

struct core_answer fixture_notify_named(struct core *core, const char *from, const char *mon_name,
                                        uint32_t state)
{
    struct core_answer answer = fixture_notify(core, from, mon_name, state);
    (void)fixture_resolve(core, (const char *const[]){from, NULL});
    return answer;
}

bool fixture_notify_restarts(struct core *core, const char *from, const char *mon_name,
                             uint32_t state)
{
    struct address host;
    (void)fixture_notify(core, from, mon_name, state);
    return core_next_restarted(core, &host);
}

struct core_answer fixture_stat(struct core *core, const char *mon_name)
{
    struct peer peer = fixture_peer("10.0.0.9", 2000);
    struct request request = request_of(REQUEST_NSM_STAT, mon_name, "");
    return fixture_step(core, &peer, &request);
}

struct core_answer fixture_simu_crash(struct core *core, const char *from, uint16_t port)
{
    struct peer peer = fixture_peer(from, port);
    struct request request = {.kind = REQUEST_NSM_SIMU_CRASH};
    return fixture_step(core, &peer, &request);
}

struct core_status fixture_status(const struct core *core)
{
    struct core_status status;
    core_status(core, &status);
    return status;
}

void fixture_stored(struct core *core, uint64_t txn, bool has_room)
{
    struct core_input input = {
        .kind = CORE_STORED, .now_ns = now_ns, .txn = txn, .has_room = has_room};
    core_step(core, &input, NULL);
    fixture_check(core);
}

uint32_t fixture_store(struct core *core)
{
    struct store_batch batch;
    if (!core_take_batch(core, &batch))
        return 0;
    fixture_stored(core, batch.txn, true);
    return batch.count;
}

void fixture_reset(void)
{
    now_ns = 0;
}

uint64_t fixture_now_ns(void)
{
    return now_ns;
}

void fixture_wait(uint64_t ns)
{
    now_ns += ns;
}

void fixture_ready(struct core *core)
{
    struct core_input input = {.kind = CORE_READY, .now_ns = now_ns};
    core_step(core, &input, NULL);
    fixture_check(core);
}

bool fixture_next_call(struct core *core, struct core_call *ret)
{
    bool has_call = core_next_call(core, now_ns, ret);
    fixture_check(core);
    return has_call;
}

void fixture_call_done(struct core *core, uint64_t id, bool is_answered, uint32_t answered_count)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = now_ns,
                               .wall_ns = now_ns,
                               .call = id,
                               .outcome = is_answered ? CALL_ANSWERED : CALL_UNKNOWN,
                               .answered_count = answered_count};
    core_step(core, &input, NULL);
    fixture_check(core);
}
