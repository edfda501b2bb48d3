/*
 * test_namesake.c -- a client that is refused by its own name elsewhere is told apart by people
 * only: nothing moves by itself, both addresses are on a short list, and an operator command moves
 * the record with all that it has (D17).
 *
 * A holds a lock. "A" at another address is refused by it.
 */
#include "core/state.h"
#include "core/view.h"
#include "locker.h"
#include "unit/test.h"

TEST_FIXTURE(setup)
{
    locker_new(&fixture_limits);
    tell("A lock 0 10 X -> granted; E lock 0 10 X -> denied");
}

static uint32_t slot_of(struct locker who)
{
    struct address address = fixture_address(who.address);
    return client_find(the_core, &address, bytes_of_text(who.name));
}

static uint64_t id_of(struct locker who)
{
    assert_int_not_equal(slot_of(who), SLOT_NONE);
    return client_at(the_core, slot_of(who))->stored.id;
}

static enum order_result move(uint64_t client, const char *address)
{
    struct order given = {.kind = ORDER_MOVE, .client = client, .to = fixture_address(address)};
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .order = &given};
    struct core_answer answer = {0};
    core_step(the_core, &input, &answer);
    core_check(the_core);
    assert_true(answer.order_result != ORDER_DONE || core_has_changes(the_core));
    assert_int_equal(answer.after_txn, core_gate_txn(the_core));
    settle();
    return answer.order_result;
}

static uint32_t count_events(enum event_kind kind)
{
    struct event event;
    uint32_t count = 0;
    while (event_take(core_events(the_core), &event))
        count += event.kind == kind;
    return count;
}

static bool next_call(struct core_call *ret)
{
    settle();
    return fixture_next_call(the_core, ret);
}

/* However long the old address was silent, and whatever state the new one is in. */
TEST(test_namesake__nothing_moves_by_itself)
{
    struct core_call call;
    for (int minute = 0; minute < 30; minute++) {
        assert_false(next_call(&call)); /* nobody is asked either: no answer could prove it */
        fixture_wait(60 * FIXTURE_SECOND);
        tell("E lock 0 10 X -> denied; E test 0 10 X -> denied");
    }
    assert_int_equal(fixture_status(the_core).clients, 1);
    assert_int_equal(slot_of(ELSEWHERE), SLOT_NONE);
    tell("A unlock 0 10 -> granted; E lock 0 10 X -> granted");
}

TEST(test_namesake__both_are_on_the_list)
{
    struct address refused = fixture_address(ELSEWHERE.address);
    struct address holder = fixture_address(A.address);
    struct view_namesake view;
    uint64_t met_ns = fixture_now_ns();
    fixture_wait(FIXTURE_SECOND);
    assert_int_equal(lock(A, 20, 10, X), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).namesakes, 1);
    assert_true(view_namesake(the_core, 0, &view));
    assert_false(view_namesake(the_core, 1, &view));
    assert_int_equal(view.holder.client, id_of(A));
    assert_true(bytes_equal(view.holder.name, bytes_of_text("a")));
    assert_true(address_equal(&view.holder.address, &holder));
    assert_int_equal(view.holder.seen_ns, fixture_now_ns()); /* also by a call that wrote nothing */
    assert_true(address_equal(&view.refused, &refused));
    assert_int_equal(view.refused_seen_ns, met_ns);
    assert_int_equal(view.refused_count, 1);
    assert_int_equal(view.refused_client, 0);
    assert_false(view.is_taken);

    assert_int_equal(lock(ELSEWHERE, 50, 1, X), LOCK_GRANTED);
    assert_true(view_namesake(the_core, 0, &view));
    assert_int_equal(view.refused_client, id_of(ELSEWHERE));
    assert_int_equal(view.refused_seen_ns, fixture_now_ns());
    assert_true(view.is_taken);

    assert_int_equal(lock(B, 0, 10, X), LOCK_DENIED); /* another name is no namesake */
    assert_int_equal(fixture_status(the_core).namesakes, 1);
    struct view_client client;
    assert_true(view_find_client(the_core, id_of(A), &client) && client.is_moved);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).namesakes, 0);
    assert_true(view_find_client(the_core, id_of(A), &client) && !client.is_moved);
}

/* A1: also a reservation that is refused, and what the old address has and the new one reclaims. */
TEST(test_namesake__every_refusal_counts)
{
    locker_new(&fixture_limits);
    tell("A lock 0 10 S -> granted; A share rw deny rw -> granted");
    (void)count_events(EVENT_NAMESAKE_REFUSED);
    assert_int_equal(share(B, 3, 3, 0), LOCK_DENIED);          /* another name */
    assert_int_equal(share(ELSEWHERE, 0, 0, 0), LOCK_GRANTED); /* denies and uses nothing */
    assert_int_equal(fixture_status(the_core).namesakes, 0);
    assert_int_equal(share(ELSEWHERE, 3, 3, 0), LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).namesakes, 1);
    assert_int_equal(count_events(EVENT_NAMESAKE_REFUSED), 1);

    restart();
    assert_int_equal(fixture_status(the_core).namesakes, 0);
    tell("B lock 0 10 S reclaim -> denied; E lock 20 10 S reclaim -> denied"); /* nobody has that */
    assert_int_equal(count_events(EVENT_NAMESAKE_REFUSED), 0);
    assert_int_equal(lock(ELSEWHERE, 0, 10, S | RECLAIM), LOCK_DENIED);
    assert_int_equal(count_events(EVENT_NAMESAKE_REFUSED), 1);

    tell("server restarts; E share rw deny rw reclaim -> denied");
    assert_int_equal(fixture_status(the_core).namesakes, 1);
    struct view_namesake view;
    assert_true(view_namesake(the_core, 0, &view));
    assert_int_equal(view.holder.client, id_of(A));
}

TEST(test_namesake__a_pair_is_an_event_once_an_hour)
{
    assert_int_equal(count_events(EVENT_NAMESAKE_REFUSED), 1);
    for (int minute = 0; minute < 59; minute++) {
        fixture_wait(60 * FIXTURE_SECOND);
        assert_int_equal(lock(ELSEWHERE, 0, 10, X), LOCK_DENIED);
    }
    assert_int_equal(count_events(EVENT_NAMESAKE_REFUSED), 0);
    fixture_wait(60 * FIXTURE_SECOND);
    assert_int_equal(lock(ELSEWHERE, 0, 10, X), LOCK_DENIED);
    assert_int_equal(count_events(EVENT_NAMESAKE_REFUSED), 1);
    fixture_wait(24 * 3600 * FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).namesakes, 0);
}

/* The list is short, whoever asks. */
TEST(test_namesake__the_newest_pairs_are_kept)
{
    struct view_namesake view;
    for (int i = 1; i <= NAMESAKES_MAX; i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "10.0.7.%d", i);
        fixture_wait(FIXTURE_SECOND);
        assert_int_equal(lock((struct locker){address, "a", 1}, 0, 10, X), LOCK_DENIED);
    }
    assert_int_equal(fixture_status(the_core).namesakes, NAMESAKES_MAX);
    struct address first = fixture_address(ELSEWHERE.address);
    for (uint32_t i = 0; view_namesake(the_core, i, &view); i++)
        assert_false(address_equal(&view.refused, &first));
    assert_int_equal(the_core->namesakes.refused, NAMESAKES_MAX + 1);
}

TEST(test_namesake__an_order_moves_the_record_with_its_locks)
{
    uint64_t id = id_of(A);
    uint32_t before = the_core->server.state;
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(move(id, ELSEWHERE.address), ORDER_DONE);
    assert_int_equal(count_events(EVENT_CLIENT_MOVED), 1);
    assert_int_equal(slot_of(A), SLOT_NONE);
    assert_int_equal(id_of(ELSEWHERE), id);
    assert_int_equal(fixture_status(the_core).locks, 1); /* nothing is freed */
    assert_int_equal(fixture_status(the_core).namesakes, 0);
    struct core_call call; /* it is told, where it is now */
    struct address to = fixture_address(ELSEWHERE.address);
    assert_true(next_call(&call));
    assert_int_equal(call.kind, CALL_NOTIFY);
    assert_true(address_equal(&call.to, &to));
    assert_int_equal(call.our_state, before + 2);
    assert_false(next_call(&call)); /* and nobody is served */
    tell("E lock 0 10 X reclaim -> granted; A lock 0 10 X -> denied; server restarts");
    assert_int_equal(id_of(ELSEWHERE), id);
    assert_int_equal(slot_of(A), SLOT_NONE);
    tell("E lock 0 10 X reclaim -> granted; E unlock 0 10 -> granted; there are 0 locks");
}

/* An answer that the old address still gives to an older call is not the new one's. */
TEST(test_namesake__the_old_address_was_not_told)
{
    struct core_call old, call;
    restart();
    assert_true(next_call(&old));
    assert_int_equal(old.kind, CALL_NOTIFY);
    assert_int_equal(move(id_of(A), ELSEWHERE.address), ORDER_DONE);
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .call = old.id,
                               .outcome = CALL_ANSWERED,
                               .answered_count = old.our_name_count};
    core_step(the_core, &input, NULL);
    assert_true(next_call(&call));
    struct address to = fixture_address(ELSEWHERE.address);
    assert_true(address_equal(&call.to, &to));
}

TEST(test_namesake__a_record_there_that_holds_nothing_gives_way)
{
    uint64_t id = id_of(A);
    tell("E lock 0 10 X wait -> blocked; there are 2 clients");
    struct view_namesake view;
    assert_true(view_namesake(the_core, 0, &view) && !view.is_taken && view.refused_client != 0);
    assert_int_equal(move(id, ELSEWHERE.address), ORDER_DONE);
    tell("there is 1 client; there are 0 waiters");
    assert_int_equal(id_of(ELSEWHERE), id);
    assert_int_equal(lock(ELSEWHERE, 0, 10, X | BLOCK), LOCK_GRANTED); /* it asks again */
}

TEST(test_namesake__every_way_an_order_fails)
{
    uint64_t id = id_of(A);
    assert_int_equal(move(id + 99, ELSEWHERE.address), ORDER_NO_CLIENT);
    assert_int_equal(move(id, A.address), ORDER_NOTHING);
    assert_int_equal(move(id, "0.0.0.0"), ORDER_BAD_ADDRESS);
    assert_int_equal(move(id, "224.0.0.1"), ORDER_BAD_ADDRESS);
    assert_int_equal(move(id, "255.255.255.255"), ORDER_BAD_ADDRESS);
    assert_int_equal(move(id, "::"), ORDER_BAD_ADDRESS);
    assert_int_equal(move(id, "ff02::1"), ORDER_BAD_ADDRESS);
    assert_int_equal(move(id, "fe80::2"), ORDER_BAD_ADDRESS); /* on which link? */
    assert_int_equal(lock(ELSEWHERE, 50, 1, X), LOCK_GRANTED);
    assert_int_equal(move(id, ELSEWHERE.address), ORDER_TAKEN);
    assert_int_equal(fixture_status(the_core).clients, 2);
    assert_int_equal(id_of(A), id);
    assert_int_equal(lock(ELSEWHERE, 0, 10, X), LOCK_DENIED);
    the_core->clients.index.addresses.table.max = the_core->clients.index.addresses.table.count;
    assert_int_equal(move(id, "10.9.9.9"), ORDER_NO_BYTES);
}

/* Of another family: none of our addresses is known that it uses. */
TEST(test_namesake__moves_to_another_family)
{
    struct core_call call;
    assert_int_equal(move(id_of(A), "2001:db8::7"), ORDER_DONE);
    assert_true(next_call(&call));
    assert_int_equal(call.local.family, 0);
    assert_int_equal(call.to.family, 6);
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)
