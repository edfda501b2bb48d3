/*
 * test_wait_cost.c -- what one client waits for, or has in another's way, costs nobody else (P7,
 * decision 026).
 *
 * Nothing is timed: the linker leads every look at a waiter or a lock (waiter_at, lock_at) through
 * this file, and looks are counted. The same request among few and among many must not take many
 * more of them.
 */
#include "locker.h"
#include "unit/test.h"

#include "core/lock.h"
#include "core/waiter.h"

enum { FEW = 10, MANY = 1000, MORE_MAX = 200 };

static uint64_t looks;

/* The linker gives these names. */
struct waiter *__real_waiter_at(const struct core *core, uint32_t slot);
struct lock *__real_lock_at(const struct core *core, uint32_t slot);
struct waiter *__wrap_waiter_at(const struct core *core, uint32_t slot);
struct lock *__wrap_lock_at(const struct core *core, uint32_t slot);

struct waiter *__wrap_waiter_at(const struct core *core, uint32_t slot)
{
    looks++;
    return __real_waiter_at(core, slot);
}

struct lock *__wrap_lock_at(const struct core *core, uint32_t slot)
{
    looks++;
    return __real_lock_at(core, slot);
}

static void begin(void)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = limits.locks_per_client_max = 5000;
    limits.waiters_max = 2000;
    limits.per_address_percent = 100;
    limits.bytes_max = 16 << 20;
    locker_new(&limits);
}

/* How often the core looks at something for this request, and nothing of what follows. */
static uint64_t looks_of(enum request_kind kind, struct locker who, uint64_t offset, int how,
                         enum lock_status expected)
{
    struct peer from = fixture_peer(who.address, 700);
    struct request request = locker_request(kind, who, offset, 1, how);
    struct core_input input = {
        .kind = CORE_REQUEST, .from = &from, .request = &request, .now_ns = fixture_now_ns()};
    struct core_answer answer;
    looks = 0;
    core_step(the_core, &input, &answer);
    uint64_t count = looks;
    assert_int_equal(answer.response.status, expected);
    settle();
    return count;
}

struct cost {
    uint64_t unlock, poll;
};

/* A waits for so many bytes, one by one or each to the end of the file, and has one. */
static struct cost among_waits(uint32_t count, bool to_the_end)
{
    begin();
    tell("B lock 10 end X -> granted; A lock 5 1 X -> granted");
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(lock(A, 10 + i, to_the_end ? 0 : 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(A, 9000, 1, X | BLOCK), LOCK_BLOCKED);
    struct cost cost = {
        .poll = looks_of(REQUEST_NLM_LOCK, A, 9000, X | BLOCK, LOCK_BLOCKED),
        .unlock = looks_of(REQUEST_NLM_UNLOCK, A, 5, X, LOCK_GRANTED),
    };
    assert_int_equal(fixture_status(the_core).waiters, count + 1);
    return cost;
}

TEST(test_wait_cost__a_request_among_waits_of_its_owner)
{
    for (int to_the_end = 0; to_the_end < 2; to_the_end++) {
        struct cost few = among_waits(FEW, to_the_end), many = among_waits(MANY, to_the_end);
        print_message("# waits%s: unlock %u -> %u looks, poll %u -> %u\n",
                      to_the_end ? " to the end" : "", (unsigned)few.unlock, (unsigned)many.unlock,
                      (unsigned)few.poll, (unsigned)many.poll);
        assert_true(many.unlock <= few.unlock + MORE_MAX);
        assert_true(many.poll <= few.poll + MORE_MAX);
    }
}

/* B has a lock and polls for what so many read, and D, who has one too, waits for B's: there might
 * be a circle. Without D there can be none, and nothing is searched. */
static uint64_t poll_among_readers(uint32_t count, bool is_searched)
{
    begin();
    tell("B lock 5 1 X -> granted");
    if (is_searched)
        tell("D lock 7 1 X -> granted; D lock 5 1 X wait -> blocked");
    for (uint32_t i = 0; i < count; i++) {
        const struct locker reader = {C.address, C.name, 100 + i};
        assert_int_equal(lock(reader, 0, 1, S), LOCK_GRANTED);
    }
    assert_int_equal(lock(B, 0, 1, X | BLOCK), LOCK_BLOCKED);
    return looks_of(REQUEST_NLM_LOCK, B, 0, X | BLOCK, LOCK_BLOCKED);
}

TEST(test_wait_cost__a_poll_among_readers)
{
    uint64_t few = poll_among_readers(FEW, false), many = poll_among_readers(MANY, false);
    print_message("# readers: %u -> %u looks\n", (unsigned)few, (unsigned)many);
    assert_true(many <= few + MORE_MAX);
}

/* A search looks at a part of them. */
TEST(test_wait_cost__a_search_for_a_circle_is_bounded)
{
    uint64_t some = poll_among_readers(600, true), many = poll_among_readers(2400, true);
    print_message("# readers and a search: %u -> %u looks\n", (unsigned)some, (unsigned)many);
    assert_true(many < 2 * some);
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)
