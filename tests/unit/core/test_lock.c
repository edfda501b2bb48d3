/*
 * test_lock.c -- what lock.h promises, case by case: which locks an owner has after each operation,
 * what is written for it, limits and the reserve of UNLOCK, offers, clients that start anew, and
 * records that come back. test_lock_model.c holds all of it against a model.
 */
#include "base/prng.h"
#include "lock_world.h"
#include "unit/test.h"

enum { CLIENTS = 2, SLOTS = 4096 };

/* Processes of two clients on the first file. */
static const struct who A = {0, 1, 0}, A2 = {0, 2, 0}, B = {1, 1, 0};

static struct core *core;

TEST_FIXTURE(set_up)
{
    core = lock_world_new(CLIENTS, SLOTS, &lock_world_limits);
}

TEST_FIXTURE(tear_down)
{
    lock_world_check(core);
    lock_world_free(core);
}

static void use(uint32_t slots_max, const struct core_limits *limits)
{
    lock_world_free(core);
    core = lock_world_new(CLIENTS, slots_max, limits);
}

static void take(struct who who, uint64_t start, uint64_t end, bool exclusive)
{
    assert_int_equal(lock_world_obstacle(core, who, start, end, exclusive), SLOT_NONE);
    assert_true(lock_world_take(core, who, start, end, exclusive));
    lock_world_check(core);
}

static void release(struct who who, uint64_t start, uint64_t end)
{
    assert_true(lock_world_release(core, who, start, end));
    lock_world_check(core);
}

static void assert_held(struct who who, const char *text)
{
    assert_string_equal(lock_world_held(core, who), text);
}

static bool covers(struct who who, uint64_t start, uint64_t end, bool exclusive)
{
    struct claim claim = lock_world_claim(core, who, start, end, exclusive);
    return lock_covers(core, &claim);
}

/* The slot of the element of this owner that begins here. */
static uint32_t slot_of(struct who who, uint64_t start)
{
    const struct table *table = &core->locks.table;
    uint32_t owner = lock_world_owner(core, who);
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot))
        if (lock_at(core, slot)->claim.owner == owner && lock_at(core, slot)->claim.start == start)
            return slot;
    fail_msg("no lock begins at %u", (unsigned)start);
    return SLOT_NONE;
}

static uint32_t written(void)
{
    uint32_t count = core->dirty.of[RECORD_LOCK].count;
    dirty_clear(&core->dirty);
    return count;
}

/* ---- taking and giving up ---- */

TEST(test_lock__ranges_of_one_owner)
{
    take(A, 10, 19, false);
    take(A, 30, 39, false);
    assert_held(A, "s 10-19, s 30-39");
    take(A, 20, 29, false); /* adjacent on both sides */
    assert_held(A, "s 10-39");
    take(A, 15, 24, true); /* upgrade in the middle */
    assert_held(A, "s 10-14, x 15-24, s 25-39");
    take(A, 0, 14, true);
    assert_held(A, "x 0-24, s 25-39");
    take(A, 20, 29, false); /* downgrade over the border */
    assert_held(A, "x 0-19, s 20-39");
    take(A, 0, UINT64_MAX, false);
    assert_held(A, "s 0-end");
    release(A, 100, 199);
    assert_held(A, "s 0-99, s 200-end");
    release(A, 0, 9);
    release(A, 1000, UINT64_MAX);
    assert_held(A, "s 10-99, s 200-999");
    release(A, 120, 150); /* not held */
    release(B, 0, UINT64_MAX);
    assert_held(A, "s 10-99, s 200-999");
    release(A, 0, UINT64_MAX);
    assert_held(A, "");
    assert_int_equal(core->owners.table.count, 0);
    assert_int_equal(core->files.handles.table.count, 0);
}

TEST(test_lock__what_is_in_whose_way)
{
    take(A, 10, 19, false);
    take(B, 15, 30, false);
    assert_int_equal(lock_world_obstacle(core, B, 0, 9, true), SLOT_NONE);
    assert_int_equal(lock_world_obstacle(core, B, 0, 10, true), slot_of(A, 10));
    assert_int_equal(lock_world_obstacle(core, B, 0, 10, false), SLOT_NONE);
    assert_int_equal(lock_world_obstacle(core, A, 0, 14, true), SLOT_NONE);
    assert_int_equal(lock_world_obstacle(core, A, 0, 15, true), slot_of(B, 15));
    /* Another process of the same host is somebody else. */
    assert_int_equal(lock_world_obstacle(core, A2, 0, 99, true), slot_of(A, 10));
    /* And who is not known at all is nobody's. */
    const struct who stranger = {1, 77, 0};
    assert_int_equal(lock_world_obstacle(core, stranger, 20, 99, true), slot_of(B, 15));
    assert_int_equal(lock_world_obstacle(core, stranger, 31, UINT64_MAX, true), SLOT_NONE);
    /* Another file is another matter. */
    const struct who elsewhere = {1, 1, 1};
    assert_int_equal(lock_world_obstacle(core, elsewhere, 0, UINT64_MAX, true), SLOT_NONE);
}

TEST(test_lock__edges_of_the_largest_file)
{
    const uint64_t half = INT64_MAX;
    take(A, UINT64_MAX, UINT64_MAX, true);
    take(A, 0, 0, true);
    assert_held(A, "x 0-0, x 18446744073709551615-end");
    assert_int_equal(lock_world_obstacle(core, B, 1, UINT64_MAX - 1, true), SLOT_NONE);
    take(B, 1, half - 1, false);
    take(B, half, half, false);
    take(B, half + 1, UINT64_MAX - 1, false);
    assert_held(B, "s 1-18446744073709551614");
    assert_int_equal(lock_world_obstacle(core, A, half, half, true), slot_of(B, 1));
    release(B, half, half);
    assert_held(B, "s 1-9223372036854775806, s 9223372036854775808-18446744073709551614");
    take(A, half, half, true);
    release(A, 0, 0);
    release(A, half, UINT64_MAX);
    assert_held(A, "");
    release(B, 0, UINT64_MAX);
    take(A, 0, UINT64_MAX, true);
    release(A, 1, UINT64_MAX - 1);
    assert_held(A, "x 0-0, x 18446744073709551615-end");
    take(A, 1, UINT64_MAX - 1, true);
    assert_held(A, "x 0-end");
    assert_true(covers(A, 0, UINT64_MAX, true));
}

/* ---- what a record says, and when it is written ---- */

TEST(test_lock__a_repeat_writes_nothing)
{
    take(A, 10, 19, true);
    assert_int_equal(written(), 1);
    lock_world_forget();
    take(A, 10, 19, true);
    take(A, 12, 13, true); /* nor does a part of it */
    assert_int_equal(written(), 0);
    assert_int_equal(lock_world_log.changed_count, 0);
    release(A, 0, 9);
    release(A, 20, UINT64_MAX);
    assert_int_equal(written(), 0);
    /* A new oh is written: it is what TEST shows. */
    struct lock_want want = lock_world_want(10, 19, true);
    want.oh = bytes_of_text("other");
    want.wall_ns = 99;
    assert_true(lock_world_carry_out(core, A, &want));
    assert_int_equal(written(), 1);
    const struct lock *lock = lock_at(core, slot_of(A, 10));
    assert_true(bytes_equal(intern_bytes(&core->locks.ohs, lock->oh), want.oh));
    assert_int_equal(lock->granted_ns, 1);
    assert_int_equal(core->locks.ohs.table.count, 1);
}

TEST(test_lock__slots_are_changed_rather_than_used_again)
{
    take(A, 10, 19, false);
    uint32_t slot = slot_of(A, 10);
    assert_int_equal(written(), 1);
    take(A, 20, 29, false);
    assert_int_equal(slot_of(A, 10), slot);
    assert_int_equal(written(), 1);
    take(A, 5, 9, false);
    assert_int_equal(slot_of(A, 5), slot);
    assert_int_equal(written(), 1);
    take(A, 40, 49, false);
    assert_int_equal(written(), 1);
    lock_world_forget();
    take(A, 0, 99, true); /* one is changed, the other deleted */
    assert_int_equal(slot_of(A, 0), slot);
    assert_int_equal(written(), 2);
    assert_int_equal(core->locks.table.count, 1);
    assert_false(lock_world_was_changed(slot)); /* it is in the way as it was, and more */
    assert_int_equal(lock_world_log.changed_count, 1);
    take(A, 0, 99, false);
    assert_true(lock_world_was_changed(slot));
    assert_int_equal(written(), 1);
    release(A, 40, 49);
    assert_int_equal(slot_of(A, 0), slot);
    assert_int_equal(written(), 2);
}

/* R-RNG-2: what was sent is told to clients as long as the lock is what was asked for. */
TEST(test_lock__len_as_sent)
{
    struct lock_want want = lock_world_want(100, UINT64_MAX, false);
    want.len = UINT64_MAX; /* some say "to the end" like this */
    assert_true(lock_world_carry_out(core, A, &want));
    assert_int_equal(lock_at(core, slot_of(A, 100))->len, UINT64_MAX);
    take(A, 200, 299, false); /* inside: it stays what was asked for */
    assert_int_equal(lock_at(core, slot_of(A, 100))->len, UINT64_MAX);
    struct lock_want part = lock_world_want(300, 399, false); /* also if it brings a new oh */
    part.oh = bytes_of_text("other");
    assert_true(lock_world_carry_out(core, A, &part));
    assert_int_equal(lock_at(core, slot_of(A, 100))->len, UINT64_MAX);
    take(A, 50, 99, false);
    assert_int_equal(lock_at(core, slot_of(A, 50))->len, 0);
    release(A, 300, 399);
    assert_int_equal(lock_at(core, slot_of(A, 50))->len, 250);
    assert_int_equal(lock_at(core, slot_of(A, 400))->len, 0);
    release(A, 100, 109);
    assert_int_equal(lock_at(core, slot_of(A, 50))->len, 50);
    assert_int_equal(lock_at(core, slot_of(A, 110))->len, 190);
    want.claim.exclusive = true; /* as asked again, by way of a change of mode */
    assert_true(lock_world_carry_out(core, A, &want));
    assert_int_equal(lock_at(core, slot_of(A, 100))->len, UINT64_MAX);
    assert_int_equal(lock_at(core, slot_of(A, 50))->len, 50);
    want = lock_world_want(50, UINT64_MAX, true); /* merged, and as asked */
    want.len = UINT64_MAX;
    assert_true(lock_world_carry_out(core, A, &want));
    assert_int_equal(lock_at(core, slot_of(A, 50))->len, UINT64_MAX);
}

/* R-SEC-3: a reboot frees what was taken before it, so that must stay a lock of its own. */
TEST(test_lock__stamps_are_not_merged)
{
    struct lock_want want = lock_world_want(10, 19, true);
    want.state = 3;
    take(A, 0, 9, true);
    assert_true(lock_world_carry_out(core, A, &want));
    want = lock_world_want(20, 29, true);
    want.is_unmonitored = true;
    assert_true(lock_world_carry_out(core, A, &want));
    assert_held(A, "x 0-9, x 10-19, x 20-29");
    want = lock_world_want(5, 24, true); /* newer: it replaces what it overlaps */
    want.state = 5;
    assert_true(lock_world_carry_out(core, A, &want));
    lock_world_check(core);
    assert_held(A, "x 0-4, x 5-24, x 25-29");
    assert_int_equal(lock_at(core, slot_of(A, 0))->state, 1);
    assert_int_equal(lock_at(core, slot_of(A, 5))->state, 5);
    assert_int_equal(lock_at(core, slot_of(A, 25))->flags, RECORD_LOCK_UNMONITORED);
}

/* ---- limits ---- */

TEST(test_lock__room_by_every_limit)
{
    struct core_limits limits = lock_world_limits;
    limits.locks_max = 3;
    limits.locks_per_client_max = 2;
    use(SLOTS, &limits);
    assert_int_equal(lock_room(core, SLOT_NONE), ADMIT_NEW);
    take(A, 0, 0, false);
    take(A, 2, 2, false);
    assert_int_equal(lock_room(core, A.client), ADMIT_CLIENT);
    assert_int_equal(lock_room(core, B.client), ADMIT_NEW);
    core->has_room = false;
    assert_int_equal(lock_room(core, B.client), ADMIT_STORE);
    core->limits.bytes_max = arena_used(core->arena);
    assert_int_equal(lock_room(core, B.client), ADMIT_BYTES);
    assert_int_equal(lock_room(core, A.client), ADMIT_CLIENT);
    take(B, 4, 4, false);
    assert_int_equal(lock_room(core, A.client), ADMIT_LIMIT);
    assert_int_equal(lock_room(core, SLOT_NONE), ADMIT_LIMIT);
    struct lock_want want = lock_world_want(8, 8, false);
    assert_int_equal(lock_world_offer(core, B, &want, 5), SLOT_NONE);
    core->limits = lock_world_limits;
    core->has_room = true;
    assert_int_not_equal(lock_world_offer(core, B, &want, 5), SLOT_NONE);
}

/* R-RNG-5: an UNLOCK that splits goes on when the limit is reached, until no slot is left. */
TEST(test_lock__unlock_splits_out_of_the_reserve)
{
    struct core_limits limits = lock_world_limits;
    limits.locks_max = 1;
    use(4, &limits);
    take(A, 0, 99, true);
    assert_int_equal(lock_room(core, A.client), ADMIT_LIMIT);
    release(A, 10, 10);
    release(A, 20, 20);
    release(A, 30, 30);
    assert_held(A, "x 0-9, x 11-19, x 21-29, x 31-99");
    lock_world_forget();
    dirty_clear(&core->dirty);
    assert_false(lock_world_release(core, A, 40, 40));
    assert_false(lock_world_take(core, A, 50, 50, false)); /* nor is there room for a downgrade */
    assert_held(A, "x 0-9, x 11-19, x 21-29, x 31-99");
    assert_int_equal(written(), 0);
    assert_int_equal(lock_world_log.changed_count, 0);
    release(A, 31, 40); /* what splits nothing needs no slot */
    take(A, 0, 9, false);
    release(A, 5, 25);
    assert_held(A, "s 0-4, x 26-29, x 41-99");
    release(A, 50, 50);
    assert_held(A, "s 0-4, x 26-29, x 41-49, x 51-99");
    release(A, 0, UINT64_MAX);
    assert_held(A, "");
}

TEST(test_lock__no_bytes_for_oh)
{
    struct core_limits limits = lock_world_limits;
    limits.bytes_max = 4 * 65536; /* a block for each size of string, and one to be filled */
    use(SLOTS, &limits);
    take(A, 0, 9, false);
    uint8_t oh[RECORD_NAME_MAX] = {0};
    uint32_t count = 0;
    for (; count < 1000; count++) {
        struct lock_want want = lock_world_want(count * 2 + 20, count * 2 + 20, false);
        store_be32(oh, count);
        want.oh = (struct bytes){oh, sizeof oh};
        if (!lock_world_carry_out(core, A, &want))
            break;
    }
    assert_in_range(count, 1, 999);
    assert_int_equal(core->locks.table.count, count + 1);
    lock_world_check(core);
    release(A, 0, UINT64_MAX);
    assert_int_equal(arena_used(core->arena), 0);
}

/* ---- offers ---- */

static uint32_t offer(struct who who, uint64_t start, uint64_t end, bool exclusive)
{
    struct lock_want want = lock_world_want(start, end, exclusive);
    uint32_t slot = lock_world_offer(core, who, &want, 7);
    assert_int_not_equal(slot, SLOT_NONE);
    lock_world_check(core);
    return slot;
}

/* R-BLK-19: an offer is in others' way, and what its owner held before is untouched by its end. */
TEST(test_lock__an_offer_is_not_yet_a_lock)
{
    take(A, 0, 9, false);
    uint32_t slot = offer(A, 0, 19, true);
    assert_held(A, "s 0-9");
    assert_int_equal(core->locks.offer_count, 1);
    assert_int_equal(lock_world_obstacle(core, B, 15, 15, false), slot);
    assert_false(covers(A, 0, 19, true));
    release(A, 5, 9); /* gives up what is held */
    lock_world_forget();
    lock_offer_withdraw(core, slot);
    assert_true(lock_world_was_changed(slot));
    assert_held(A, "s 0-4");
    assert_int_equal(lock_world_obstacle(core, B, 5, 99, true), SLOT_NONE);
}

TEST(test_lock__accepting_keeps_the_slot)
{
    take(A, 0, 3, true);
    uint32_t slot = offer(A, 5, 9, false);
    (void)written();
    lock_world_forget();
    assert_true(lock_offer_accept(core, slot, false));
    assert_held(A, "x 0-3, s 5-9");
    assert_int_equal(slot_of(A, 5), slot);
    assert_int_equal(lock_waiter(lock_at(core, slot)), SLOT_NONE);
    assert_int_equal(written(), 1);
    assert_int_equal(lock_world_log.changed_count, 0);
    slot = offer(A, 10, 14, false); /* merged with its neighbour */
    assert_true(lock_offer_accept(core, slot, false));
    assert_held(A, "x 0-3, s 5-14");
    slot = offer(A, 0, 14, true);
    assert_true(lock_offer_accept(core, slot, false));
    assert_held(A, "x 0-14");
    assert_int_equal(core->locks.offer_count, 0);
}

TEST(test_lock__accepting_never_weakens)
{
    uint32_t slot = offer(A, 0, 99, false);
    take(A, 10, 19, true);
    take(A, 90, 109, true);
    take(A, 30, 39, false);
    assert_true(lock_offer_accept(core, slot, false));
    lock_world_check(core);
    assert_held(A, "s 0-9, x 10-19, s 20-89, x 90-109");
    slot = offer(A, 12, 15, false); /* altogether inside */
    (void)written();
    assert_true(lock_offer_accept(core, slot, false));
    assert_held(A, "s 0-9, x 10-19, s 20-89, x 90-109");
    assert_int_equal(written(), 1); /* the offer's own record goes */
}

/* One batch cannot take any number of records; and the table not any number of locks. */
TEST(test_lock__accepting_has_bounds)
{
    enum { PIECES = LOCK_ACCEPT_PUTS_MAX };
    uint32_t slot = offer(A, 0, 4 * PIECES, false);
    for (uint64_t i = 0; i < PIECES; i++)
        take(A, 4 * i, 4 * i, true);
    dirty_clear(&core->dirty);
    assert_false(lock_offer_accept(core, slot, false));
    assert_int_equal(lock_world_obstacle(core, B, 1, 1, true), slot); /* it stands */
    assert_true(dirty_is_empty(&core->dirty));
    release(A, 0, 2 * PIECES + 8); /* 29 are left */
    assert_true(lock_offer_accept(core, slot, false));
    lock_world_check(core);
    assert_int_equal(core->dirty.put_count, 30); /* what is shared; the 29 exclusive ones stay */
    assert_int_equal(lock_world_obstacle(core, B, 1, 1, true), slot_of(A, 0));

    /* Nor any number of offers in one step. */
    dirty_clear(&core->dirty);
    core->limits.batch_puts_max = 8;
    uint32_t accepted = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        slot = offer(A2, 100000 + 2 * i, 100000 + 2 * i, true);
        uint32_t puts = core->dirty.put_count - 1;
        dirty_clear(&core->dirty);
        core->dirty.put_count = puts; /* the offer was made before */
        accepted += lock_offer_accept(core, slot, false) ? 1 : 0;
    }
    assert_in_range(accepted, LOCK_ACCEPT_PUTS_MAX, LOCK_ACCEPT_PUTS_MAX + 8);
}

TEST(test_lock__accepting_without_slots)
{
    struct core_limits limits = lock_world_limits;
    use(3, &limits);
    take(A, 0, 99, true);
    take(A, 200, 200, false);
    uint32_t slot = offer(A, 50, 59, true);
    lock_at(core, slot)->state = 9; /* another stamp: the lock around it must be split */
    assert_false(lock_offer_accept(core, slot, false));
    assert_held(A, "x 0-99, s 200-200");
    release(A, 200, 200);
    assert_true(lock_offer_accept(core, slot, false));
    assert_held(A, "x 0-49, x 50-59, x 60-99");
    release(A, 50, 59);
    slot = offer(A, 50, 59, true);
    assert_true(lock_offer_accept(core, slot, false)); /* its own slot is enough */
    assert_held(A, "x 0-99");
}

/* ---- clients that start anew ---- */

static void start_anew(uint32_t client)
{
    client_at(core, client)->stored.incarnation++;
    client_at(core, client)->life.drain_at = chains_first(&core->locks.by_client, client) + 1;
}

static uint32_t drain(uint32_t client, uint32_t max)
{
    uint32_t before = client_at(core, client)->life.drained_count;
    assert_true(lock_drain(core, client, max) <= max);
    lock_world_check(core);
    return client_at(core, client)->life.drained_count - before;
}

TEST(test_lock__draining_in_pieces)
{
    for (uint64_t i = 0; i < 10; i++)
        take(i % 2 == 0 ? A : A2, 10 * i, 10 * i, true);
    take(B, 505, 505, true);
    start_anew(0);
    assert_int_equal(drain(0, 3), 3);
    take(A, 1000, 1000, true); /* of the new incarnation */
    take(A, 0, 9, false);      /* the old [0, 0] is among it: it becomes this */
    /* Somebody else removes what is looked at next. */
    uint32_t next = client_at(core, 0)->life.drain_at - 1;
    struct who owner = owner_at(core, lock_at(core, next)->claim.owner)->svid == A.svid ? A : A2;
    release(owner, lock_at(core, next)->claim.start, lock_at(core, next)->claim.start);
    assert_int_not_equal(client_at(core, 0)->life.drain_at - 1, next);
    uint32_t freed = 0;
    while (client_at(core, 0)->life.drain_at != 0)
        freed += drain(0, 2);
    assert_int_equal(freed, 10 - 3 - 1 - 1);
    assert_held(A, "s 0-9, x 1000-1000");
    assert_held(A2, "");
    assert_held(B, "x 505-505");
    assert_int_equal(drain(0, 100), 0);
}

/* What is to be freed goes whole when it is touched: a rest of it would hide from the drain. */
TEST(test_lock__old_locks_leave_no_rests)
{
    take(A, 0, 99, true);
    take(A, 200, 299, true);
    start_anew(0);
    assert_false(covers(A, 0, 99, false));
    lock_world_forget();
    take(A, 40, 59, false);
    assert_held(A, "s 40-59, x 200-299");
    assert_int_equal(lock_world_log.changed_count, 1);
    release(A, 250, 250);
    assert_held(A, "s 40-59");
    take(A, 60, 69, true);
    start_anew(0);
    uint32_t slot = offer(A, 50, 79, false); /* old exclusive bytes are no reason to stay so */
    assert_true(lock_offer_accept(core, slot, false));
    assert_held(A, "s 50-79");
    assert_int_equal(drain(0, 100), 0);
}

TEST(test_lock__a_state_frees_what_is_older)
{
    const uint32_t states[] = {UINT32_MAX, 0, 5, 7, 9}; /* 2^32 - 1 is older than 5 */
    for (uint32_t i = 0; i < 5; i++) {
        struct lock_want want = lock_world_want(10 * i, 10 * i, true);
        want.state = states[i];
        assert_true(lock_world_carry_out(core, A, &want));
    }
    client_at(core, 0)->stored.free_below = 7;
    client_at(core, 0)->life.drain_at = chains_first(&core->locks.by_client, 0) + 1;
    struct lock_want late = lock_world_want(20, 20, true); /* an old state, but granted now */
    late.state = 5;
    assert_true(lock_world_carry_out(core, A, &late));
    assert_int_equal(lock_at(core, slot_of(A, 20))->state, 7);
    assert_int_equal(drain(0, 100), 1);
    assert_held(A, "x 10-10, x 20-20, x 30-30, x 40-40");
}

TEST(test_lock__draining_an_offer_ends_its_waiter)
{
    uint32_t slot = offer(A, 0, 9, true);
    start_anew(0);
    assert_false(lock_offer_accept(core, slot, false)); /* it is not its client's any more */
    lock_world_forget();
    assert_int_equal(drain(0, 100), 1);
    assert_int_equal(lock_world_log.lost_count, 1);
    assert_true(lock_world_was_lost(7));
    assert_true(lock_world_was_changed(slot));
    assert_int_equal(core->locks.offer_count, 0);
    assert_int_equal(core->owners.table.count, 0);
}

/* ---- records ---- */

static struct record_lock record_of(uint64_t start, uint64_t end, uint32_t flags)
{
    return (struct record_lock){
        .of = {.client_id = 1000, .client = 0, .incarnation = 1, .state = 1},
        .granted_ns = 5,
        .start = start,
        .end = end,
        .len = end - start + 1,
        .svid = 1,
        .flags = flags,
        .fh = lock_world_handle(0),
        .oh = bytes_of_text("oh"),
    };
}

static bool load(uint32_t slot, struct record_lock record)
{
    lock_build(core); /* those of before: this one is judged at once */
    bool is_loaded = lock_load(core, slot, &record);
    lock_world_check(core);
    if (!is_loaded)
        return false;
    uint8_t as_is[RECORD_VALUE_MAX], again[RECORD_VALUE_MAX];
    uint32_t len = record_put_lock(as_is, slot, &record);
    assert_int_equal(lock_encode(core, slot, again), len);
    assert_memory_equal(as_is, again, len);
    return true;
}

TEST(test_lock__records_come_back)
{
    assert_true(load(5, record_of(10, 19, RECORD_LOCK_EXCLUSIVE)));
    assert_true(load(7, record_of(20, 29, 0)));
    assert_true(load(9, record_of(15, 40, RECORD_LOCK_OFFER)));
    assert_held(A, "x 10-19, s 20-29");
    assert_int_equal(lock_waiter(lock_at(core, 9)), SLOT_NONE);
    assert_int_equal(core->locks.offer_count, 1);
    assert_int_equal(written(), 0);
    assert_true(lock_offer_accept(core, 9, false));
    assert_held(A, "x 10-19, s 20-40");
    /* Its client started anew before the record's time was over. */
    client_at(core, 1)->stored.incarnation = 4;
    struct record_lock old = record_of(100, 109, RECORD_LOCK_EXCLUSIVE);
    old.of = (struct record_of){.client_id = 1001, .client = 1, .incarnation = 3, .state = 1};
    assert_true(load(20, old));
    client_at(core, 1)->life.drain_at = chains_first(&core->locks.by_client, 1) + 1;
    assert_int_equal(drain(1, 10), 1);
}

TEST(test_lock__records_that_cannot_be)
{
    assert_true(load(5, record_of(10, 19, RECORD_LOCK_EXCLUSIVE)));
    struct record_lock bad = record_of(30, 39, 0);
    bad.of.client_id = 1001;
    assert_false(load(6, bad));
    bad = record_of(30, 39, 0);
    bad.of.client = CLIENTS;
    assert_false(load(6, bad));
    assert_false(load(5, record_of(30, 39, 0)));     /* the slot is taken */
    assert_false(load(SLOTS, record_of(30, 39, 0))); /* there is no such slot */
    assert_false(load(6, record_of(19, 25, 0)));     /* its owner has these bytes already */
    assert_false(load(6, record_of(0, 10, RECORD_LOCK_EXCLUSIVE)));
    assert_false(load(6, record_of(20, 29, RECORD_LOCK_EXCLUSIVE))); /* would have been one */
    assert_false(load(6, record_of(0, 9, RECORD_LOCK_EXCLUSIVE)));
    bad = record_of(12, 13, 0); /* in another's way */
    bad.svid = 2;
    assert_false(load(6, bad));
    bad.flags = RECORD_LOCK_OFFER;
    assert_false(load(6, bad));
    assert_int_equal(core->locks.table.count, 1);
    assert_int_equal(core->owners.table.count, 1);
    assert_true(load(6, record_of(20, 29, 0)));
}

/* Some of these contradict others, some cannot be at all. */
static struct record_lock any_record(struct prng *prng, uint64_t bytes)
{
    static const uint32_t flags[] = {0, RECORD_LOCK_EXCLUSIVE, RECORD_LOCK_EXCLUSIVE,
                                     RECORD_LOCK_OFFER, RECORD_LOCK_OFFER | RECORD_LOCK_EXCLUSIVE};
    uint64_t start = prng_below(prng, bytes);
    struct record_lock record =
        record_of(start, start + prng_below(prng, 4), flags[prng_below(prng, 5)]);
    record.of.client = (uint32_t)prng_below(prng, 2);
    record.of.client_id = prng_chance(prng, 2) ? 7 : 1000 + record.of.client;
    record.of.state = (uint32_t)prng_below(prng, 2);
    record.svid = (uint32_t)prng_below(prng, 2);
    record.fh = lock_world_handle((uint32_t)prng_below(prng, 3));
    return record;
}

static span_root own_root(const struct core *of, uint32_t slot)
{
    return ((const struct holding *)table_at(&of->locks.holdings, lock_holding(lock_at(of, slot))))
        ->locks;
}

static void assert_same_tables(const struct core *one, const struct core *all, uint32_t slots)
{
    uint8_t first[RECORD_VALUE_MAX], second[RECORD_VALUE_MAX];
    assert_int_equal(one->locks.table.count, all->locks.table.count);
    assert_int_equal(one->locks.offer_count, all->locks.offer_count);
    assert_int_equal(one->locks.holdings.count, all->locks.holdings.count);
    assert_int_equal(one->owners.table.count, all->owners.table.count);
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (!table_is_live(&one->locks.table, slot)) {
            assert_false(table_is_live(&all->locks.table, slot));
            continue;
        }
        uint32_t len = lock_encode(one, slot, first);
        assert_int_equal(lock_encode(all, slot, second), len);
        assert_memory_equal(first, second, len);
        uint32_t in_one = file_at(one, lock_at(one, slot)->claim.file)->locks;
        uint32_t in_all = file_at(all, lock_at(all, slot)->claim.file)->locks;
        assert_int_equal(span_next(&one->locks.by_start, in_one, slot),
                         span_next(&all->locks.by_start, in_all, slot));
        if (lock_holding(lock_at(one, slot)) != SLOT_NONE)
            assert_int_equal(span_next(&one->locks.own, own_root(one, slot), slot),
                             span_next(&all->locks.own, own_root(all, slot), slot));
    }
}

/* Returns how many contradicted others. */
static uint32_t compare_loads(struct prng *prng, uint32_t slots, uint64_t bytes)
{
    struct core *one = lock_world_new(2, slots, &lock_world_limits);
    struct core *all = lock_world_new(2, slots, &lock_world_limits);
    uint32_t refused[LOCK_WORLD_LOST_MAX], refused_count = 0;
    lock_build(one);
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct record_lock record = any_record(prng, bytes);
        if (prng_chance(prng, 10))
            continue;
        bool is_good = lock_load(one, slot, &record);
        if (lock_load(all, slot, &record) != is_good)
            refused[refused_count++] = slot;
    }
    lock_world_forget();
    lock_build(all);
    lock_world_check(one);
    lock_world_check(all);
    assert_same_tables(one, all, slots);
    assert_int_equal(lock_world_log.refused_count, refused_count);
    for (uint32_t i = 0; i < refused_count; i++) { /* they are reported file by file */
        bool is_there = false;
        for (uint32_t j = 0; j < refused_count; j++)
            is_there = is_there || lock_world_log.refused[j] == refused[i];
        assert_true(is_there);
    }
    lock_world_free(one);
    lock_world_free(all);
    return refused_count;
}

TEST(test_lock__records_loaded_at_once_are_as_one_by_one)
{
    struct prng prng = {1318};
    uint32_t with = 0, without = 0;
    for (uint32_t i = 0; i < 600; i++) {
        uint32_t slots = 1 + (uint32_t)prng_below(&prng, 60);
        uint64_t bytes = i % 3 == 0 ? 40 : i % 3 == 1 ? 400 : 100000;
        *(compare_loads(&prng, slots, bytes) > 0 ? &with : &without) += 1;
    }
    assert_in_range(with, 100, 500); /* both ways are gone */
    assert_in_range(without, 100, 500);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
