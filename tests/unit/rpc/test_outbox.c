/*
 * test_outbox.c -- the queue of gated answers: order, the gate, room, redirection, and messages
 * that survive many turns of the ring of bytes unchanged.
 */
#include "rpc/outbox.h"
#include "unit/test.h"

static uint64_t add(struct outbox *outbox, uint64_t after_txn, uint8_t fill, uint32_t len)
{
    uint8_t *at = outbox_reserve(outbox);
    memset(at, fill, len);
    struct outbox_entry entry = {.to.route = fill, .after_txn = after_txn};
    return outbox_add(outbox, &entry, len);
}

TEST(test_outbox__gate)
{
    struct outbox *outbox = outbox_new(4, 100, 400);
    assert_null(outbox_head(outbox, 100));
    add(outbox, 5, 1, 10);
    add(outbox, 5, 2, 10);
    add(outbox, 6, 3, 10);
    assert_null(outbox_head(outbox, 4));
    assert_int_equal(outbox_head(outbox, 5)->to.route, 1);
    outbox_pop(outbox);
    assert_int_equal(outbox_head(outbox, 5)->to.route, 2);
    outbox_pop(outbox);
    assert_null(outbox_head(outbox, 5));
    assert_int_equal(outbox_head(outbox, 7)->to.route, 3);
    assert_int_equal(outbox_count(outbox), 1);
    outbox_free(outbox);
}

TEST(test_outbox__room)
{
    struct outbox *outbox = outbox_new(3, 100, 1000); /* entries run out */
    for (uint8_t i = 0; i < 3; i++) {
        assert_true(outbox_has_room(outbox));
        add(outbox, 1, i, 10);
    }
    assert_false(outbox_has_room(outbox));
    outbox_pop(outbox);
    assert_true(outbox_has_room(outbox));
    outbox_free(outbox);

    outbox = outbox_new(100, 100, 250); /* bytes run out */
    uint32_t count = 0;
    for (; outbox_has_room(outbox) && count < 100; count++)
        add(outbox, 1, 9, 100);
    assert_int_equal(count, 2);
    outbox_pop(outbox);
    assert_true(outbox_has_room(outbox));
    outbox_free(outbox);
}

/* A message that ends where the ring does: the next one starts at its beginning. */
TEST(test_outbox__ends_with_the_ring)
{
    struct outbox *outbox = outbox_new(8, 100, 200);
    uint8_t *first = outbox_reserve(outbox);
    add(outbox, 1, 0, 100);
    for (uint8_t i = 1; i < 10; i++) { /* one always waits */
        assert_ptr_equal(outbox_reserve(outbox), first + 100 * (i % 2));
        add(outbox, 1, i, 100);
        assert_false(outbox_has_room(outbox));
        assert_int_equal(outbox_message(outbox, outbox_head(outbox, 1)).at[99], i - 1);
        outbox_pop(outbox);
    }
    outbox_free(outbox);
}

/* Where nothing waits the next message takes the first place, and has a number of its own. */
TEST(test_outbox__empty_begins_again)
{
    struct outbox *outbox = outbox_new(4, 100, 1000);
    uint8_t *first = outbox_reserve(outbox);
    for (uint8_t i = 0; i < 10; i++) {
        assert_ptr_equal(outbox_reserve(outbox), first);
        uint64_t number = add(outbox, 1, i, 10);
        assert_int_equal(number, 2 * i);
        assert_int_equal(add(outbox, 1, 99, 10), 2 * i + 1);
        assert_int_equal(outbox_find(outbox, number)->to.route, i);
        outbox_pop(outbox);
        assert_ptr_equal(outbox_reserve(outbox), first + 20);
        assert_null(outbox_find(outbox, number));
        assert_int_equal(outbox_find(outbox, number + 1)->to.route, 99);
        outbox_pop(outbox);
        assert_null(outbox_find(outbox, number + 1));
    }
    outbox_free(outbox);
}

TEST(test_outbox__messages_stay_whole)
{
    struct outbox *outbox = outbox_new(8, 64, 200);
    uint32_t pushed = 0, popped = 0;
    while (popped < 2000) {
        while (outbox_has_room(outbox)) {
            add(outbox, pushed, (uint8_t)pushed, 1 + pushed % 64);
            pushed++;
        }
        assert_in_range(outbox_count(outbox), 1, 8);
        for (uint32_t i = popped; i < pushed; i++)
            assert_int_equal(outbox_find(outbox, i)->to.route, (uint8_t)i);
        const struct outbox_entry *head = outbox_head(outbox, UINT64_MAX);
        struct bytes message = outbox_message(outbox, head);
        assert_int_equal(message.len, 1 + popped % 64);
        for (uint32_t i = 0; i < message.len; i++)
            assert_int_equal(message.at[i], (uint8_t)popped);
        outbox_pop(outbox);
        popped++;
    }
    outbox_free(outbox);
}

TEST(test_outbox__redirection)
{
    struct outbox *outbox = outbox_new(4, 100, 400);
    add(outbox, 1, 1, 10);
    uint64_t number = add(outbox, 1, 2, 10);
    outbox_find(outbox, number)->to.route = 77;
    outbox_pop(outbox);
    assert_int_equal(outbox_head(outbox, 1)->to.route, 77);
    outbox_pop(outbox);
    assert_null(outbox_find(outbox, number)); /* it left */
    assert_null(outbox_find(outbox, number + 1));
    outbox_free(outbox);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
