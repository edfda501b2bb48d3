/*
 * monitor.c -- see monitor.h.
 */
#include "monitor.h"

#include "base/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum lock_status lock_in(uint32_t client_state, struct locker who, uint64_t offset, int how)
{
    struct request request = locker_request(REQUEST_NLM_LOCK, who, offset, 1, how);
    request.lock.state = client_state;
    return locker_step(who, &request).status;
}

static void store_full_batch(struct core *core)
{
    struct store_batch batch;
    if (!core_is_full(core) || !core_take_batch(core, &batch))
        return;
    struct core_input input = {
        .kind = CORE_STORED, .now_ns = fixture_now_ns(), .txn = batch.txn, .has_room = true};
    core_step(core, &input, NULL);
}

void lock_many(struct core *core, uint32_t client_state, struct locker who, uint64_t offset,
               uint32_t count)
{
    struct peer from = fixture_peer(who.address, 700);
    struct request request = locker_request(REQUEST_NLM_LOCK, who, offset, 1, X);
    struct core_input input = {
        .kind = CORE_REQUEST, .now_ns = fixture_now_ns(), .from = &from, .request = &request};
    struct core_answer answer;
    request.lock.state = client_state;
    for (uint32_t i = 0; i < count; i++) {
        request.lock.start = request.lock.end = request.lock.offset = offset + 2 * i;
        core_step(core, &input, &answer);
        assert_int_equal(answer.response.status, LOCK_GRANTED);
        if (core != the_core) /* whose store keeps what it is given, and has room for it */
            store_full_batch(core);
    }
}

bool notify(struct locker from, const char *name, uint32_t client_state)
{
    struct peer peer = fixture_peer(from.address, 2000);
    struct request request = {
        .kind = REQUEST_NSM_NOTIFY, .mon_name = bytes_of_text(name), .state = client_state};
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .from = &peer,
                               .request = &request};
    struct core_answer answer;
    core_step(the_core, &input, &answer);
    fixture_check(the_core);
    struct address restarted;
    bool is_news = core_next_restarted(the_core, &restarted);
    settle();
    return is_news;
}

struct client *client_of(struct locker who)
{
    struct address address = fixture_address(who.address);
    uint32_t slot = client_find(the_core, &address, bytes_of_text(who.name));
    CHECK(slot != SLOT_NONE);
    return client_at(the_core, slot);
}

bool has_locks(struct locker who)
{
    return client_of(who)->life.lock_count > 0;
}

struct core_call asked(struct locker who)
{
    struct core_call call;
    struct address address = fixture_address(who.address);
    do
        assert_true(fixture_next_call(the_core, &call));
    while (call.kind != CALL_STAT);
    assert_true(address_equal(&call.to, &address));
    return call;
}

bool nobody_asked(void)
{
    struct core_call call;
    while (fixture_next_call(the_core, &call))
        if (call.kind == CALL_STAT)
            return false;
    return true;
}

void says(struct core_call call, uint32_t client_state)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .call = call.id,
                               .outcome = client_state == 0 ? CALL_UNKNOWN : CALL_ANSWERED,
                               .state = client_state};
    core_step(the_core, &input, NULL);
    fixture_check(the_core);
    settle();
}

uint32_t events_of(enum event_kind kind)
{
    struct event event;
    uint32_t count = 0;
    while (event_take(core_events(the_core), &event))
        count += event.kind == kind ? 1 : 0;
    return count;
}
