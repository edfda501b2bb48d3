/*
 * test_view.c -- shows that lists of clients, locks and waiters can be read in pieces of any size
 * while rows come and go: what is there all the time is seen once, nothing twice, and no piece
 * looks at more than its budget (view.h).
 *
 * Four lockers hold every second byte of the file; between two pieces some of it changes.
 */
#include "core/view.h"
#include "locker.h"
#include "unit/test.h"

enum { LOCKS = 40 };

static const struct locker *const lockers[] = {&A, &B, &C, &D};

TEST_FIXTURE(setup)
{
    locker_new(&fixture_limits);
    for (uint32_t i = 0; i < LOCKS; i++)
        assert_int_equal(lock(*lockers[i % 4], (uint64_t)i * 2, 1, X), LOCK_GRANTED);
}

/* Reads all locks, `budget` slots at a time; counts by first byte, with `between` in between. */
static uint32_t read_locks(const struct view_filter *filter, uint32_t budget,
                           void (*between)(uint32_t piece), uint32_t ret_seen[static LOCKS])
{
    uint64_t cursor = 0;
    uint32_t count = 0;
    memset(ret_seen, 0, LOCKS * sizeof *ret_seen);
    for (uint32_t piece = 0; cursor != VIEW_END; piece++) {
        assert_true(piece < 100000);
        uint32_t left = budget;
        struct view_lock view;
        while (view_next_lock(the_core, filter, &cursor, &left, &view)) {
            count++;
            if (view.claim.start / 2 < LOCKS)
                ret_seen[view.claim.start / 2]++;
        }
        assert_true(left <= budget);
        if (between != NULL)
            between(piece);
    }
    return count;
}

/* The locks of D come and go; those of the others stay. */
static void disturb(uint32_t piece)
{
    uint64_t offset = (uint64_t)(piece % 10 * 4 + 3) * 2;
    if (piece % 2 == 0)
        assert_int_equal(unlock(D, offset, 1), LOCK_GRANTED);
    else
        assert_int_equal(lock(D, 1000 + offset, 1, X), LOCK_GRANTED);
}

TEST(test_view__every_lock_once_in_pieces_of_any_size)
{
    uint32_t seen[LOCKS];
    for (uint32_t budget = 1; budget <= 2 * LOCKS; budget += 7) {
        assert_int_equal(read_locks(&(struct view_filter){0}, budget, NULL, seen), LOCKS);
        for (uint32_t i = 0; i < LOCKS; i++)
            assert_int_equal(seen[i], 1);
    }
}

TEST(test_view__what_stays_is_seen_once_whatever_happens)
{
    uint32_t seen[LOCKS];
    (void)read_locks(&(struct view_filter){0}, 1, disturb, seen);
    for (uint32_t i = 0; i < LOCKS; i++)
        assert_true(i % 4 == 3 ? seen[i] <= 1 : seen[i] == 1);
}

TEST(test_view__filters)
{
    uint32_t seen[LOCKS], budget = 1000;
    uint64_t cursor = 0, handle;
    struct view_lock first;
    assert_true(view_next_lock(the_core, &(struct view_filter){0}, &cursor, &budget, &first));
    assert_true(view_handle(the_core, first.claim.owner.client, &handle));
    assert_false(view_handle(the_core, 987654321, &handle));
    struct view_filter filter = {.client = handle};
    assert_int_equal(read_locks(&filter, VIEW_DIRECT_MAX, NULL, seen), LOCKS / 4);
    uint8_t fh[RECORD_FH_MAX];
    memcpy(fh, first.claim.fh.at, first.claim.fh.len);
    filter = (struct view_filter){.fh = {fh, first.claim.fh.len}};
    assert_int_equal(read_locks(&filter, VIEW_DIRECT_MAX, NULL, seen), LOCKS);
    filter.client = handle;
    assert_int_equal(read_locks(&filter, VIEW_DIRECT_MAX, NULL, seen), LOCKS / 4);
    fh[0] ^= 1;
    assert_int_equal(read_locks(&filter, VIEW_DIRECT_MAX, NULL, seen), 0);
    filter = (struct view_filter){.has_file_set = true, .file_set = 0};
    assert_int_equal(read_locks(&filter, 5, NULL, seen), LOCKS);
    filter.file_set = 1;
    assert_int_equal(read_locks(&filter, 5, NULL, seen), 0);

    /* A client that goes away in the middle ends its list. */
    filter = (struct view_filter){.client = handle};
    cursor = 0;
    budget = 100000;
    assert_true(view_next_lock(the_core, &filter, &cursor, &budget, &first));
    filter.client ^= UINT64_C(2) << 32; /* the handle of another life of that slot */
    assert_false(view_next_lock(the_core, &filter, &cursor, &budget, &first));
    assert_int_equal(cursor, VIEW_END);
}

TEST(test_view__clients_in_pieces)
{
    for (uint32_t budget = 1; budget < 6; budget++) {
        uint64_t cursor = 0;
        uint32_t count = 0;
        for (uint32_t piece = 0; cursor != VIEW_END && piece < 1000; piece++) {
            uint32_t left = budget;
            struct view_client view, same;
            while (view_next_client(the_core, &cursor, &left, &view)) {
                assert_int_equal(view.lock_count, LOCKS / 4);
                assert_int_equal(view.protocol, VIEW_NLM);
                assert_int_equal(view.news, VIEW_NOT_TOLD); /* no restart since they came */
                assert_true(view_find_client(the_core, view.id, &same));
                assert_int_equal(same.id, view.id);
                count++;
            }
        }
        assert_int_equal(cursor, VIEW_END);
        assert_int_equal(count, 4);
    }
    struct view_client none;
    assert_false(view_find_client(the_core, 987654321, &none));
}

TEST(test_view__after_a_restart_everything_is_unsettled)
{
    restart();
    uint64_t cursor = 0;
    uint32_t budget = 1000, clients = 0;
    struct view_client client;
    while (view_next_unsettled(the_core, &cursor, &budget, &client)) {
        assert_int_equal(client.unsettled_count, LOCKS / 4);
        clients++;
    }
    assert_int_equal(clients, 4);
    struct view_lock view;
    cursor = 0;
    assert_true(view_next_lock(the_core, &(struct view_filter){0}, &cursor, &budget, &view));
    assert_int_equal(view.state, VIEW_UNSETTLED);
    assert_int_equal(lock(A, 0, 1, X | RECLAIM), LOCK_GRANTED);
    cursor = 0;
    assert_true(view_next_lock(the_core, &(struct view_filter){0}, &cursor, &budget, &view));
    assert_int_equal(view.state, VIEW_HELD);
    cursor = 0;
    assert_true(view_next_unsettled(the_core, &cursor, &budget, &client));
    assert_int_equal(client.unsettled_count, LOCKS / 4 - 1);
}

TEST(test_view__who_waits_behind_whom)
{
    /* Owners that hold nothing: others do not wait behind waiters (R-BLK-15). */
    struct locker b = B, c = C;
    b.svid = c.svid = 77;
    assert_int_equal(lock(b, 0, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(c, 0, 1, X | BLOCK), LOCK_BLOCKED);
    uint64_t cursor = 0;
    uint32_t budget = 1000;
    struct view_waiter first, second;
    const struct view_filter all = {0};
    assert_true(view_next_waiter(the_core, &all, &cursor, &budget, &first));
    assert_true(view_next_waiter(the_core, &all, &cursor, &budget, &second));
    assert_false(view_next_waiter(the_core, &all, &cursor, &budget, &second));
    assert_int_equal(cursor, VIEW_END);
    assert_true(first.is_blocked);
    assert_int_equal(first.ahead_count, 0);
    assert_true(second.is_blocked);
    assert_int_equal(second.ahead_count, 1);
    assert_int_equal(second.blocker.client, first.blocker.client);
    struct view_lock held;
    cursor = 0;
    assert_true(view_next_lock(the_core, &all, &cursor, &budget, &held));
    assert_int_equal(held.waiter_count, 1);
    uint32_t notes[2] = {0};
    struct view_waits waits = {.notes = notes};
    struct view_wait wait;
    assert_int_equal(view_wait_slots(the_core), 2);
    for (int i = 0; i < 2; i++) {
        waits.budget = 1;
        assert_true(view_next_wait(the_core, &waits, &wait));
        assert_int_equal(wait.client, first.blocker.client);
        assert_int_equal(wait.queued_ns, i == 0 ? first.queued_ns : second.queued_ns);
    }
    assert_false(view_next_wait(the_core, &waits, &wait));
    assert_int_equal(waits.cursor, VIEW_END);
    memset(notes, 0, sizeof notes);
    waits = (struct view_waits){.notes = notes, .budget = 1};
    assert_true(view_next_wait(the_core, &waits, &wait));
    assert_false(view_next_wait(the_core, &waits, &wait)); /* nothing left to look */
    assert_int_equal(waits.cursor, 1);
}

/* One queue is one chain: all of it counts for its holder, and each waiter is looked at once. */
TEST(test_view__a_long_queue_has_one_blocker)
{
    enum { QUEUED = 3 * VIEW_COUNT_MAX };
    uint32_t notes[QUEUED] = {0}, count = 0;
    struct view_waits waits = {.notes = notes, .budget = QUEUED};
    struct view_wait wait;
    struct core_limits limits = fixture_limits;
    limits.waiters_max = QUEUED;
    locker_done();
    locker_new(&limits);
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < QUEUED; i++) {
        struct locker who = B;
        who.svid = 1000 + i;
        assert_int_equal(lock(who, 0, 1, X | BLOCK), LOCK_BLOCKED);
    }
    assert_int_equal(view_wait_slots(the_core), QUEUED);
    waits.cursor = QUEUED - 1; /* the last goes through all of them, and the others through none */
    assert_true(view_next_wait(the_core, &waits, &wait));
    assert_int_not_equal(wait.client, 0);
    uint64_t holder = wait.client;
    for (waits.cursor = 0; view_next_wait(the_core, &waits, &wait); count++)
        assert_int_equal(wait.client, holder);
    assert_int_equal(count, QUEUED);
    assert_int_equal(waits.cursor, VIEW_END);
    assert_int_equal(waits.budget, 0);
}

static struct view_client client_of(struct locker who)
{
    uint64_t cursor = 0;
    uint32_t budget = 1000;
    struct view_client view;
    while (view_next_client(the_core, &cursor, &budget, &view))
        if (bytes_equal(view.name, bytes_of_text(who.name)))
            return view;
    fail_msg("%s is not listed", who.name);
    return view;
}

TEST(test_view__last_seen_moves_with_every_call)
{
    tell("100 s pass; A test 1 1 X -> granted");
    uint64_t seen_ns = client_of(A).seen_ns;
    tell("100 s pass"); /* the clock of the core moves with its work */
    assert_int_equal(client_of(A).seen_ns, seen_ns);
    assert_int_equal(test(A, 1, 1, X), LOCK_GRANTED); /* writes nothing */
    assert_int_equal(client_of(A).seen_ns, fixture_now_ns());
    assert_true(client_of(B).seen_ns < fixture_now_ns());
}

/* After a restart nothing is shown that is later than the truth: of a registrant when it
 * registered, of a lock client when it last said something worth a write. */
TEST(test_view__last_seen_of_who_registered_and_after_a_restart)
{
    const struct locker watcher = {"10.9.0.1", "watcher", 1};
    fixture_wait(100 * FIXTURE_SECOND);
    (void)fixture_mon(the_core, watcher.address, "srv", watcher.name, 1);
    uint64_t registered_ns = fixture_now_ns();
    assert_int_equal(client_of(watcher).seen_ns, registered_ns);
    tell("100 s pass");
    assert_int_equal(client_of(watcher).seen_ns, registered_ns);
    (void)fixture_mon(the_core, watcher.address, "srv", watcher.name, 1); /* changes nothing */
    assert_int_equal(client_of(watcher).seen_ns, fixture_now_ns());
    assert_int_equal(test(A, 1, 1, X), LOCK_GRANTED);
    uint64_t called_ns = fixture_now_ns();

    restart();
    assert_int_equal(client_of(watcher).seen_ns, registered_ns);
    assert_true(client_of(A).seen_ns < called_ns);
    fixture_wait(100 * FIXTURE_SECOND);
    for (struct core_call call; fixture_next_call(the_core, &call);)
        if (call.kind == CALL_STATUS)
            fixture_call_done(the_core, call.id, true, call.status_count);
        else
            fixture_call_done(the_core, call.id, false, 0);
    assert_int_equal(client_of(watcher).seen_ns, fixture_now_ns());
    assert_true(client_of(A).seen_ns < called_ns); /* it did not answer */
    fixture_wait(FIXTURE_SECOND);
    assert_int_equal(lock(A, 0, 1, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(client_of(A).seen_ns, fixture_now_ns());
}

TEST(test_view__reclaimed_are_reclaims_of_this_recovery)
{
    assert_int_equal(client_of(A).reclaimed_count, 0); /* it has taken 10, and nothing back */
    restart();
    assert_int_equal(client_of(A).reclaimed_count, 0);
    tell("A lock 0 1 X reclaim -> granted; A lock 0 1 X reclaim -> granted"); /* a repeat */
    tell("A lock 8 1 X reclaim -> granted; A lock 2 1 X reclaim -> denied");  /* B's */
    assert_int_equal(client_of(A).reclaimed_count, 2);
    assert_int_equal(client_of(A).unsettled_count, 8);
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700);
    settle();
    assert_int_equal(client_of(A).reclaimed_count, 0);
    assert_int_equal(client_of(A).unsettled_count, 10);
    assert_int_equal(lock(A, 0, 1, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(client_of(A).reclaimed_count, 1);
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)
