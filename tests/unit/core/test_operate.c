/*
 * test_operate.c -- what operator commands change, and what they leave alone.
 *
 * Each test is a story of lockers (locker.h) and one order. That an order is durable before it is
 * answered is the core's gate, which fixture and simulator look at for every step.
 */
#include "core/state.h"
#include "monitor.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

/* Without the work of the turns that follow. */
static enum order_result order_only(enum order_kind kind, uint64_t client, const char *fh)
{
    struct order given = {.kind = kind, .client = client, .fh = bytes_of_text(fh)};
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .order = &given};
    struct core_answer answer = {0};
    core_step(the_core, &input, &answer);
    core_check(the_core);
    bool is_durable = kind != ORDER_END_GRACE; /* nothing of grace is stored but its end */
    assert_true(answer.order_result != ORDER_DONE || !is_durable || core_has_changes(the_core));
    assert_int_equal(answer.after_txn, core_gate_txn(the_core));
    return answer.order_result;
}

static enum order_result order(enum order_kind kind, uint64_t client, const char *fh)
{
    enum order_result result = order_only(kind, client, fh);
    settle();
    return result;
}

/* A request, without the work of the turns that follow. */
static struct response request_only(struct locker who, const struct request *request)
{
    struct peer from = fixture_peer(who.address, 2000);
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .from = &from,
                               .request = request};
    struct core_answer answer;
    core_step(the_core, &input, &answer);
    core_check(the_core);
    return answer.response;
}

static uint32_t slot_of(struct locker who)
{
    struct address address = fixture_address(who.address);
    uint32_t slot = client_find(the_core, &address, bytes_of_text(who.name));
    assert_int_not_equal(slot, SLOT_NONE);
    return slot;
}

static uint64_t id_of(struct locker who)
{
    return client_at(the_core, slot_of(who))->stored.id;
}

static bool is_owed(struct locker who)
{
    return target_owed(the_core, target_of_client(the_core, slot_of(who))).state != 0;
}

/* The SM_NOTIFY that leaves now, to this client. */
static struct core_call call_to(struct locker who)
{
    struct core_call call;
    struct address to = fixture_address(who.address);
    settle();
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.kind, CALL_NOTIFY);
    assert_true(address_equal(&call.to, &to));
    return call;
}

static void told(struct core_call call)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .call = call.id,
                               .outcome = CALL_ANSWERED,
                               .answered_count = call.our_name_count};
    core_step(the_core, &input, NULL);
    core_check(the_core);
    settle();
}

TEST(test_operate__release_frees_and_tells)
{
    tell("A lock 0 10 X -> granted; C lock 20 10 X -> granted; A share rw deny r -> granted; "
         "A2 lock 20 5 X wait -> blocked; B lock 0 10 X wait -> blocked");
    uint32_t before = the_core->server.state;
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_DONE);
    struct core_call call;
    assert_true(fixture_next_call(the_core, &call));
    if (call.kind == CALL_GRANTED) { /* the two calls leave in either order */
        answered(call, LOCK_GRANTED);
        call = call_to(A);
    } else {
        answered(granted(B), LOCK_GRANTED);
    }
    assert_int_equal(call.our_state, before + 2);
    told(call);
    assert_true(nobody_called());
    struct core_status status = fixture_status(the_core);
    assert_int_equal(status.locks, 2); /* B's, and C's own */
    assert_int_equal(status.shares, 0);
    assert_int_equal(status.waiters, 0);
    assert_int_equal(status.reboots.crashes_detected, 0); /* it did not crash */
    assert_int_equal(status.reboots.cleanups, 0);
    assert_int_equal(status.reboots.locks_cleaned, 0);
    assert_int_equal(status.reboots.released, 2);
    /* Its kernel reclaims, and finds out that it is too late. */
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRACE);
    uint64_t id = id_of(A);
    assert_int_equal(order(ORDER_RELEASE, id, ""), ORDER_DONE); /* it holds nothing: forgotten */
    assert_int_equal(order(ORDER_RELEASE, id, ""), ORDER_NO_CLIENT);
}

/* Who loses something by an order must not be answered from the cache that it has it; who loses
 * nothing may be. */
TEST(test_operate__who_was_overridden_is_named_once)
{
    struct address from, address = fixture_address(A.address);
    struct bytes name;
    struct request other = locker_request(REQUEST_NLM_LOCK, A, 0, 10, X);
    other.lock.fh = bytes_of_text("g");
    assert_int_equal(locker_step(A, &other).status, LOCK_GRANTED);
    tell("A lock 0 10 X -> granted; B lock 20 10 X -> granted");
    assert_int_equal(order_only(ORDER_NOTIFY, id_of(A), ""), ORDER_DONE);
    assert_false(core_next_overridden(the_core, &from, &name));
    const char *files[] = {"g", ""}; /* one file, then all */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(order_only(ORDER_RELEASE, id_of(A), files[i]), ORDER_DONE);
        assert_true(core_next_overridden(the_core, &from, &name));
        assert_true(address_equal(&from, &address));
        assert_true(bytes_equal(name, bytes_of_text(A.name)));
        assert_false(core_next_overridden(the_core, &from, &name));
    }
    settle();
    assert_int_equal(order_only(ORDER_RELEASE, id_of(A), ""), ORDER_DONE); /* it holds nothing */
    assert_false(core_next_overridden(the_core, &from, &name));
}

TEST(test_operate__nobody_else_is_told)
{
    tell("A lock 0 10 X -> granted; B lock 20 10 X -> granted");
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_DONE);
    assert_false(is_owed(B));
    told(call_to(A));
    assert_false(is_owed(A));
    uint32_t known = the_core->server.state;
    restart(); /* P3: it must be a number that neither has been told */
    assert_int_equal(the_core->server.state, known + 2);
    assert_true(is_owed(B));
}

enum { COUNT = 3000 }; /* more than one turn frees */

/* A core for so many locks. */
static void make_room(void)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = limits.locks_per_client_max = limits.batch_puts_max = 2 * COUNT;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
}

static void notice_only(struct locker who, uint32_t client_state)
{
    struct request notice = {
        .kind = REQUEST_NSM_NOTIFY, .mon_name = bytes_of_text(who.name), .state = client_state};
    (void)request_only(who, &notice);
}

static void free_all_only(struct locker who)
{
    struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = bytes_of_text(who.name)};
    (void)request_only(who, &request);
}

static void share_only(struct locker who, const char *fh)
{
    struct request request = locker_request(REQUEST_NLM_SHARE, who, 0, 0, 0);
    request.lock.fh = bytes_of_text(fh);
    request.lock.access = 1;
    assert_int_equal(request_only(who, &request).status, LOCK_GRANTED);
}

/* Something of it is being freed already, or only looked for: what is not over goes, too. */
TEST(test_operate__release_of_what_is_being_looked_through)
{
    make_room();
    lock_many(the_core, 5, A, 0, COUNT);
    settle();
    notice_only(A, 5); /* a repeat: it frees nothing, but that takes a while */
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    settle();
    tell("there are 0 locks; there are 0 crashes");
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, 0);
    assert_int_equal(fixture_status(the_core).reboots.released, COUNT);
    assert_true(is_owed(A));
}

/* What it took while the rest is being freed goes, too. */
TEST(test_operate__release_of_what_was_taken_in_mid_drain)
{
    make_room();
    lock_many(the_core, 5, A, 0, COUNT);
    share_only(A, "f");
    share_only(A, "g");
    settle();
    free_all_only(A);
    share_only(A, "f");
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    assert_int_equal(fixture_status(the_core).shares, 0);
    assert_int_equal(fixture_status(the_core).locks, 0);
    settle(); /* it was a crash before it was an order */
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1);
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, COUNT + 3);
    assert_int_equal(fixture_status(the_core).reboots.released, 0);
    /* One that it has after that is a crash again. */
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_DONE);
    assert_int_equal(fixture_status(the_core).reboots.released, 1);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    free_all_only(A);
    settle();
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 2);
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, COUNT + 4);
}

/* The same over a start, after which everything stands in the order of its slots. */
TEST(test_operate__release_in_a_drain_that_goes_on)
{
    make_room();
    share_only(B, "f"); /* has the first slot */
    lock_many(the_core, 5, A, 0, COUNT);
    share_only(A, "g");
    settle();
    free_all_only(A);
    struct request unshare = locker_request(REQUEST_NLM_UNSHARE, B, 0, 0, 0);
    (void)request_only(B, &unshare);
    share_only(A, "f"); /* in its place */
    assert_int_equal(fixture_status(the_core).shares, 2);
    (void)lock_fixture_store(the_core, NULL);
    restart_unready();
    assert_int_equal(fixture_status(the_core).shares, 2);
    assert_int_equal(fixture_status(the_core).locks, COUNT);
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    assert_int_equal(fixture_status(the_core).shares, 0);
    assert_int_equal(fixture_status(the_core).locks, 0);
}

/* One release, however often it is asked for. */
TEST(test_operate__a_repeated_release_adds_nothing)
{
    make_room();
    lock_many(the_core, 5, A, 0, 2 * COUNT - 10);
    settle();
    assert_int_equal(order_only(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    struct client *client = client_at(the_core, slot_of(A));
    uint32_t incarnation = client->stored.incarnation, known = the_core->server.state;
    assert_int_equal(order_only(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    notice_only(A, 5); /* a repeat, for which everything is looked through again */
    assert_int_equal(order_only(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    assert_int_equal(client->stored.incarnation, incarnation);
    assert_int_equal(the_core->server.state, known);
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 0);
    (void)lock_fixture_store(the_core, NULL);
    restart_unready();
    fixture_ready(the_core);
    client = client_at(the_core, slot_of(A));
    known = the_core->server.state;
    assert_int_equal(order_only(ORDER_RELEASE, id_of(A), ""), ORDER_BEGUN);
    assert_int_equal(client->stored.incarnation, incarnation);
    assert_int_equal(the_core->server.state, known);
    settle();
    assert_int_equal(fixture_status(the_core).locks, 0);
}

/* A call that was under way said an older state: what it proves is not enough. */
TEST(test_operate__told_too_early_is_not_told)
{
    tell("A lock 0 10 X -> granted; server restarts");
    struct core_call early = call_to(A);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_DONE);
    told(early);
    assert_true(is_owed(A));
    struct core_call call = call_to(A);
    assert_int_equal(call.our_state, early.our_state + 2);
    told(call);
    assert_false(is_owed(A));
}

TEST(test_operate__what_is_not_told_yet_outlives_a_crash)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    uint32_t before = the_core->server.state;
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_DONE);
    restart();
    struct core_call call = call_to(A);
    assert_int_equal(call.our_state, before + 4);
}

TEST(test_operate__release_of_one_file)
{
    struct request other = locker_request(REQUEST_NLM_LOCK, A, 0, 10, X);
    other.lock.fh = bytes_of_text("g");
    assert_int_equal(locker_step(A, &other).status, LOCK_GRANTED);
    tell("A lock 0 10 X -> granted; A2 lock 20 10 S -> granted; C lock 40 10 X -> granted; "
         "A lock 40 10 X wait -> blocked; A share r deny r -> granted");
    assert_int_equal(order(ORDER_RELEASE, id_of(A), "h"), ORDER_NOTHING);
    assert_int_equal(order(ORDER_RELEASE, id_of(C), "g"), ORDER_NOTHING);
    assert_int_equal(order(ORDER_RELEASE, id_of(A), "f"), ORDER_DONE);
    struct core_status status = fixture_status(the_core);
    assert_int_equal(status.locks, 2); /* on the other file, and C's */
    assert_int_equal(status.shares, 0);
    assert_int_equal(status.waiters, 0);
    assert_int_equal(status.reboots.crashes_detected, 0); /* it did not crash */
    assert_int_equal(status.reboots.cleanups, 0);
    assert_int_equal(status.reboots.locks_cleaned, 0);
    assert_int_equal(status.reboots.released, 3);
    assert_int_equal(lock(B, 0, 30, X), LOCK_GRANTED);
    told(call_to(A));
}

TEST(test_operate__notify_leaves_everything)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    uint32_t before = the_core->server.state;
    assert_int_equal(order(ORDER_NOTIFY, id_of(A), ""), ORDER_DONE);
    struct core_call call = call_to(A);
    assert_int_equal(call.our_state, before + 2);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED); /* it is still its own (3.3) */
    told(call);
    assert_int_equal(lock(B, 0, 10, X), LOCK_DENIED);
}

TEST(test_operate__who_was_never_monitored_is_not_told)
{
    assert_int_equal(lock(A, 0, 10, X | UNMONITORED), LOCK_GRANTED);
    assert_int_equal(order(ORDER_NOTIFY, id_of(A), ""), ORDER_NOTHING);
    assert_int_equal(order(ORDER_RELEASE, id_of(A), ""), ORDER_DONE);
    assert_true(nobody_called());
    assert_int_equal(order(ORDER_RELEASE, 999, ""), ORDER_NO_CLIENT);
    assert_int_equal(order(ORDER_NOTIFY, 999, ""), ORDER_NO_CLIENT);
}

TEST(test_operate__end_grace_gives_up_the_rest)
{
    assert_int_equal(order(ORDER_END_GRACE, 0, ""), ORDER_NOTHING);
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; server restarts; "
         "A lock 0 10 X reclaim -> granted; B lock 20 10 X -> grace");
    assert_int_equal(order(ORDER_END_GRACE, 0, ""), ORDER_DONE);
    tell("B lock 20 10 X -> granted; B lock 0 10 X -> denied");
    assert_int_equal(order(ORDER_END_GRACE, 0, ""), ORDER_NOTHING);
}

/* R-GRACE-10 leaves a client that still reclaims more time; an operator need not. */
TEST(test_operate__end_grace_ends_what_is_extended)
{
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; server restarts");
    fixture_wait(fixture_limits.grace_ns - SECOND);
    tell("A lock 0 10 X reclaim -> granted; 2 s pass; grace is over; B lock 20 10 X -> denied");
    assert_int_equal(order(ORDER_END_GRACE, 0, ""), ORDER_DONE);
    assert_int_equal(lock(B, 20, 10, X), LOCK_GRANTED);
}

/* After a simulated crash the answers from before it have yet to leave: what they give must not be
 * given up before they do. */
TEST(test_operate__end_grace_waits_for_answers)
{
    tell("A lock 0 10 X -> granted");
    struct peer peer = {.address = fixture_address("127.0.0.1"), .port = 700};
    struct request request = {.kind = REQUEST_NSM_SIMU_CRASH};
    struct core_input input = {
        .kind = CORE_REQUEST, .now_ns = fixture_now_ns(), .from = &peer, .request = &request};
    struct core_answer answer;
    core_step(the_core, &input, &answer);
    struct address restarted;
    assert_true(core_next_restarted(the_core, &restarted));
    assert_int_equal(restarted.family, 0); /* we */
    assert_int_equal(order_only(ORDER_END_GRACE, 0, ""), ORDER_LATER);
    settle();
    assert_int_equal(order(ORDER_END_GRACE, 0, ""), ORDER_DONE);
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)
