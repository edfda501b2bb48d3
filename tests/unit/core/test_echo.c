/*
 * test_echo.c -- what a replaced server may still call out is kept from others (decision 025).
 *
 * A holds a range, B waits for it, A unlocks, B is offered it, and the server is replaced. Whatever
 * B does then, C does not get the range before the time of the old server is over.
 */
#include "core/lock_element.h"
#include "lock_fixture.h"
#include "locker.h"
#include "unit/test.h"

#define ECHO_NS (12 * FIXTURE_SECOND)

static const struct lease shared = {.is_shared = true};

static void begin(bool resumes)
{
    struct core_limits limits = fixture_limits;
    limits.resume = resumes;
    limits.lease = &shared;
    lock_fixture_echo_ns = ECHO_NS;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; A unlock 0 10 -> granted");
    (void)granted(B); /* which the old server may repeat for a while */
}

TEST_FIXTURE(reclaiming)
{
    begin(false);
}

TEST_FIXTURE(resuming)
{
    begin(true);
}

TEST_FIXTURE(teardown)
{
    locker_done();
    lock_fixture_echo_ns = 0;
}

/* B has given it up; C waits, and gets it when the time is over, not before. */
static void expect_kept(void)
{
    settle();
    tell("C lock 5 1 X -> denied; C lock 0 10 X wait -> blocked");
    fixture_wait(ECHO_NS - 2 * FIXTURE_SECOND);
    settle();
    tell("C lock 5 1 S -> denied; 3 s pass");
    assert_false(the_core->echoes.may_be_some);
    assert_int_equal(the_core->locks.offer_count, 1); /* C's */
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_GRANTED);
    core_check(the_core);
    assert_int_equal(the_core->locks.offer_count, 0);
}

TEST_WITH(test_echo__cancelled_after_a_resume, resuming, teardown)
{
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    expect_kept();
}

TEST_WITH(test_echo__taken_and_unlocked_after_a_resume, resuming, teardown)
{
    tell("server restarts; B is called and says granted; B unlock 0 10 -> granted");
    expect_kept();
}

TEST_WITH(test_echo__reclaimed_and_unlocked, reclaiming, teardown)
{
    tell("server restarts; B lock 0 10 X reclaim -> granted; B unlock 0 10 -> granted; "
         "grace is over");
    expect_kept();
}

/* Its owner may have it: a late GRANTED says what is true then. */
TEST_WITH(test_echo__is_not_in_its_owners_way, resuming, teardown)
{
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    tell("C lock 0 10 X -> denied; B unlock 0 10 -> granted; C lock 0 10 X -> granted");
}

/* It goes by itself, so nobody waits for its owner there. */
TEST_WITH(test_echo__closes_no_circle, resuming, teardown)
{
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    tell("A lock 50 10 X -> granted; B lock 90 10 X -> granted; B lock 50 10 X wait -> blocked; "
         "A lock 0 10 X wait -> blocked");
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(A, 0, 10, X | BLOCK), LOCK_GRANTED);
}

/* Who takes over from us meanwhile knows of it, and it is nobody's lock. */
TEST_WITH(test_echo__outlives_a_second_takeover, resuming, teardown)
{
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    tell("server restarts; there are 0 locks");
    expect_kept();
}

/* Decision 025: whatever its owner does with it, also as a whole. */
TEST_WITH(test_echo__outlives_free_all, resuming, teardown)
{
    tell("server restarts; B frees all");
    expect_kept();
}

/* The same over a second takeover. Nothing was written when it became an echo: its stamp says that
 * it is nobody's. */
TEST_WITH(test_echo__outlives_free_all_and_a_takeover, resuming, teardown)
{
    tell("server restarts; B frees all; server restarts; there are 0 locks");
    expect_kept();
}

TEST_WITH(test_echo__outlives_free_all_in_grace, reclaiming, teardown)
{
    tell("server restarts; B frees all; grace is over");
    tell("B lock 0 10 X reclaim -> grace"); /* it is not B's any more */
    expect_kept();
}

/* A new life of its client takes its bytes, beside it, and gives them up again. */
TEST_WITH(test_echo__outlives_a_reboot, resuming, teardown)
{
    restart();
    struct request request = locker_request(REQUEST_NLM_LOCK, B, 0, 10, X);
    request.lock.state = 9;
    assert_int_equal(locker_step(B, &request).status, LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    expect_kept();
}

/* Nobody reclaims it, and grace is cut short: its client may not have had it at all. */
TEST_WITH(test_echo__outlives_the_end_of_grace, reclaiming, teardown)
{
    tell("server restarts; grace is on");
    assert_true(grace_end_now(the_core));
    expect_kept();
}

/* A part of it is reclaimed and given back: the rest is its owner's as before. */
TEST_WITH(test_echo__of_a_part, reclaiming, teardown)
{
    tell("server restarts; B lock 4 2 X reclaim -> granted; B unlock 4 2 -> granted");
    assert_int_equal(the_core->offers_left, 2);
    tell("B lock 0 4 X reclaim -> granted; B lock 6 4 X reclaim -> granted; "
         "C lock 4 2 X -> denied");
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    tell("C lock 4 2 X -> granted; C lock 6 1 X -> denied");
}

/* R-BLK-19: what nobody reclaims within the time is its owner's to reclaim all the same. */
TEST_WITH(test_echo__left_alone_it_becomes_a_lock, reclaiming, teardown)
{
    tell("server restarts; there are 0 locks");
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).locks, 1);
    assert_int_equal(fixture_status(the_core).grace.unsettled, 1);
    tell("B lock 0 10 X reclaim -> granted; C lock 0 10 X -> denied");
}

/* The poll was granted while the callback was under way: an offer without a waiter beside the lock.
 * At the next start it is its owner's; what the owner gives up is given up for good. */
TEST_WITH(test_echo__of_a_lingering_offer, resuming, teardown)
{
    tell("B lock 0 10 X wait -> granted; server restarts; grace is over; "
         "B cancel 0 10 X wait -> denied"); /* it has it */
    tell("B unlock 0 10 -> granted; server restarts");
    assert_int_equal(the_core->offers_left, 0);
    expect_kept();
}

TEST_WITH(test_echo__a_lingering_offer_becomes_a_lock, resuming, teardown)
{
    (void)cancel(B, 0, 10, X | BLOCK); /* which is not answered */
    tell("server restarts; B cancel 0 10 X wait -> denied");
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    tell("there is 1 lock; there are 0 offers; C lock 0 10 X -> denied; "
         "B unlock 0 10 -> granted; C lock 0 10 X -> granted");
}

/* ---- many ---- */

enum { MANY = 1200, LONG_OH = 1000 };

/* B is offered as many bytes, every second one, as a takeover could not write into one batch. */
static void offer_many(bool resumes)
{
    static uint8_t oh[LONG_OH];
    struct core_limits limits = fixture_limits;
    limits.resume = resumes;
    limits.lease = &shared;
    limits.locks_max = limits.locks_per_client_max = limits.waiters_max = MANY + 1;
    limits.bytes_max = 16 << 20;
    limits.batch_puts_max = 100;
    limits.per_address_percent = 100;
    lock_fixture_echo_ns = ECHO_NS;
    locker_new(&limits);
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    memset(oh, 'o', sizeof oh);
    for (uint32_t i = 0; i < MANY; i++) {
        struct request request = locker_request(REQUEST_NLM_LOCK, B, 2 * i, 1, X | BLOCK);
        request.lock.oh = (struct bytes){oh, sizeof oh};
        assert_int_equal(locker_step(B, &request).status, LOCK_BLOCKED);
    }
    tell("A unlock 0 end -> granted");
    assert_int_equal(the_core->locks.offer_count, MANY);
}

/* C gets none of them before the time is over, and all of them then. */
static void expect_many_kept(void)
{
    settle();
    for (uint32_t i = 0; i < MANY; i += 100)
        assert_int_equal(lock(C, 2 * i, 1, X), LOCK_DENIED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(C, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(the_core->locks.table.count, 1);
}

static void unlock_all(void)
{
    uint32_t asked = 0;
    while (unlock(B, 0, 0) != LOCK_GRANTED) {
        settle();
        assert_in_range(++asked, 1, MANY);
    }
}

TEST_WITH(test_echo__of_many_offers, NULL, teardown)
{
    offer_many(true);
    tell("server restarts; server restarts"); /* and once more: nothing is doubled */
    assert_int_equal(the_core->locks.table.count, MANY);
    unlock_all();
    expect_many_kept();
}

TEST_WITH(test_echo__of_many_offers_in_grace, NULL, teardown)
{
    offer_many(false);
    tell("server restarts; server restarts");
    assert_int_equal(the_core->locks.table.count, MANY);
    for (uint32_t i = 0; i < MANY; i += 50)
        assert_int_equal(lock(B, 2 * i, 1, X | RECLAIM), LOCK_GRANTED);
    unlock_all();
    settle();
    assert_false(fixture_status(the_core).grace.is_on);
    expect_many_kept();
}

TEST_WITH(test_echo__of_many_offers_freed, NULL, teardown)
{
    offer_many(true);
    tell("server restarts; B frees all");
    expect_many_kept();
}

TEST_WITH(test_echo__of_many_offers_given_up, NULL, teardown)
{
    offer_many(false);
    restart();
    assert_true(grace_end_now(the_core));
    expect_many_kept();
}

/* Not a slot is free: what B has said that it has stays on offer until there is one. */
TEST_WITH(test_echo__in_a_full_table, resuming, teardown)
{
    struct locker other = {"10.0.0.66", "other", 1};
    restart();
    uint32_t client = lock_fixture_client(the_core, other.address, other.name);
    uint32_t owner = owner_add(the_core, client, other.svid);
    uint32_t file = file_add(the_core, bytes_of_text("full"));
    struct lock filler = {.claim = {.owner = owner, .file = file, .exclusive = true},
                          .link = SLOT_NONE,
                          .incarnation = 1};
    filler.oh = intern_add(&the_core->locks.ohs, bytes_of_text("oh"));
    for (; lock_element_free_count(the_core) > 0; filler.claim.start = filler.claim.end += 2)
        (void)lock_element_add(the_core, &filler);
    file_release(the_core, file);
    (void)intern_release(&the_core->locks.ohs, filler.oh);
    tell("B is called and says granted; there is 1 offer; B unlock 0 10 -> granted; "
         "C lock 0 10 X -> denied");
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(test(C, 0, 10, X), LOCK_GRANTED);
}

/* Where a start needs none, what is left of them goes at once. */
TEST_WITH(test_echo__goes_where_nobody_was_replaced, resuming, teardown)
{
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    lock_fixture_echo_ns = 0;
    tell("server restarts; C lock 0 10 X -> granted");
}

TEST_MAIN(NULL, NULL, NULL, NULL)
