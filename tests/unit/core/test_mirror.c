/*
 * test_mirror.c -- clients and programs on this machine exclude each other (core/mirror.h), and
 * locks of files that were removed go (core/gone.h).
 *
 * The kernel is an array: for each byte what we hold there for clients, and what a program does.
 * Passing shows when bytes are taken and when they are given back, what a program in the way makes
 * of LOCK, TEST and waits, and that a start mirrors what is stored or says that it could not.
 */
#include "core/state.h"
#include "monitor.h"
#include "unit/test.h"

enum { BYTES = 70000, PID = 4711 };

static struct {
    uint8_t ours[BYTES], programs[BYTES]; /* enum local_mode; the last byte stands for all others */
    uint32_t open_count, raised, lowered, refined;
    bool is_whole, has_no_room, is_not_there;
} kernel;

static uint64_t last_of(const struct local_range *range)
{
    return range->end < BYTES ? range->end : BYTES - 1;
}

static bool meets(const struct local_range *range, uint64_t *ret_at)
{
    for (uint64_t at = range->start; at <= last_of(range); at++) {
        *ret_at = at;
        if (kernel.programs[at] + range->mode > LOCAL_EXCLUSIVE &&
            kernel.programs[at] != LOCAL_NONE)
            return true;
    }
    return false;
}

static uint32_t open_file(void *context, struct bytes fh)
{
    (void)context;
    if (kernel.has_no_room || kernel.is_not_there || !bytes_equal(fh, bytes_of_text("f")))
        return kernel.has_no_room ? LOCAL_NO_ROOM : LOCAL_NO_FILE;
    kernel.open_count++;
    return 7;
}

static void close_file(void *context, uint32_t file)
{
    (void)context;
    assert_int_equal(file, 7);
    assert_int_equal(kernel.open_count, 1);
    kernel.open_count--;
    memset(kernel.ours, LOCAL_NONE, sizeof(kernel.ours));
    kernel.is_whole = false;
}

static bool raise_bytes(void *context, uint32_t file, const struct local_range *range)
{
    uint64_t at;
    (void)context;
    assert_int_equal(file, 7);
    kernel.raised++;
    if (meets(range, &at))
        return false;
    for (at = range->start; at <= last_of(range); at++)
        if (kernel.ours[at] < range->mode)
            kernel.ours[at] = (uint8_t)range->mode;
    return true;
}

static bool lower_bytes(void *context, uint32_t file, const struct local_range *range)
{
    (void)context;
    assert_int_equal(file, 7);
    kernel.lowered++;
    for (uint64_t at = range->start; !kernel.is_whole && at <= last_of(range); at++)
        if (kernel.ours[at] > range->mode)
            kernel.ours[at] = (uint8_t)range->mode;
    return !kernel.is_whole;
}

static void refine(void *context, uint32_t file)
{
    (void)context;
    (void)file;
    kernel.refined++;
    kernel.is_whole = false;
}

static bool find_program(void *context, struct bytes fh, const struct local_range *range,
                         struct local_holder *ret)
{
    uint64_t at;
    (void)context;
    (void)fh;
    if (!meets(range, &at))
        return false;
    *ret = (struct local_holder){{at, at, kernel.programs[at]}, PID};
    return true;
}

static const struct local_locks world = {.open = open_file,
                                         .close = close_file,
                                         .raise = raise_bytes,
                                         .lower = lower_bytes,
                                         .refine = refine,
                                         .find = find_program};

static int set_up(void **state)
{
    memset(&kernel, 0, sizeof kernel);
    (void)locker_set_up(state);
    core_mirror(the_core, &world);
    return 0;
}

static void program_takes(uint64_t start, uint64_t len, enum local_mode mode)
{
    memset(&kernel.programs[start], (int)mode, len);
}

/* One letter a byte, from the first on: what we hold. */
static void assert_held(const char *letters)
{
    char held[64] = "";
    for (size_t i = 0; letters[i] != 0; i++)
        held[i] = "-SX"[kernel.ours[i]];
    assert_string_equal(held, letters);
    for (size_t i = strlen(letters); i < BYTES; i++)
        assert_int_equal(kernel.ours[i], LOCAL_NONE);
}

static void start_again(void)
{
    memset(kernel.ours, LOCAL_NONE, sizeof kernel.ours); /* the process has ended */
    kernel.open_count = 0;
    restart_unready();
    core_mirror(the_core, &world);
    fixture_ready(the_core);
    settle();
}

TEST(test_mirror__what_clients_hold_is_held_in_the_kernel)
{
    tell("A lock 0 4 X -> granted; B lock 6 2 S -> granted; C lock 7 3 S -> granted");
    assert_held("XXXX--SSSS");
    tell("B unlock 6 2 -> granted");
    assert_held("XXXX---SSS");
    tell("A lock 1 1 S -> granted");
    assert_held("XSXX---SSS");
    tell("A lock 0 4 X -> granted; A unlock 2 end -> granted");
    assert_held("XX-----SSS");
    tell("A unlock 0 end -> granted; C frees all");
    assert_held("----------");
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror__an_offer_is_held_too)
{
    tell("A lock 0 4 X -> granted; B lock 2 4 X wait -> blocked; A unlock 0 4 -> granted");
    assert_held("--XXXX");
    answered(granted(B), LOCK_GRANTED);
    tell("B unlock 2 4 -> granted");
    assert_held("------");
}

TEST(test_mirror__bytes_are_taken_before_the_answer_and_kept_until_it_is_durable)
{
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 0, 4, X), LOCK_GRANTED);
    assert_held("XXXX");
    settle();
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 4, X), LOCK_GRANTED);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("XXXX");
    settle();
    assert_held("----");
    /* So is a weaker mode. */
    tell("A lock 0 4 X -> granted");
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 0, 4, S), LOCK_GRANTED);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("XXXX");
    settle();
    assert_held("SSSS");
}

TEST(test_mirror__bytes_that_are_released_twice_are_kept_until_the_second_is_durable)
{
    struct store_batch batch;
    tell("A lock 0 2 S -> granted; B lock 1 2 S -> granted");
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, B, 1, 2, S), LOCK_GRANTED);
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 2, S), LOCK_GRANTED);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("SS-");
    settle();
    assert_held("---");
}

TEST(test_mirror__a_program_is_in_the_way)
{
    program_takes(3, 2, LOCAL_EXCLUSIVE);
    tell("A lock 0 4 X -> denied; A lock 4 1 S -> denied; A lock 5 1 X -> granted");
    assert_held("-----X");
    program_takes(3, 2, LOCAL_SHARED);
    tell("A lock 4 1 S -> granted; A lock 4 1 X -> denied");
    assert_held("----SX");
}

TEST(test_mirror__test_names_the_program)
{
    program_takes(3, 1, LOCAL_EXCLUSIVE);
    struct request request = locker_request(REQUEST_NLM_TEST, A, 0, 10, S);
    struct response response = locker_step(A, &request);
    assert_int_equal(response.status, LOCK_DENIED);
    assert_int_equal(response.holder.svid, PID);
    assert_int_equal(response.holder.start, 3);
    assert_int_equal(response.holder.end, 3);
    assert_true(response.holder.exclusive);
    tell("A test 4 10 X -> granted; B lock 3 1 X -> denied; A test 3 1 X -> denied");
}

TEST(test_mirror__a_waiter_has_what_a_program_leaves)
{
    program_takes(0, 2, LOCAL_EXCLUSIVE);
    tell("A lock 0 10 X wait -> blocked; B lock 0 1 S wait -> blocked; there are 2 waiters");
    fixture_wait(MIRROR_AGAIN_NS);
    settle();
    assert_true(nobody_called());
    program_takes(0, 2, LOCAL_NONE);
    fixture_wait(MIRROR_AGAIN_NS);
    settle();
    assert_held("XXXXXXXXXX");
    answered(granted(A), LOCK_GRANTED);
    /* B waits for A from now on, not for programs. */
    uint32_t raised = kernel.raised;
    fixture_wait(3 * MIRROR_AGAIN_NS);
    settle();
    assert_int_equal(kernel.raised, raised);
    tell("A unlock 0 10 -> granted");
    answered(granted(B), LOCK_GRANTED);
    assert_held("S");
}

TEST(test_mirror__who_stops_waiting_for_a_program_is_gone)
{
    program_takes(0, 1, LOCAL_EXCLUSIVE);
    tell("A lock 0 1 X wait -> blocked; A cancel 0 1 X -> granted; there are 0 waiters");
    program_takes(0, 1, LOCAL_NONE);
    fixture_wait(10 * FIXTURE_SECOND);
    settle();
    assert_true(nobody_called());
    assert_held("-");
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror__a_refused_lock_leaves_nothing)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = 1;
    locker_new(&limits);
    core_mirror(the_core, &world);
    tell("A lock 0 1 X -> granted; B lock 2 1 X -> nolocks");
    assert_held("X--");
}

TEST(test_mirror__a_start_takes_what_is_stored)
{
    tell("A lock 0 4 X -> granted; B lock 6 2 S -> granted");
    start_again();
    assert_held("XXXX--SS");
    assert_int_equal(events_of(EVENT_LOCAL_REFUSED), 0);
    tell("grace is on; A lock 0 4 X reclaim -> granted; B lock 6 2 S reclaim -> granted");
    tell("A unlock 0 4 -> granted");
    assert_held("------SS");
}

TEST(test_mirror__who_does_not_reclaim_loses_it_there_too)
{
    tell("A lock 0 4 X -> granted");
    start_again();
    assert_held("XXXX");
    fixture_wait(1000 * FIXTURE_SECOND);
    settle();
    assert_held("----");
}

TEST(test_mirror__a_program_that_was_faster_is_no_secret)
{
    tell("A lock 0 4 X -> granted; A lock 6 1 X -> granted");
    program_takes(2, 1, LOCAL_EXCLUSIVE);
    start_again();
    assert_int_equal(events_of(EVENT_LOCAL_REFUSED), 1);
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    assert_held("XX-X--X"); /* as much of it as can be had */
    tell("A lock 0 4 X reclaim -> granted; A lock 6 1 X reclaim -> granted");
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_int_equal(events_of(EVENT_LOCAL_REFUSED), 0); /* it was said */
    program_takes(2, 1, LOCAL_NONE);
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XXXX--X");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
}

TEST(test_mirror__what_is_held_beside_a_program_is_granted_again)
{
    tell("A lock 0 4 X -> granted");
    program_takes(2, 1, LOCAL_EXCLUSIVE);
    start_again();
    tell("A lock 0 4 X reclaim -> granted; grace is over");
    /* An answer that was lost, a downgrade, and the same of that. */
    tell("A lock 0 4 X -> granted; A lock 1 2 S -> granted; A lock 1 2 S -> granted");
    tell("A lock 2 1 S wait -> granted; there are 0 waiters");
    assert_held("XS-X");
    /* What is more than that is not. */
    tell("A lock 1 2 X -> denied; A lock 2 3 S -> denied; B lock 2 1 S -> denied");
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    program_takes(2, 1, LOCAL_NONE);
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XSSX");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
}

TEST(test_mirror__a_file_that_goes_is_refused_no_more)
{
    tell("A lock 0 4 X -> granted");
    program_takes(2, 1, LOCAL_EXCLUSIVE);
    start_again();
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    tell("A unlock 0 4 -> granted");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror__more_is_released_than_can_be_noted)
{
    tell("A lock 0 4 X -> granted; B lock 6 1 X -> granted");
    uint32_t file = file_find(the_core, bytes_of_text("f"));
    const struct claim nothing = {100, 100, SLOT_NONE, file, true};
    while (list_is_empty(&file_at(the_core, file)->behind))
        mirror_loosen(the_core, &nothing);
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 4, X), LOCK_GRANTED);
    assert_held("XXXX--X");
    for (int i = 0; i < 20; i++)
        settle(); /* so much is lowered in a turn, and no more */
    assert_held("------X");
    tell("B unlock 6 1 -> granted");
    assert_int_equal(kernel.open_count, 0);
}

static void with_many_locks(void)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = limits.locks_per_client_max = 4000;
    limits.per_address_percent = 100;
    locker_new(&limits);
    core_mirror(the_core, &world);
}

TEST(test_mirror__a_file_that_is_held_as_a_whole_is_refined_when_its_pieces_are_few)
{
    with_many_locks();
    for (uint32_t i = 0; i < 600; i++)
        assert_int_equal(lock(A, 2 * (uint64_t)i, 1, X), LOCK_GRANTED);
    kernel.is_whole = true;
    memset(kernel.ours, LOCAL_EXCLUSIVE, BYTES);
    tell("A unlock 1100 20 -> granted");
    assert_int_equal(kernel.refined, 0);
    tell("A unlock 20 1180 -> granted");
    settle();
    assert_int_equal(kernel.refined, 1);
    assert_held("X-X-X-X-X-X-X-X-X-X-");
}

TEST(test_mirror__what_is_released_while_a_file_is_gone_through_is_kept_until_it_is_durable)
{
    struct store_batch batch;
    tell("A lock 0 2 X -> granted; B lock 4 4 X -> granted");
    kernel.is_whole = true;
    memset(kernel.ours, LOCAL_EXCLUSIVE, BYTES);
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 2, X), LOCK_GRANTED);
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 9, 1, X), LOCK_GRANTED);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_int_equal(kernel.refined, 1);
    /* It is gone through when this batch is durable; these bytes are released in the next. */
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, B, 5, 2, X), LOCK_GRANTED);
    assert_int_equal(kernel.ours[0], LOCAL_EXCLUSIVE);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("----XXXX-X");
    settle();
    assert_held("----X--X-X");
}

TEST(test_mirror__one_file_too_many_is_refused)
{
    kernel.has_no_room = true;
    tell("A lock 0 4 X -> nolocks");
    assert_int_equal(events_of(EVENT_LOCAL_NO_ROOM), 1);
    assert_int_equal(fixture_status(the_core).locks, 0);
    kernel.has_no_room = false;
    tell("A lock 0 4 X -> granted");
    assert_held("XXXX");
}

TEST(test_mirror__one_file_too_many_at_a_start_is_no_secret)
{
    tell("A lock 0 4 X -> granted");
    kernel.has_no_room = true;
    start_again();
    assert_int_equal(events_of(EVENT_LOCAL_NO_ROOM), 1);
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    kernel.has_no_room = false;
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XXXX");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
}

TEST(test_mirror__what_could_not_be_opened_before_comes_along)
{
    kernel.is_not_there = true;
    tell("A lock 0 4 X -> granted");
    assert_held("----");
    kernel.is_not_there = false;
    tell("B lock 6 1 S -> granted");
    assert_held("XXXX--S");
}

TEST(test_mirror__a_reclaim_on_trust_meets_a_program)
{
    struct core_limits limits = fixture_limits;
    limits.trust_reclaim = true;
    locker_new(&limits);
    core_mirror(the_core, &world);
    tell("B lock 20 1 X -> granted");
    restart_with(&limits);
    kernel.open_count = 0;
    core_mirror(the_core, &world);
    program_takes(0, 1, LOCAL_EXCLUSIVE);
    tell("grace is on; A lock 0 1 X reclaim -> denied; A lock 1 1 X reclaim -> granted");
}

static void file_gone(const char *fh)
{
    const struct core_input input = {.kind = CORE_FILE_GONE,
                                     .now_ns = fixture_now_ns(),
                                     .wall_ns = fixture_now_ns(),
                                     .fh = bytes_of_text(fh)};
    core_step(the_core, &input, NULL);
    settle();
}

TEST(test_gone__locks_of_a_removed_file_go_and_waiters_are_answered)
{
    tell("A lock 0 4 X -> granted; A2 lock 8 1 S -> granted; A share rw deny w -> granted");
    tell("B lock 0 2 X wait -> blocked");
    file_gone("g");
    tell("there are 2 locks");
    file_gone("f");
    tell("there are 0 locks; there is 1 offer; A has 0 shares");
    assert_int_equal(events_of(EVENT_FILE_GONE), 1);
    answered(granted(B), LOCK_GRANTED);
    tell("there is 1 lock; B unlock 0 2 -> granted");
    assert_held("----");
    file_gone("f");
    assert_int_equal(events_of(EVENT_FILE_GONE), 0);
}

TEST(test_gone__many_go_in_pieces)
{
    with_many_locks();
    for (uint32_t i = 0; i < 3000; i++)
        assert_int_equal(lock(A, 2 * (uint64_t)i, 1, X), LOCK_GRANTED);
    file_gone("f");
    tell("there are 0 locks");
    assert_int_equal(events_of(EVENT_FILE_GONE), 1);
}

TEST(test_gone__what_nobody_reclaimed_goes_too)
{
    tell("A lock 0 4 X -> granted");
    start_again();
    tell("grace is on");
    file_gone("f");
    tell("grace is over; there are 0 locks");
}

TEST_MAIN(set_up, locker_tear_down, NULL, NULL)
