/*
 * locker.c -- see locker.h.
 */
#include "locker.h"

#include "base/check.h"
#include "core/state.h"
#include "lock_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

const struct locker A = {"10.0.0.2", "a", 1}, B = {"10.0.0.3", "b", 1}, C = {"10.0.0.4", "c", 1},
                    D = {"10.0.0.5", "d", 1}, A2 = {"10.0.0.2", "a", 2},
                    ELSEWHERE = {"10.0.0.66", "a", 1}, NEIGHBOUR = {"10.0.0.2", "n", 1};

struct core *the_core;
bool are_calibrated = true;

static struct core_limits the_limits;

void locker_new(const struct core_limits *limits)
{
    locker_done();
    the_limits = *limits;
    are_calibrated = true;
    fixture_reset();
    the_core = lock_fixture_new(limits);
    fixture_ready(the_core);
    settle();
}

void locker_done(void)
{
    if (the_core != NULL)
        lock_fixture_free(the_core);
    the_core = NULL;
}

int locker_set_up(void **state)
{
    (void)state;
    locker_new(&fixture_limits);
    return 0;
}

int locker_tear_down(void **state)
{
    (void)state;
    locker_done();
    return 0;
}

void restart_unready(void)
{
    the_core = lock_fixture_restart(the_core, &the_limits, fixture_now_ns());
}

void restart_with(const struct core_limits *limits)
{
    the_limits = *limits;
    restart();
}

void restart(void)
{
    restart_unready();
    fixture_ready(the_core);
    settle();
}

/* As if each status monitor had been asked, and had answered. */
static void calibrate_all(void)
{
    const struct table *table = &the_core->clients.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        if (!core_is_full(the_core))
            client_calibrate(the_core, slot, client_at(the_core, slot)->stored.state_seen);
}

void settle(void)
{
    for (int i = 0; i < 100; i++) {
        if (are_calibrated)
            calibrate_all();
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        fixture_check(the_core);
        struct core_status before = fixture_status(the_core);
        (void)lock_fixture_store(the_core, NULL);
        if (fixture_status(the_core).durable_txn == before.durable_txn)
            return;
    }
    fail_msg("the core never comes to rest");
}

struct request locker_request(enum request_kind kind, struct locker who, uint64_t offset,
                              uint64_t len, int how)
{
    static char oh[2];
    oh[0] = who.name[0];
    oh[1] = (char)('0' + who.svid);
    return (struct request){
        .kind = kind,
        .cookie = bytes_of_text("cook"),
        .lock = {.caller_name = bytes_of_text(who.name),
                 .fh = bytes_of_text("f"),
                 .oh = {(const uint8_t *)oh, 2},
                 .offset = offset,
                 .len = len,
                 .start = offset,
                 .end = len == 0 ? UINT64_MAX : offset + len - 1,
                 .exclusive = how & X,
                 .block = how & BLOCK,
                 .reclaim = how & RECLAIM,
                 .is_unmonitored = how & UNMONITORED,
                 .is_message = how & MESSAGE,
                 .svid = who.svid,
                 .version = 4,
                 .state = how & UNMONITORED ? 0 : 3},
    };
}

struct response locker_step(struct locker who, const struct request *request)
{
    struct peer from = fixture_peer(who.address, 700);
    struct core_answer answer = fixture_step(the_core, &from, request);
    assert_true(bytes_equal(answer.response.cookie, request->cookie));
    settle();
    return answer.response;
}

static enum lock_status ask(enum request_kind kind, struct locker who, uint64_t offset,
                            uint64_t len, int how)
{
    struct request request = locker_request(kind, who, offset, len, how);
    return locker_step(who, &request).status;
}

enum lock_status lock(struct locker who, uint64_t offset, uint64_t len, int how)
{
    return ask(REQUEST_NLM_LOCK, who, offset, len, how);
}

enum lock_status unlock(struct locker who, uint64_t offset, uint64_t len)
{
    return ask(REQUEST_NLM_UNLOCK, who, offset, len, 0);
}

enum lock_status cancel(struct locker who, uint64_t offset, uint64_t len, int how)
{
    return ask(REQUEST_NLM_CANCEL, who, offset, len, how);
}

enum lock_status test(struct locker who, uint64_t offset, uint64_t len, int how)
{
    return ask(REQUEST_NLM_TEST, who, offset, len, how);
}

void free_all(struct locker who)
{
    struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = bytes_of_text(who.name)};
    (void)locker_step(who, &request);
}

enum lock_status share(struct locker who, uint32_t mode, uint32_t access, int how)
{
    struct request request = locker_request(REQUEST_NLM_SHARE, who, 0, 0, how);
    request.lock.mode = mode;
    request.lock.access = access;
    return locker_step(who, &request).status;
}

void unshare_file(struct locker who)
{
    struct request request = locker_request(REQUEST_NLM_UNSHARE, who, 0, 0, 0);
    (void)locker_step(who, &request);
}

struct core_call granted(struct locker who)
{
    struct core_call call = {0};
    settle();
    assert_true(fixture_next_call(the_core, &call));
    struct address to = fixture_address(who.address);
    assert_true(address_equal(&call.to, &to));
    assert_int_equal(call.svid, who.svid);
    assert_true(bytes_equal(call.caller_name, bytes_of_text(who.name)));
    return call;
}

bool nobody_called(void)
{
    struct core_call call;
    settle();
    return !fixture_next_call(the_core, &call);
}

static void done(struct core_call call, enum core_call_outcome outcome, uint32_t status)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .call = call.id,
                               .outcome = outcome,
                               .status = status};
    core_step(the_core, &input, NULL);
    fixture_check(the_core);
    settle();
}

void answered(struct core_call call, enum lock_status status)
{
    done(call, CALL_ANSWERED, status);
}

void failed(struct core_call call, enum core_call_outcome outcome)
{
    done(call, outcome, LOCK_STATUS_NONE);
}

void granted_res(struct locker who, uint64_t cookie, enum lock_status status)
{
    uint8_t bytes[8];
    store_be64(bytes, cookie);
    struct request request = {
        .kind = REQUEST_NLM_GRANTED_RES, .cookie = {bytes, 8}, .lock = {.status = status}};
    (void)locker_step(who, &request);
}

enum lock_status step_only(enum request_kind kind, struct locker who, uint64_t offset, uint64_t len,
                           int how)
{
    struct request request = locker_request(kind, who, offset, len, how);
    struct peer from = fixture_peer(who.address, 2000);
    return fixture_step(the_core, &from, &request).response.status;
}
