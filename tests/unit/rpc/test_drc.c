/*
 * test_drc.c -- the duplicate request cache: what makes two calls the same, how long an answer is
 * kept, who makes room for whom, and what a reboot forgets (R-DRC-1, 2).
 */
#include "rpc/drc.h"

#include "base/prng.h"
#include "unit/test.h"

enum { PORT = 900 };

static struct drc_key key_of(uint8_t host, uint32_t xid)
{
    return (struct drc_key){.address = {.family = 4, .bytes = {10, 0, 0, host}},
                            .xid = xid,
                            .prog = 100024,
                            .vers = 1,
                            .proc = 2,
                            .args_len = 40,
                            .args_hash = 1234};
}

static enum drc_verdict begin(struct drc *drc, struct drc_key key, uint64_t now_ns,
                              struct drc_found *ret)
{
    enum drc_verdict verdict = drc_find(drc, &key, PORT, now_ns, ret);
    if (verdict == DRC_NEW)
        ret->entry = drc_begin(drc, &key, PORT);
    (void)drc_check(drc);
    return verdict;
}

/* The call is executed and its answer leaves; the answer is the xid. */
static void execute(struct drc *drc, struct drc_key key, uint64_t now_ns)
{
    struct drc_found found;
    assert_int_equal(begin(drc, key, now_ns, &found), DRC_NEW);
    drc_wait(drc, found.entry, key.xid, false);
    drc_end(drc, found.entry, (struct bytes){(const uint8_t *)&key.xid, 4}, now_ns);
    (void)drc_check(drc);
}

static bool is_known(struct drc *drc, struct drc_key key, uint64_t now_ns)
{
    struct drc_found found;
    enum drc_verdict verdict = begin(drc, key, now_ns, &found);
    if (verdict == DRC_DONE) {
        assert_int_equal(found.reply.len, 4);
        assert_memory_equal(found.reply.at, &key.xid, 4);
        return true;
    }
    assert_int_equal(verdict, DRC_NEW);
    drc_end(drc, found.entry, (struct bytes){(const uint8_t *)&key.xid, 4}, now_ns);
    return false;
}

TEST(test_drc__life_of_a_call)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_found found, again;
    assert_int_equal(begin(drc, key_of(2, 7), 0, &found), DRC_NEW);
    drc_wait(drc, found.entry, 99, false);
    assert_int_equal(begin(drc, key_of(2, 7), 10, &again), DRC_IN_PROGRESS);
    assert_true(again.entry == found.entry);
    assert_true(again.waiting == 99);
    drc_end(drc, found.entry, bytes_of_text("answer"), 20);
    assert_int_equal(begin(drc, key_of(2, 7), 30, &again), DRC_DONE);
    assert_int_equal(again.reply.len, 6);
    assert_memory_equal(again.reply.at, "answer", 6);
    assert_int_equal(drc_check(drc), 1);
    drc_free(drc);
}

TEST(test_drc__every_part_of_the_key_counts)
{
    struct drc *drc = drc_new(64, 1);
    struct drc_key keys[10];
    for (int i = 0; i < 10; i++)
        keys[i] = key_of(2, 7);
    keys[1].address.bytes[3] = 3;
    keys[2].owner++;
    keys[3].xid++;
    keys[4].prog++;
    keys[5].vers++;
    keys[6].proc++;
    keys[7].args_len++;
    keys[8].args_hash++;
    keys[9].client++;
    for (int i = 0; i < 10; i++)
        execute(drc, keys[i], 1);
    for (int i = 0; i < 10; i++)
        assert_true(is_known(drc, keys[i], 2));
    assert_int_equal(drc_check(drc), 10);
    assert_true(drc_args_hash(drc, bytes_of_text("a")) != drc_args_hash(drc, bytes_of_text("b")));
    drc_free(drc);
}

/* A call that is begun from one port, and what its copy from another gets. */
static enum drc_verdict from_elsewhere(struct drc *drc, struct drc_key key, struct bytes *ret)
{
    struct drc_found found = {0};
    enum drc_verdict verdict = drc_find(drc, &key, PORT + 1, 5, &found);
    (void)drc_check(drc);
    *ret = found.reply;
    return verdict;
}

/* Of one owner: each makes those before it old, for every port. */
TEST(test_drc__later_calls_make_old)
{
    struct drc *drc = drc_new(16, 1);
    struct bytes reply;
    struct drc_key lock = key_of(2, 7), unlock = key_of(2, 8), other = key_of(2, 9);
    lock.owner = unlock.owner = 1;
    other.owner = 3;
    execute(drc, lock, 1);
    assert_int_equal(from_elsewhere(drc, lock, &reply), DRC_DONE);
    assert_int_equal(reply.len, 4);
    execute(drc, other, 2); /* somebody else's */
    assert_int_equal(from_elsewhere(drc, lock, &reply), DRC_DONE);
    execute(drc, unlock, 3);
    assert_int_equal(from_elsewhere(drc, lock, &reply), DRC_OLD);
    assert_int_equal(from_elsewhere(drc, unlock, &reply), DRC_DONE);
    struct drc_found found;
    assert_int_equal(drc_find(drc, &lock, PORT, 6, &found), DRC_OLD);
    assert_false(found.is_moved);
    assert_int_equal(drc_find(drc, &unlock, PORT, 6, &found), DRC_DONE);
    drc_free(drc);
}

/* Others may make a call old, too; whoever asks is told, from whichever port. */
TEST(test_drc__made_old_by_others)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_key free_all = key_of(2, 7), elsewhere = key_of(3, 7);
    struct drc_found found;
    free_all.owner = elsewhere.owner = 5;
    free_all.client = elsewhere.client = 5; /* of the whole client */
    execute(drc, free_all, 1);
    execute(drc, elsewhere, 1);
    assert_int_equal(drc_find(drc, &free_all, PORT, 2, &found), DRC_DONE);
    drc_supersede_whole(drc, &free_all.address, 7); /* of nobody */
    assert_int_equal(drc_find(drc, &free_all, PORT, 2, &found), DRC_DONE);
    drc_supersede_whole(drc, &free_all.address, 5);
    (void)drc_check(drc);
    assert_int_equal(drc_find(drc, &free_all, PORT, 2, &found), DRC_OLD);
    assert_false(found.is_moved);
    assert_int_equal(drc_find(drc, &free_all, PORT + 1, 2, &found), DRC_OLD);
    assert_int_equal(drc_find(drc, &elsewhere, PORT, 2, &found), DRC_DONE);
    drc_free(drc);
}

TEST(test_drc__passing_answers_are_for_one_port)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_found found;
    struct bytes reply;
    struct drc_key lock = key_of(2, 7);
    lock.owner = 1;
    assert_int_equal(begin(drc, lock, 0, &found), DRC_NEW);
    drc_wait(drc, found.entry, 99, true);
    assert_int_equal(from_elsewhere(drc, lock, &reply), DRC_IN_PROGRESS); /* it goes there now */
    drc_move(drc, found.entry, 100);
    drc_end(drc, found.entry, bytes_of_text("blocked"), 2);
    assert_int_equal(from_elsewhere(drc, lock, &reply), DRC_DONE);
    assert_int_equal(drc_find(drc, &lock, PORT, 6, &found), DRC_OLD);
    drc_free(drc);
}

/* The newest of an owner may go before older ones, and others of it come again. */
TEST(test_drc__an_owner_without_its_newest)
{
    struct drc *drc = drc_new(3, 1);
    struct drc_found found;
    struct bytes reply;
    struct drc_key keys[4];
    for (uint32_t i = 0; i < 4; i++) {
        keys[i] = key_of(2, 7 + i);
        keys[i].owner = 5;
    }
    execute(drc, keys[0], 1);
    assert_int_equal(begin(drc, keys[1], 2, &found), DRC_NEW);
    drc_abandon(drc, found.entry); /* without an answer: a repeat is new */
    (void)drc_check(drc);
    assert_int_equal(from_elsewhere(drc, keys[0], &reply), DRC_OLD); /* it was executed */
    assert_int_equal(from_elsewhere(drc, keys[1], &reply), DRC_NEW);
    for (uint32_t i = 1; i < 4; i++)
        execute(drc, keys[i], 2 + i); /* the table is full: the oldest goes */
    assert_int_equal(from_elsewhere(drc, keys[0], &reply), DRC_NEW);
    assert_int_equal(from_elsewhere(drc, keys[2], &reply), DRC_OLD);
    assert_int_equal(from_elsewhere(drc, keys[3], &reply), DRC_DONE);
    drc_forget(drc, &keys[0].address);
    (void)drc_check(drc);
    assert_int_equal(drc_check(drc), 0);
    drc_free(drc);
}

/* A call that was told to ask again has changed nothing: what was answered before is still true. */
TEST(test_drc__a_call_without_effect_makes_nothing_old)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_found found;
    struct bytes reply;
    struct drc_key keys[4];
    for (uint32_t i = 0; i < 4; i++) {
        keys[i] = key_of(2, 7 + i);
        keys[i].owner = 5;
    }
    execute(drc, keys[0], 1);
    for (uint32_t i = 1; i < 3; i++) { /* once with something before, once behind one of these */
        assert_int_equal(begin(drc, keys[i], 2, &found), DRC_NEW);
        drc_void(drc, found.entry);
        (void)drc_check(drc);
        drc_wait(drc, found.entry, 0, false);
        drc_end(drc, found.entry, bytes_of_text("ask again"), 2);
        assert_int_equal(begin(drc, keys[0], 3, &found), DRC_DONE);
        assert_int_equal(begin(drc, keys[i], 3, &found), DRC_OLD);
    }
    execute(drc, keys[3], 4);
    assert_int_equal(from_elsewhere(drc, keys[0], &reply), DRC_OLD);
    assert_int_equal(from_elsewhere(drc, keys[3], &reply), DRC_DONE);
    assert_int_equal(begin(drc, key_of(3, 1), 5, &found), DRC_NEW); /* of nobody: nothing happens */
    drc_void(drc, found.entry);
    drc_end(drc, found.entry, bytes_of_text("answer"), 5);
    assert_int_equal(begin(drc, key_of(3, 1), 6, &found), DRC_DONE);
    drc_free(drc);
}

/* An operator released a client: what it was answered, or is about to be, is old; nothing else. */
TEST(test_drc__what_was_overridden_is_old)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_found found;
    struct bytes reply;
    struct drc_key keys[5];
    for (uint32_t i = 0; i < 5; i++) {
        keys[i] = key_of(2, 7 + i);
        keys[i].owner = 5 + i;
        keys[i].client = 77;
    }
    keys[2].owner = 77; /* its FREE_ALL */
    keys[3].client = 78;
    keys[4].address.bytes[3] = 3;
    assert_int_equal(begin(drc, keys[0], 1, &found), DRC_NEW);
    drc_wait(drc, found.entry, 0, false);
    for (uint32_t i = 1; i < 5; i++)
        execute(drc, keys[i], 1);
    drc_supersede_client(drc, &keys[0].address, 77);
    drc_end(drc, found.entry, bytes_of_text("answer"), 2);
    (void)drc_check(drc);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(begin(drc, keys[i], 3, &found), i < 2 ? DRC_OLD : DRC_DONE);
    assert_int_equal(from_elsewhere(drc, keys[1], &reply), DRC_OLD);
    drc_free(drc);
}

TEST(test_drc__replies_of_all_sizes_fit_side_by_side)
{
    struct drc *drc = drc_new(64, 1);
    static uint8_t reply[DRC_REPLY_MAX];
    uint32_t count = 0;
    for (uint32_t len = 20; len <= DRC_REPLY_MAX; len = len * 3 / 2) {
        struct drc_found found;
        assert_int_equal(begin(drc, key_of(2, ++count), 1, &found), DRC_NEW);
        drc_end(drc, found.entry, (struct bytes){reply, len}, 1);
    }
    for (uint32_t xid = 1; xid <= count; xid++) {
        struct drc_found found;
        assert_int_equal(begin(drc, key_of(2, xid), 2, &found), DRC_DONE);
    }
    drc_free(drc);
}

/* Short replies lie in their entries, longer ones elsewhere: each is said again as it was, and what
 * makes room for another takes nothing with it. */
TEST(test_drc__replies_stay_whole)
{
    enum { COUNT = 140, KEPT = 100 };
    struct drc *drc = drc_new(KEPT, 1);
    struct drc_found found;
    uint8_t reply[COUNT];
    for (uint32_t len = 0; len < COUNT; len++) {
        memset(reply, (int)len + 1, sizeof reply);
        assert_int_equal(begin(drc, key_of(2, len), 1, &found), DRC_NEW);
        drc_wait(drc, found.entry, UINT64_MAX - len, false);
        drc_end(drc, found.entry, (struct bytes){reply, len}, 1);
    }
    assert_int_equal(drc_check(drc), KEPT);
    for (uint32_t len = COUNT - KEPT; len < COUNT; len++) {
        memset(reply, (int)len + 1, sizeof reply);
        assert_int_equal(begin(drc, key_of(2, len), 2, &found), DRC_DONE);
        assert_int_equal(found.reply.len, len);
        assert_memory_equal(found.reply.at, reply, len);
    }
    struct drc_key any = key_of(2, 0);
    drc_forget(drc, &any.address);
    assert_int_equal(drc_check(drc), 0); /* and nothing is left of the longer ones */
    drc_free(drc);
}

/* One caller after the other, and in turn: each has its own calls, also when one of them went with
 * its last call and another has its place. */
TEST(test_drc__callers_come_and_go)
{
    struct drc *drc = drc_new(4, 1);
    struct drc_found found, other;
    struct drc_key first = key_of(2, 7), second = key_of(3, 7), third = key_of(4, 7);
    first.owner = second.owner = third.owner = 5;
    assert_int_equal(begin(drc, first, 1, &found), DRC_NEW);
    assert_int_equal(begin(drc, second, 1, &other), DRC_NEW);
    drc_wait(drc, other.entry, 88, false);
    drc_abandon(drc, found.entry); /* and its caller goes */
    assert_int_equal(drc_check(drc), 1);
    assert_int_equal(drc_find(drc, &first, PORT, 2, &found), DRC_NEW);
    assert_int_equal(begin(drc, third, 2, &found), DRC_NEW); /* takes its place */
    drc_supersede_client(drc, &first.address, 0);            /* nobody's by now */
    drc_forget(drc, &first.address);
    drc_forget_client(drc, &first.address, 0);
    assert_int_equal(begin(drc, first, 2, &found), DRC_NEW);
    assert_int_equal(begin(drc, second, 2, &other), DRC_IN_PROGRESS);
    assert_true(other.waiting == 88);
    drc_end(drc, other.entry, bytes_of_text("second"), 3);
    drc_end(drc, found.entry, bytes_of_text("first"), 3);
    assert_int_equal(begin(drc, second, 4, &found), DRC_DONE); /* owners are those of an address */
    assert_int_equal(begin(drc, first, 4, &found), DRC_DONE);
    assert_memory_equal(found.reply.at, "first", 5);
    assert_int_equal(begin(drc, third, 4, &found), DRC_IN_PROGRESS);
    drc_free(drc);
}

/* Room is made by the last call of the very caller that needs it. */
TEST(test_drc__makes_room_for_itself)
{
    struct drc *drc = drc_new(1, 1);
    struct drc_found found;
    struct drc_key keys[3];
    for (uint32_t i = 0; i < 3; i++) {
        keys[i] = key_of(2, 7 + i);
        keys[i].owner = 5;
        execute(drc, keys[i], i);
        assert_int_equal(drc_check(drc), 1);
        assert_true(is_known(drc, keys[i], i));
    }
    assert_int_equal(begin(drc, keys[0], 3, &found), DRC_NEW);
    drc_void(drc, found.entry); /* what it made old is gone */
    assert_int_equal(drc_check(drc), 1);
    assert_int_equal(begin(drc, keys[1], 3, &found), DRC_NEW);
    assert_true(found.entry == DRC_NONE); /* what is in progress makes no room */
    drc_free(drc);
}

/* The oldest of one caller, one between others, and the newest go: the queues stay whole. */
TEST(test_drc__done_calls_go_in_any_order)
{
    struct drc *drc = drc_new(16, 1);
    for (uint32_t i = 0; i < 12; i++) {
        struct drc_key key = key_of((uint8_t)(2 + i % 2), i);
        key.client = 1 + i % 3;
        execute(drc, key, i);
    }
    const struct drc_key one = key_of(2, 0);
    for (uint32_t i = 0; i < 3; i++) {
        drc_forget_client(drc, &one.address, 1 + (i + 1) % 3);
        assert_int_equal(drc_check(drc), 12 - 2 * (i + 1));
    }
    struct drc_key oldest = key_of(3, 1), newest = key_of(3, 11);
    oldest.client = 2;
    newest.client = 3;
    assert_true(is_known(drc, oldest, 12));
    assert_true(is_known(drc, newest, DRC_LIFE_NS + 1)); /* and the others expire */
    assert_int_equal(drc_check(drc), 5);
    drc_forget_all(drc);
    assert_int_equal(drc_check(drc), 0);
    drc_free(drc);
}

TEST(test_drc__answers_expire)
{
    struct drc *drc = drc_new(16, 1);
    execute(drc, key_of(2, 1), 0);
    assert_true(is_known(drc, key_of(2, 1), DRC_LIFE_NS - 1));
    assert_false(is_known(drc, key_of(2, 1), DRC_LIFE_NS));
    /* What is in progress does not expire. */
    struct drc_found found;
    assert_int_equal(begin(drc, key_of(2, 2), DRC_LIFE_NS, &found), DRC_NEW);
    assert_int_equal(begin(drc, key_of(2, 2), 9 * DRC_LIFE_NS, &found), DRC_IN_PROGRESS);
    drc_free(drc);
}

TEST(test_drc__oldest_makes_room)
{
    struct drc *drc = drc_new(4, 1);
    struct drc_found found;
    for (uint32_t xid = 1; xid <= 4; xid++)
        execute(drc, key_of((uint8_t)xid, xid), xid);
    execute(drc, key_of(9, 9), 10);
    assert_int_equal(drc_check(drc), 4);
    assert_true(is_known(drc, key_of(2, 2), 11));
    assert_true(is_known(drc, key_of(9, 9), 11));
    assert_false(is_known(drc, key_of(1, 1), 11));
    drc_free(drc);

    drc = drc_new(2, 1); /* nothing that is in progress is given up */
    assert_int_equal(begin(drc, key_of(1, 1), 0, &found), DRC_NEW);
    assert_int_equal(begin(drc, key_of(1, 2), 0, &found), DRC_NEW);
    assert_int_equal(begin(drc, key_of(1, 3), 0, &found), DRC_NEW);
    assert_true(found.entry == DRC_NONE);
    assert_int_equal(begin(drc, key_of(1, 1), 0, &found), DRC_IN_PROGRESS);
    drc_free(drc);
}

TEST(test_drc__one_address_has_a_quota)
{
    struct drc *drc = drc_new(4 * DRC_PER_ADDRESS, 1);
    execute(drc, key_of(3, 1), 0);
    for (uint32_t xid = 1; xid <= DRC_PER_ADDRESS + 10; xid++) {
        struct drc_key key = key_of(2, xid);
        drc_end(drc, drc_begin(drc, &key, PORT), (struct bytes){(const uint8_t *)&xid, 4}, 1);
    }
    (void)drc_check(drc);
    assert_int_equal(drc_check(drc), DRC_PER_ADDRESS + 1);
    assert_true(is_known(drc, key_of(3, 1), 2)); /* the neighbour's stays */
    assert_true(is_known(drc, key_of(2, 11), 2));
    assert_false(is_known(drc, key_of(2, 10), 2));
    drc_free(drc);
}

/* Addresses whose replies are as long as can be lose their own oldest ones: what they have in all
 * is what as many addresses may have with short ones. */
TEST(test_drc__one_address_has_a_share_of_bytes)
{
    enum { ADDRESSES = 32, LAST = 100 };
    static uint8_t reply[DRC_REPLY_MAX];
    struct drc *drc = drc_new(ADDRESSES * DRC_PER_ADDRESS, 1);
    execute(drc, key_of(200, 1), 0);
    for (uint8_t host = 1; host <= ADDRESSES; host++)
        for (uint32_t xid = 1; xid <= LAST; xid++) {
            struct drc_key key = key_of(host, xid);
            drc_end(drc, drc_begin(drc, &key, PORT), (struct bytes){reply, sizeof reply}, 1);
        }
    (void)drc_check(drc);
    assert_true(is_known(drc, key_of(200, 1), 2));
    struct drc_found found;
    assert_int_equal(begin(drc, key_of(1, LAST), 2, &found), DRC_DONE);
    assert_int_equal(begin(drc, key_of(1, 1), 2, &found), DRC_NEW);
    drc_abandon(drc, found.entry);
    drc_free(drc);
}

/* What is short takes nothing of that, and does not go for it. */
TEST(test_drc__long_replies_leave_short_ones_alone)
{
    enum { SHORT = 500, LONG = 200, ADDRESSES = 40 };
    static uint8_t reply[DRC_REPLY_MAX];
    struct drc *drc = drc_new(4 * DRC_PER_ADDRESS, 1); /* an arena for fewer than all of them */
    for (uint32_t xid = 1; xid <= SHORT; xid++)
        execute(drc, key_of(1, xid), 0);
    for (uint8_t host = 1; host <= ADDRESSES; host++)
        for (uint32_t xid = 1; xid <= LONG; xid++) {
            struct drc_key key = key_of(host, SHORT + xid);
            uint32_t len = sizeof reply - xid * 8;
            drc_end(drc, drc_begin(drc, &key, PORT), (struct bytes){reply, len}, 1);
        }
    (void)drc_check(drc);
    for (uint32_t xid = 1; xid <= SHORT; xid++)
        assert_true(is_known(drc, key_of(1, xid), 2));
    struct drc_found found;
    assert_int_equal(begin(drc, key_of(ADDRESSES, SHORT + LONG), 2, &found), DRC_DONE);
    drc_free(drc);
}

/* Cells of other sizes lie all over the arena, and the oldest ones in no block of their own. */
TEST(test_drc__a_long_reply_is_kept_among_many_sizes)
{
    enum { ADDRESSES = 40, REPLIES = 400, LONG = 50 };
    static uint8_t reply[DRC_REPLY_MAX];
    struct prng prng = {3};
    struct drc *drc = drc_new(4 * DRC_PER_ADDRESS, 1);
    for (uint32_t xid = 1; xid <= REPLIES; xid++)
        for (uint8_t host = 1; host <= ADDRESSES; host++) {
            struct drc_key key = key_of(host, xid);
            struct bytes mixed = {reply, 45 + (uint32_t)prng_below(&prng, 467)};
            drc_end(drc, drc_begin(drc, &key, PORT), mixed, 1);
        }
    for (uint32_t xid = 1; xid <= LONG; xid++) {
        struct drc_key key = key_of(200, xid);
        struct drc_found found;
        drc_end(drc, drc_begin(drc, &key, PORT), (struct bytes){reply, 2000}, 1);
        assert_int_equal(begin(drc, key, 2, &found), DRC_DONE);
    }
    (void)drc_check(drc);
    drc_free(drc);
}

TEST(test_drc__long_reply_is_not_kept)
{
    static uint8_t reply[DRC_REPLY_MAX + 1];
    struct drc *drc = drc_new(100, 1);
    struct drc_found found;
    assert_int_equal(begin(drc, key_of(2, 1), 0, &found), DRC_NEW);
    drc_end(drc, found.entry, (struct bytes){reply, sizeof reply}, 0);
    (void)drc_check(drc);
    assert_int_equal(drc_check(drc), 0);
    assert_int_equal(begin(drc, key_of(2, 1), 0, &found), DRC_NEW);
    drc_end(drc, found.entry, (struct bytes){reply, DRC_REPLY_MAX}, 0);
    assert_int_equal(begin(drc, key_of(2, 1), 0, &found), DRC_DONE);
    drc_free(drc);
}

TEST(test_drc__reboot_forgets)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_found pending, notify, found;
    execute(drc, key_of(2, 1), 0);
    execute(drc, key_of(3, 1), 0);
    assert_int_equal(begin(drc, key_of(2, 2), 0, &pending), DRC_NEW);
    drc_wait(drc, pending.entry, 1, false);
    /* The call that tells of the reboot is itself in progress when it is believed. */
    assert_int_equal(begin(drc, key_of(2, 3), 0, &notify), DRC_NEW);
    drc_forget(drc, &(struct address){.family = 4, .bytes = {10, 0, 0, 2}});
    (void)drc_check(drc);
    drc_wait(drc, notify.entry, 2, false);
    drc_end(drc, pending.entry, bytes_of_text("old"), 1);
    drc_end(drc, notify.entry, bytes_of_text("new"), 1);
    (void)drc_check(drc);
    assert_int_equal(begin(drc, key_of(2, 1), 2, &found), DRC_NEW);
    assert_int_equal(begin(drc, key_of(2, 2), 2, &found), DRC_NEW); /* ended after the reboot */
    assert_int_equal(begin(drc, key_of(2, 3), 2, &found), DRC_DONE);
    assert_true(is_known(drc, key_of(3, 1), 2));
    drc_forget(drc, &(struct address){.family = 4, .bytes = {10, 9, 9, 9}}); /* unknown */
    (void)drc_check(drc);
    drc_free(drc);
}

/* We act as if we had rebooted: nobody's calls are known, nor kept when they end. */
TEST(test_drc__our_reboot_forgets_all)
{
    struct drc *drc = drc_new(16, 1);
    struct drc_found pending, found;
    execute(drc, key_of(2, 1), 0);
    execute(drc, key_of(3, 1), 0);
    assert_int_equal(begin(drc, key_of(2, 2), 0, &pending), DRC_NEW);
    drc_wait(drc, pending.entry, 1, false);
    drc_forget_all(drc);
    (void)drc_check(drc);
    drc_end(drc, pending.entry, bytes_of_text("old"), 1);
    assert_int_equal(drc_check(drc), 0);
    assert_int_equal(begin(drc, key_of(2, 2), 2, &found), DRC_NEW);
    drc_free(drc);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
