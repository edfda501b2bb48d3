/*
 * test_echo.c -- what a replaced server may still call out is kept from others (decision 025).
 *
 * A holds a range, B waits for it, A unlocks, B is offered it, and the server is replaced. Whatever
 * B does then, C does not get the range before the time of the old server is over.
 */
#include "core/lock_element.h"
#include "lock_fixture.h"
#include "locker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ECHO_NS (12 * FIXTURE_SECOND)

static void begin(bool resumes)
{
    struct core_limits limits = fixture_limits;
    limits.resume = resumes;
    limits.shared_store = true;
    lock_fixture_echo_ns = ECHO_NS;
    (void)locker_new(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    (void)granted(B); /* which the old server may repeat for a while */
}

static int reclaiming(void **state)
{
    (void)state;
    begin(false);
    return 0;
}

static int resuming(void **state)
{
    (void)state;
    begin(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    locker_done();
    lock_fixture_echo_ns = 0;
    return 0;
}

/* B has given it up; C waits, and gets it when the time is over, not before. */
static void expect_kept(void)
{
    settle();
    assert_int_equal(lock(C, 5, 1, X), LOCK_DENIED);
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_BLOCKED);
    fixture_wait(ECHO_NS - 2 * FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(C, 5, 1, S), LOCK_DENIED);
    fixture_wait(3 * FIXTURE_SECOND);
    settle();
    assert_false(the_core->echoes.may_be_some);
    assert_int_equal(the_core->locks.offer_count, 1); /* C's */
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_GRANTED);
    core_check(the_core);
    assert_int_equal(the_core->locks.offer_count, 0);
}

static void test_echo__cancelled_after_a_resume(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    expect_kept();
}

static void test_echo__taken_and_unlocked_after_a_resume(void **state)
{
    (void)state;
    restart();
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    expect_kept();
}

static void test_echo__reclaimed_and_unlocked(void **state)
{
    (void)state;
    restart();
    assert_int_equal(lock(B, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    settle();
    assert_false(fixture_status(the_core).grace.is_on);
    expect_kept();
}

/* Its owner may have it: a late GRANTED says what is true then. */
static void test_echo__is_not_in_its_owners_way(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 10, X), LOCK_GRANTED);
}

/* It goes by itself, so nobody waits for its owner there. */
static void test_echo__closes_no_circle(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    assert_int_equal(lock(A, 50, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 90, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 50, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(A, 0, 10, X | BLOCK), LOCK_BLOCKED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(A, 0, 10, X | BLOCK), LOCK_GRANTED);
}

/* Who takes over from us meanwhile knows of it, and it is nobody's lock. */
static void test_echo__outlives_a_second_takeover(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    restart();
    settle();
    assert_int_equal(fixture_status(the_core).locks, 0);
    expect_kept();
}

/* Decision 025: whatever its owner does with it, also as a whole. */
static void test_echo__outlives_free_all(void **state)
{
    (void)state;
    restart();
    free_all(B);
    expect_kept();
}

/* The same over a second takeover. Nothing was written when it became an echo: its stamp says that
 * it is nobody's. */
static void test_echo__outlives_free_all_and_a_takeover(void **state)
{
    (void)state;
    restart();
    free_all(B);
    settle();
    restart();
    settle();
    assert_int_equal(fixture_status(the_core).locks, 0);
    expect_kept();
}

static void test_echo__outlives_free_all_in_grace(void **state)
{
    (void)state;
    restart();
    free_all(B);
    settle();
    assert_false(fixture_status(the_core).grace.is_on);
    assert_int_equal(lock(B, 0, 10, X | RECLAIM), LOCK_GRACE); /* it is not B's any more */
    expect_kept();
}

/* A new life of its client takes its bytes, beside it, and gives them up again. */
static void test_echo__outlives_a_reboot(void **state)
{
    (void)state;
    restart();
    struct request request = locker_request(REQUEST_NLM_LOCK, B, 0, 10, X);
    request.lock.state = 9;
    assert_int_equal(locker_step(B, &request).status, LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    expect_kept();
}

/* Nobody reclaims it, and grace is cut short: its client may not have had it at all. */
static void test_echo__outlives_the_end_of_grace(void **state)
{
    (void)state;
    restart();
    assert_true(fixture_status(the_core).grace.is_on);
    assert_true(grace_end_now(the_core));
    expect_kept();
}

/* A part of it is reclaimed and given back: the rest is its owner's as before. */
static void test_echo__of_a_part(void **state)
{
    (void)state;
    restart();
    assert_int_equal(lock(B, 4, 2, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(unlock(B, 4, 2), LOCK_GRANTED);
    assert_int_equal(the_core->offers_left, 2);
    assert_int_equal(lock(B, 0, 4, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(B, 6, 4, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(C, 4, 2, X), LOCK_DENIED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(C, 4, 2, X), LOCK_GRANTED);
    assert_int_equal(lock(C, 6, 1, X), LOCK_DENIED);
}

/* R-BLK-19: what nobody reclaims within the time is its owner's to reclaim all the same. */
static void test_echo__left_alone_it_becomes_a_lock(void **state)
{
    (void)state;
    restart();
    assert_int_equal(fixture_status(the_core).locks, 0);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).locks, 1);
    assert_int_equal(fixture_status(the_core).grace.unsettled, 1);
    assert_int_equal(lock(B, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
}

/* The poll was granted while the callback was under way: an offer without a waiter beside the lock.
 * At the next start it is its owner's; what the owner gives up is given up for good. */
static void test_echo__of_a_lingering_offer(void **state)
{
    (void)state;
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    settle();
    restart();
    assert_false(fixture_status(the_core).grace.is_on);
    assert_int_equal(cancel(B, 0, 10, X | BLOCK), LOCK_DENIED); /* it has it */
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    settle();
    restart();
    settle();
    assert_int_equal(the_core->offers_left, 0);
    expect_kept();
}

static void test_echo__a_lingering_offer_becomes_a_lock(void **state)
{
    (void)state;
    (void)cancel(B, 0, 10, X | BLOCK); /* which is not answered */
    restart();
    assert_int_equal(cancel(B, 0, 10, X | BLOCK), LOCK_DENIED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).locks, 1);
    assert_int_equal(fixture_status(the_core).offers, 0);
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 10, X), LOCK_GRANTED);
}

/* ---- many ---- */

enum { MANY = 1200, LONG_OH = 1000 };

/* B is offered as many bytes, every second one, as a takeover could not write into one batch. */
static void offer_many(bool resumes)
{
    static uint8_t oh[LONG_OH];
    struct core_limits limits = fixture_limits;
    limits.resume = resumes;
    limits.shared_store = true;
    limits.locks_max = limits.locks_per_client_max = limits.waiters_max = MANY + 1;
    limits.bytes_max = 16 << 20;
    limits.batch_puts_max = 100;
    limits.per_address_percent = 100;
    lock_fixture_echo_ns = ECHO_NS;
    (void)locker_new(&limits);
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    memset(oh, 'o', sizeof oh);
    for (uint32_t i = 0; i < MANY; i++) {
        struct request request = locker_request(REQUEST_NLM_LOCK, B, 2 * i, 1, X | BLOCK);
        request.lock.oh = (struct bytes){oh, sizeof oh};
        assert_int_equal(locker_step(B, &request).status, LOCK_BLOCKED);
    }
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    settle();
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

static void test_echo__of_many_offers(void **state)
{
    (void)state;
    offer_many(true);
    restart();
    restart(); /* and once more: nothing is doubled */
    assert_int_equal(the_core->locks.table.count, MANY);
    unlock_all();
    expect_many_kept();
}

static void test_echo__of_many_offers_in_grace(void **state)
{
    (void)state;
    offer_many(false);
    restart();
    restart();
    assert_int_equal(the_core->locks.table.count, MANY);
    for (uint32_t i = 0; i < MANY; i += 50)
        assert_int_equal(lock(B, 2 * i, 1, X | RECLAIM), LOCK_GRANTED);
    unlock_all();
    settle();
    assert_false(fixture_status(the_core).grace.is_on);
    expect_many_kept();
}

static void test_echo__of_many_offers_freed(void **state)
{
    (void)state;
    offer_many(true);
    restart();
    free_all(B);
    expect_many_kept();
}

static void test_echo__of_many_offers_given_up(void **state)
{
    (void)state;
    offer_many(false);
    restart();
    assert_true(grace_end_now(the_core));
    expect_many_kept();
}

/* Not a slot is free: what B has said that it has stays on offer until there is one. */
static void test_echo__in_a_full_table(void **state)
{
    (void)state;
    struct locker other = {"10.0.0.66", "other", 1};
    restart();
    uint32_t client = lock_fixture_client(the_core, other.address, other.name);
    uint32_t owner = owner_add(the_core, client, other.svid);
    uint32_t file = file_add(the_core, bytes_of_text("full"));
    struct lock filler = {.claim = {.owner = owner, .file = file, .exclusive = true},
                          .holding = SLOT_NONE,
                          .waiter = SLOT_NONE,
                          .callback = SLOT_NONE,
                          .incarnation = 1};
    filler.oh = intern_add(&the_core->locks.ohs, bytes_of_text("oh"));
    for (; lock_element_free_count(the_core) > 0; filler.claim.start = filler.claim.end += 2)
        (void)lock_element_add(the_core, &filler);
    file_release(the_core, file);
    (void)intern_release(&the_core->locks.ohs, filler.oh);
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).offers, 1);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    settle();
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(test(C, 0, 10, X), LOCK_GRANTED);
}

/* Where a start needs none, what is left of them goes at once. */
static void test_echo__goes_where_nobody_was_replaced(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    lock_fixture_echo_ns = 0;
    restart();
    settle();
    assert_int_equal(lock(C, 0, 10, X), LOCK_GRANTED);
}

#define RESUMED(name)   cmocka_unit_test_setup_teardown(test_echo__##name, resuming, teardown)
#define RECLAIMED(name) cmocka_unit_test_setup_teardown(test_echo__##name, reclaiming, teardown)
#define ALONE(name)     cmocka_unit_test_teardown(test_echo__##name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESUMED(cancelled_after_a_resume),
        RESUMED(taken_and_unlocked_after_a_resume),
        RECLAIMED(reclaimed_and_unlocked),
        RESUMED(is_not_in_its_owners_way),
        RESUMED(closes_no_circle),
        RESUMED(outlives_a_second_takeover),
        RESUMED(outlives_free_all),
        RESUMED(outlives_free_all_and_a_takeover),
        RECLAIMED(outlives_free_all_in_grace),
        RESUMED(outlives_a_reboot),
        RECLAIMED(outlives_the_end_of_grace),
        RECLAIMED(of_a_part),
        RECLAIMED(left_alone_it_becomes_a_lock),
        RESUMED(of_a_lingering_offer),
        RESUMED(a_lingering_offer_becomes_a_lock),
        ALONE(of_many_offers),
        ALONE(of_many_offers_in_grace),
        ALONE(of_many_offers_freed),
        ALONE(of_many_offers_given_up),
        RESUMED(in_a_full_table),
        RESUMED(goes_where_nobody_was_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
