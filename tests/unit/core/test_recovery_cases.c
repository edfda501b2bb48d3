/*
 * test_recovery_cases.c -- corners of recovery that a reader of the source found before a user did.
 *
 * Each test is the story of one of them, told by lockers (locker.h) and by the core itself where
 * the moments between two turns matter (step_raw).
 */
#include "core/state.h"
#include "monitor.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

static struct core_limits limits;

TEST_FIXTURE(setup)
{
    limits = fixture_limits;
    locker_new(&limits);
}

/* A request in the middle of a turn: nothing is stored and no work is done. */
static enum lock_status step_raw(struct locker who, const struct request *request)
{
    struct peer from = fixture_peer(who.address, 700);
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .from = &from,
                               .request = request};
    struct core_answer answer;
    core_step(the_core, &input, &answer);
    core_check(the_core);
    return answer.response.status;
}

static enum order_result order(enum order_kind kind, struct locker who)
{
    struct order given = {.kind = kind, .client = client_of(who)->stored.id};
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .order = &given};
    struct core_answer answer = {0};
    core_step(the_core, &input, &answer);
    core_check(the_core);
    return answer.order_result;
}

/* Every call that is due is made in vain, and `seconds` pass. */
static void in_vain(uint32_t seconds)
{
    struct core_call call;
    for (uint32_t i = 0; i < seconds; i++) {
        settle();
        while (fixture_next_call(the_core, &call))
            fixture_call_done(the_core, call.id, false, 0);
        fixture_wait(SECOND);
    }
    settle();
}

/* The next call, which is waited for, is answered. */
static void told(void)
{
    struct core_call call;
    settle();
    for (int i = 0; !fixture_next_call(the_core, &call); i++) {
        assert_true(i < 200);
        fixture_wait(SECOND);
        settle();
    }
    assert_int_equal(call.kind, CALL_NOTIFY);
    fixture_call_done(the_core, call.id, true, call.our_name_count);
    settle();
}

/* P1, R-PER-4: an order raises our number for one client; another one's retry is due meanwhile. */
TEST(test_recovery_cases__a_state_leaves_when_it_is_durable)
{
    tell("A lock 0 10 X -> granted; B lock 20 10 X -> granted; server restarts");
    in_vain(1);
    uint32_t before = the_core->server.state;
    assert_int_equal(lock(B, 20, 10, X | RECLAIM), LOCK_GRANTED);
    fixture_wait(5 * SECOND);
    assert_int_equal(order(ORDER_NOTIFY, B), ORDER_DONE);
    struct core_call call;
    assert_int_equal(the_core->server.state, before + 2);
    assert_false(fixture_next_call(the_core, &call)); /* the number is in the open batch */
    settle();
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.our_state, before + 2);
}

/* A lock that is to be freed becomes a smaller one: nobody will reclaim the rest of it. */
TEST(test_recovery_cases__what_is_over_leaves_nothing_unsettled)
{
    tell("A lock 0 100 X -> granted; server restarts");
    fixture_wait(80 * SECOND);
    told(); /* late: what it has stays for a while */
    tell("11 s pass");
    assert_int_equal(unsettled_count(the_core), 1);
    struct request notice = {
        .kind = REQUEST_NSM_NOTIFY, .mon_name = bytes_of_text("a"), .state = 5};
    (void)step_raw(A, &notice);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 10, 10, X);
    request.lock.state = 0;
    assert_int_equal(step_raw(A, &request), LOCK_GRANTED);
    assert_int_equal(unsettled_count(the_core), 0);
    request = locker_request(REQUEST_NLM_UNLOCK, A, 10, 10, 0);
    assert_int_equal(step_raw(A, &request), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).locks, 0);
}

/* D12: as many waiters as there may be, of the longest kind, come back without being written. */
TEST(test_recovery_cases__a_resume_writes_no_waiters)
{
    enum { COUNT = 3000 };
    static uint8_t oh[1000];
    limits.resume = true;
    limits.waiters_max = COUNT;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    memset(oh, 'o', sizeof oh);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct request request = locker_request(REQUEST_NLM_LOCK, B, i, 1, X | BLOCK);
        memcpy(oh, &i, sizeof i);
        request.lock.oh = (struct bytes){oh, sizeof oh};
        request.lock.svid = i;
        struct peer from = fixture_peer(B.address, 700);
        struct core_input input = {
            .kind = CORE_REQUEST, .now_ns = fixture_now_ns(), .from = &from, .request = &request};
        struct core_answer answer;
        core_step(the_core, &input, &answer);
        assert_int_equal(answer.response.status, LOCK_BLOCKED);
        if (core_is_full(the_core))
            (void)lock_fixture_store(the_core, NULL);
    }
    (void)lock_fixture_store(the_core, NULL);
    restart_unready();
    assert_int_equal(the_core->waiters.table.count, COUNT);
    assert_int_equal(the_core->dirty.put_count, 0);
}

/* The end of grace splits many locks: each turn puts no more than a batch takes. */
TEST(test_recovery_cases__the_end_of_grace_fills_no_batch_over)
{
    enum { COUNT = 200 };
    char fh[16];
    limits.locks_max = 1000;
    limits.batch_puts_max = 50;
    locker_new(&limits);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(fh, sizeof fh, "f%d", i);
        struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 30, X);
        request.lock.fh = bytes_of_text(fh);
        assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    }
    tell("server restarts");
    for (int i = 0; i < 2 * COUNT; i++) {
        (void)snprintf(fh, sizeof fh, "f%d", i / 2);
        struct request request =
            locker_request(REQUEST_NLM_LOCK, A, i % 2 == 0 ? 0 : 20, 10, X | RECLAIM);
        request.lock.fh = bytes_of_text(fh);
        assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    }
    fixture_wait(100 * SECOND);
    for (int turn = 0; unsettled_count(the_core) > 0; turn++) {
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        assert_true(the_core->dirty.put_count <= limits.batch_puts_max + CORE_PUTS_PER_REQUEST_MAX);
        (void)lock_fixture_store(the_core, NULL);
        assert_true(turn < COUNT);
    }
    assert_int_equal(fixture_status(the_core).locks, 2 * COUNT);
}

/* Told of the restart before the last one, it does not know of the last one. */
TEST(test_recovery_cases__old_news_are_no_news)
{
    limits.hold_unreachable = true;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; server restarts");
    struct core_call early;
    assert_true(fixture_next_call(the_core, &early));
    struct locker root = {"127.0.0.1", "root", 1};
    struct request crash = {.kind = REQUEST_NSM_SIMU_CRASH};
    (void)step_raw(root, &crash);
    settle();
    fixture_call_done(the_core, early.id, true, early.our_name_count);
    settle();
    in_vain(100);
    tell("grace is over; B lock 0 10 X -> denied"); /* R-GRACE-5: it is still to be told */
    told();
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
}

/* A run in reclaim mode stores no waiters: the next one cannot go on where it ended. */
TEST(test_recovery_cases__no_resume_over_lost_waiters)
{
    for (int waits = 0; waits < 2; waits++) {
        limits.resume = false;
        locker_new(&limits);
        assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
        if (waits)
            assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
        uint32_t before = the_core->server.state;
        limits.resume = true;
        the_core = lock_fixture_restart(the_core, &limits, fixture_now_ns());
        fixture_ready(the_core);
        settle();
        assert_int_equal(fixture_status(the_core).grace.is_on, waits);
        assert_int_equal(the_core->server.state == before, !waits);
    }
}

/* R-NOTIFY-4: given up, until it calls us. */
TEST(test_recovery_cases__whoever_calls_is_worth_trying)
{
    struct core_call call;
    tell("A lock 0 10 X -> granted; server restarts; A test 50 1 X -> grace");
    in_vain(1100);
    assert_int_equal(fixture_status(the_core).notify.given_up, 1);
    assert_false(fixture_next_call(the_core, &call));
    tell("A test 50 1 X -> granted");
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.kind, CALL_NOTIFY);
}

/* P4: what is being freed denies nobody, also in the turn in which that begins. */
TEST(test_recovery_cases__what_is_released_is_in_nobodys_way)
{
    enum { COUNT = 500 };
    limits.locks_per_client_max = 1000;
    limits.batch_puts_max = 10000;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
    lock_many(the_core, 3, A, 0, COUNT);
    assert_int_equal(share(A, 3, 3, 0), LOCK_GRANTED);
    struct request notice = {
        .kind = REQUEST_NSM_NOTIFY, .mon_name = bytes_of_text("a"), .state = 5};
    (void)step_raw(A, &notice);
    struct request request = locker_request(REQUEST_NLM_LOCK, B, 0, 0, X);
    assert_int_equal(step_raw(B, &request), LOCK_GRANTED);
    request = locker_request(REQUEST_NLM_SHARE, B, 0, 0, 0);
    request.lock.access = 1;
    assert_int_equal(step_raw(B, &request), LOCK_GRANTED);
    settle();
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, COUNT + 1);
}

/* R-SEC-3: its counter began anew. What it took before it ever said a number is of before, too. */
TEST(test_recovery_cases__a_new_counter_frees_what_had_no_number)
{
    tell("A lock 50 1 X unmonitored -> granted; A lock 0 1 X state 101 -> granted");
    (void)notify(A, "a", 1);
    tell("A is asked and says 1; there are 0 locks; A lock 0 1 X state 1 -> granted; "
         "there is 1 lock");
}

/* R-RNG-5: one client cannot use up the slots by reclaiming what it has in ever smaller pieces. */
TEST(test_recovery_cases__pieces_of_what_one_has_are_bounded)
{
    limits.locks_max = 100;
    limits.locks_per_client_max = 100;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
    tell("A lock 0 100 X -> granted; B lock 1000 end X -> granted; server restarts");
    enum lock_status status = LOCK_GRANTED;
    for (uint64_t i = 0; status == LOCK_GRANTED && i < 10000; i++)
        status = lock(B, 2000 + 2 * i, 1, S | RECLAIM);
    assert_int_equal(status, LOCK_NO_RESOURCES);
    tell("A lock 0 10 X reclaim -> granted; A lock 90 10 X reclaim -> granted; 200 s pass");
    assert_int_equal(unsettled_count(the_core), 0);
    assert_int_equal(test(C, 10, 80, X), LOCK_GRANTED);
}

/* Reclaims a byte here and a byte there of what B has from 1000 on, in as many pieces as it may. */
static void fill_with_pieces(void)
{
    struct address address = fixture_address(B.address);
    uint32_t client = client_find(the_core, &address, bytes_of_text(B.name));
    const uint64_t max = lock_most_pieces(the_core, client);
    for (uint64_t i = 0; client_at(the_core, client)->recovery.unsettled_count < max; i++) {
        struct request request = locker_request(REQUEST_NLM_LOCK, B, 2000 + 2 * i, 1, X | RECLAIM);
        assert_int_equal(step_raw(B, &request), LOCK_GRANTED);
        assert_true(i < max);
    }
}

/* An offer over more pieces than one batch takes outlives its run. */
static void leave_an_offer(void)
{
    enum { PIECES = LOCK_ACCEPT_PUTS_MAX + 6 };
    for (uint64_t i = 0; i < PIECES; i++)
        assert_int_equal(lock(A, 4 * i, 1, X), LOCK_GRANTED);
    tell("C lock 899 1 X -> granted; A lock 0 900 S wait -> blocked; C unlock 0 end -> granted");
    (void)granted(A); /* which is never answered, and perhaps taken */
    restart();
    assert_int_equal(the_core->offers_left, 1);
}

/* R-BLK-19: it is its owner's to reclaim, whatever its number of pieces (A6). */
TEST(test_recovery_cases__an_offer_in_pieces_can_be_reclaimed)
{
    leave_an_offer();
    tell("B lock 0 900 S reclaim -> denied; A lock 0 901 S reclaim -> denied; "
         "A lock 1 1 X reclaim -> denied"); /* that was offered shared */
    tell("A lock 10 20 S reclaim -> granted; grace is on; A lock 0 900 S reclaim -> granted");
    assert_int_equal(the_core->offers_left, 0);
    tell("grace is over; B test 0 900 S -> granted; B test 500 1 X -> denied; "
         "A unlock 0 end -> granted; B test 0 end X -> granted");
}

/* Who did not take it reclaims what he had before, and the rest goes with the end of grace. */
TEST(test_recovery_cases__an_offer_in_pieces_ends_with_grace)
{
    leave_an_offer();
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(lock(A, 4 * i, 1, X | RECLAIM), LOCK_GRANTED);
    tell("B test 1 1 X -> grace; 100 s pass; grace is over");
    assert_int_equal(the_core->offers_left, 0);
    assert_int_equal(fixture_status(the_core).grace.unsettled, 0);
    tell("B test 0 1 S -> denied; B test 1 1 X -> granted; B test 800 1 X -> granted");
}

TEST(test_recovery_cases__an_offer_in_pieces_can_be_given_up)
{
    leave_an_offer();
    tell("A unlock 0 500 -> granted; server restarts"); /* what is left of it is stored */
    tell("A lock 400 101 S reclaim -> denied; A lock 500 400 S reclaim -> granted; grace is over");
}

/* R-GRACE-5: `hold` keeps it for who was not told. */
TEST(test_recovery_cases__hold_keeps_an_offer_in_pieces)
{
    limits.hold_unreachable = true;
    locker_new(&limits);
    leave_an_offer();
    tell("100 s pass; grace is over");
    assert_int_equal(the_core->offers_left, 1);
    tell("B test 800 1 X -> denied; A lock 0 900 S reclaim -> granted");
    assert_int_equal(the_core->offers_left, 0);
}

/* P6, R-BLK-19: what nobody has to confirm needs no room among what has to be. */
TEST(test_recovery_cases__an_unmonitored_offer_needs_no_piece)
{
    enum { PIECES = LOCK_ACCEPT_PUTS_MAX + 6 };
    limits.locks_max = limits.locks_per_client_max = 200;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
    for (uint64_t i = 0; i < PIECES; i++)
        assert_int_equal(lock(A, 4 * i, 1, X), LOCK_GRANTED);
    tell("C lock 899 1 X -> granted; B lock 1000 end X -> granted; "
         "A lock 0 900 S wait -> blocked; C unlock 0 end -> granted");
    (void)granted(A); /* which is never answered */
    const struct table *locks = &the_core->locks.table;
    uint32_t offer = table_next(locks, SLOT_NONE);
    while (offer != SLOT_NONE && !(lock_at(the_core, offer)->flags & RECORD_LOCK_OFFER))
        offer = table_next(locks, offer);
    assert_int_not_equal(offer, SLOT_NONE);
    /* As a store may say, though who is not monitored cannot wait here. */
    lock_at(the_core, offer)->flags |= RECORD_LOCK_UNMONITORED;
    dirty_put(&the_core->dirty, RECORD_LOCK, offer);
    settle();
    restart();
    assert_int_equal(the_core->offers_left, 1); /* too many pieces are in its way */
    assert_int_equal(unlock(A, 0, 4 * (PIECES - 10)), LOCK_GRANTED);
    fill_with_pieces();
    fixture_wait(SECOND);
    settle();
    assert_int_equal(the_core->offers_left, 0);
    assert_int_equal(test(C, 0, 900, S), LOCK_GRACE);
    assert_int_equal(the_core->locks.offer_count, 0);
}

/* D6: a simulated crash makes a piece of every lock; those of before are gone first. P6: they may
 * have been as many as there can be. */
TEST(test_recovery_cases__pieces_are_put_together_anew)
{
    limits.locks_max = 100;
    locker_new(&limits);
    tell("A lock 0 100 X -> granted; B lock 1000 end X -> granted; server restarts; "
         "A lock 0 100 X reclaim -> granted");
    fill_with_pieces();
    struct locker root = {"127.0.0.1", "root", 1};
    struct request crash = {.kind = REQUEST_NSM_SIMU_CRASH};
    (void)step_raw(root, &crash);
    settle();
    assert_int_equal(unsettled_count(the_core), 2);
    tell("A lock 0 100 X reclaim -> granted; B lock 1000 end X reclaim -> granted; grace is over");
}

/* Of a million stored locks each takes a bit: only what is cut, or joined with something new, takes
 * a range. */
TEST(test_recovery_cases__whole_locks_take_no_ranges)
{
    const struct table *ranges = &the_core->unsettled.table;
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; A lock 40 10 S -> granted; "
         "server restarts");
    ranges = &the_core->unsettled.table;
    assert_int_equal(unsettled_count(the_core), 3);
    assert_int_equal(ranges->count, 0);
    tell("A lock 0 10 X reclaim -> granted"); /* as it is stored */
    assert_int_equal(unsettled_count(the_core), 2);
    assert_int_equal(ranges->count, 0);
    tell("A lock 23 2 X reclaim -> granted"); /* in the middle */
    assert_int_equal(unsettled_count(the_core), 3);
    assert_int_equal(ranges->count, 2);
    tell("A unlock 45 end -> granted"); /* its end */
    assert_int_equal(unsettled_count(the_core), 3);
    assert_int_equal(ranges->count, 3);
    tell("100 s pass; grace is over");
    assert_int_equal(unsettled_count(the_core), 0);
    tell("B test 0 10 X -> denied; B test 20 3 X -> granted; B test 23 2 X -> denied; "
         "B test 25 end X -> granted");
}

/* A lock that is yet to be confirmed becomes one with a new one beside it: its bytes still are. */
TEST(test_recovery_cases__merged_bytes_are_still_to_be_confirmed)
{
    limits.trust_reclaim = true;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; A lock 30 10 X -> granted; server restarts");
    tell("A lock 10 20 X reclaim -> granted"); /* between the two, and new */
    assert_int_equal(fixture_status(the_core).locks, 1);
    assert_int_equal(unsettled_count(the_core), 2);
    tell("A lock 30 10 X reclaim -> granted; 100 s pass; grace is over; "
         "B test 0 10 X -> granted; B test 10 30 X -> denied");
}

/* P7: what was reclaimed is passed by once, a bounded number of locks in each turn. */
TEST(test_recovery_cases__the_end_of_grace_passes_by_what_is_settled)
{
    enum { COUNT = 6000, LEFT = 3 };
    limits.locks_max = limits.locks_per_client_max = 2 * COUNT;
    limits.batch_puts_max = 2 * COUNT;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(lock(A, 2 * i, 1, X), LOCK_GRANTED);
    tell("server restarts");
    for (uint64_t i = LEFT; i < COUNT; i++)
        assert_int_equal(lock(A, 2 * i, 1, X | RECLAIM), LOCK_GRANTED);
    tell("A lock 1 1 S -> grace");
    fixture_wait(100 * SECOND);
    uint32_t turns = 0;
    for (; unsettled_count(the_core) > 0; turns++) {
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        assert_true(turns < 10);
    }
    assert_int_equal(turns, 4);
    assert_int_equal(fixture_status(the_core).locks, COUNT - LEFT);
}

/* R-SEC-6: strangers' notices cost a client only so many questions. */
TEST(test_recovery_cases__doubts_are_limited)
{
    uint32_t questions = 0;
    assert_int_equal(lock_in(3, A, 0, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < 100; i++) {
        (void)notify(ELSEWHERE, "a", 5 + 2 * i);
        struct core_call call;
        settle();
        while (fixture_next_call(the_core, &call)) {
            questions += call.kind == CALL_STAT;
            says(call, 3);
        }
    }
    assert_in_range(questions, 1, 16);
    assert_true(has_locks(A));
}

/* Clients that have nothing are spared, however many they are, and that is written in pieces. */
TEST(test_recovery_cases__the_idle_are_spared_in_pieces)
{
    enum { COUNT = 60 };
    char name[16];
    limits.clients_max = 100;
    limits.batch_puts_max = 20;
    locker_new(&limits);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "idle%d", i);
        struct locker who = {B.address, name, 1};
        assert_int_equal(lock(who, 20, 1, X), LOCK_GRANTED);
        assert_int_equal(unlock(who, 20, 1), LOCK_GRANTED);
    }
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    for (int round = 0; round < 2; round++) {
        struct core_call call;
        tell("server restarts");
        assert_int_equal(fixture_status(the_core).notify.owed, 1);
        assert_true(fixture_next_call(the_core, &call));
        fixture_call_done(the_core, call.id, true, call.our_name_count);
        tell("nobody is called; A lock 0 10 X reclaim -> granted");
    }
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)
